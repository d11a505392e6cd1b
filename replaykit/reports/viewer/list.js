// The list of episodes with its filters. Filters stand in the address, so that a filtered list can be linked to.

const FILTERS = ["q", "panel", "arm", "end", "reward", "finding"];
const marked = [];

const rewardName = (episode) => {
  if (episode.interrupted) return "none";
  if (episode.reward === null) return "unknown";
  return episode.reward === 1 ? "1" : episode.reward === 0 ? "0" : "between";
};
const endOf = (episode) => (episode.interrupted ? "INTERRUPTED" : (episode.termination ?? "unknown"));
const isOrdinaryEnd = (end) => end === "user_stop" || end === "agent_stop";

function violationsOf(episode) {
  const last = episode.turns.at(-1);
  const state = last && stateOf(last);
  return state ? state.violations + state.format_errors : 0;
}

function listPage(filters) {
  const page = { name: "list", items: [], cursor: -1 };
  const body = el("tbody", {});
  const count = el("p", { class: "count", role: "status" });
  const inputs = filterInputs(filters, () => show());
  const table = el(
    "table",
    { class: "episodes" },
    el("thead", {}, el("tr", {}, ["", "Panel", "Arm", "Reward", "Ended", "Messages", "Requests", "Findings"].map((name) => el("th", { scope: "col" }, name)))),
    body,
  );
  const compare = button("Compare the two marked", () => compareMarked(), { class: "primary", hidden: true });
  const rows = EPISODES.map((episode) => ({ episode, row: listRow(episode, page, () => showMarks()) }));

  function show() {
    const wanted = Object.fromEntries(FILTERS.map((name) => [name, inputs[name].value.trim()]));
    const kept = rows.filter(({ episode }) => passes(episode, wanted));
    body.replaceChildren(...kept.map(({ row }) => row));
    page.items = kept.map(({ row }) => row);
    page.episodes = kept.map(({ episode }) => episode);
    page.cursor = -1;
    count.textContent = kept.length === EPISODES.length ? plural(kept.length, "episode") : `${kept.length} of ${plural(EPISODES.length, "episode")}`;
    const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    replaceAddress(query.size ? `#/?${query}` : "#/");
  }

  function showMarks() {
    for (const { episode, row } of rows) row.querySelector("input").checked = marked.includes(episode.id);
    compare.hidden = marked.length !== 2;
  }

  page.node = el(
    "section",
    { class: "list", "aria-label": "Episodes" },
    el("div", { class: "filters", role: "search" }, FILTERS.map((name) => inputs[name].field)),
    unreadable(),
    el("div", { class: "list-head" }, count, el("span", { class: "hint" }, "Mark two with ", el("kbd", {}, "x"), " and compare them with ", el("kbd", {}, "d")), compare),
    EPISODES.length ? table : el("p", { class: "empty" }, "There is no episode to show."),
  );
  page.open = (index) => go(["episode", page.episodes[index].id]);
  page.search = inputs.q;
  page.mark = () => page.cursor >= 0 && (toggleMark(page.episodes[page.cursor].id), showMarks());
  page.compare = compareMarked;
  page.refresh = show;
  showMarks();
  show();
  return page;
}

function compareMarked() {
  if (marked.length === 2) go(["diff", ...marked]);
  else announce(`${marked.length} marked: mark two episodes with x`);
}

function toggleMark(id) {
  const at = marked.indexOf(id);
  if (at >= 0) marked.splice(at, 1);
  else marked.push(id);
  if (marked.length > 2) marked.shift();
}

function filterInputs(filters, changed) {
  const options = {
    arm: [...new Set(EPISODES.map((episode) => episode.arm))].sort(),
    end: [...new Set(EPISODES.map(endOf))].sort(),
    reward: ["1", "0", "between", "unknown", "none"].filter((name) => EPISODES.some((episode) => rewardName(episode) === name)),
    finding: [...new Set(EPISODES.flatMap((episode) => episode.diagnostics))].sort(),
  };
  const inputs = {};
  const add = (name, label, input) => {
    input.value = filters.get(name) ?? "";
    input.addEventListener("input", changed);
    input.field = el("label", { class: `filter ${name}` }, el("span", {}, label), input);
    inputs[name] = input;
  };
  add("q", "Text", el("input", { type: "search", placeholder: "in conversations, paths, names", autocomplete: "off", spellcheck: "false" }));
  add("panel", "Panel", el("input", { type: "search", placeholder: "retail/2", autocomplete: "off", spellcheck: "false" }));
  add("arm", "Arm", choice("any", options.arm));
  add("end", "Ended", choice("any way", options.end));
  add("reward", "Reward", choice("any", options.reward));
  add("finding", "Findings", choice("any or none", [["*", "some finding"], ["!", "no finding"], ["%", "policy violations"], ...options.finding]));
  return inputs;
}

function choice(any, options) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  return el("select", {}, el("option", { value: "" }, any), pairs.map(([value, label]) => el("option", { value }, visible(label))));
}

function passes(episode, wanted) {
  return (
    panelPasses(episode.panel, wanted.panel) &&
    (!wanted.arm || episode.arm === wanted.arm) &&
    (!wanted.end || endOf(episode) === wanted.end) &&
    (!wanted.reward || rewardName(episode) === wanted.reward) &&
    findingPasses(episode, wanted.finding) &&
    textPasses(episode, wanted.q.toLowerCase())
  );
}

// "retail/2" is that panel; "retail", "tail/2" or "2" are parts of names.
function panelPasses(panel, wanted) {
  if (!wanted) return true;
  return /^[a-z]+\/\d+$/i.test(wanted) ? panel === wanted.toLowerCase() : panel.includes(wanted.toLowerCase());
}

function findingPasses(episode, wanted) {
  if (!wanted) return true;
  const some = episode.diagnostics.length + violationsOf(episode) > 0;
  if (wanted === "*") return some;
  if (wanted === "!") return !some;
  return wanted === "%" ? violationsOf(episode) > 0 : episode.diagnostics.includes(wanted);
}

function textPasses(episode, wanted) {
  if (!wanted) return true;
  const names = [episode.id, episode.panel, episode.arm, episode.path, endOf(episode), episode.digest, ...episode.diagnostics];
  return names.some((name) => String(name).toLowerCase().includes(wanted)) || episode.turns.some((turn) => searchTextOf(turn).includes(wanted));
}

function listRow(episode, page, marksChanged) {
  const box = el("input", { type: "checkbox", "aria-label": `Mark ${episode.id} for comparison` });
  box.addEventListener("change", () => (toggleMark(episode.id), marksChanged()));
  const end = endOf(episode);
  const row = el(
    "tr",
    { tabindex: "-1" },
    el("td", { class: "mark" }, box),
    el("th", { scope: "row" }, link(["episode", episode.id], visible(episode.panel))),
    el("td", { class: "arm" }, visible(episode.arm), controlsChip(episode)),
    el("td", {}, rewardChip(episode)),
    el("td", {}, chip(end, episode.interrupted ? "bad" : isOrdinaryEnd(end) ? "plain" : "care")),
    el("td", { class: "number" }, String(episode.turns.length)),
    el("td", { class: "number" }, String(episode.requests.length)),
    el("td", { class: "findings" }, findingChips(episode)),
  );
  row.addEventListener("click", (event) => {
    if (!event.target.closest("a, input")) go(["episode", episode.id]);
  });
  return row;
}

function controlsChip(episode) {
  return episode.controls ? chip(`controls: ${episode.controls}`, "label", "Labelled offline controls sat at the seats") : null;
}

function rewardChip(episode) {
  const name = rewardName(episode);
  const tone = { 1: "good", 0: "bad", between: "care", unknown: "care", none: "plain" }[name];
  return chip(name === "between" ? String(episode.reward) : name === "none" ? "–" : name, `${tone} reward`);
}

function findingChips(episode) {
  const violations = violationsOf(episode);
  const chips = [...new Set(episode.diagnostics)].map((name) => chip(name, "care"));
  if (violations) chips.unshift(chip(plural(violations, "violation"), "bad"));
  return chips;
}

function unreadable() {
  if (!DATA.unreadable.length) return null;
  return el(
    "section",
    { class: "notice bad", "aria-label": "Not shown" },
    el("strong", {}, `${plural(DATA.unreadable.length, "file")} cannot be shown`),
    el("ul", {}, DATA.unreadable.map(({ why }) => el("li", {}, visible(why)))),
  );
}
