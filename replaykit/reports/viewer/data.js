// The page's data: a pool of shared values, episodes, and documents kept as what each adds to an earlier one.

// A number in its own spelling: 1.0 stays 1.0, and large integers stay whole.
class Spelled {
  constructor(text) {
    this.text = text;
  }
}

const DATA = JSON.parse(byId("data").textContent);
const pooled = new Array(DATA.pool.length);
const unfolded = new WeakMap();

function fromPool(place) {
  if (pooled[place] === undefined) {
    const value = DATA.pool[place];
    pooled[place] = typeof value === "string" ? value : unpack(value);
  }
  return pooled[place];
}

function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value);
  if (entries.length === 1) {
    const [mark, inner] = entries[0];
    if (mark === "$") return Array.isArray(inner) ? { $: unpack(inner[0]) } : fromPool(inner);
    if (mark === "#") return Array.isArray(inner) ? { "#": unpack(inner[0]) } : new Spelled(inner);
  }
  return Object.fromEntries(entries.map(([key, part]) => [key, unpack(part)]));
}

// Document at a place of a list; documents share the parts they have in common.
function documentAt(list, place) {
  const chain = [];
  for (let at = place; !unfolded.has(list[at]); at = list[at].like) {
    chain.push(at);
    if ("is" in list[at]) break;
  }
  for (const at of chain.reverse()) unfolded.set(list[at], step(list, list[at]));
  return unfolded.get(list[place]);
}

function step(list, packed) {
  if ("is" in packed) return unpack(packed.is);
  const grown = new Map(Object.entries(packed.grow).map(([key, [kept, ...items]]) => [key, { kept, items }]));
  const set = new Map(Object.entries(packed.set));
  return Object.fromEntries(
    Object.entries(unfolded.get(list[packed.like])).map(([key, value]) => {
      if (set.has(key)) return [key, unpack(set.get(key))];
      if (grown.has(key)) return [key, [...value.slice(0, grown.get(key).kept), ...unpack(grown.get(key).items)]];
      return [key, value];
    }),
  );
}

const EPISODES = DATA.episodes;
const byName = new Map(EPISODES.map((episode) => [episode.id, episode]));

const contentOf = (turn) => unpack(turn.content);
const argumentsOf = (call) => unpack(call.arguments);
const stateOf = (turn) => unpack(turn.state ?? null);
const requestOf = (episode, number) => episode.requests.find((request) => request.number === number);
const nativeOf = (episode, request) => documentAt(episode.natives, request.native);
const bodyOf = (episode, side) => ("json" in side ? documentAt(episode.bodies, side.json) : unpack(side.text));

// Text for searching, made when first asked for.
const searchable = new WeakMap();

function searchTextOf(turn) {
  if (!searchable.has(turn)) searchable.set(turn, turnText(turn).toLowerCase());
  return searchable.get(turn);
}

function turnText(turn) {
  const calls = (turn.calls ?? []).map((call) => `→ ${call.name} ${jsonText(argumentsOf(call))}`);
  return [contentOf(turn) ?? "", ...calls].filter(Boolean).join("\n");
}
