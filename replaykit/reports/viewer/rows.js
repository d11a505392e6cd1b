// Differences of JSON values and of database rows, each with the JSON pointer to its place.

const ABSENT = Symbol("absent");

const escapedStep = (key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1");
const isContainer = (value) => value !== null && typeof value === "object" && !(value instanceof Spelled);

// Equal in the spelling of the data: 1 and 1.0 differ, and so do members in another order.
const samePartner = new WeakMap();

function same(left, right) {
  if (left === right) return true;
  if (!isContainer(left) || !isContainer(right)) return !isContainer(left) && !isContainer(right) && jsonText(left) === jsonText(right);
  if (samePartner.get(left) === right) return true;
  const equal = sameParts(left, right);
  if (equal) samePartner.set(left, right);
  return equal;
}

function sameParts(left, right) {
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const [ours, theirs] = [Object.keys(left), Object.keys(right)];
  return ours.length === theirs.length && ours.every((key, i) => key === theirs[i] && same(left[key], right[key]));
}

// All places where two values differ: {pointer, left, right}.
function differences(left, right, pointer = "") {
  if (left !== ABSENT && right !== ABSENT && same(left, right)) return [];
  const alike = isContainer(left) && isContainer(right) && Array.isArray(left) === Array.isArray(right);
  if (!alike) return [{ pointer, left, right }];
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  const at = (side, key) => (Object.hasOwn(side, key) ? side[key] : ABSENT);
  const found = keys.flatMap((key) => differences(at(left, key), at(right, key), `${pointer}/${escapedStep(key)}`));
  return found.length ? found : [{ pointer, left: Object.keys(left), right: Object.keys(right), order: true }];
}

function firstDifference(left, right) {
  return differences(left, right)[0] ?? null;
}

const valueNode = (value) => (value === ABSENT ? el("span", { class: "absent" }, "absent") : isContainer(value) ? foldedText(jsonText(value, 2), 8) : el("code", {}, visible(jsonText(value))));

function differenceTable(found, names) {
  return el(
    "table",
    { class: "changes" },
    el("thead", {}, el("tr", {}, ["Place", ...names].map((name) => el("th", { scope: "col" }, visible(name))))),
    el("tbody", {}, found.map((one) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, visible(one.pointer || "(the whole value)"))), el("td", { class: "before" }, valueNode(one.left)), el("td", { class: "after" }, valueNode(one.right))))),
  );
}

function databaseChanges(episode) {
  const tables = unpack(episode.rows ?? null);
  const hashes = episode.hashes.map((hash) => String(hash ?? "unknown"));
  const head = facts([
    ["before", hashes[0], "faint"],
    ["after", hashes[1], hashes[0] === hashes[1] ? "faint" : "plain"],
  ]);
  return el("div", { class: "database" }, head, changedRows(tables, hashes));
}

function changedRows(tables, hashes) {
  if (!isContainer(tables)) {
    const said = hashes[0] === hashes[1] ? "The database is unchanged." : "The database changed; its rows were not recorded.";
    return el("p", { class: "empty" }, said);
  }
  const rows = Object.entries(tables).flatMap(([table, keys]) => Object.entries(keys ?? {}).map(([key, row]) => ({ table, key, row: row ?? {} })));
  if (!rows.length) return el("p", { class: "empty" }, "No row of the database changed.");
  return [el("p", { class: "count" }, plural(rows.length, "changed row")), rows.map(rowCard)];
}

function rowCard({ table, key, row }) {
  const before = row.before ?? null;
  const after = row.after ?? null;
  const word = before === null ? "added" : after === null ? "removed" : "changed";
  const tone = { added: "good", removed: "bad", changed: "care" }[word];
  const found = word === "changed" ? differences(before, after) : [{ pointer: "", left: before ?? ABSENT, right: after ?? ABSENT }];
  return el(
    "section",
    { class: "row-card", "aria-label": `${table} ${key}` },
    el("h2", {}, el("span", { class: "table-name" }, visible(table)), " ", el("code", {}, visible(key)), " ", chip(word, tone)),
    differenceTable(found, ["Before", "After"]),
    word === "changed" ? lazyDetails("The whole row, before", () => tree(before, 1), false, { class: "fold" }) : null,
    word === "changed" ? lazyDetails("The whole row, after", () => tree(after, 1), false, { class: "fold" }) : null,
  );
}
