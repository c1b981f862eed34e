"""A claim is decided where its whole interval lies on one side, and not otherwise."""

import csv
import io
from dataclasses import replace

import pytest

from labelmend.reproduce.catalogue import Asked
from labelmend.reproduce.claims import (
    CLAIMS,
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Needed,
    Verdict,
    by_seed_csv,
    claimed,
    judge_claims,
    tally,
    verdict_lines,
)
from labelmend.reproduce.protocol import SMALL
from labelmend.reproduce.runs import Result


def verdict(effects, **bounds):
    return Verdict(Claim("id", "says", "Table 0", "last", Needed("CE", 50), **bounds), "digits", tuple(effects))


@pytest.mark.parametrize(
    ("effects", "bounds", "expected"),
    [
        ((5.0, 6.0, 7.0), {"least": 0.0}, HOLDS),
        ((-5.0, -6.0, -7.0), {"least": 0.0}, FAILS),
        ((-1.0, 0.5, 2.0), {"least": 0.0}, OPEN),
        ((0.1, 4.0, 8.0), {"least": 0.0}, OPEN),
        ((5.0,), {"least": 0.0}, OPEN),
        ((-0.3, 0.0, 0.3), {"least": -2.0, "most": 2.0}, HOLDS),
        ((4.0, 4.5, 5.0), {"least": -2.0, "most": 2.0}, FAILS),
        ((-4.0, -4.5, -5.0), {"least": -2.0, "most": 2.0}, FAILS),
        ((1.0, 2.0, 3.0), {"least": -2.0, "most": 2.0}, OPEN),
        ((1.0, 1.1, 1.2), {"most": 1.5}, HOLDS),
        ((2.0, 2.1, 2.2), {"most": 1.5}, FAILS),
    ],
)
def test_verdicts(effects, bounds, expected):
    assert verdict(effects, **bounds).verdict == expected


def test_the_interval_is_students():
    """The 0.95 quantile for 2 degrees of freedom is 2.919986; the standard deviation of the three is 1.527525."""
    found = verdict((1.0, 2.0, 4.0))
    assert found.interval == pytest.approx((7 / 3 - 2.575176, 7 / 3 + 2.575176), abs=1e-5)


def results(last_of, *, seeds=3):
    return {
        run.key: Result(run.key, 0.9, last_of(run), 0.99, 0.99, 0.5, 0.2, 1.0, "0", None)
        for run in claimed(SMALL, Asked(seeds=seeds))
    }


def test_effects_are_differences_of_the_same_seed():
    made = results(lambda run: {"m-dyr-h": 0.8, "m": 0.5}.get(run.config.method, 0.6) + 0.01 * run.config.seed)
    found = {(each.claim.id, each.source): each for each in judge_claims(SMALL, Asked(seeds=3), made)}
    assert len(found) == 2 * len(CLAIMS)
    above = found["m-dyr-h-above-mixup", "digits"]
    assert above.effects == pytest.approx((30.0, 30.0, 30.0))
    assert above.verdict == HOLDS
    assert found["mixup-above-ce-80", "fashion-mnist"].verdict == FAILS
    assert found["every-5", "digits"].effects == pytest.approx((0.0, 0.0, 0.0))


def test_a_claim_without_its_runs_or_with_one_that_diverged_is_left_out():
    made = results(lambda run: None if run.config.method == "m" else 0.5)
    found = {each.claim.id for each in judge_claims(SMALL, Asked(seeds=3), made)}
    assert {claim.id for claim in CLAIMS} - found == {
        "mixup-above-ce-20",
        "mixup-above-ce-50",
        "mixup-above-ce-80",
        "m-dyr-h-above-mixup",
    }
    narrow = Asked(seeds=3, data=frozenset({"digits"}), noise=frozenset({80}))
    assert {each.source for each in judge_claims(SMALL, narrow, made)} == {"digits"}


def test_what_is_shown():
    each = verdict((5.0, 6.0, 7.0), least=0.0)
    assert verdict_lines([each, replace(each, source="other", effects=(1.0,))]) == [
        ["claim", "in the paper", "wanted", "digits", "other"],
        ["says", "Table 0", "above 0", "✓ 6.0 ± 1.0", "(✓) 1.0"],
    ]
    assert tally([each]) == "Of 1 checks, 1 hold (✓), 0 do not hold (✗) and 0 are too close to call (?)"
    assert tally([each, verdict((5.0,), least=0.0)]) == (
        "Of 2 checks, 1 hold (✓), 0 do not hold (✗) and 0 are too close to call (?); "
        "1 have one seed, which decides nothing (in brackets)"
    )
    (row,) = csv.DictReader(io.StringIO(by_seed_csv([each])))
    assert row["by_seed"] == "5 6 7"
    assert verdict((1.0,), least=-2.0, most=2.0).claim.wanted == "within ±2"
    assert verdict((1.0,), most=1.5).claim.wanted == "at most 1.5"
    assert verdict((1.0,), least=10.0).claim.wanted == "at least 10"
