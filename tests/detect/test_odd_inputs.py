"""Whatever is given, the judge answers with finite numbers or refuses in one sentence."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelmend.detect.dynamics import judge_passes
from labelmend.detect.judge import Judgement, judge_predictions
from labelmend.errors import InputError

KINDS = ("soft", "one-hot", "zeros", "ones", "ties", "unscaled", "huge", "tiny")
SPOILT = (None, None, None, None, "nan", "inf", "negative", "zero row", "label")


@st.composite
def inputs(draw):
    """Labels and probabilities, [n, C] or [passes, n, C], of every kind that people have."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = draw(st.one_of(st.integers(2, 12), st.integers(2, 300)))
    samples = draw(st.one_of(st.integers(1, 12), st.integers(1, 80)))
    labels = rng.integers(draw(st.integers(1, classes)), size=samples)  # the last classes may have no label
    shape = (draw(st.integers(1, 4)), samples, classes) if draw(st.booleans()) else (samples, classes)
    rows = _rows(draw(st.sampled_from(KINDS)), rng, shape)
    if draw(st.booleans()):
        rows[..., np.arange(samples), labels] += rng.random()  # the network agrees with the labels
    if draw(st.booleans()):
        rows[..., -1] = 0.0
    spoilt = draw(st.sampled_from(SPOILT))
    if spoilt == "label":
        labels[-1] = classes
    elif spoilt == "zero row":
        rows[..., 0, :] = 0.0
    elif spoilt is not None:
        rows[..., -1, -1] = {"nan": np.nan, "inf": np.inf, "negative": -0.2}[spoilt]
    with np.errstate(over="ignore"):
        rows = rows.astype(draw(st.sampled_from([np.float16, np.float32, np.float64])))
    return (labels.tolist(), rows.tolist()) if draw(st.booleans()) else (labels, rows)


def _rows(kind, rng, shape):
    if kind == "one-hot":
        return np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])]
    if kind == "ties":
        return rng.integers(0, 2, shape) / 2
    scale = {"unscaled": 7.0, "huge": 1e38, "tiny": 1e-38}.get(kind, 1.0)
    flat = {"zeros": 0.0, "ones": 1.0}.get(kind)
    return np.full(shape, flat) if flat is not None else scale * rng.dirichlet(np.full(shape[-1], 0.3), shape[:-1])


def assert_answered(labels, rows):
    """The judge gives finite numbers within their limits, or one sentence; and no warning."""
    judge = judge_passes if np.ndim(rows) == 3 else judge_predictions
    sentence = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = judge(labels, rows)
    except InputError as refused:
        sentence = str(refused)
    if sentence is None:
        assert_finite(found, len(labels), np.shape(rows)[-1])
    else:
        assert "\n" not in sentence
        assert len(sentence) > 20


def assert_finite(found: Judgement, samples: int, classes: int) -> None:
    for name in ("probability", "score", "rival", "agreement", "margin", "steadiness", "loss"):
        values = getattr(found, name)
        assert values.shape == (samples,), name
        assert np.isfinite(values).all(), name
    for name in ("probability", "agreement", "steadiness"):
        assert ((getattr(found, name) >= 0) & (getattr(found, name) <= 1)).all(), name
    assert ((found.rival >= 0) & (found.rival < classes)).all()
    assert np.isfinite([found.threshold, found.rate, *found.interval, *found.fitted.values()]).all()
    assert 0 <= found.interval[0] <= found.rate <= found.interval[1] <= 1
    assert found.transition is None or np.isfinite(found.transition).all()
    assert found.reason


few = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
many = settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@few
@given(inputs())
def test_odd_inputs_are_answered_with_finite_numbers_or_one_sentence(odd):
    assert_answered(*odd)


@pytest.mark.slow
@many
@given(inputs())
def test_five_hundred_odd_inputs_are_answered_with_finite_numbers_or_one_sentence(odd):
    assert_answered(*odd)
