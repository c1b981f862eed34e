import pytest
import torch

from labelmend.data import NoisyLabels, Samples
from labelmend.data.kinds.features import Features
from labelmend.data.kinds.images import Images
from labelmend.methods.mend import MendOptions
from labelmend.training.config import TrainConfig
from labelmend.training.defaults import default_method, suited_options
from labelmend.training.prepare import prepare


def samples(shape, count=40):
    x = torch.zeros(count, *shape, dtype=torch.uint8 if len(shape) == 3 else torch.float32)
    kind = Images() if len(shape) == 3 else Features()
    labels = NoisyLabels(torch.arange(count) % 2)
    return Samples("made", kind, x, labels, ["a", "b"], [str(i) for i in range(count)])


@pytest.mark.parametrize(
    ("shape", "options", "on_gpu", "method"),
    [
        ((6,), {}, False, "mend"),
        ((6,), {"net": "mlp"}, False, "m-dyr-h"),
        ((3, 32, 32), {}, False, "mend"),
        ((3, 32, 32), {"net": "slim-resnet"}, False, "m-dyr-h"),
        ((3, 32, 32), {"net": "fast-32"}, True, "mend"),
        ((3, 32, 32), {}, True, "m-dyr-h"),
        ((1, 8, 8), {}, False, "m-dyr-h"),
    ],
)
def test_the_method_suits_the_data_and_the_network(shape, options, on_gpu, method):
    assert default_method(samples(shape), TrainConfig("made", "run", **options), on_gpu=on_gpu) == method


@pytest.mark.parametrize(
    ("shape", "count", "seconds", "folds"),
    [((6,), 40, None, 7), ((3, 32, 32), 40, None, 7), ((3, 32, 32), 5_001, None, 1), ((3, 32, 32), 2_000, 30.0, 1)],
)
def test_few_samples_are_judged_by_networks_that_did_not_learn_them(shape, count, seconds, folds):
    assert suited_options(MendOptions(), samples(shape, count), seconds).folds == folds
    assert suited_options(MendOptions(folds=3), samples(shape, count), seconds).folds == 3
    assert suited_options("of another method", samples(shape, count), seconds) == "of another method"


@pytest.mark.parametrize(
    ("options", "count", "controls"),
    [
        (MendOptions(), 6_000, 600),
        (MendOptions(), 60_000, 2_500),
        (MendOptions(controls=0), 6_000, 0),
        (MendOptions(controls=50), 6_000, 50),
        (MendOptions(folds=1), 3_000, 0),
        (MendOptions(folds=7), 60_000, None),
    ],
)
def test_one_network_has_controls_where_they_can_tell(options, count, controls):
    assert suited_options(options, samples((1, 2, 2), count), None).controls == controls


def test_a_run_says_how_many_samples_are_not_learned(tmp_path):
    settings = {"folds": "1", "controls": "60"}
    config = TrainConfig("digits", str(tmp_path / "run"), method="mend", net="convnet", settings=settings)
    assert prepare(config).choices.reasons["method"] == "as asked; 60 samples are not learned, as controls"


def test_a_run_on_rows_says_that_it_has_no_use_for_a_time(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("\n".join(["a,b,label", *(f"{i % 7},{i % 5},{'odd' if i % 2 else 'even'}" for i in range(60))]))
    reasons = [
        prepare(TrainConfig(str(rows), str(tmp_path / "run"), time=time)).choices.reasons for time in ("10m", None)
    ]
    assert "--time is not used" in reasons[0]["epochs"]
    assert "--time" not in reasons[1]["epochs"]


@pytest.mark.parametrize(("asked", "batch"), [({}, 48), ({"batch_size": "20"}, 20)])
def test_vast_tables_are_learned_in_larger_batches_after_the_same_comparison(asked, batch, tmp_path, monkeypatch):
    rows, rng = tmp_path / "rows.csv", torch.Generator().manual_seed(0)
    values = torch.randn(220, 3, generator=rng)
    lines = [f"{a},{b},{c},{'up' if a + b > 0 else 'down'}" for a, b, c in values.tolist()]
    rows.write_text("\n".join(["a,b,c,label", *lines]))
    usual = prepare(TrainConfig(str(rows), str(tmp_path / "usual"))).choices
    monkeypatch.setattr("labelmend.training.defaults.VAST", 200)
    monkeypatch.setattr("labelmend.training.defaults.VAST_BATCH", 48)
    vast = prepare(TrainConfig(str(rows), str(tmp_path / "vast"), settings=asked)).choices
    assert (usual.batch_size, vast.batch_size) == (32, batch)
    if not asked:
        assert (vast.net, vast.epochs, vast.optimiser) == (usual.net, usual.epochs, usual.optimiser)
