// One episode: its conversation with policy states, its verdict, its database changes, and where it comes from.

const TABS = [
  ["turn", "Conversation"],
  ["verdict", "Verdict"],
  ["database", "Database"],
  ["about", "About"],
];

function episodePage(episode, steps) {
  const tab = TABS.some(([name]) => name === steps[0]) ? steps[0] : steps[0] === "request" ? "turn" : "turn";
  const page = tab === "turn" ? conversationPage(episode, steps) : factsPage(episode, tab);
  page.episode = episode;
  page.node.prepend(episodeHead(episode, tab));
  page.siblings = siblingsOf(episode);
  return page;
}

function episodeHead(episode, tab) {
  const nav = el(
    "nav",
    { class: "tabs", "aria-label": "Parts of the episode" },
    TABS.map(([name, label]) =>
      link(name === "turn" ? ["episode", episode.id] : ["episode", episode.id, name], label, { "aria-current": name === tab ? "page" : null }),
    ),
  );
  return el(
    "header",
    { class: "episode-head" },
    el(
      "div",
      { class: "episode-title" },
      el("h1", {}, visible(episode.panel)),
      chip(`arm ${episode.arm}`, "plain"),
      controlsChip(episode),
      rewardChip(episode),
      chip(endOf(episode), episode.interrupted ? "bad" : isOrdinaryEnd(endOf(episode)) ? "plain" : "care"),
      findingChips(episode),
    ),
    el("div", { class: "episode-tools" }, nav, compareChoice(episode)),
  );
}

function compareChoice(episode) {
  const others = EPISODES.filter((other) => other !== episode);
  if (!others.length) return null;
  const near = others.filter((other) => other.panel === episode.panel);
  const option = (other) => el("option", { value: other.id }, visible(`${other.panel} ${other.arm} · ${other.id}`));
  const group = (label, list) => (list.length ? el("optgroup", { label }, list.map(option)) : null);
  const select = el(
    "select",
    { "aria-label": "Compare with another episode" },
    el("option", { value: "" }, "Compare with…"),
    group("The same panel", near),
    group("Other panels", others.filter((other) => !near.includes(other))),
  );
  select.addEventListener("change", () => select.value && go(["diff", episode.id, select.value]));
  return select;
}

function siblingsOf(episode) {
  const at = EPISODES.indexOf(episode);
  return { before: EPISODES[at - 1], after: EPISODES[at + 1] };
}

function factsPage(episode, tab) {
  const bodies = { verdict: () => facts(episode.verdict), database: () => databaseChanges(episode), about: () => facts(episode.header) };
  const label = TABS.find(([name]) => name === tab)[1];
  return { name: "facts", items: [], cursor: -1, node: el("article", { class: "episode" }, el("section", { class: "sheet", "aria-label": label }, bodies[tab]())) };
}

function conversationPage(episode, steps) {
  const pane = requestPane(episode);
  const page = { name: "conversation", cursor: -1, pane };
  const entries = entriesOf(episode);
  const search = el("input", { type: "search", placeholder: "Find in this conversation", "aria-label": "Find in this conversation", autocomplete: "off", spellcheck: "false" });
  const found = el("span", { class: "count", role: "status" });
  const list = el("ol", { class: "turns" });
  page.items = entries.map((entry, i) => entryNode(episode, entry, page, i));
  list.append(...page.items);

  page.address = (index) => ["episode", episode.id, ...entries[index].address];
  page.onSelect = (index) => pane.show(entries[index]);
  page.interesting = () => (search.value ? page.matches : entries.map((entry, i) => (entry.finding ? i : -1)).filter((i) => i >= 0));
  page.matches = [];
  page.search = search;
  page.toggle = (index) => page.items[index].querySelectorAll(".folded").forEach((box) => unfold(box));
  page.toggleAll = () => {
    page.unfolded = !page.unfolded;
    list.querySelectorAll(".folded").forEach((box) => unfold(box, page.unfolded));
  };
  search.addEventListener("input", () => {
    const query = search.value.toLowerCase();
    page.matches = query ? entries.map((entry, i) => (entry.text().includes(query) ? i : -1)).filter((i) => i >= 0) : [];
    found.textContent = query ? plural(page.matches.length, "match").replace("matchs", "matches") : findingsCount();
    page.items.forEach((item, i) => {
      item.classList.toggle("unmatched", Boolean(query) && !page.matches.includes(i));
      if (entries[i].turn) item.querySelector(".turn-body").replaceWith(turnBody(episode, entries[i].turn, page, i, query));
    });
  });
  const findingsCount = () => plural(page.interesting().length, "finding");
  found.textContent = findingsCount();
  const jump = el("div", { class: "jump" }, found, button("↑", () => stepTo(page, -1), { "aria-label": "Previous finding or match (p)", title: "Previous (p)" }), button("↓", () => stepTo(page, 1), { "aria-label": "Next finding or match (n)", title: "Next (n)" }));
  page.node = el(
    "article",
    { class: "episode with-pane" },
    el("div", { class: "find" }, search, jump, button("Unfold all", () => page.toggleAll(), { class: "quiet", title: "Unfold or fold everything (E)" })),
    el("div", { class: "columns" }, el("section", { class: "conversation", "aria-label": "Conversation" }, notices(episode), list, ending(episode)), pane.node),
  );
  page.start = () => startAt(page, entries, steps);
  return page;
}

function notices(episode) {
  if (!episode.interrupted) return null;
  return el("div", { class: "notice bad", role: "note" }, el("strong", {}, "INTERRUPTED"), " The recording has no end. What follows is rebuilt from its requests and replies.");
}

function ending(episode) {
  return el("section", { class: "ending", "aria-label": "How it ended" }, facts(episode.verdict.filter(([name]) => !["actions", "communicate", "usage"].includes(name)).slice(0, 14)), link(["episode", episode.id, "verdict"], "The whole verdict"));
}

function startAt(page, entries, steps) {
  const wanted = steps.slice(0, 2).join("/");
  const index = entries.findIndex((entry) => entry.address.join("/") === wanted);
  if (steps[2]) page.pane.open(steps[2]);
  if (index >= 0) select(page, index, { jump: true });
}

// Turns, and the requests that are no turns, in the order of the conversation.
function entriesOf(episode) {
  const turns = episode.turns.map((turn, index) => {
    turn.index = index;
    const finding = turn.error || turn.agrees === false || (turn.changes ?? []).some((change) => change.tone === "bad" || change.tone === "care");
    return { address: ["turn", String(index)], turn, finding, request: turn.request ?? null, text: () => searchTextOf(turn) };
  });
  const asides = episode.asides.map((aside) => ({
    address: ["request", String(aside.number)],
    aside,
    finding: aside.kind !== "judge",
    request: aside.number,
    text: () => String(unpack(aside.text)).toLowerCase(),
  }));
  return [...turns, ...asides];
}

function entryNode(episode, entry, page, index) {
  const speaker = entry.turn ? entry.turn.speaker : entry.aside.seat;
  const place = entry.turn ? String(entry.turn.index) : `r${entry.aside.number}`;
  const node = el(
    "li",
    { class: `turn ${speaker}${entry.turn?.error ? " failed" : ""}${entry.aside ? " aside" : ""}`, tabindex: "-1" },
    entry.turn?.seam ? el("p", { class: "seam" }, visible(entry.turn.seam)) : null,
    el("div", { class: "turn-mark" }, link(["episode", episode.id, ...entry.address], place, { class: "turn-place", "aria-label": `Link to ${entry.address.join(" ")}` }), el("span", { class: "seat" }, speaker)),
    entry.turn ? turnBody(episode, entry.turn, page, index) : asideBody(entry.aside, page, index),
    entry.turn ? policyAside(entry.turn) : el("aside", { class: "turn-policy" }),
  );
  node.addEventListener("click", (event) => {
    if (!event.target.closest("a, button, summary, input") && !String(getSelection())) select(page, index, { stay: true });
  });
  return node;
}

function turnBody(episode, turn, page, index, query) {
  const text = contentOf(turn);
  const parts = [];
  if (turn.speaker === "tool") parts.push(toolResult(text, query));
  else if (text) parts.push(el("div", { class: "prose" }, visible(text, query)));
  for (const call of turn.calls ?? []) parts.push(callCard(call, query));
  if (!parts.length) parts.push(el("p", { class: "nothing" }, "neither text nor calls"));
  return el("div", { class: "turn-body" }, parts, turn.request === undefined ? null : requestButtons(page, index, turn.request));
}

function toolResult(text, query) {
  if (text === null || text === "") return el("p", { class: "nothing" }, "an empty result");
  return foldedText(indented(text) ?? text, 7, { class: "text result" }, query);
}

function callCard(call, query) {
  const values = Object.entries(argumentsOf(call));
  return el(
    "div",
    { class: "call" },
    el("div", { class: "call-name" }, el("span", { class: "arrow", "aria-hidden": "true" }, "→"), el("code", {}, visible(call.name, query)), el("span", { class: "call-id" }, visible(call.id ?? ""))),
    values.length
      ? el("dl", { class: "arguments" }, values.map(([name, value]) => el("div", {}, el("dt", {}, visible(name)), el("dd", {}, visible(jsonText(value), query)))))
      : null,
  );
}

const ASIDE_WORDS = {
  judge: "The judge's reply",
  lost: "A turn that could not be used",
  failure: "No usable reply",
  refused: "Not sent",
  unanswered: "No reply was recorded",
};

function asideBody(aside, page, index) {
  const text = String(unpack(aside.text));
  return el(
    "div",
    { class: "turn-body" },
    el("p", { class: "aside-kind" }, ASIDE_WORDS[aside.kind] ?? aside.kind),
    foldedText(indented(text) ?? text, 10, { class: "text result" }),
    requestButtons(page, index, aside.number),
  );
}

function requestButtons(page, index, number) {
  const opener = (part, label) =>
    button(label, () => {
      page.pane.open(part);
      select(page, index, { stay: true });
    });
  return el("div", { class: "turn-actions" }, opener("request", `Request ${number}`), opener("wire", "Wire"));
}
