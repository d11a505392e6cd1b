"""Figures of evaluation, panel by panel."""

import json

import pytest

from replaykit.errors import UsageError
from replaykit.scoring import (
    SeatUse,
    Trial,
    across_panels,
    compare_arms,
    component_interval,
    confusion_of_panels,
    reliability,
    score_panels,
    seat_use,
)
from replaykit.scoring.interval import student_quantile

YES, NO = {"y": 1, "rule": "gold_transfer_action"}, {"y": 0, "rule": "no_transfer"}
ENGINE = {"distribution": "tau2", "version": "1.0.1", "data": {"airline": "aa"}}


def trial(panel="airline/0", reward=1.0, seed=300, **changes):
    facts = {
        "panel": panel,
        "arm": "A",
        "roster_digest": "r" * 64,
        "fleet_digest": "f" * 64,
        "settings": {"version": "tau3-text/1", "temperature": 0.0},
        "engine": ENGINE,
        "component": panel.split("/")[0],
        "case_seed": seed,
        "reward": reward,
        "termination": "user_stop",
        "transferred": False,
        "label": NO,
    }
    return Trial(**facts | changes)


def row(*trials, ks=(1,)):
    (only,) = score_panels(trials, ks)
    return only


SUCCESSES = {1.0: 1, 1.0 - 1e-7: 1, 1.0 + 1e-7: 1, 0.999: 0, 0.0: 0, 0.5: 0, 1.1: 0}


@pytest.mark.parametrize("reward", SUCCESSES)
def test_a_success_is_a_reward_of_one_within_a_millionth(reward):
    assert row(trial(reward=reward))["successes"] == SUCCESSES[reward]


def test_the_row_says_what_a_success_is():
    assert "tau2's own metrics" in row(trial())["success_rule"]


# (successes, trials, k): comb(successes, k) / comb(trials, k)
RELIABILITY = {(2, 4, 1): 0.5, (2, 4, 2): 1 / 6, (2, 4, 4): 0.0, (4, 4, 4): 1.0, (3, 4, 2): 0.5, (0, 1, 1): 0.0}


@pytest.mark.parametrize("case", RELIABILITY)
def test_reliability_is_the_share_of_k_trials_that_all_succeed(case):
    assert reliability(*case) == {"k": case[2], "value": pytest.approx(RELIABILITY[case]), "reason": None}


def test_reliability_is_undefined_for_more_than_the_trials():
    figure = reliability(1, 1, 2)
    assert figure["value"] is None
    assert figure["reason"] == "undefined: k = 2 is more than the 1 graded trials"


def test_every_k_that_was_asked_for_is_in_the_row():
    trials = [trial(seed=s, reward=float(s % 2)) for s in range(4)]
    values = [figure["value"] for figure in row(*trials, ks=(1, 2, 8))["reliability"]]
    assert values == [0.5, pytest.approx(1 / 6), None]


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_below_one_is_refused(k):
    with pytest.raises(UsageError, match="from 1 on"):
        score_panels([trial()], (k,))


def test_an_unknown_reward_is_a_trial_without_a_grade():
    scored = row(trial(reward=None), trial(seed=301))
    assert (scored["trials"], scored["graded"], scored["successes"]) == (2, 1, 1)
    assert scored["mean_reward"] == 1.0
    assert scored["rewards"][0] == {"case_seed": 300, "reward": None}


def test_a_seat_that_could_not_be_reached_gives_no_grade():
    scored = row(trial(reward=0.0, termination="infrastructure_error"))
    assert (scored["trials"], scored["graded"], scored["mean_reward"]) == (1, 0, None)


def test_panels_and_arms_have_rows_of_their_own_in_natural_order():
    rows = score_panels([trial("retail/1"), trial("airline/10"), trial("airline/2"), trial("airline/2", arm="B")])
    assert [(r["panel"], r["arm"]) for r in rows] == [
        ("airline/2", "A"), ("airline/2", "B"), ("airline/10", "A"), ("retail/1", "A"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"roster_digest": "x"}, {"fleet_digest": "x"}, {"settings": {}}, {"engine": {"version": "1.0.2"}}],
    ids=lambda change: next(iter(change)),
)
def test_trials_under_other_conditions_are_never_put_together(change):
    assert len(score_panels([trial(), trial(seed=301, **change)])) == 2


def test_counts_are_by_kind_and_added_over_the_trials_of_the_panel():
    scored = row(
        trial(violations={"off_reference_write": 1}, format_errors={"unknown_tool": 2}, diagnostics=("a", "a")),
        trial(seed=301, violations={"off_reference_write": 2}, termination="max_steps", requests={"learner": 3}),
    )
    assert scored["violations"] == {"off_reference_write": 3}
    assert scored["format_errors"] == {"unknown_tool": 2}
    assert scored["diagnostics"] == {"a": 2}
    assert scored["terminations"] == {"max_steps": 1, "user_stop": 1}
    assert scored["requests"] == {"learner": 3}


def test_the_label_stands_against_what_the_learner_did():
    scored = row(trial(label=YES, transferred=True), trial(label=YES, seed=301))
    assert scored["transfer"] == {"y": 1, "rule": "gold_transfer_action", "transferred": 1, "not_transferred": 1}


def test_a_panel_without_a_label_has_none():
    assert row(trial(label=None))["transfer"]["y"] is None


def test_two_labels_for_one_panel_are_refused():
    with pytest.raises(UsageError, match="airline/0"):
        score_panels([trial(label=YES), trial(label=NO, seed=301)])


def test_a_repeated_seed_is_reported():
    assert row(trial(), trial(), trial(seed=301))["repeated_seeds"] == [300]


def test_different_seeds_are_not():
    assert row(trial(), trial(seed=301))["repeated_seeds"] == []


def test_the_sampling_component_is_shown():
    assert row(trial("retail/5"))["component"] == "retail"


def test_no_figure_goes_across_panels():
    with pytest.raises(UsageError, match="no mean reward across panels: each panel is a league of its own"):
        across_panels("mean reward")


CONFUSION = {
    "should_and_did": (YES, [True]),
    "should_and_did_not": (YES, [False]),
    "should_not_and_did": (NO, [True, True]),
    "should_not_and_did_not": (NO, [False, False]),
    "trials_disagree": (NO, [False, True]),
    "no_label": (None, [True]),
}


@pytest.mark.parametrize("cell", CONFUSION)
def test_a_panel_is_counted_once_in_its_cell(cell):
    label, decisions = CONFUSION[cell]
    rows = score_panels([trial(label=label, transferred=t, seed=s) for s, t in enumerate(decisions)])
    counts = confusion_of_panels(rows)
    assert counts["unit"] == "panels"
    assert {name: count for name, count in counts.items() if count and name != "unit"} == {cell: 1}


def test_confusion_counts_of_two_arms_at_once_are_refused():
    with pytest.raises(UsageError, match="one arm"):
        confusion_of_panels(score_panels([trial(), trial("airline/1", arm="B")]))


# The published case: the judge's calls are paid for and must appear, null is not 0.
def test_tokens_add_up_per_seat_and_null_is_not_zero():
    judge = seat_use(
        [
            ({"prompt_tokens": 400, "completion_tokens": 40, "prompt_tokens_details": None}, None),
            (None, None),
        ]
    )
    assert (judge.replies, judge.prompt_tokens, judge.completion_tokens) == (2, 400, 40)
    assert (judge.tokens_not_reported, judge.cost, judge.cost_not_reported) == (1, None, 2)


USAGES = {
    "no usage": None,
    "an empty usage": {},
    "null counts": {"prompt_tokens": None, "completion_tokens": None},
    "a text for a count": {"prompt_tokens": "9", "completion_tokens": True},
}


@pytest.mark.parametrize("case", USAGES)
def test_nothing_reported_is_said_and_never_zero(case):
    use = seat_use([(USAGES[case], None)]).to_dict()
    assert use == {
        "replies": 1,
        "tokens_not_reported": 1,
        "cost_not_reported": 1,
        "prompt_tokens": "not reported",
        "completion_tokens": "not reported",
        "cost": "not reported",
    }


def test_a_reported_zero_is_a_zero():
    use = seat_use([({"prompt_tokens": 0, "completion_tokens": 0}, 0)]).to_dict()
    assert (use["prompt_tokens"], use["cost"], use["tokens_not_reported"]) == (0, 0.0, 0)


def test_seats_are_added_over_trials():
    one = {"customer": seat_use([({"prompt_tokens": 50, "completion_tokens": 5}, 0.5)])}
    two = {"customer": seat_use([({"prompt_tokens": 60, "completion_tokens": 6}, None)])}
    seats = row(trial(seats=one), trial(seed=301, seats=two))["seats"]
    assert seats["customer"] == SeatUse(2, 110, 11, 0.5, 0, 1).to_dict()


def test_a_row_is_plain_data():
    assert json.loads(json.dumps(row(trial()))) == row(trial())


def arms(*pairs, panel="airline/0", **changes):
    """Trials of A and B with rewards, one seed a pair."""
    return [
        trial(panel, reward, seed, arm=arm, **changes)
        for seed, pair in enumerate(pairs)
        for arm, reward in zip("AB", pair, strict=True)
    ]


def test_arms_are_compared_by_pairs_of_the_same_seed():
    (panel,) = compare_arms(arms((0.0, 1.0), (1.0, 1.0)), "A", "B")["panels"]
    assert [pair["difference"] for pair in panel["pairs"]] == [1.0, 0.0]
    assert panel["pairs"][0]["successes"] == [False, True]
    assert panel["mean_difference"] == 0.5


DEPARTURES = {
    "roster": ({"roster_digest": "x" * 64}, "roster differs"),
    "fleet": ({"fleet_digest": "x" * 64}, "fleet differs"),
    "a setting": ({"settings": {"version": "tau3-text/1", "temperature": 0.5}}, "settings.temperature differs"),
    "the engine's version": ({"engine": ENGINE | {"version": "1.0.2"}}, r"engine.version differs \(1.0.1 and 1.0.2\)"),
    "the engine's data": ({"engine": ENGINE | {"data": {"airline": "bb"}}}, "engine.data.airline differs"),
    "a setting that one lacks": ({"settings": {"version": "tau3-text/1"}}, "settings.temperature differs"),
    "a setting of another type": ({"settings": {"version": "tau3-text/1", "temperature": 0}}, "settings.temperature"),
}


@pytest.mark.parametrize("case", DEPARTURES)
def test_arms_under_other_conditions_are_refused_by_name(case):
    change, message = DEPARTURES[case]
    with pytest.raises(UsageError, match=message):
        compare_arms([trial(), trial(arm="B", **change)], "A", "B")


def test_a_third_arm_under_other_conditions_does_not_matter():
    trials = [*arms((0.0, 1.0)), trial(arm="C", roster_digest="x")]
    assert len(compare_arms(trials, "A", "B")["panels"]) == 1


def test_an_arm_that_was_not_recorded_is_refused():
    with pytest.raises(UsageError, match="no trial of the arm B"):
        compare_arms([trial()], "A", "B")


def test_an_arm_is_not_compared_with_itself():
    with pytest.raises(UsageError, match="itself"):
        compare_arms([trial()], "A", "A")


def test_panels_that_one_arm_lacks_are_named():
    trials = [*arms((0.0, 1.0)), trial("airline/7")]
    assert compare_arms(trials, "A", "B")["unpaired"] == ["airline/7"]


def test_repeated_and_lonely_seeds_are_left_out_and_named():
    trials = [*arms((0.0, 1.0), (1.0, 1.0)), trial(seed=0, arm="A"), trial(seed=9, arm="B")]
    (panel,) = compare_arms(trials, "A", "B")["panels"]
    assert [pair["case_seed"] for pair in panel["pairs"]] == [1]
    assert panel["seeds_left_out"] == [0, 9]


def test_a_pair_with_an_unknown_reward_is_named_and_not_compared():
    (panel,) = compare_arms(arms((None, 1.0)), "A", "B")["panels"]
    assert (panel["pairs"], panel["mean_difference"], panel["ungraded_seeds"]) == ([], None, [0])


def two_components():
    return compare_arms(
        [
            *arms((0.0, 1.0), panel="airline/0"),
            *arms((0.0, 0.0), panel="airline/1"),
            *arms((0.0, 1.0), panel="retail/0"),
        ],
        "A",
        "B",
    )


def test_an_interval_is_computed_by_component():
    interval = component_interval(two_components())
    assert interval["unit"] == "components"
    assert interval["components"]["airline"] == {"panels": 2, "mean_difference": 0.5}
    half = 12.7062 * 0.5 / 2  # t(0.975, 1) times the standard error of (0.5, 1.0)
    assert interval["low"] == pytest.approx(0.75 - half, abs=1e-3)
    assert interval["high"] == pytest.approx(0.75 + half, abs=1e-3)


def test_many_panels_of_one_component_give_no_interval():
    trials = [t for i in range(50) for t in arms((0.0, 1.0), panel=f"airline/{i}")]
    with pytest.raises(UsageError, match="1 sampling component"):
        component_interval(compare_arms(trials, "A", "B"))


def test_no_pairs_give_no_interval():
    with pytest.raises(UsageError, match="0 sampling component"):
        component_interval(compare_arms(arms((None, None)), "A", "B"))


def test_components_that_agree_exactly_are_said_to():
    trials = [*arms((0.0, 1.0), panel="airline/0"), *arms((0.0, 1.0), panel="retail/0")]
    interval = component_interval(compare_arms(trials, "A", "B"))
    assert (interval["low"], interval["high"]) == (1.0, 1.0)
    assert "says nothing" in interval["note"]


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.5])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(UsageError, match="between 0 and 1"):
        component_interval(two_components(), level)


# Published quantiles of Student's t.
QUANTILES = {(0.975, 1): 12.706, (0.975, 2): 4.303, (0.975, 10): 2.228, (0.95, 5): 2.015, (0.995, 30): 2.750}


@pytest.mark.parametrize("case", QUANTILES)
def test_the_quantile_is_the_published_one(case):
    assert student_quantile(*case) == pytest.approx(QUANTILES[case], abs=5e-4)


@pytest.mark.parametrize("cost", [10**400, float("inf"), float("nan"), -(10**20)])
def test_what_is_no_amount_of_money_was_not_reported(cost):
    use = seat_use([(None, cost)])
    assert use.cost is None and use.cost_not_reported == 1
