// Selection, keys, and the overlay that names them.

const KEYS = [
  ["Moving", [["j k", "next, previous message or row"], ["n p", "next, previous finding, match or difference"], ["g G", "first, last"], ["[ ]", "previous, next episode"], ["Esc", "leave the search, close the pane, go up"]]],
  ["Looking", [["Enter o", "open the row; unfold the message"], ["E", "unfold or fold everything"], ["r w s", "native request, wire, policy state"], ["v b a", "verdict, database, about"], ["c", "conversation"]]],
  ["Finding and comparing", [["/", "search or filter"], ["x", "mark the row"], ["d", "compare the two marked"]]],
  ["Else", [["y", "copy a link to this place"], ["t", "light, dark, as the system"], ["?", "these keys"]]],
];

function select(page, index, { jump, stay } = {}) {
  if (index === undefined || !page.items[index]) return;
  page.items[page.cursor]?.removeAttribute("aria-current");
  page.cursor = index;
  const node = page.items[index];
  node.setAttribute("aria-current", "true");
  page.onSelect?.(index);
  if (page.address) replaceAddress(route(page.pane?.part ? [...page.address(index), page.pane.part] : page.address(index)));
  node.focus({ preventScroll: true });
  if (stay) return;
  bringIntoView(node, jump);
}

// Messages that were never on screen have estimated heights, so the first scroll may land beside its aim: look again.
function bringIntoView(node, jump) {
  const scroll = () => node.scrollIntoView({ block: jump ? "center" : "nearest" });
  scroll();
  requestAnimationFrame(() => requestAnimationFrame(scroll));
}

function move(page, distance) {
  const last = page.items.length - 1;
  if (last < 0) return;
  select(page, page.cursor < 0 ? (distance > 0 ? 0 : last) : Math.min(last, Math.max(0, page.cursor + distance)));
}

function stepTo(page, direction) {
  const places = page.interesting?.() ?? [];
  const next = direction > 0 ? places.find((place) => place > page.cursor) : places.findLast((place) => place < (page.cursor < 0 ? Infinity : page.cursor));
  if (next === undefined) announce(direction > 0 ? "nothing further" : "nothing before");
  else select(page, next, { jump: true });
}

function sibling(page, which) {
  const episode = page.siblings?.[which];
  if (episode) go(["episode", episode.id]);
  else if (page.siblings) announce(which === "after" ? "the last episode" : "the first episode");
}

function tabOf(page, name) {
  if (page.episode) go(name === "turn" ? ["episode", page.episode.id] : ["episode", page.episode.id, name]);
}

function openPane(page, part) {
  if (!page.pane) return;
  if (page.cursor < 0) move(page, 1);
  page.pane.toggle(part);
  select(page, page.cursor, {});
}

const ACTIONS = {
  j: (page) => move(page, 1),
  k: (page) => move(page, -1),
  ArrowDown: (page) => move(page, 1),
  ArrowUp: (page) => move(page, -1),
  n: (page) => (page.name === "list" ? move(page, 1) : stepTo(page, 1)),
  p: (page) => (page.name === "list" ? move(page, -1) : stepTo(page, -1)),
  g: (page) => select(page, 0, {}),
  G: (page) => select(page, page.items.length - 1, {}),
  "]": (page) => sibling(page, "after"),
  "[": (page) => sibling(page, "before"),
  Enter: (page) => openItem(page),
  o: (page) => openItem(page),
  E: (page) => page.toggleAll?.(),
  r: (page) => openPane(page, "request"),
  w: (page) => openPane(page, "wire"),
  s: (page) => openPane(page, "state"),
  c: (page) => tabOf(page, "turn"),
  v: (page) => tabOf(page, "verdict"),
  b: (page) => tabOf(page, "database"),
  a: (page) => tabOf(page, "about"),
  "/": (page) => page.search?.focus(),
  x: (page) => page.mark?.(),
  d: (page) => page.compare?.(),
  y: () => copyAddress(),
  t: () => nextTheme(),
  "?": () => showHelp(),
  Escape: (page) => goUp(page),
};

function openItem(page) {
  if (page.cursor < 0) return;
  if (page.open) page.open(page.cursor);
  else page.toggle?.(page.cursor);
}

function goUp(page) {
  if (page.pane?.part) page.pane.close();
  else if (page.name !== "list") go([]);
}

function copyAddress() {
  const done = (copied) => announce(copied ? "link copied" : location.href);
  if (!navigator.clipboard) return done(false);
  navigator.clipboard.writeText(location.href).then(() => done(true), () => done(false));
}

function onKey(event, page) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea");
  if (typing) {
    if (event.key === "Escape" || (event.key === "Enter" && typing.type === "search")) leaveSearch(event, page, typing);
    return;
  }
  if ((event.key === "Enter" || event.key === " ") && event.target.closest?.("a, button, summary, input")) return;
  const action = Object.hasOwn(ACTIONS, event.key) ? ACTIONS[event.key] : null;
  if (!action) return;
  event.preventDefault();
  action(page);
}

function leaveSearch(event, page, typing) {
  event.preventDefault();
  typing.blur();
  if (event.key === "Enter") (page.name === "list" ? move : stepTo)(page, 1);
}

function showHelp() {
  const groups = KEYS.map(([title, rows]) =>
    el("section", {}, el("h3", {}, title), el("dl", {}, rows.map(([keys, what]) => el("div", {}, el("dt", {}, keys.split(" ").map((key) => el("kbd", {}, key))), el("dd", {}, what))))),
  );
  byId("help").replaceChildren(el("div", { class: "help-head" }, el("h2", { id: "help-title" }, "Keys"), button("Close", () => byId("help").close())), el("div", { class: "help-body" }, groups));
  byId("help").showModal();
}
