# ruff: noqa: RUF001 - users type such characters
"""Sentences of users and whether they confirm."""

import pytest

from replaykit.policy import confirmation, confirms

CONFIRMING = (
    "Yes",
    "yes",
    "YES!",
    "Yes.",
    "**Yes**",
    "Yes, please.",
    "Yes please proceed",
    "Yesss",
    "Yeah",
    "yeah, that works",
    "Yep",
    "yup!",
    "Ya, do it",
    "Ok",
    "OK.",
    "Okay",
    "okay, thank you",
    "Alright, let's do it.",
    "All right.",
    "Sure",
    "Sure thing",
    "Sure, go ahead.",
    "Absolutely",
    "Absolutely!",
    "Definitely, please book it",
    "Certainly.",
    "Of course.",
    "Exactly.",
    "Affirmative",
    "Correct",
    "Correct.",
    "That is correct.",
    "That's correct, thanks",
    "It's all correct.",
    "Everything is correct, please go ahead.",
    "That’s right",
    "that is right",
    "You're right.",
    "I confirm",
    "I confirm.",
    "Confirmed.",
    "Confirm",
    "I can confirm that, go ahead",
    "Please confirm the cancellation.",
    "I would like to confirm the booking",
    "I confirm all of these changes",
    "Go ahead",
    "go ahead please",
    "Please go ahead and cancel it.",
    "You can go ahead with the exchange",
    "Go for it!",
    "Proceed",
    "Please proceed.",
    "I'd like to proceed",
    "Let's proceed with that",
    "I want to proceed with the return.",
    "Please do",
    "Please do that.",
    "Do it.",
    "Do it now",
    "Make it so",
    "Let's do it",
    "lets do that",
    "I agree.",
    "Agreed",
    "I accept the charge",
    "I approve",
    "Approved.",
    "I authorize the payment",
    "By all means",
    "Sounds good",
    "That sounds great!",
    "Looks good to me.",
    "Works for me",
    "That works.",
    "That's fine.",
    "That is fine with me",
    "Fine by me",
    "I'm okay with that",
    "That would be great.",
    "That would be perfect, thank you",
    "You have my permission",
    "Great, yes.",
    "Perfect. Please proceed with the booking.",
    "My email is a@b.com. Yes, I confirm.",
    "Use the gift card; yes.",
    "Hi, yes, go ahead",
    "Thanks, please proceed",
    "Well, yes",
    "Yes, but only the second item",
    "Yes, and then cancel the other one.",
    "Yes — the gift card is fine",
    "I did not know that, but yes, go ahead",
    "I don't need insurance. Yes, please book it.",
    "I was not expecting that price. Go ahead anyway.",
    "No problem, go ahead.",
    "No worries, please proceed",
    "No objections, proceed",
    "No other changes. Please go ahead.",
    "No insurance, please. Yes, book it.",
    "No need to add bags. Go ahead.",
    "Why not, go ahead",
    "Don't worry about the fee, go ahead.",
    "Not a problem. Go ahead.",
    "Yes, that is not an issue",
    "I'm not sure about the bags, but yes to the flight",
    "Okay, but actually no",
    "Is the refund $50? Yes, go ahead.",
    "Can you confirm the total? If it is $50 then fine. Go ahead.",
    "Yes. ###STOP###",
    "Ｙｅｓ",
    "yes\nplease use the card on file",
    "(yes)",
)  # fmt: skip

REFUSED = (
    "No",
    "no.",
    "NO!",
    "Nooo",
    "No, please do not proceed",
    "No, please do not proceed.",
    "No, thanks",
    "No thank you, that's fine",
    "No, that's correct as it is",
    "No, go ahead and keep it",
    "No. Yes, I am sure.",
    "Nope",
    "Nope, don't do it",
    "Nah, that's okay",
    "Never.",
    "Negative",
    "Oh no, please do not go ahead",
    "Um, no",
    "Well, no, but okay",
    "Sorry, no. Please confirm something else.",
    "Actually no, proceed with the other one",
    "Thanks, but no, okay?",
    "Hi, no",
    "Stop. Do not go ahead.",
    "Don't go ahead",
    "Don’t proceed",
    "Do not proceed with that",
    "Please don't do it, okay?",
    "Please do not confirm yet",
    "Not yet. Okay?",
    "Not now, okay",
    "Absolutely not",
    "Definitely not. Okay?",
    "Certainly not!",
    "Of course not.",
    "I refuse. Go ahead and transfer me.",
    "I disagree, do it again",
    "I do not agree",
    "I don't agree to that",
    "I don't want to proceed. Okay?",
    "I'd rather not, okay?",
    "Let's not do it",
    "No. More bags, please. Yes.",
    "No, other changes are fine. Go ahead with those.",
    "No; insurance is fine, okay",
    "Please, don't. Okay?",
    "Hold off, yes?",
)

NEGATED = (
    "that is not correct",
    "That is not correct.",
    "it isn't correct",
    "This is not okay",
    "I am not sure",
    "I'm not sure",
    "I can't confirm that",
    "I cannot confirm",
    "I won't proceed with this",
    "I would not go ahead with it",
    "I never said yes",
    "I didn't say yes",
    "You should not proceed",
    "I don't think that's right",
    "I would rather you do not go ahead",
    "we are definitely not okay with it",
    "Wait, don't do it",
    "The name is wrong, do not go ahead",
    "My answer is not yes",
    "I think that doesn't sounds good",
    "Yes/no",
    "Before you proceed, what is the price?",
    "What happens if I confirm?",
    "I need the price before I confirm",
    "Tell me once you go ahead",
    "How do I proceed?",
    "Let me know if that works",
    "I will wait until you confirm",
    "Should I go ahead?",
    "I'll decide after you confirm",
    "I want to know whether to proceed",
    "We dont do it",
)

NEITHER = (
    "I would ask you to please wait",
    "",
    "   ",
    "Hello, I need help with a request.",
    "Hi! I want to cancel my reservation.",
    "I want a refund.",
    "My email is maya@example.org",
    "Great, thanks",
    "Thank you. ###STOP###",
    "Perfect.",
    "What is the total?",
    "Can you confirm the price?",
    "Could you please confirm my booking?",
    "Would you confirm that for me?",
    "Can you please also confirm the date?",
    "Is that correct?",
    "Is it okay?",
    "Is everything all right?",
    "Are you sure?",
    "Please make sure it is an aisle seat.",
    "I'm making sure about the date",
    "Please correct my address",
    "The correct address is 12 Main Street",
    "I definitely want a refund",
    "I absolutely need this today",
    "Just to confirm, what is the fee?",
    "I'd like the second one.",
    "The blue one, size M",
    "Use my gift card",
    "Cancel it.",
    "Yesterday I bought a lamp.",
    "I live in Eyes Creek",
    "My refund was approved last week",
    "Okra",
    "surefire",
    "It would be great if you could waive the fee",
    "Can you do that?",
    "Could you do it without a fee?",
    "Does that work?",
    "I'll do that myself",
    "That's not right",
    "Maybe.",
    "I guess",
    "Let me think about it",
    "sí",
)

TABLE = (
    dict.fromkeys(CONFIRMING, (True, "affirmed"))
    | dict.fromkeys(REFUSED, (False, "refused"))
    | dict.fromkeys(NEGATED, (False, "negated"))
    | dict.fromkeys(NEITHER, (False, "no_affirmative"))
)


@pytest.mark.parametrize("sentence", TABLE)
def test_a_sentence_has_its_verdict(sentence):
    verdict = confirmation(sentence)
    assert (verdict.confirmed, verdict.reason) == TABLE[sentence]


@pytest.mark.parametrize("sentence", ["please do not", "Please do not."])
def test_a_negation_right_after_the_affirmative_withdraws_it(sentence):
    assert not confirms(sentence)
    assert confirmation("I would say please do not").reason == "negated"


def test_a_negation_four_words_before_does_not_reach_the_affirmative():
    assert confirms("I did not want all that yes")
    assert not confirms("I did not want that yes")


def test_a_negation_in_another_clause_does_not_reach_the_affirmative():
    assert confirms("it was not cheap, go ahead")
    assert not confirms("it was not go ahead")


def test_the_verdict_names_the_word_that_decided():
    assert confirmation("Fine then, go ahead").word == "go ahead"


def test_the_tables_hold_enough_sentences():
    assert len(CONFIRMING) >= 100 and len(REFUSED) + len(NEGATED) + len(NEITHER) >= 100


def test_a_long_message_is_judged_in_time_linear_in_its_length():
    assert confirms("no objection " * 20_000 + ". go ahead")
