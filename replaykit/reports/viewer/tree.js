// JSON as a tree whose branches are made when they are opened.

function tree(value, depth = 1) {
  if (value instanceof Spelled || value === null || typeof value !== "object") return leaf(value);
  const entries = Array.isArray(value) ? value.map((part, i) => [i, part]) : Object.entries(value);
  if (!entries.length) return el("span", { class: "json-mark" }, Array.isArray(value) ? "[ ]" : "{ }");
  const list = el("ul", { class: "json" });
  for (const [key, part] of entries) list.append(el("li", {}, branch(key, part, depth)));
  return list;
}

function branch(key, value, depth) {
  const name = el("span", { class: typeof key === "number" ? "json-place" : "json-key" }, visible(String(key)));
  const plain = value instanceof Spelled || value === null || typeof value !== "object" || !Object.keys(value).length;
  if (plain) return [name, " ", tree(value)];
  const size = Array.isArray(value) ? plural(value.length, "item") : plural(Object.keys(value).length, "member");
  const hint = el("span", { class: "json-hint" }, visible(jsonText(value).slice(0, 90)));
  return lazyDetails([name, " ", el("span", { class: "json-mark" }, size), " ", hint], () => tree(value, depth - 1), depth > 0);
}

function leaf(value) {
  if (typeof value === "string") {
    const long = value.length > 160 || value.includes("\n");
    return long ? foldedText(value, 8, { class: "text json-text" }) : el("span", { class: "json-text" }, visible(value), value ? "" : "“”");
  }
  return el("span", { class: "json-literal" }, value instanceof Spelled ? value.text : String(value));
}

function lazyDetails(summary, make, open, attributes) {
  const details = el("details", attributes, el("summary", {}, summary));
  const fill = () => details.childElementCount === 1 && details.append(make());
  details.addEventListener("toggle", () => details.open && fill());
  if (open) {
    fill();
    details.open = true;
  }
  return details;
}
