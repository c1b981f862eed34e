import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from labelmend.core import generator
from labelmend.data import limits
from labelmend.data.kinds.features import Features
from labelmend.data.label_file import read_labels, write_label_file
from labelmend.data.noise import NoiseSpec, inject, wrong_rate
from labelmend.data.samples import NoisyLabels, Samples
from labelmend.errors import InputError

CIFAR10N = Path(__file__).parents[3] / "shared" / "data" / "cifar10n" / "labels.npz"
NAMES = ["ant", "bee", "cow"]
SPEC = NoiseSpec.parse("symmetric-excl:0.4")


def dataset(samples=60, names=NAMES):
    labels = torch.arange(samples) % len(names)
    return Samples(
        "toy", Features(), torch.zeros(samples, 2), NoisyLabels(labels), names, [f"s{i}" for i in range(samples)]
    )


def written(path, **changes):
    """A label file of noisy toy labels, with some of its arrays replaced afterwards."""
    noisy = inject(dataset(), SPEC, generator(0, "noise"))
    write_label_file(path, noisy, spec=SPEC, seed=7)
    if changes:
        with np.load(path) as arrays:
            kept = {name: arrays[name] for name in arrays.files}
        np.savez(path, **{name: values for name, values in (kept | changes).items() if values is not None})
    return noisy


def refusal(text, data=None):
    with pytest.raises(InputError) as caught:
        read_labels(str(text), data or dataset())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_labels_and_truth_come_back_as_they_were_written(tmp_path):
    noisy = written(tmp_path / "labels.npz")
    read = read_labels(str(tmp_path / "labels.npz"), dataset())
    assert torch.equal(read.labels.observed, noisy.labels.observed)
    assert torch.equal(read.labels.truth, noisy.labels.truth)
    assert read.labels.observed.dtype == torch.int64
    assert [path.name for path in tmp_path.iterdir()] == ["labels.npz"]


def test_the_file_says_how_its_labels_were_made_and_holds_no_pickles(tmp_path):
    written(tmp_path / "labels.npz")
    with np.load(tmp_path / "labels.npz", allow_pickle=False) as arrays:
        kinds = {name: arrays[name].dtype.kind for name in arrays.files}
        meta = json.loads(str(arrays["meta"]))
    assert kinds == {"label": "i", "clean_label": "i", "ids": "U", "class_names": "U", "meta": "U"}
    assert len(meta.pop("sha256")) == 64
    expected = {"seed": 7, "noise": "symmetric-excl:0.4", "nominal_rate": 0.4, "real_rate": 0.4, "samples": 60}
    assert meta == pytest.approx(expected)


def test_labels_without_a_known_truth_are_written_without_one(tmp_path):
    write_label_file(tmp_path / "labels.npz", dataset(), spec=None, seed=0)
    read = read_labels(str(tmp_path / "labels.npz"), dataset())
    assert read.labels.truth is None
    assert torch.equal(read.labels.observed, dataset().labels.observed)


def test_labels_are_matched_by_id_in_any_order(tmp_path):
    noisy = written(tmp_path / "labels.npz")
    order = torch.randperm(60, generator=generator(1))
    plain = dataset()
    shuffled = replace(plain, ids=[plain.ids[i] for i in order], labels=NoisyLabels(plain.labels.observed[order]))
    read = read_labels(str(tmp_path / "labels.npz"), shuffled)
    assert torch.equal(read.labels.observed, noisy.labels.observed[order])
    assert torch.equal(read.labels.truth, noisy.labels.truth[order])


def test_classes_in_another_order_are_matched_by_name(tmp_path):
    noisy = written(tmp_path / "labels.npz")
    read = read_labels(str(tmp_path / "labels.npz"), replace(dataset(), class_names=["cow", "bee", "ant"]))
    assert torch.equal(read.labels.observed, 2 - noisy.labels.observed)


@pytest.mark.parametrize("name", ["label", "clean_label", "ids", "class_names"])
def test_a_changed_file_is_refused(tmp_path, name):
    noisy = written(tmp_path / "labels.npz")
    with np.load(tmp_path / "labels.npz") as arrays:
        changed = arrays[name].copy()
    changed[[0, 1]] = changed[[1, 0]]
    if name == "label":
        changed[0] = (noisy.labels.observed[0] + 1) % 3
    written(tmp_path / "labels.npz", **{name: changed})
    assert "the label file was changed" in refusal(tmp_path / "labels.npz")


@pytest.mark.parametrize("meta", ["not JSON", "[]", "{}", "[" * 100_000])
def test_a_file_whose_description_is_damaged_counts_as_changed(tmp_path, meta):
    written(tmp_path / "labels.npz", meta=np.array(meta))
    assert "the label file was changed" in refusal(tmp_path / "labels.npz")


def test_a_key_is_needed_where_no_array_is_called_label(tmp_path):
    file = tmp_path / "people.npz"
    np.savez(file, worker1=np.zeros(60, np.uint8), worker2=np.ones(60, np.uint8))
    assert "worker1, worker2" in refusal(file)
    assert "worker3" in refusal(f"{file}:worker3")
    read = read_labels(f"{file}:worker2", dataset()).labels
    assert read.observed.tolist() == [1] * 60
    assert read.truth is None


def test_a_truth_of_another_length_is_left_out(tmp_path):
    np.savez(tmp_path / "a.npz", label=np.zeros(60, int), clean_label=np.zeros(5, int))
    assert read_labels(str(tmp_path / "a.npz"), dataset()).labels.truth is None


def test_numbers_are_class_names_where_the_classes_are_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", label=np.full(60, 2.0))
    read = read_labels(str(tmp_path / "a.npz"), dataset(names=["1", "2", "3"]))
    assert read.labels.observed.tolist() == [1] * 60


@pytest.mark.parametrize(
    ("labels", "offender", "count"),
    [
        (np.r_[np.zeros(57, int), 3, 4, 0], "'3' in row 57", 2),
        (np.r_[np.zeros(59, int), -1], "'-1' in row 59", 1),
        (np.r_[0.0, np.nan, np.inf, np.nan, np.zeros(56)], "'nan' in row 1", 3),
        (np.full(60, 0.5), "'0.5' in row 0", 60),
        (np.array(["ant", "wasp"] * 30), "'wasp' in row 1", 30),
    ],
)
def test_labels_of_no_class_are_refused_with_the_first_and_their_count(tmp_path, labels, offender, count):
    np.savez(tmp_path / "a.npz", label=labels)
    message = refusal(tmp_path / "a.npz")
    assert offender in message
    assert f"has {count} labels" in message


def test_labels_of_another_length_or_shape_or_type_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", short=np.zeros(59, int), table=np.zeros((60, 1), int), flags=np.zeros(60, bool))
    assert "59 labels but toy has 60 samples" in refusal(f"{tmp_path / 'a.npz'}:short")
    assert "shape (60, 1)" in refusal(f"{tmp_path / 'a.npz'}:table")
    assert "type bool" in refusal(f"{tmp_path / 'a.npz'}:flags")


def table(path, ids, labels, header="id,label"):
    path.write_text("\n".join([header, *(f"{name},{label}" for name, label in zip(ids, labels, strict=True))]))
    return str(path)


def test_a_table_of_ids_and_class_names_is_read_in_any_order(tmp_path):
    ids = dataset().ids
    text = table(tmp_path / "a.csv", ids[::-1], [NAMES[i % 2] for i in range(60)])
    read = read_labels(text, dataset()).labels
    assert read.observed.tolist() == [(i + 1) % 2 for i in range(60)]
    assert read.truth is None


def test_a_table_may_give_numbers_only_where_the_classes_are_numbers(tmp_path):
    text = table(tmp_path / "a.csv", dataset().ids, [i % 3 for i in range(60)])
    assert read_labels(text, dataset(names=["0", "1", "2"])).labels.observed.tolist() == [i % 3 for i in range(60)]
    assert "'0' in row 0" in refusal(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ids: ids[:-2], "are missing: 2 of them, the first 's58'"),
        (lambda ids: [*ids[:-1], "s0"], "occur more than once: 1 of them, the first 's0'"),
        (lambda ids: [*ids, "x", "y"], "are not in toy: 2 of them, the first 'x'"),
    ],
)
def test_ids_that_do_not_match_are_refused_with_the_first_and_their_count(tmp_path, change, message):
    ids = change(list(dataset().ids))
    assert message in refusal(table(tmp_path / "a.csv", ids, ["ant"] * len(ids)))


def test_files_that_cannot_be_read_are_refused_with_a_reason(tmp_path, monkeypatch):
    (tmp_path / "damaged.npz").write_bytes(b"PK\x03\x04 and no more")
    np.savez(tmp_path / "objects.npz", label=np.array([None] * 60, dtype=object))
    (tmp_path / "bad.csv").write_bytes(b"id,label\n\0,x\n")
    (tmp_path / "empty.csv").write_text("")
    assert "cannot be read" in refusal(tmp_path / "damaged.npz")
    assert "cannot be read" in refusal(tmp_path / "objects.npz")
    assert "NUL bytes" in refusal(tmp_path / "bad.csv")
    assert "Empty CSV file" in refusal(tmp_path / "empty.csv")
    assert "no column 'label'" in refusal(table(tmp_path / "name.csv", ["s0"], ["ant"], header="id,name"))
    assert "there is no file" in refusal(tmp_path / "absent.npz:label")
    assert ".npz, .csv or .pt" in refusal(tmp_path / "labels.txt")
    assert ".npz, .csv or .pt" in refusal("labels")
    np.savez_compressed(tmp_path / "bomb.npz", label=np.zeros(100_000, int))
    monkeypatch.setattr("labelmend.data.limits.UNPACKED_FREELY", 2000)
    assert "would unpack" in refusal(tmp_path / "bomb.npz")
    monkeypatch.setattr(limits, "READ_WHOLE", 10)
    assert "are read" in refusal(tmp_path / "bad.csv")


def test_the_official_torch_file_is_read_without_running_it(tmp_path):
    torch.save({"clean_label": np.zeros(60, int), "worse_label": np.ones(60, int)}, tmp_path / "human.pt")
    labels = read_labels(f"{tmp_path / 'human.pt'}:worse_label", dataset()).labels
    assert wrong_rate(labels) == 1


class Trap:
    def __reduce__(self):
        return os.system, ("touch canary",)


def test_a_torch_file_with_code_in_it_is_refused_and_the_code_does_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"clean_label": Trap()}, tmp_path / "evil.pt")
    assert "posix.system" in refusal("evil.pt:clean_label")
    assert not (tmp_path / "canary").exists()


def test_a_label_file_is_written_only_as_npz_and_where_there_is_a_place(tmp_path):
    for path in (tmp_path / "labels.csv", tmp_path / "absent" / "labels.npz"):
        with pytest.raises(InputError):
            write_label_file(path, dataset(), spec=SPEC, seed=0)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [("aggre_label", 0.0895, 0.0905), *((f"random_label{i}", 0.17, 0.183) for i in (1, 2, 3)), ("clean_label", 0, 0)],
)
def test_people_were_wrong_on_cifar10_as_often_as_published(key, low, high):
    if not CIFAR10N.is_file():
        pytest.skip(f"the CIFAR-10N labels are not at {CIFAR10N}")
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    labels = read_labels(f"{CIFAR10N}:{key}", dataset(50_000, names)).labels
    assert low <= wrong_rate(labels) <= high
