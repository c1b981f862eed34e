"""Settings in their own types, or as text."""

import numpy as np
import pytest

from labelmend import InputError, TrainConfig
from labelmend.methods.paper import PaperOptions
from labelmend.methods.tracked import TrackedOptions
from labelmend.training.config import Optimisation
from labelmend.training.settings import parse


def test_text_and_values_give_the_same_settings():
    text = parse(PaperOptions, {"track_every": "2", "eta": "0.5", "em_iterations": "converged", "fixed_share": "none"})
    values = parse(PaperOptions, {"track_every": 2, "eta": 0.5, "em_iterations": "converged", "fixed_share": None})
    assert text == values
    assert type(values.track_every) is int
    assert parse(PaperOptions, {"track_every": 0.5}).track_every == 0.5
    assert parse(PaperOptions, {"eta": 1}).eta == 1.0


@pytest.mark.parametrize("value", [1.5, 2.0, True, None, [2], np.float64(1.5)])
def test_a_fraction_is_not_truncated_to_a_whole_number(value):
    with pytest.raises(InputError, match="setting track_every takes a whole number, not"):
        parse(TrackedOptions, {"track_every": value})


def test_limits_hold_for_values_too():
    with pytest.raises(InputError, match=r"setting momentum must be between 0 and 1, not 1\.5"):
        parse(Optimisation, {"momentum": 1.5})
    with pytest.raises(InputError, match="not nan"):
        parse(Optimisation, {"momentum": float("nan")})


def test_numbers_of_numpy_are_taken_and_kept_as_pythons():
    config = TrainConfig("digits", "run", seed=np.int64(3), settings={"track_every": np.int64(2), "eta": np.float32(1)})
    assert (type(config.seed), config.settings) == (int, {"track_every": 2, "eta": 1.0})
    assert all(type(value) in (int, float) for value in config.settings.values())
    assert parse(TrackedOptions, {"track_every": np.int64(2)}).track_every == 2


def test_a_run_keeps_what_was_given(train_digits):
    described = train_digits(epochs=1, settings={"track_every": 2, "eta": 0.5}).read()
    assert described["config"]["settings"] == {"track_every": 2, "eta": 0.5}
    assert (described["options"]["track_every"], described["options"]["eta"]) == (2, 0.5)
