// Addresses, theme, and the page in view.

let page = null;
let shownHash = null;

function go(steps) {
  location.hash = route(steps);
}

// The address follows the selection without filling the history.
function replaceAddress(hash) {
  shownHash = hash;
  if (location.hash === hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    location.replace(hash);
  }
}

function stepsOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  let steps = [];
  try {
    steps = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    steps = ["unknown"];
  }
  return { steps, filters: new URLSearchParams(query ?? "") };
}

function render() {
  if (location.hash === shownHash) return;
  shownHash = location.hash;
  const { steps, filters } = stepsOf(location.hash);
  page = pageFor(steps, filters);
  byId("main").replaceChildren(page.node);
  byId("crumbs").replaceChildren(...crumbs(page, steps));
  document.title = [page.title ?? steps[1], "replaykit"].filter(Boolean).join(" · ");
  scrollTo(0, 0);
  page.start?.();
}

function pageFor([kind, ...steps], filters) {
  if (kind === undefined) return listPage(filters);
  const [first, second] = steps.map((name) => byName.get(name));
  if (kind === "episode" && first) return Object.assign(episodePage(first, steps.slice(1)), { title: first.id });
  if (kind === "diff" && first && second) return Object.assign(diffPage(first, second, steps.slice(2)), { title: `${first.id} and ${second.id}` });
  return { name: "missing", items: [], cursor: -1, node: el("p", { class: "empty" }, "There is no such place here. ", link([], "All episodes")) };
}

function crumbs(shown, steps) {
  if (!steps.length) return [];
  const { before, after } = shown.siblings ?? {};
  return [
    link([], "All episodes"),
    el("span", { class: "crumb" }, visible(steps[0] === "diff" ? "Differences" : (shown.episode?.id ?? ""))),
    before ? link(["episode", before.id], "‹", { "aria-label": "Previous episode ([)", title: "Previous episode ([)" }) : null,
    after ? link(["episode", after.id], "›", { "aria-label": "Next episode (])", title: "Next episode (])" }) : null,
  ].filter(Boolean);
}

const THEMES = ["system", "light", "dark"];

// A page from a file may have no storage; the choice then lasts as long as the page.
function storedTheme() {
  try {
    return THEMES.includes(localStorage.getItem("replaykit.theme")) ? localStorage.getItem("replaykit.theme") : "system";
  } catch {
    return "system";
  }
}

function useTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = `Theme: ${name}`;
  try {
    localStorage.setItem("replaykit.theme", name);
  } catch {
    return;
  }
}

function nextTheme() {
  useTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
}

useTheme(storedTheme());
byId("theme").addEventListener("click", nextTheme);
byId("help-open").addEventListener("click", showHelp);
document.addEventListener("keydown", (event) => onKey(event, page));
addEventListener("hashchange", render);
render();
