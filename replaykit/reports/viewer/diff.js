// Two episodes side by side, with the first divergence in view.

const CONTEXT = 2; // equal messages that stay in view around a difference

function diffPage(left, right, steps) {
  const page = { name: "diff", cursor: -1, items: [] };
  const pairs = pairedTurns(left, right);
  const differing = [];
  const list = el("ol", { class: "pairs" });
  for (const part of folded(pairs)) {
    if (part.equal) {
      list.append(equalRun(left, right, part.pairs));
      continue;
    }
    for (const pair of part.pairs) {
      const node = pairNode(left, right, pair);
      const index = page.items.push(node) - 1;
      node.addEventListener("click", (event) => event.target.closest("a, button, summary") || select(page, index, { stay: true }));
      if (!pair.same) differing.push(index);
      list.append(node);
    }
  }
  page.address = (index) => ["diff", left.id, right.id, "pair", String(index)];
  page.interesting = () => differing;
  page.toggle = (index) => page.items[index].querySelectorAll(".folded").forEach((box) => unfold(box));
  page.node = el(
    "article",
    { class: "diff" },
    el("header", { class: "episode-head" }, el("h1", {}, "Differences"), el("p", { class: "hint" }, el("kbd", {}, "n"), " and ", el("kbd", {}, "p"), " go from difference to difference")),
    sameName(left, right),
    el("div", { class: "diff-sides" }, [left, right].map((episode) => el("h2", {}, link(["episode", episode.id], visible(episode.panel)), " ", chip(`arm ${episode.arm}`), controlsChip(episode), " ", rewardChip(episode), el("span", { class: "hint" }, visible(episode.id))))),
    parting(left, right, pairs, () => select(page, differing[0], { jump: true })),
    outcomeDifferences(left, right),
    el("h2", { class: "section" }, "Conversation"),
    list,
  );
  page.start = () => {
    const wanted = steps[0] === "pair" ? Number(steps[1]) : differing[0];
    if (page.items[wanted]) select(page, wanted, { jump: true });
  };
  return page;
}

function sameName(left, right) {
  return left.panel === right.panel ? null : el("p", { class: "notice care" }, visible(`Two panels: ${left.panel} and ${right.panel} are leagues of their own, and their rewards do not compare.`));
}

const turnKey = (turn) => jsonText([turn.speaker, Boolean(turn.error), turnText(turn)]);

function pairedTurns(left, right) {
  const keys = [left, right].map((episode) => episode.turns.map(turnKey));
  return aligned(...keys).map(([i, j]) => ({ i, j, same: i !== null && j !== null && keys[0][i] === keys[1][j] }));
}

// Runs of equal messages away from any difference, apart from what is shown.
function folded(pairs) {
  const near = pairs.map((_, k) => pairs.slice(Math.max(0, k - CONTEXT), k + CONTEXT + 1).some((pair) => !pair.same));
  const parts = [];
  pairs.forEach((pair, k) => {
    const last = parts.at(-1);
    if (last && last.equal === !near[k]) last.pairs.push(pair);
    else parts.push({ equal: !near[k], pairs: [pair] });
  });
  return parts;
}

function equalRun(left, right, pairs) {
  const label = `${plural(pairs.length, "equal message")}, ${pairs[0].i} to ${pairs.at(-1).i}`;
  return el("li", { class: "equal-run" }, lazyDetails(label, () => el("ol", { class: "pairs" }, pairs.map((pair) => pairNode(left, right, pair))), pairs.length < 3, { class: "fold" }));
}

function pairNode(left, right, pair) {
  const [ours, theirs] = [pair.i === null ? null : left.turns[pair.i], pair.j === null ? null : right.turns[pair.j]];
  const texts = [ours, theirs].map((turn) => (turn ? shownText(turn) : ""));
  const bodies = pair.same || !ours || !theirs ? texts.map((text) => visible(text)) : wordDifference(...texts);
  const side = (episode, turn, index, body) =>
    turn
      ? el("div", { class: `side ${turn.speaker}` }, el("div", { class: "turn-mark" }, link(["episode", episode.id, "turn", String(index)], String(index), { class: "turn-place" }), el("span", { class: "seat" }, turn.speaker)), sideText(body, pair.same || !ours || !theirs))
      : el("div", { class: "side nobody" }, "no message");
  return el("li", { class: `pair ${pair.same ? "equal" : "different"}`, tabindex: "-1" }, side(left, ours, pair.i, bodies[0]), side(right, theirs, pair.j, bodies[1]));
}

function shownText(turn) {
  const text = contentOf(turn);
  const calls = (turn.calls ?? []).map((call) => `→ ${call.name} ${jsonText(argumentsOf(call), 2)}`);
  const said = turn.speaker === "tool" && text ? (indented(text) ?? text) : text;
  return [said, ...calls].filter(Boolean).join("\n") || "(neither text nor calls)";
}

function sideText(fragment, mayFold) {
  const body = el("pre", { class: "text" }, fragment);
  if (!mayFold || body.textContent.length < 700) return body;
  const box = el("div", { class: "folded" }, body);
  box.append(button("Show all", () => unfold(box), { class: "more" }));
  return box;
}

// Where the two runs part: the first message, and the first request, which may part before it.
function parting(left, right, pairs, jump) {
  const first = pairs.find((pair) => !pair.same);
  const request = firstRequest(left, right);
  if (!first && !request) return el("p", { class: "notice good" }, "Both conversations are the same, and so are all requests.");
  return el(
    "section",
    { class: "parting", "aria-label": "First divergence" },
    el("h2", {}, "First divergence"),
    first ? [el("p", {}, `Message ${first.i ?? first.j}, ${messageSentence(left, right, first)} `, button("Go there", jump)), messageDifference(left, right, first)] : el("p", {}, "The conversations are the same."),
    request ? [el("p", {}, visible(request.sentence)), request.found && differenceTable([request.found], [left.id, right.id])] : el("p", { class: "hint" }, "All requests are the same."),
  );
}

function messageSentence(left, right, { i, j }) {
  if (i === null || j === null) return `only in the ${i === null ? "second" : "first"} episode.`;
  return left.turns[i].speaker === right.turns[j].speaker ? `by the ${left.turns[i].speaker}.` : `by the ${left.turns[i].speaker} and by the ${right.turns[j].speaker}.`;
}

const plainTurn = (turn) => ({ content: contentOf(turn), tool_calls: (turn.calls ?? []).map((call) => ({ name: call.name, arguments: argumentsOf(call), id: call.id })) });

function messageDifference(left, right, { i, j }) {
  if (i === null || j === null) return null;
  const found = firstDifference(plainTurn(left.turns[i]), plainTurn(right.turns[j]));
  return found && differenceTable([found], [left.id, right.id]);
}

function firstRequest(left, right) {
  const count = Math.max(left.requests.length, right.requests.length);
  for (let k = 0; k < count; k++) {
    const [ours, theirs] = [left.requests[k], right.requests[k]];
    if (!ours || !theirs) return { sentence: `Request ${k + 1} to the ${(ours ?? theirs).seat} is only in the ${ours ? "first" : "second"} episode.` };
    if (ours.seat !== theirs.seat) return { sentence: `Request ${k + 1} goes to the ${ours.seat} and to the ${theirs.seat}.` };
    const [native, other] = [nativeOf(left, ours), nativeOf(right, theirs)];
    if (!same(native, other)) {
      const found = firstDifference(native, other);
      return { sentence: `Request ${k + 1} to the ${ours.seat} is the first that differs, at ${found.pointer}.`, found };
    }
  }
  return null;
}

// Verdicts, origins and database rows that differ.
function outcomeDifferences(left, right) {
  const rows = [...factDifferences(left.header, right.header, ["file", "digest", "recorded"]), ...factDifferences(left.verdict, right.verdict, ["usage", "database"])];
  const tables = rowDifferences(left, right);
  const sameHash = left.hashes[1] === right.hashes[1];
  return el(
    "section",
    { class: "outcomes", "aria-label": "What else differs" },
    el("h2", { class: "section" }, "What else differs"),
    rows.length ? factTable(rows) : el("p", { class: "hint" }, "Origin and verdict are the same."),
    el("h3", {}, "Database at the end"),
    sameHash ? el("p", { class: "hint" }, "The same.") : tables.length ? differenceTable(tables, [left.id, right.id]) : el("p", {}, "The hashes differ; which rows do cannot be told from these recordings."),
  );
}

// Rows at the end that differ. A row that only one episode changed stands in the other as it was before.
function rowDifferences(left, right) {
  const sides = [left, right].map((episode) => new Map(rowsOf(episode)));
  if (left.hashes[0] !== right.hashes[0] || [left, right].some((episode) => !isContainer(unpack(episode.rows ?? null)))) return [];
  const places = [...new Set(sides.flatMap((side) => [...side.keys()]))];
  return places.flatMap((place) => {
    const [ours, theirs] = sides.map((side, k) => (side.has(place) ? side.get(place).after : sides[1 - k].get(place).before));
    return differences(ours ?? ABSENT, theirs ?? ABSENT, place);
  });
}

function rowsOf(episode) {
  const tables = Object.entries(unpack(episode.rows ?? null) ?? {});
  return tables.flatMap(([table, rows]) => Object.entries(rows ?? {}).map(([key, row]) => [`/${escapedStep(table)}/${escapedStep(key)}`, row ?? {}]));
}

function grouped(rows) {
  const groups = new Map();
  let last = "";
  for (const [name, text] of rows) {
    last = name || last;
    groups.set(last, [...(groups.get(last) ?? []), text]);
  }
  return groups;
}

function factDifferences(left, right, ignored) {
  const [ours, theirs] = [grouped(left), grouped(right)];
  const names = [...new Set([...ours.keys(), ...theirs.keys()])].filter((name) => !ignored.includes(name));
  return names.map((name) => [name, (ours.get(name) ?? []).join("\n"), (theirs.get(name) ?? []).join("\n")]).filter(([, a, b]) => a !== b);
}

function factTable(rows) {
  const cell = (fragment, text) => el("td", {}, text ? el("pre", { class: "text" }, fragment) : el("span", { class: "absent" }, "none"));
  return el(
    "table",
    { class: "changes" },
    el("tbody", {}, rows.map(([name, a, b]) => {
      const [before, after] = wordDifference(a, b);
      return el("tr", {}, el("th", { scope: "row" }, visible(name.trim())), cell(before, a), cell(after, b));
    })),
  );
}
