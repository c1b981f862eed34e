import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from labelmend.data.readers.objects import as_dataset
from labelmend.errors import InputError
from labelmend.training.config import TrainConfig
from labelmend.training.prepare import prepare
from labelmend.training.session import train

Y = np.arange(60) % 3
X = (np.random.default_rng(0).normal(size=(60, 4)) + Y[:, None]).astype(np.float32)


class Frame:
    """As much of a DataFrame as is used; pandas is accepted and not required."""

    def __init__(self, columns):
        self.data = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return Frame({name: self.data[name]})

    def drop(self, columns):
        return Frame({k: v for k, v in self.data.items() if k != columns})

    def to_numpy(self, dtype=None):
        values = list(self.data.values())
        return np.asarray(values[0] if len(values) == 1 else np.stack(values, axis=1), dtype=dtype)


def test_arrays_a_frame_and_a_torch_data_set_give_the_same():
    frame = Frame({f"f{i}": X[:, i] for i in range(4)} | {"label": Y})
    pairs = TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    for data in (as_dataset(X, Y), as_dataset(torch.from_numpy(X), Y), as_dataset(frame), as_dataset(pairs)):
        assert torch.equal(data.inputs, torch.from_numpy(X))
        assert data.labels.observed.tolist() == Y.tolist()


def test_a_hugging_face_data_set_keeps_the_names_of_its_classes():
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    features = datasets.Features({"f": datasets.Value("float32"), "label": datasets.ClassLabel(names=["zebra", "ant"])})
    data = as_dataset(datasets.Dataset.from_dict({"f": [0.0, 1.0], "label": [0, 1]}, features=features))
    assert [data.class_names[i] for i in data.labels.observed.tolist()] == ["zebra", "ant"]


def test_float_images_of_a_torch_data_set_are_brought_back_to_bytes():
    images = torch.arange(2 * 3 * 64).view(2, 3, 8, 8) % 256
    data = as_dataset(TensorDataset(images / 255, torch.arange(2)))
    assert torch.equal(data.inputs, images.to(torch.uint8))


def test_a_data_set_from_python_trains_and_is_evaluated(tmp_path):
    data = as_dataset(X, Y, test=(X[:9], Y[:9]))
    config = TrainConfig(source="mine", out=str(tmp_path / "run"), epochs=1, threads=1, noise="pair:0.2")
    run, _ = train(prepare(config, data=data))
    assert run.read()["summary"]["last_accuracy"] is not None


def test_what_cannot_be_used_is_refused():
    with pytest.raises(InputError, match="labels beside it"):
        as_dataset(X)
    with pytest.raises(InputError, match="no column 'kind'"):
        as_dataset(Frame({"f": Y, "label": Y}), "kind")
    with pytest.raises(InputError, match="a int is no array"):
        as_dataset(3)
