import json
from pathlib import Path

import numpy as np
import pytest
import torch

from labelmend.core import generator
from labelmend.data import inject, limits, noise
from labelmend.data.kinds.features import Features
from labelmend.data.kinds.images import ImageFiles, Images
from labelmend.data.noise import CIFAR100_SUPERCLASSES, KINDS, NoiseSpec, nominal_rate, wrong_rate
from labelmend.data.samples import NoisyLabels, Samples
from labelmend.errors import InputError

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
A_CLASS = 2000
ROWS = 0.7 * np.eye(10) + 0.2 * np.roll(np.eye(10), 3, axis=1) + 0.1 * np.roll(np.eye(10), 5, axis=1)


def dataset(names=NAMES, samples=10 * A_CLASS, inputs=None):
    if inputs is None:
        inputs = torch.randn(samples, 6, generator=generator(0, "inputs"))
    ids = [str(i) for i in range(len(inputs))]
    return Samples(
        "toy",
        Features() if inputs.dim() == 2 else Images(),
        inputs,
        NoisyLabels(torch.arange(len(inputs)) % len(names)),
        names,
        ids,
    )


def corrupt(text, data=None, seed=0):
    return inject(data or dataset(), NoiseSpec.parse(text), generator(seed, "noise")).labels


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_symmetric_noise_may_keep_the_true_label_so_a_tenth_less_is_wrong(rate):
    real = wrong_rate(corrupt(f"symmetric:{rate}"))
    assert real == pytest.approx(0.9 * rate, abs=0.03)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8, 1.0])
def test_noise_that_excludes_the_true_label_is_wrong_at_its_nominal_rate(rate):
    assert wrong_rate(corrupt(f"symmetric-excl:{rate}")) == pytest.approx(rate, abs=1e-3)


def test_wrong_labels_are_spread_evenly_over_the_other_classes():
    labels = corrupt("symmetric-excl:1")
    shift = (labels.observed - labels.truth) % 10
    counts = torch.bincount(shift, minlength=10)
    assert counts[0] == 0
    expected = len(shift) / 9
    assert float(((counts[1:] - expected) ** 2 / expected).sum()) < 26  # chi-squared, 8 degrees of freedom, p = 0.001


def test_zero_noise_changes_nothing_and_the_truth_is_kept():
    labels = corrupt("symmetric:0")
    assert torch.equal(labels.observed, labels.truth)


def test_the_same_seed_makes_the_same_noise():
    first, second, other = (corrupt("symmetric:0.5", seed=seed).observed for seed in (3, 3, 4))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def transitions(labels, classes=10):
    counts = torch.bincount(labels.truth * classes + labels.observed, minlength=classes**2).view(classes, classes)
    return counts.double() / counts.sum(dim=1, keepdim=True)


def refusal(text, data=None):
    with pytest.raises(InputError) as caught:
        corrupt(text, data)
    message = str(caught.value)
    assert "\n" not in message
    assert ". " not in message
    return message


def saved(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def within(rate, samples, sds=4.5):
    return pytest.approx(rate, abs=sds * (rate * (1 - rate) / samples) ** 0.5 + 1e-12)


def test_symmetric_noise_of_80_percent_makes_72_percent_wrong():
    assert wrong_rate(corrupt("symmetric:0.8")) == within(0.72, 10 * A_CLASS)


@pytest.mark.parametrize("rate", [0, 0.2, 0.4, 1])
def test_asymmetric_noise_turns_five_cifar10_classes_into_those_they_are_taken_for(rate):
    shares = transitions(corrupt(f"asymmetric:{rate}"))
    expected = {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"}
    for i, name in enumerate(NAMES):
        if name in expected:
            target = NAMES.index(expected[name])
            assert float(shares[i, target]) == within(rate, A_CLASS)
            assert float(shares[i, i] + shares[i, target]) == pytest.approx(1)
        else:
            assert shares[i, i] == 1


def cifar100_names():
    return sorted(CIFAR100_SUPERCLASSES.replace(";", " ").split())


def test_asymmetric_noise_moves_cifar100_classes_within_their_superclass():
    names = cifar100_names()
    assert len(set(names)) == 100
    labels = corrupt("asymmetric:1", dataset(names, 100))
    moved = {names[t]: names[o] for t, o in zip(labels.truth.tolist(), labels.observed.tolist(), strict=True)}
    assert sorted(moved.values()) == names
    assert moved["beaver"] == "dolphin"
    assert moved["whale"] == "beaver"
    assert moved["tractor"] == "lawn_mower"
    for name in names:
        ring = [name]
        while moved[ring[-1]] != name:
            ring.append(moved[ring[-1]])
        assert len(ring) == 5


def test_the_misspelt_crab_of_the_hugging_face_copy_is_still_cifar100():
    names = [name if name != "crab" else "cra" for name in cifar100_names()]
    labels = corrupt("asymmetric:1", dataset(names, 100))
    assert names[labels.observed[names.index("cra")]] == "lobster"


def test_asymmetric_noise_goes_only_where_the_given_map_says(tmp_path):
    file = saved(tmp_path / "map.json", {"ship": "frog"})
    shares = transitions(corrupt(f"asymmetric:0.3:{file}"))
    ship, frog = NAMES.index("ship"), NAMES.index("frog")
    assert float(shares[ship, frog]) == within(0.3, A_CLASS)
    shares[ship, ship] += shares[ship, frog]
    shares[ship, frog] = 0
    assert torch.allclose(shares, torch.eye(10, dtype=torch.float64))


def test_pair_noise_goes_to_the_next_class_and_from_the_last_to_the_first():
    shares = transitions(corrupt("pair:0.45"))
    for i in range(10):
        assert float(shares[i, (i + 1) % 10]) == within(0.45, A_CLASS)
        assert float(shares[i, i] + shares[i, (i + 1) % 10]) == pytest.approx(1)


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.4, 0.6, 0.98])
def test_instance_noise_is_wrong_at_its_nominal_rate(rate):
    assert wrong_rate(corrupt(f"instance:{rate}")) == pytest.approx(rate, abs=0.03)


def test_instance_noise_of_rate_zero_and_one_is_none_and_all():
    assert wrong_rate(corrupt("instance:0")) == 0
    assert wrong_rate(corrupt("instance:1")) == 1


def test_instance_noise_treats_equal_samples_alike_and_different_ones_differently():
    clusters = torch.tensor([[1.0, 0.0, 0.5], [-0.2, 1.0, -1.0]])
    kind = torch.arange(4 * A_CLASS) // A_CLASS % 2  # clusters 0 and 1, and each once more
    labels = corrupt("instance:1", dataset(["a", "b", "c", "d"], inputs=clusters[kind]))
    targets = [labels.observed[i * A_CLASS : (i + 1) * A_CLASS][::4] for i in range(4)]
    first, other, again, other_again = (torch.bincount(t, minlength=4) / len(t) for t in targets)
    assert first[0] == 0
    assert float((first - again).abs().max()) < 0.12
    assert float((other - other_again).abs().max()) < 0.12
    assert float((first - other).abs().max()) > 0.2


def test_instance_noise_on_images_does_not_depend_on_how_they_are_chunked(monkeypatch):
    images = torch.randint(256, (200, 3, 4, 4), generator=generator(0), dtype=torch.uint8)
    whole = corrupt("instance:0.5", dataset(inputs=images))
    monkeypatch.setattr(noise, "CHUNK_VALUES", 1)
    assert torch.equal(corrupt("instance:0.5", dataset(inputs=images)).observed, whole.observed)


@pytest.mark.parametrize("suffix", ["npy", "csv", "json"])
def test_matrix_noise_refinds_its_matrix(tmp_path, suffix):
    file = tmp_path / f"rates.{suffix}"
    if suffix == "npy":
        np.save(file, ROWS)
    else:
        saved(file, ROWS.tolist() if suffix == "json" else "\n".join(",".join(map(str, row)) for row in ROWS))
    shares = transitions(corrupt(f"matrix:{file}"))
    assert torch.equal(shares > 0, torch.from_numpy(ROWS) > 0)
    assert float((shares - torch.from_numpy(ROWS)).abs().max()) < 0.05
    assert NoiseSpec.parse(f"matrix:{file}").rate == pytest.approx(0.3)


def test_the_nominal_rate_of_a_matrix_counts_frequent_classes_more(tmp_path):
    file = saved(tmp_path / "rates.json", [[1, 0], [0.5, 0.5]])
    spec = NoiseSpec.parse(f"matrix:{file}")
    labels = torch.tensor([0, 1, 1, 1])
    data = Samples("toy", Features(), torch.zeros(4, 1), NoisyLabels(labels), ["a", "b"], list("wxyz"))
    assert nominal_rate(data, spec) == pytest.approx(0.375)
    assert nominal_rate(inject(data, spec, generator(0)), spec) == pytest.approx(0.375)
    assert nominal_rate(data, NoiseSpec.parse("pair:0.2")) == 0.2


def test_every_kind_makes_the_same_labels_from_the_same_seed_and_keeps_the_truth(tmp_path):
    np.save(tmp_path / "rates.npy", ROWS)
    for kind in KINDS:
        text = f"matrix:{tmp_path / 'rates.npy'}" if kind == "matrix" else f"{kind}:0.4"
        first, second, other = (corrupt(text, seed=seed) for seed in (1, 1, 2))
        assert torch.equal(first.observed, second.observed), kind
        assert not torch.equal(first.observed, other.observed), kind
        assert torch.equal(first.truth, dataset().labels.observed), kind


def test_a_spec_reads_back_as_it_was_written(tmp_path):
    np.save(tmp_path / "rates.npy", ROWS)
    texts = [f"{kind}:0.35" for kind in KINDS if kind != "matrix"]
    texts += ["asymmetric:0.4:some/map.json", f"matrix:{tmp_path / 'rates.npy'}", "pair:1", "pair:0", "pair:1e-07"]
    for text in texts:
        assert str(NoiseSpec.parse(text)) == text
        assert NoiseSpec.parse(str(NoiseSpec.parse(text))) == NoiseSpec.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("symetric:0.5", "did you mean 'symmetric'"),
        ("pair", "has no rate"),
        ("pair:", "has no rate"),
        ("pair:half", "has no rate"),
        ("pair:1.5", "outside 0..1"),
        ("pair:nan", "outside 0..1"),
        ("instance:-0.1", "outside 0..1"),
        ("pair:0.5:map.json", "takes a file"),
        ("asymmetric:0.5:", "takes a file"),
        ("asymmetric:0.5:absent.json", "there is no file"),
        ("matrix", "has no file"),
        ("matrix:absent.npy", "there is no file"),
        ("matrix:rates.txt", ".npy, .csv or .json"),
        ("matrix:" + "x" * 5000 + ".npy", "there is no file"),
    ],
)
def test_a_spec_that_cannot_be_used_is_refused_in_one_sentence(text, message):
    assert message in refusal(text)


def test_asymmetric_noise_on_other_data_asks_for_a_map():
    assert "asymmetric:0.4:map.json" in refusal("asymmetric:0.4", dataset(["a", "b"], 10))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"cat": "dgo"}, "did you mean 'dog'"),
        ({"catt": "dog"}, "did you mean 'cat'"),
        (["cat", "dog"], "not a JSON object"),
        ({"cat": 5}, "not a JSON object"),
        ("{", "cannot be read as JSON"),
        ("9" * 5000, "cannot be read as JSON"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
    ],
)
def test_a_map_that_cannot_be_used_is_refused(tmp_path, content, message):
    assert message in refusal(f"asymmetric:0.4:{saved(tmp_path / 'map.json', content)}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", [[0.5, 0.5]], "shape (1, 2)"),
        ("a.json", [1, 0], "shape (2,)"),
        ("a.json", [[1.5, -0.5], [0, 1]], "negative or missing number in row 0"),
        ("a.json", [[1, 0], [float("nan"), 1]], "negative or missing number in row 1"),
        ("a.json", [[1, 0], [0.5, 0.4]], "row 1 that sums to 0.9"),
        ("a.json", [[1, 0], [0, 1]], "2 rows but toy has 10 classes"),
        ("a.json", [[1, 0], [1]], "cannot be read as a matrix"),
        ("a.json", {"cat": 1}, "cannot be read as a matrix"),
        ("a.json", "[" * 100_000, "nested too deep"),
        ("a.csv", "1,0\n0,one\n", "cannot be read as a matrix"),
        ("a.csv", "", "shape (0,)"),
        ("a.npy", "no array", "cannot be read as a matrix"),
    ],
)
def test_a_matrix_that_cannot_be_used_is_refused(tmp_path, name, content, message):
    assert message in refusal(f"matrix:{saved(tmp_path / name, content)}")


def test_pickled_and_oversized_files_are_not_read(tmp_path, monkeypatch):
    np.save(tmp_path / "objects.npy", np.array([[None]]), allow_pickle=True)
    assert "cannot be read" in refusal(f"matrix:{tmp_path / 'objects.npy'}")
    np.save(tmp_path / "rates.npy", ROWS)
    monkeypatch.setattr(limits, "READ_WHOLE", 100)
    assert "are read" in refusal(f"matrix:{tmp_path / 'rates.npy'}")


def test_instance_noise_is_refused_for_images_that_are_streamed_from_disk():
    streamed = ImageFiles([Path("a.png"), Path("b.png")], ["", ""], shape=(3, 8, 8))
    data = Samples("toy", Images(), streamed, NoisyLabels(torch.tensor([0, 1])), ["x", "y"], ["a", "b"])
    assert "streamed" in refusal("instance:0.4", data)
    assert wrong_rate(corrupt("pair:1", data)) == 1
