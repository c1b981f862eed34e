import numpy as np
import pytest

from labelmend.report.quality import flag_quality, reliability_bins, risks

RNG = np.random.default_rng(0)
PROBABILITY = np.append(RNG.random(500), [0.0, 1.0])
WRONG = RNG.random(502) < PROBABILITY**2


def test_the_calibration_error_is_that_of_its_definition():
    error = 0.0
    for low in range(10):
        inside = [i for i, p in enumerate(PROBABILITY) if low == min(int(10 * p), 9)]
        gap = sum(PROBABILITY[i] for i in inside) / len(inside) - sum(WRONG[i] for i in inside) / len(inside)
        error += len(inside) / len(PROBABILITY) * abs(gap)
    assert reliability_bins(PROBABILITY, WRONG).calibration_error == pytest.approx(error)


def test_bins_hold_every_label_and_empty_ones_add_no_error():
    assert reliability_bins(PROBABILITY, WRONG).counts.sum() == 502
    sure = reliability_bins(np.array([0.0, 1.0, 1.0]), np.array([False, True, True]))
    assert sure.counts.tolist() == [1, *[0] * 8, 2]
    assert sure.calibration_error == 0


def test_the_interval_of_a_bin_is_wilsons():
    from scipy.stats import binomtest

    bins = reliability_bins(PROBABILITY, WRONG)
    for at in range(10):
        count = int(bins.counts[at])
        expected = binomtest(round(bins.wrong[at] * count), count).proportion_ci(method="wilson")
        assert bins.intervals()[:, at] == pytest.approx([expected.low, expected.high], abs=1e-4)


def test_flags_are_measured_by_precision_recall_and_f1():
    flagged, wrong = np.array([True, True, False, False, False]), np.array([True, False, True, True, False])
    assert flag_quality(flagged, wrong) == pytest.approx({"precision": 1 / 2, "recall": 1 / 3, "f1": 2 / 5})
    nothing = np.zeros(5, dtype=bool)
    assert flag_quality(nothing, wrong) == {"precision": None, "recall": 0, "f1": None}
    assert flag_quality(flagged, nothing) == {"precision": 0, "recall": None, "f1": 0}


def test_the_risk_falls_as_the_most_doubtful_labels_are_left_out():
    rank, wrong = np.array([4, 1, 3, 2]), np.array([False, True, True, False])
    risk, best = risks(rank, wrong)
    assert risk == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert best == pytest.approx([0, 0, 1 / 3, 1 / 2])
