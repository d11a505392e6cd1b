# ruff: noqa: SIM905 - lists of words are read as words
"""The words of the confirmation rule, as data. All are in folded form: lower case, plain apostrophes.

A phrase is matched word by word; at one place the longest phrase wins.
"""

from __future__ import annotations

from collections.abc import Collection


class Phrases:
    """Phrases by their first word, longest first.

    Args:
        phrases: Words separated by single spaces; ``a|b`` stands for either word.

    Attributes:
        openings: The words that begin a phrase.
    """

    def __init__(self, phrases: Collection[str]) -> None:
        self._by_first: dict[str, list[tuple[frozenset[str], ...]]] = {}
        self._longest = max(len(phrase.split()) for phrase in phrases)
        for phrase in phrases:
            words = tuple(frozenset(word.split("|")) for word in phrase.split())
            for first in words[0]:
                self._by_first.setdefault(first, []).append(words)
        for candidates in self._by_first.values():
            candidates.sort(key=len, reverse=True)
        self.openings = frozenset(self._by_first)

    def at(self, words: list[str], start: int) -> int:
        """How many words the longest phrase that begins at ``start`` has; 0 for none."""
        if start >= len(words) or words[start] not in self._by_first:
            return 0
        following = words[start : start + self._longest]
        for phrase in self._by_first[words[start]]:
            if len(phrase) <= len(following) and all(map(frozenset.__contains__, phrase, following)):
                return len(phrase)
        return 0


#: Affirm wherever they stand.
_ANYWHERE = (
    "yes", "yeah", "yea", "yep", "yup", "ya", "aye", "affirmative", "ok", "okay", "okey", "alright", "all right",
    "of course", "by all means", "that's|thats|you're|youre|it's right", "that|you|it is|are right",
    "confirm", "i confirm", "go ahead", "go for it", "proceed", "please do", "do it|that|this|so", "make it so|happen",
    "let's|lets do it|that|this", "let's|lets go ahead", "i agree", "we agree", "agreed", "i accept",
    "i approve", "i authorize|authorise|consent", "you have my permission|consent|approval|authorization",
    "sounds|looks good|great|fine|perfect|right|correct|okay|ok", "works for me|us", "that|this works",
    "fine|good|okay|ok by|with me|us|that|this|it", "good to go", "that's|thats|it's|this good|fine|ok|okay|perfect",
    "that|it|this is good|fine|ok|okay|perfect", "that would|will be good|great|fine|perfect",
    "that'd|that'll be good|great|fine|perfect", "i am|do fine|okay with",
)  # fmt: skip

#: Affirm at the start of a clause only ("Confirmed.", not "my refund was approved").
FIRST_WORDS = frozenset("confirmed approved accepted granted".split())

#: Affirm at the start or end of a clause only ("Absolutely.", not "to be absolutely clear").
EDGE_WORDS = FIRST_WORDS | frozenset(
    "sure surely absolutely definitely certainly indeed exactly precisely totally correct".split()
)

#: Affirm after a copula too ("that is correct thanks", not "the correct address").
COPULA_WORDS = frozenset({"correct"})

AFFIRMATIVES = Phrases((*_ANYWHERE, *EDGE_WORDS))

COPULAS = frozenset(
    "is are it's that's thats this's everything's all's be looks seems was were all yes yeah yep".split()
)

NEGATIONS = frozenset(
    "no not never nope nah naw neither nor cannot none dont doesnt didnt isnt arent wasnt cant wont wouldnt shouldnt "
    "couldnt aint refuse decline".split()
)

#: A following affirmative is a condition or a question.
CONDITIONS = frozenset("before until till unless if whether how should shall once when after why".split())

CLAUSE_WORDS = frozenset("but however though although except".split())

FILLERS = frozenset(
    "oh um umm uh er hmm hm well actually sorry apologies hi hello hey thanks thank you so ah ahh and please honestly "
    "unfortunately".split()
)

#: Messages that open with one of these never confirm.
REFUSALS = Phrases(
    (
        "no", "nope", "nah", "naw", "nay", "never", "negative", "stop", "don't|dont", "do|please|let's|lets not",
        "please don't|dont|stop", "please do not", "not yet|now|today|really|interested", "i'd rather not",
        "i would rather not", "absolutely|certainly|definitely|surely|obviously not", "of course not", "hell|heck no",
        "i refuse|decline|disagree", "i do not agree|confirm|consent|approve|accept|authorize",
        "i don't|dont agree|confirm|consent|approve|accept|authorize", "i do not want|wish to proceed|continue",
        "i don't|dont want|wish to proceed|continue", "hold off",
    )
)  # fmt: skip

#: Look like a refusal at the start of a message and are none, though they still negate what follows.
NOT_REFUSALS = Phrases(
    (
        "no need|longer|one", "don't|dont forget", "do not forget", "not only",
        "please do not forget|worry|hesitate|mind", "please don't|dont forget|worry|hesitate|mind",
    )
)  # fmt: skip

#: Neither affirm nor negate, though a word in them would.
NEUTRAL = Phrases(
    (
        # nothing proposed is negated
        "no problem|problems|worries|worry|objection|objections|issue|issues|doubt|rush|hesitation|question|questions",
        "no concern|concerns|change|changes|further|other|more|additional|extra|insurance",
        "no bags|baggage|luggage|checked|special", "not a|an problem|issue", "why not", "not at all", "not only",
        "don't|dont worry|mind|hesitate", "do not worry|mind|hesitate", "never mind the",
        # questions to the agent
        "can|could|would|will|did|do|may|might|can't you|u|we confirm|do|proceed|approve|agree",
        "can|could|would|will|did you|u please|also|just|first|kindly|now confirm|do",
        "can|could|would|will you|u please also|just|first|kindly confirm|do", "please|pls could|can you confirm",
        "do|does that|this|it work|works", "way|ways|how we|i|you can proceed",
        "way|ways to proceed|confirm|do", "can|could|may i proceed|confirm|go ahead",
        "is|are|was|were|would|will that|it|this|everything|those|these|they ok|okay|alright|correct",
        "is|are|was|were|would|will that|it|this|everything|those|these|they confirmed|approved",
        "is|are|was|were|would|will that|it|this|everything|those|these|they be ok|okay|alright|correct|right",
        "is|are|was|were|would|will that|it|this|everything all right", "are you sure|certain", "you sure",
        "confirm whether|if|what|which|how|when|why|where", "confirm my|your identity|email|name|zip|phone|details",
        "confirm my user|date", "just|so to confirm", "let me confirm", "i'd like you to confirm",
        "waiting|wait for you to confirm", "awaiting confirm",
        # other meanings
        "make|making|made sure", "for sure if", "sure if|whether|how|what|why",
        "correct the|my|your|his|her|it|this|that|their|our|a|an|any",
        "exactly|precisely how|what|when|where|why|which|who",
        "do that|this|it|so myself|later|again|before|yet", "agree to disagree",
        "that|this would be good|great|fine|perfect if|to",
        "definitely|certainly|absolutely need|want|would|don't", "ok|okay|yes or no",
    )
)  # fmt: skip
