from types import ModuleType

import pytest

import labelmend
from labelmend.errors import InputError


@pytest.mark.parametrize("name", labelmend.__all__)
def test_a_public_name_is_what_it_says_however_often_it_is_asked_for(name):
    first, second = getattr(labelmend, name), getattr(labelmend, name)
    assert first is second
    assert callable(first)
    assert not isinstance(first, ModuleType)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'fit'"):
        _ = labelmend.fit


def test_bad_input_met_after_training_does_not_cost_the_run(train_digits, tmp_path):
    def damaged(run):
        raise InputError("epochs.jsonl is damaged")

    with pytest.raises(InputError, match="damaged"):
        train_digits(epochs=1, afterwards=damaged)
    assert list((tmp_path / "run" / "checkpoints").glob("epoch-*"))
