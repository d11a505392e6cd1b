// The policy state beside a turn: what the turn changed, and where the obligations stand after it.

const TRANSFERS = { attempted: "transfer attempted", succeeded: "transferred" };

function stateLine(state) {
  if (!state) return null;
  const parts = [
    state.user ?? (state.authenticates ? "nobody authenticated" : null),
    state.confirmed ? "confirmed" : "not confirmed",
    state.pending_writes ? plural(state.pending_writes, "pending write") : null,
    state.done_writes ? plural(state.done_writes, "write") : null,
    TRANSFERS[state.transfer] ?? null,
    state.violations ? plural(state.violations, "violation") : null,
    state.format_errors ? plural(state.format_errors, "format error") : null,
  ].filter(Boolean);
  return el("p", { class: "state-line" }, visible(parts.join(" · ")));
}

function policyAside(turn) {
  const state = stateOf(turn);
  const changed = (turn.changes ?? []).map((change) => chip(change.text, change.tone));
  if (turn.agrees === false) changed.push(chip("not the recorded state", "bad", "The state recomputed here has another digest than the recorded one"));
  return el(
    "aside",
    { class: "turn-policy", "aria-label": `Policy state after message ${turn.index}` },
    changed.length ? el("div", { class: "chips" }, changed) : null,
    stateLine(state),
  );
}

const STATE_NAMES = [
  ["authenticates", "Authentication is asked for"],
  ["user", "Authenticated user"],
  ["confirmed", "Latest message confirms"],
  ["confirmation", "Why"],
  ["pending_writes", "Writes without result"],
  ["done_writes", "Writes with result"],
  ["transfer", "Transfer to a human"],
  ["violations", "Violations"],
  ["format_errors", "Format errors"],
  ["digest", "Digest"],
];

function statePanel(turn) {
  const state = turn && stateOf(turn);
  if (!state) return el("p", { class: "empty" }, "No policy state is known here.");
  const said = (value) => (value === null ? "none" : value === true ? "yes" : value === false ? "no" : String(value));
  const rows = STATE_NAMES.map(([key, name]) => [name, said(state[key]), key === "digest" ? "faint" : "plain"]);
  const changes = (turn.changes ?? []).map((change) => ["This message changed", change.text, change.tone]);
  const recorded = { true: "yes", false: "no: another digest was recorded" }[String(turn.agrees)] ?? "nothing was recorded for this message";
  return facts([...changes, ...rows, ["As recorded", recorded, turn.agrees === false ? "bad" : "plain"]]);
}
