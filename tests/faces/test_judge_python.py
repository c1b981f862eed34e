"""`lm.judge` takes what people have in Python, and refuses what does not fit."""

import numpy as np
import pytest
import torch
from animals import ANIMALS, GIVEN, NAMES, PROBABILITIES, TRUTH, WRONG, N

import labelmend as lm
from labelmend.errors import InputError

pandas = pytest.importorskip("pandas")
INDEX = [f"animal {row}" for row in range(N)]


@pytest.mark.parametrize(
    ("labels", "probabilities"),
    [
        (GIVEN, PROBABILITIES),
        (GIVEN.tolist(), PROBABILITIES.tolist()),
        (NAMES, PROBABILITIES),
        (GIVEN.astype(float), PROBABILITIES.astype(np.float16)),
        (GIVEN + 1, PROBABILITIES),
        (torch.from_numpy(GIVEN), torch.from_numpy(PROBABILITIES).bfloat16().requires_grad_()),
        (pandas.Series(NAMES, INDEX), pandas.DataFrame(PROBABILITIES, INDEX, columns=ANIMALS)),
        (pandas.Series(NAMES, dtype="category"), pandas.DataFrame(PROBABILITIES)),
        (NAMES.tolist(), pandas.DataFrame(PROBABILITIES[:, ::-1], columns=ANIMALS[::-1])),
        (GIVEN, np.stack([PROBABILITIES])),
    ],
)
def test_python_takes_what_people_have(labels, probabilities):
    table = lm.judge(labels, probabilities)
    assert np.flatnonzero(table.flagged).tolist() == WRONG
    assert table.finding == "wrong labels found"
    low, high = table.noise_interval
    assert low <= table.noise_rate <= high
    assert table.summary().startswith("About")


def test_a_judged_table_knows_ids_names_and_truth():
    frame = pandas.DataFrame(PROBABILITIES, INDEX)
    table = lm.judge(GIVEN, frame, class_names=ANIMALS, truth=np.array(ANIMALS)[TRUTH])
    assert table["id"].tolist() == INDEX
    shown = table.to_pandas(table.suspects()[:5])
    assert len(shown) == 5
    assert set(shown.index) <= set(WRONG)
    assert (shown["truth"] == shown["suggested"]).all()
    assert lm.judge(GIVEN, PROBABILITIES, ids=range(5, N + 5)).ids[0] == "5"


@pytest.mark.parametrize(
    ("labels", "options", "sentence"),
    [
        (GIVEN[:-1], {}, "120 samples"),
        ([*NAMES[:-1], None], {}, "none in row 119"),
        ([*NAMES[:-1], "emu"], {}, "4 distinct values, and probabilities 3 columns"),
        (GIVEN + 0.5, {}, "one class name or whole number"),
        (NAMES, {"class_names": ANIMALS, "ids": ["a"]}, "ids have the shape"),
        (GIVEN, {"truth": GIVEN[1:]}, "the truth has the shape"),
        (GIVEN + 4, {"class_names": ANIMALS}, "'4', which is none of the 3 classes"),
        (pandas.Series(GIVEN, INDEX[::-1]), {}, "different indexes"),
    ],
)
def test_python_refuses_what_does_not_fit(labels, options, sentence):
    probabilities = pandas.DataFrame(PROBABILITIES, INDEX) if isinstance(labels, pandas.Series) else PROBABILITIES
    with pytest.raises(InputError, match=sentence):
        lm.judge(labels, probabilities, **options)


def test_class_names_that_are_numbers_are_not_shifted():
    table = lm.judge(GIVEN + 1, PROBABILITIES, class_names=["1", "2", "3"])
    assert table["given"].tolist() == [str(label + 1) for label in GIVEN]
