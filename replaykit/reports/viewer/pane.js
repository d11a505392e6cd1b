// The pane beside a conversation: the native request behind a turn, the wire exchanges, the policy state.

const PANES = [
  ["request", "Request"],
  ["wire", "Wire"],
  ["state", "Policy state"],
];

function requestPane(episode) {
  const body = el("div", { class: "pane-body", role: "tabpanel", tabindex: "0" });
  const tabs = new Map(PANES.map(([name, label]) => [name, button(label, () => pane.open(name), { role: "tab", "aria-selected": "false" })]));
  const pane = { part: null, entry: null };
  pane.node = el(
    "section",
    { class: "pane", "aria-label": "Behind this turn", hidden: true },
    el("div", { class: "pane-head" }, el("div", { class: "pane-tabs", role: "tablist" }, [...tabs.values()]), button("×", () => pane.close(), { class: "quiet", "aria-label": "Close (Esc)", title: "Close (Esc)" })),
    body,
  );

  function render() {
    pane.node.hidden = pane.part === null;
    pane.node.parentElement?.classList.toggle("pane-open", pane.part !== null);
    for (const [name, tab] of tabs) tab.setAttribute("aria-selected", String(name === pane.part));
    if (pane.part !== null) body.replaceChildren(content());
    body.scrollTop = 0;
  }

  function content() {
    if (!pane.entry) return el("p", { class: "empty" }, "Select a message: j and k, or click.");
    if (pane.part === "state") return statePanel(pane.entry.turn);
    const request = requestOf(episode, pane.entry.request);
    if (!request) return el("p", { class: "empty" }, noRequest(pane.entry));
    return pane.part === "wire" ? wirePanel(episode, request) : requestPanel(episode, request);
  }

  pane.open = (part) => {
    pane.part = PANES.some(([name]) => name === part) ? part : "request";
    render();
  };
  pane.toggle = (part) => (pane.part === part ? pane.close() : pane.open(part));
  pane.close = () => {
    pane.part = null;
    render();
  };
  pane.show = (entry) => {
    pane.entry = entry;
    if (pane.part !== null) render();
  };
  return pane;
}

function noRequest(entry) {
  if (entry.turn?.speaker === "tool") return "A tool's result: no seat was asked for it. It stands in the learner's next request.";
  return "No request is recorded for this message.";
}

function requestPanel(episode, request) {
  const native = nativeOf(episode, request);
  const head = [
    ["seat", request.seat],
    ["model", native.model],
    ["arguments", jsonText(native.arguments)],
    ["tool choice", jsonText(native.tool_choice)],
  ];
  return el(
    "div",
    {},
    el("h2", {}, `Native request ${request.number}`),
    facts(head.map(([name, text]) => [name, String(text), "plain"])),
    el("h3", {}, `Reply`),
    outcomePanel(request.outcome),
    el("h3", {}, plural(native.messages.length, "message")),
    el("div", { class: "messages" }, messageList(native.messages)),
    el("h3", {}, native.tools ? plural(native.tools.length, "tool") : "No tools"),
    (native.tools ?? []).map((tool) => lazyDetails(el("code", {}, visible(String(tool.function?.name ?? "unnamed"))), () => tree(tool, 3), false, { class: "fold" })),
  );
}

const LATEST = 24; // messages that are listed at once; the earlier ones are made when they are asked for

function messageList(messages) {
  const start = messages.length > LATEST + 6 ? messages.length - LATEST : 1;
  const made = (from, to) => messages.slice(from, to).map((message, i) => messageDetails(message, from + i, messages.length));
  const between = start > 1 ? lazyDetails(`${plural(start - 1, "earlier message")}`, () => el("div", {}, made(1, start)), false, { class: "fold" }) : null;
  return [made(0, 1), between, made(start, messages.length)];
}

function messageDetails(message, index, count) {
  const { role, content, ...rest } = message;
  const preview = typeof content === "string" && content ? content : jsonText(rest);
  const make = () => {
    const parts = typeof content === "string" ? [foldedText(content, 14)] : content === null || content === undefined ? [] : [tree(content, 2)];
    if (Object.values(rest).some((value) => value !== null)) parts.push(tree(rest, 3));
    return el("div", { class: "message-body" }, parts);
  };
  const summary = [el("span", { class: "message-place" }, String(index)), el("span", { class: `role ${String(role)}` }, visible(String(role))), el("span", { class: "json-hint" }, visible(preview.slice(0, 120)))];
  return lazyDetails(summary, make, index === count - 1 && index > 0, { class: "fold" });
}

function outcomePanel(outcome) {
  if (!outcome) return el("p", { class: "empty" }, "No reply was recorded.");
  const [kind, value] = Object.entries(outcome)[0];
  return el("div", { class: `outcome ${kind}` }, tree(unpack(value), 3));
}

function wirePanel(episode, request) {
  if (!request.wire.length) return el("p", { class: "empty" }, "No wire exchange was recorded for this request.");
  return el("div", {}, el("h2", {}, `Wire of request ${request.number}`), request.wire.map((exchange) => exchangePanel(episode, exchange)));
}

function exchangePanel(episode, exchange) {
  const asked = exchange.request;
  const answer = exchange.response;
  const timing = Object.entries(exchange.timing ?? {}).map(([name, seconds]) => `${name} ${seconds}`);
  return el(
    "section",
    { class: "exchange", "aria-label": `Attempt ${exchange.attempt}` },
    el("p", { class: "request-line" }, el("strong", {}, visible(String(asked.method))), " ", visible(String(unpack(asked.uri)))),
    sidePanel(episode, asked),
    answer ? [el("p", { class: "request-line" }, el("strong", {}, visible(String(answer.status?.code))), " ", visible(String(answer.status?.message ?? ""))), sidePanel(episode, answer)] : el("p", { class: "empty" }, "No whole response arrived."),
    exchange.failure ? el("div", { class: "notice bad" }, visible(jsonText(unpack(exchange.failure)))) : null,
    exchange.partial ? [el("h3", {}, "Partial response"), foldedText(unpack(exchange.partial), 10)] : null,
    timing.length ? el("p", { class: "hint" }, timing.join(" · ")) : null,
  );
}

function sidePanel(episode, side) {
  const headers = Object.entries(unpack(side.headers ?? {})).flatMap(([name, values]) => values.map((value) => [name, String(value), "plain"]));
  const body = bodyOf(episode, side);
  return el(
    "div",
    {},
    lazyDetails(plural(headers.length, "header"), () => facts(headers), false, { class: "fold" }),
    lazyDetails(`Body, ${plural(side.size, "byte")}`, () => ("json" in side ? tree(body, 1) : foldedText(body || "(empty)", 20)), true, { class: "fold" }),
  );
}
