// Which parts of two sequences belong together: the longest common subsequence, within bounds.

const MOST_CELLS = 4_000_000;

// Pairs [i, j] in order; null on a side where the other stands alone.
function aligned(left, right) {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  let tail = 0;
  while (tail < left.length - start && tail < right.length - start && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail++;
  const middle = commonPairs(left.slice(start, left.length - tail), right.slice(start, right.length - tail));
  const pairs = [];
  for (let i = 0; i < start; i++) pairs.push([i, i]);
  pairs.push(...middle.map(([i, j]) => [i === null ? null : i + start, j === null ? null : j + start]));
  for (let k = tail; k > 0; k--) pairs.push([left.length - k, right.length - k]);
  return pairs;
}

function commonPairs(left, right) {
  const [n, m] = [left.length, right.length];
  if (!n || !m || (n + 1) * (m + 1) > MOST_CELLS) return sideBySide(0, n, 0, m);
  const lengths = new Uint32Array((n + 1) * (m + 1));
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      lengths[i * (m + 1) + j] = left[i] === right[j] ? lengths[(i + 1) * (m + 1) + j + 1] + 1 : Math.max(lengths[(i + 1) * (m + 1) + j], lengths[i * (m + 1) + j + 1]);
  const pairs = [];
  let [i, j, fromI, fromJ] = [0, 0, 0, 0];
  while (i < n && j < m) {
    if (left[i] === right[j]) {
      pairs.push(...sideBySide(fromI, i, fromJ, j), [i, j]);
      [fromI, fromJ] = [++i, ++j];
    } else if (lengths[(i + 1) * (m + 1) + j] >= lengths[i * (m + 1) + j + 1]) i++;
    else j++;
  }
  return [...pairs, ...sideBySide(fromI, n, fromJ, m)];
}

// What differs between two common parts, one beside the other as far as both go.
function sideBySide(fromI, toI, fromJ, toJ) {
  const pairs = [];
  for (let k = 0; k < Math.max(toI - fromI, toJ - fromJ); k++) pairs.push([fromI + k < toI ? fromI + k : null, fromJ + k < toJ ? fromJ + k : null]);
  return pairs;
}

const WORDS = /\s+|[\p{L}\p{N}_]+|./gsu;

// Two texts as fragments in which the words that only one of them has are marked.
function wordDifference(left, right) {
  const [ours, theirs] = [left.match(WORDS) ?? [], right.match(WORDS) ?? []];
  const [before, after] = [document.createDocumentFragment(), document.createDocumentFragment()];
  for (const run of joinedRuns(runs(aligned(ours, theirs), ours, theirs))) {
    before.append(run.same ? visible(run.left) : el("del", {}, visible(run.left)));
    after.append(run.same ? visible(run.right) : el("ins", {}, visible(run.right)));
  }
  return [before, after];
}

// White space that two changes happen to share is no agreement.
function joinedRuns(found) {
  const joined = [];
  found.forEach((run, i) => {
    const between = run.same && !run.left.trim() && i > 0 && i < found.length - 1;
    const last = joined.at(-1);
    if (last && !last.same && (between || !run.same)) {
      last.left += run.left;
      last.right += run.right;
    } else joined.push({ ...run });
  });
  return joined;
}

function runs(pairs, ours, theirs) {
  const joined = [];
  for (const [i, j] of pairs) {
    const [a, b] = [i === null ? "" : ours[i], j === null ? "" : theirs[j]];
    const equal = i !== null && j !== null && a === b;
    const last = joined.at(-1);
    if (last && last.same === equal) {
      last.left += a;
      last.right += b;
    } else joined.push({ same: equal, left: a, right: b });
  }
  return joined;
}
