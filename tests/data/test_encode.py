"""Samples as rows of features: computed once, kept by content, shown as what they were; and features from files."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from labelmend.core import generator
from labelmend.data.encode import encode
from labelmend.data.kinds.cache import cache_folder
from labelmend.data.kinds.images import Images
from labelmend.data.readers.arrays import from_arrays
from labelmend.data.readers.feature_file import read_feature_file
from labelmend.data.sources import SourceOptions, check_samples, open_source
from labelmend.errors import InputError


class Means:
    """An encoder that gives the mean of the left and of the right half, and counts the samples it was given."""

    name, batch = "means", 4

    def __init__(self, identity="means@1"):
        self.identity, self.seen = identity, 0

    def __call__(self, inputs, *, mirrored=False):
        self.seen += len(inputs)
        half = inputs.shape[3] // 2
        left, right = (part.float().mean(dim=(1, 2, 3)) / 255 for part in (inputs[..., :half], inputs[..., half:]))
        found = torch.stack([left, right], dim=1)
        return (found + found.flip(1)) / 2 if mirrored else found


def pictures(count=10, *, channels=3, test=0):
    values = torch.randint(0, 256, (count, channels, 16, 16), generator=generator(1, "p"), dtype=torch.uint8).numpy()
    held = (values[:test], np.arange(test) % 2) if test else None
    return check_samples(from_arrays("pictures", values, np.arange(count) % 2, test=held))[0]


def test_features_are_rows_in_the_order_of_the_samples_and_of_the_test_set():
    data, told = pictures(channels=1, test=4), []
    found = encode(data, Means(), progress=lambda done, of: told.append((done, of)))
    expected = Means()(data.inputs)
    assert torch.allclose(found.inputs, expected, atol=1e-3)
    assert torch.allclose(found.test.inputs, expected[:4], atol=1e-3)
    assert found.shape == (2,)
    assert told == [(4, 14), (8, 14), (10, 14), (14, 14)]


def test_features_are_computed_once_whatever_the_order_of_the_samples():
    data, encoder = pictures(), Means()
    first = encode(data, encoder)
    assert torch.equal(encode(data, encoder).inputs, first.inputs)
    order = [3, 1, 0, 2, 9, 8, 7, 6, 5, 4]
    assert torch.equal(encode(data.take(order), encoder).inputs, first.inputs[order])
    assert encoder.seen == len(data)


def test_other_weights_other_pixels_and_a_damaged_cache_are_computed_anew():
    data, encoder = pictures(), Means()
    encode(data, encoder)
    other = Means("means@2")
    encode(data, other)
    assert other.seen == len(data)
    changed = data.inputs.clone()
    changed[0, 0, 0, 0] += 1
    encode(replace(data, inputs=changed), encoder)
    assert encoder.seen == 2 * len(data)
    for path in cache_folder().glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-5])
    encode(data, encoder)
    assert encoder.seen == 3 * len(data)


def test_pictures_that_a_mirror_changes_are_not_mirrored():
    data = pictures()
    assert data.kind.flips
    both = encode(data, Means()).inputs
    assert torch.equal(both[:, 0], both[:, 1])
    one = encode(replace(data, kind=Images(flips=False)), Means()).inputs
    assert not torch.equal(one[:, 0], one[:, 1])


def test_features_too_large_for_half_precision_are_kept_as_they_are():
    class Large(Means):
        def __call__(self, inputs, *, mirrored=False):
            return super().__call__(inputs) * 1e6

    encoder, data = Large(), pictures()
    first = encode(data, encoder).inputs
    assert first.max() > 1e5
    assert torch.equal(encode(data, encoder).inputs, first)


def test_encoded_samples_are_shown_as_the_pictures_they_are():
    data = pictures()
    found = encode(data, Means())
    assert found.kind.name == "features"
    assert found.shown([2, 5]) == data.shown([2, 5])
    assert found.take([5, 2]).shown([0]) == data.shown([5])
    assert found.shown([]) == {"picture": []}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(12):
        path = tmp_path / "photos" / f"c{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(path)
    return tmp_path / "photos"


def test_files_are_encoded_alike_from_memory_and_from_disk_and_shown_as_the_originals(folder):
    options = SourceOptions(size=16)
    data, _ = open_source(str(folder), options)
    streamed, _ = open_source(str(folder), replace(options, memory=1e-9))
    found = encode(data, Means())
    assert torch.equal(encode(streamed, Means()).inputs, found.inputs)
    assert found.shown([1]) == {"picture": [data.originals.thumbnail(1)]}


def saved(path, **arrays):
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    else:
        save_file({name: torch.from_numpy(value) for name, value in arrays.items()}, path)
    return path


ROWS = np.arange(30, dtype=np.float32).reshape(10, 3)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("key", ["features", "x", "whatever"])
def test_a_file_of_features_is_read_by_its_key_or_its_only_array(key, suffix, tmp_path):
    data = pictures()
    file = read_feature_file(saved(tmp_path / f"rows{suffix}", **{key: ROWS}))
    file.check_length(data)
    found = file.given_to(data, data.ids)
    assert torch.equal(found.inputs, torch.from_numpy(ROWS))
    assert found.shown([3]) == data.shown([3])
    assert found.kind.encoding.from_file


def test_rows_follow_their_samples_when_some_were_left_out(tmp_path):
    data = pictures()
    file = read_feature_file(saved(tmp_path / "rows.npz", features=ROWS))
    assert file.given_to(data.take([7, 2]), data.ids).inputs[:, 0].tolist() == [21, 6]


def test_rows_go_by_their_ids_where_the_file_has_them(tmp_path):
    data, ids = pictures(), [str(9 - row) for row in range(10)]
    file = read_feature_file(saved(tmp_path / "rows.npz", features=ROWS, ids=np.array(ids)))
    assert file.given_to(data, data.ids).inputs[:, 0].tolist() == ROWS[::-1, 0].tolist()
    missing = read_feature_file(saved(tmp_path / "few.npz", features=ROWS[:4], ids=np.array(ids[:4])))
    with pytest.raises(InputError, match="no features of 6 samples, the first of which is '0'"):
        missing.given_to(data, data.ids)


def test_a_test_set_needs_features_of_its_own(tmp_path):
    data = pictures(test=4)
    with pytest.raises(InputError, match="'features_test'"):
        read_feature_file(saved(tmp_path / "a.npz", features=ROWS)).given_to(data, data.ids)
    file = read_feature_file(saved(tmp_path / "b.npz", features=ROWS, features_test=ROWS[:4]))
    assert torch.equal(file.given_to(data, data.ids).test.inputs, torch.from_numpy(ROWS[:4]))


NAN = np.where(ROWS == 4, np.nan, ROWS)


@pytest.mark.parametrize(
    ("name", "arrays", "reason"),
    [
        ("a.npz", {"features": ROWS[:, :, None]}, "numbers \\[samples, columns\\]"),
        ("a.npz", {"features": np.array([["a", "b"]] * 10)}, "numbers \\[samples, columns\\]"),
        ("a.npz", {"features": np.array([[object()]] * 10)}, "plain arrays"),
        ("a.npz", {"features": NAN}, "missing or infinite value in row 1"),
        ("a.npz", {"features": ROWS.astype(np.float64) * 1e300}, "missing or infinite"),
        ("a.npz", {"one": ROWS, "two": ROWS}, "no array 'features'"),
        ("a.npz", {"features": ROWS, "ids": np.arange(3)}, "ids of shape"),
        ("a.npz", {"features": ROWS, "x_test": ROWS[:, :2]}, "3 features a sample, but 2"),
        ("a.safetensors", {"features": ROWS[0]}, "numbers \\[samples, columns\\]"),
    ],
)
def test_a_file_that_holds_no_features_is_refused_in_a_sentence(name, arrays, reason, tmp_path):
    with pytest.raises(InputError, match=reason):
        read_feature_file(saved(tmp_path / name, **arrays))


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pkl", ".bin"])
def test_a_pickle_is_not_even_opened(suffix, tmp_path):
    with pytest.raises(InputError, match="pickle by its name"):
        read_feature_file(tmp_path / f"rows{suffix}")


def test_a_file_that_is_no_safetensors_and_one_that_is_not_there_are_refused(tmp_path):
    (tmp_path / "rows.safetensors").write_bytes(b"\xff" * 100)
    for name in ("rows.safetensors", "absent.safetensors", "absent.npz"):
        with pytest.raises(InputError, match=name):
            read_feature_file(tmp_path / name)


def test_a_file_of_another_length_is_refused(tmp_path):
    file = read_feature_file(saved(tmp_path / "rows.npz", features=ROWS[:9]))
    with pytest.raises(InputError, match="9 rows of features for 10 samples"):
        file.check_length(pictures())
