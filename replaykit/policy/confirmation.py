"""Did a user's message confirm what was proposed? A lexical rule, in English.

A message confirms when it holds at least one *explicit, non-negated affirmative* and does not open with a refusal:

1. The text is folded (compatibility forms, case, typographic apostrophes, "yesss") and cut into clauses at
   punctuation and at ``but``, ``however``, ``though``, ``although``, ``except``.
2. A message whose first words, greetings and fillers aside, are a refusal ("No", "Nope", "Please don't",
   "Absolutely not") never confirms, whatever follows.
3. An affirmative counts unless its clause holds a negation within the three words before it ("that is not correct"),
   a negation right after it ("please do not"), or a word that makes it a condition or a question within the three
   words before it ("before you proceed", "if that is correct").
4. Phrases in which an affirmative or a negative word means something else ("make sure", "can you confirm",
   "no problem", "no other changes") are read as neutral.

Limits, kept on purpose: negation is lexical, so "Okay, but actually no" confirms; agreement that is only implied
("I'd like the second one", "Great, thanks") does not; other languages than English are not read.
The words themselves are in `lexicon`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from replaykit.policy import lexicon

# A word, or what ends a clause (the empty word).
_TOKEN = re.compile(r"([a-z0-9]+(?:'[a-z]+)?)|[.,;:!?()\[\]{}\"\n\r\u2013-\u2014\u2026*#|<>]+|\s-+\s")
_STOP_TOKEN = re.compile(r"###[A-Z-]+###")  # tau2's own, said to end the episode
_STRETCHABLE = ("yes", "yeah", "yep", "yup", "sure", "okay", "no")
_STRETCHED = re.compile("|".join(f"({'+'.join(word)}+)" for word in _STRETCHABLE))
_OPENINGS = lexicon.NEUTRAL.openings | lexicon.AFFIRMATIVES.openings
_APOSTROPHES = str.maketrans("\u2018\u2019`", "'''")
_NEAR = 3  # words before an affirmative in which a negation reaches it


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The verdict on one user message.

    Attributes:
        confirmed: Whether the message confirms.
        reason: ``affirmed``, ``refused`` (it opens with a refusal), ``negated`` (every affirmative is negated or made
            a condition), ``no_affirmative``, or ``no_message`` (no user message yet).
        word: The affirmative that decided, or None.
    """

    confirmed: bool
    reason: str
    word: str | None = None

    def to_dict(self) -> dict:
        """Plain data."""
        return {"confirmed": self.confirmed, "reason": self.reason, "word": self.word}


NO_MESSAGE = Confirmation(False, "no_message")


def confirms(text: str) -> bool:
    """Whether a user's message confirms (see the module's text)."""
    return confirmation(text).confirmed


@lru_cache(maxsize=1024)
def confirmation(text: str) -> Confirmation:
    """The verdict on a user's message, with its reason."""
    clauses = _clauses(text)
    if _opens_with_refusal(clauses):
        return Confirmation(False, "refused")
    withheld = None
    for clause in clauses:
        for word, counts in _affirmatives(clause):
            if counts:
                return Confirmation(True, "affirmed", word)
            withheld = withheld or word
    return Confirmation(False, "negated" if withheld else "no_affirmative", withheld)


def _clauses(text: str) -> list[list[str]]:
    """The words of each clause, folded."""
    plain = _STOP_TOKEN.sub(" ", text)
    folded = unicodedata.normalize("NFKC", plain).casefold().translate(_APOSTROPHES)
    clauses: list[list[str]] = [[]]
    for word in _TOKEN.findall(folded):
        if not word or word in lexicon.CLAUSE_WORDS:
            clauses.append([])
        else:
            clauses[-1].append(_unstretched(word) if word[0] in "yson" else word)
    return [clause for clause in clauses if clause]


def _unstretched(word: str) -> str:
    found = _STRETCHED.fullmatch(word)
    return word if found is None else _STRETCHABLE[found.lastindex - 1]


def _opens_with_refusal(clauses: list[list[str]]) -> bool:
    for clause in clauses:
        for place, word in enumerate(clause):
            if lexicon.NEUTRAL.at(clause, place) or lexicon.NOT_REFUSALS.at(clause, place):
                return False
            if lexicon.REFUSALS.at(clause, place):
                return True
            if word not in lexicon.FILLERS:
                return False
    return False


def _affirmatives(clause: list[str]) -> list[tuple[str, bool]]:
    """Each affirmative of a clause, and whether it counts."""
    found = []
    live = [True] * len(clause)  # words that are not part of a neutral phrase
    i = 0
    while i < len(clause):
        if clause[i] not in _OPENINGS:
            i += 1
            continue
        neutral, affirmative = lexicon.NEUTRAL.at(clause, i), lexicon.AFFIRMATIVES.at(clause, i)
        length = max(neutral, affirmative, 1)
        if neutral >= affirmative and neutral:
            live[i : i + length] = [False] * length
        elif affirmative:
            found.append((i, i + length))
        i += length
    return [(" ".join(clause[a:b]), _counts(clause, live, a, b)) for a, b in found if _placed(clause, a, b)]


def _counts(clause: list[str], live: list[bool], start: int, end: int) -> bool:
    """Neither negated nor made a condition."""
    near = range(max(0, start - _NEAR), start)
    if any(live[i] and (_negates(clause[i]) or clause[i] in lexicon.CONDITIONS) for i in near):
        return False
    return not (end < len(clause) and live[end] and _negates(clause[end]))


def _negates(word: str) -> bool:
    return word in lexicon.NEGATIONS or word.endswith("n't")


def _placed(clause: list[str], start: int, end: int) -> bool:
    """Whether a word that affirms only in some places stands in one of them."""
    word = clause[start]
    if end - start > 1 or word not in lexicon.EDGE_WORDS:
        return True
    first = all(w in lexicon.FILLERS for w in clause[:start])
    if word in lexicon.FIRST_WORDS:
        return first
    if first or end == len(clause):
        return True
    return word in lexicon.COPULA_WORDS and clause[start - 1] in lexicon.COPULAS
