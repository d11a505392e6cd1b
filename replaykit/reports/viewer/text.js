// Untrusted text: characters that steer or hide are written out, so that what is read is what is there.

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e007f}]/gu;

function codeName(character) {
  const code = character.codePointAt(0);
  return code === 0 ? "NUL" : "U+" + code.toString(16).toUpperCase().padStart(4, "0");
}

// A fragment of text nodes, with marks for hidden characters and for a searched text.
function visible(text, query) {
  const plain = typeof text === "string" ? text : jsonText(text);
  const fragment = document.createDocumentFragment();
  let last = 0;
  for (const found of plain.matchAll(HIDDEN)) {
    fragment.append(...searched(plain.slice(last, found.index), query));
    fragment.append(el("span", { class: "hidden-character", title: "a character that is not seen" }, codeName(found[0])));
    last = found.index + found[0].length;
  }
  fragment.append(...searched(plain.slice(last), query));
  return fragment;
}

function searched(text, query) {
  if (!query) return [text];
  const parts = [];
  const folded = text.toLowerCase();
  let last = 0;
  for (let at = folded.indexOf(query); at >= 0; at = folded.indexOf(query, last)) {
    parts.push(text.slice(last, at), el("mark", {}, text.slice(at, at + query.length)));
    last = at + query.length;
  }
  return [...parts, text.slice(last)];
}

// JSON in the spelling of the data.
function jsonText(value, indent) {
  return written(value, indent ? "\n" : "", indent ?? 0);
}

function written(value, line, indent) {
  if (value instanceof Spelled) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const list = Array.isArray(value);
  const inner = line && line + " ".repeat(indent);
  const parts = list
    ? value.map((part) => written(part, inner, indent))
    : Object.entries(value).map(([key, part]) => `${JSON.stringify(key)}: ${written(part, inner, indent)}`);
  if (!parts.length) return list ? "[]" : "{}";
  const [open, close] = list ? "[]" : "{}";
  return open + inner + parts.join(line ? "," + inner : ", ") + line + close;
}

// JSON text with line breaks put in; every literal stays as it was spelled. Null when the text is no JSON container.
function indented(text) {
  if (!/^\s*[[{]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/gs) ?? [];
  let depth = 0;
  let out = "";
  const line = () => "\n" + "  ".repeat(depth);
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i];
    if (token === "[" || token === "{") {
      const empty = tokens[i + 1] === "]" || tokens[i + 1] === "}";
      depth += empty ? 0 : 1;
      out += empty ? token + tokens[++i] : token + line();
    } else if (token === "]" || token === "}") {
      depth -= 1;
      out += line() + token;
    } else if (token === ",") out += token + line();
    else out += token === ":" ? ": " : token;
  }
  return out;
}

// A text of which only the beginning shows until it is asked for.
function foldedText(text, lines, attributes, query) {
  const body = el("pre", { class: "text", ...attributes }, visible(text, query));
  const count = text.split("\n").length;
  if (count <= lines && text.length <= lines * 110) return body;
  const box = el("div", { class: "folded" }, body);
  const label = () => (box.classList.contains("open") ? "Show less" : `Show all ${count > lines ? plural(count, "line") : plural(text.length, "character")}`);
  const more = button("", () => unfold(box), { class: "more", "aria-expanded": "false" });
  more.textContent = label();
  box.addEventListener("fold", () => {
    more.textContent = label();
    more.setAttribute("aria-expanded", String(box.classList.contains("open")));
  });
  box.append(more);
  return box;
}

function unfold(box, open) {
  box.classList.toggle("open", open);
  box.dispatchEvent(new Event("fold"));
}
