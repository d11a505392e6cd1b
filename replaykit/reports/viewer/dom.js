// Everything on the page is made here: elements by name, text as text nodes. Nothing is ever parsed as markup.

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") node.className = value;
    else if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const byId = (id) => document.getElementById(id);

function button(label, press, attributes) {
  return el("button", { type: "button", click: press, ...attributes }, label);
}

function link(steps, label, attributes) {
  return el("a", { href: route(steps), ...attributes }, label);
}

// A place in this page. Only such places are ever linked to.
function route(steps) {
  return "#/" + steps.map((step) => encodeURIComponent(step)).join("/");
}

function chip(text, tone, title) {
  return el("span", { class: `chip ${tone ?? "plain"}`, title }, breakable(text));
}

// Names made of words may be broken between them.
function breakable(text) {
  return String(text).split(/(?<=[_./])/).flatMap((part, i) => (i ? [el("wbr"), visible(part)] : [visible(part)]));
}

function announce(text) {
  byId("said").textContent = text;
}

const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

// What was met has a green tick; only what was not is coloured as a whole.
function ticked(text) {
  return text.startsWith("✓ ") ? [el("span", { class: "tick" }, "✓ "), visible(text.slice(2))] : [visible(text)];
}

function facts(rows) {
  const list = el("dl", { class: "facts" });
  let last = null;
  for (const [name, text, tone] of rows) {
    const value = el("dd", { class: tone }, ticked(text));
    if (name === last) list.lastChild.append(value);
    else list.append(el("div", { class: "fact" }, el("dt", {}, name.trim() || "\u00a0"), value));
    last = name;
  }
  return list;
}
