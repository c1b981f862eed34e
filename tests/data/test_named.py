"""Loaders of well-known sets, on small files of the official formats, and on the real ones where they are there."""

import gzip
import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from labelmend.data.readers.inert_pickle import read_inert_pickle
from labelmend.data.readers.named import NAMED
from labelmend.data.readers.named.idx import DEBIAN_FASHION
from labelmend.errors import InputError

REAL = Path(__file__).parents[3] / "shared" / "data"
ROWS = 3
CIFAR100_NAMES = [f"fine {number}" for number in range(100)]


def cifar_rows(seed, classes):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (ROWS, 3072), dtype=np.uint8), rng.integers(0, classes, ROWS).tolist()


def dump(path, value, protocol):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(value, protocol))


def write_cifar10(folder, protocol=2, key=str.encode, changes=lambda name, entries: entries):
    """Five batches and a test batch; gives what was written, in order, the test batch last."""
    parts = []
    for seed, name in enumerate([*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]):
        images, labels = cifar_rows(seed, 10)
        parts.append((images, labels))
        entries = {key("batch_label"): key(name), key("labels"): labels, key("data"): images}
        dump(folder / name, changes(name, entries | {key("filenames"): [key("a.png")] * ROWS}), protocol)
    return parts


def check_cifar(data, parts, name):
    images = np.concatenate([images for images, _ in parts[:-1]]).reshape(-1, 3, 32, 32)
    assert torch.equal(data.inputs, torch.from_numpy(images))
    assert data.inputs.dtype == torch.uint8
    assert data.labels.observed.dtype == torch.int64
    assert data.labels.observed.tolist() == [label for _, labels in parts[:-1] for label in labels]
    assert data.labels.truth is None
    assert torch.equal(data.test.inputs, torch.from_numpy(parts[-1][0].reshape(-1, 3, 32, 32)))
    assert data.test.labels.observed.tolist() == parts[-1][1]
    assert data.ids[:2] == ["train/00000", "train/00001"]
    assert len(data.ids) == len(data)
    assert (data.name, data.kind.flips) == (name, True)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("key", [str.encode, str])
def test_cifar10_batches_come_back_in_official_order(tmp_path, protocol, key):
    parts = write_cifar10(tmp_path / "cifar-10-batches-py", protocol, key)
    data = NAMED["cifar10"](tmp_path)
    check_cifar(data, parts, "cifar10")
    assert data.class_names[:2] == ["airplane", "automobile"]


def python2_batch(images, labels):
    """A batch as Python 2 wrote the official files: byte strings throughout, and numpy's old module name."""
    raw = images.tobytes()
    numbers = b"".join(b"K" + bytes([label]) for label in labels)
    dtype = b"cnumpy\ndtype\nq\x07U\x02u1K\x00K\x01\x87Rq\x08(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    shape = b"K" + bytes([len(images)]) + b"M" + struct.pack("<H", 3072) + b"\x86"
    array = b"cnumpy.core.multiarray\n_reconstruct\nq\x04cnumpy\nndarray\nq\x05K\x00\x85U\x01b\x87Rq\x06(K\x01" + shape
    content = b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"
    return b"\x80\x02}q\x01(U\x04dataq\x02" + array + dtype + content + b"U\x06labelsq\x03](" + numbers + b"eu."


def test_cifar10_batches_of_python_2_are_read(tmp_path):
    parts = write_cifar10(tmp_path)
    for name, part in zip([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"], parts, strict=True):
        (tmp_path / name).write_bytes(python2_batch(*part))
        assert pickle.loads((tmp_path / name).read_bytes(), encoding="bytes")[b"labels"] == part[1]
    check_cifar(NAMED["cifar10"](tmp_path), parts, "cifar10")


@pytest.mark.parametrize("key", [str.encode, str])
def test_cifar10_takes_class_names_from_its_meta_file_and_root_may_be_the_batch_folder(tmp_path, key):
    write_cifar10(tmp_path)
    dump(tmp_path / "batches.meta", {key("label_names"): [key(f"name {n}") for n in range(10)]}, 2)
    assert NAMED["cifar10"](tmp_path).class_names == [f"name {n}" for n in range(10)]


@pytest.mark.parametrize("protocol", [2, 4])
def test_cifar100_gives_its_fine_labels_and_names(tmp_path, protocol):
    folder = tmp_path / "cifar-100-python"
    parts = [cifar_rows(seed, 100) for seed in range(2)]
    for name, (images, labels) in zip(("train", "test"), parts, strict=True):
        dump(folder / name, {b"data": images, b"fine_labels": labels, b"coarse_labels": [0] * ROWS}, protocol)
    assert NAMED["cifar100"](tmp_path).class_names == [str(number) for number in range(100)]
    dump(folder / "meta", {b"fine_label_names": [name.encode() for name in CIFAR100_NAMES]}, protocol)
    data = NAMED["cifar100"](tmp_path)
    check_cifar(data, parts, "cifar100")
    assert data.class_names == CIFAR100_NAMES


def test_cifar10_binary_rows_are_a_label_byte_and_the_image(tmp_path):
    parts = [cifar_rows(seed, 10) for seed in range(6)]
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name, (images, labels) in zip([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"], parts, strict=True):
        rows = [bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True)]
        (folder / f"{name}.bin").write_bytes(b"".join(rows))
    check_cifar(NAMED["cifar10"](tmp_path), parts, "cifar10")
    (folder / "data_batch_4.bin").write_bytes(b"\0" * 3074)
    with pytest.raises(InputError, match=r"data_batch_4\.bin is damaged: its 3074 bytes"):
        NAMED["cifar10"](tmp_path)
    (folder / "data_batch_4.bin").write_bytes(b"\x0a" + b"\0" * 3072)
    with pytest.raises(InputError, match=r"data_batch_4\.bin is damaged: row 0 has the label 10 of 10 classes"):
        NAMED["cifar10"](tmp_path)


def test_cifar100_binary_rows_have_the_coarse_label_first(tmp_path):
    parts = [cifar_rows(seed, 100) for seed in range(2)]
    for name, (images, labels) in zip(("train", "test"), parts, strict=True):
        rows = [bytes([7, label]) + image.tobytes() for image, label in zip(images, labels, strict=True)]
        (tmp_path / f"{name}.bin").write_bytes(b"".join(rows))
    check_cifar(NAMED["cifar100"](tmp_path), parts, "cifar100")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({b"data": np.zeros((ROWS, 3071), np.uint8)}, "not \\[N, 3072\\]"),
        ({b"data": np.zeros((ROWS + 1, 3072), np.uint8)}, "3 labels and data of shape"),
        ({b"data": np.zeros((ROWS, 3072), np.int64)}, "array 'data' of bytes"),
        ({b"data": "text"}, "lacks an array 'data'"),
        ({b"labels": None}, "a list 'labels'"),
        ({b"labels": [0, 1, 10]}, "row 2 has the label 10 of 10 classes"),
        ({b"labels": [0, 1, -1]}, "not all of 'labels' are small numbers"),
        ({b"labels": [0, 1, "2"]}, "not all of 'labels' are small numbers"),
        ({b"labels": [0, 1, 2.0]}, "opcode BINFLOAT"),
    ],
)
def test_a_batch_with_wrong_content_is_refused_by_name(tmp_path, change, message):
    write_cifar10(tmp_path, changes=lambda name, entries: entries | change if name == "data_batch_3" else entries)
    with pytest.raises(InputError, match=f"data_batch_3 .*{message}"):
        NAMED["cifar10"](tmp_path)


def test_a_missing_or_truncated_batch_is_refused_by_name(tmp_path):
    write_cifar10(tmp_path)
    whole = (tmp_path / "data_batch_2").read_bytes()
    for length in (0, 1, 10, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "data_batch_2").write_bytes(whole[:length])
        with pytest.raises(InputError, match="data_batch_2 is damaged"):
            NAMED["cifar10"](tmp_path)
    (tmp_path / "data_batch_2").unlink()
    with pytest.raises(InputError, match="data_batch_2"):
        NAMED["cifar10"](tmp_path)


def test_too_few_class_names_are_refused(tmp_path):
    write_cifar10(tmp_path)
    dump(tmp_path / "batches.meta", {"label_names": ["a", "b"]}, 2)
    with pytest.raises(InputError, match=r"batches\.meta is damaged: 'label_names' should be 10 different names"):
        NAMED["cifar10"](tmp_path)


class Malicious:
    def __init__(self, function, argument):
        self.call = function, (argument,)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("function", [os.system, eval])
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path, protocol, function):
    canary = tmp_path / "canary"
    command = f"touch {canary}" if function is os.system else f"__import__('os').mkdir({str(canary)!r})"
    write_cifar10(tmp_path)
    dump(tmp_path / "data_batch_1", {"data": Malicious(function, command)}, protocol)
    with pytest.raises(InputError, match=rf"data_batch_1 is refused: it names the global '.*{function.__name__}'"):
        NAMED["cifar10"](tmp_path)
    assert not canary.exists()
    pickle.loads((tmp_path / "data_batch_1").read_bytes())
    assert canary.exists(), "the file should be one that harms a real unpickler"


def refusal(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match="file") as caught:
        read_inert_pickle(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"(S'touch canary'\nios\nsystem\n.", "opcode INST"),
        (b"(cos\nsystem\nS'touch canary'\no.", "names the global 'os.system'"),
        (b"\x80\x02\x82\x01.", "opcode EXT1"),
        (b"P1\n.", "opcode PERSID"),
        (b"\x80\x02cnumpy\ndtype\n)\x81.", "opcode NEWOBJ"),
        (b"cnumpy\ndtype\n(lR.", "calls numpy dtype in an unknown way"),
        (b"I1\n)R.", "calls a value in an unknown way"),
        (b"}(I1\nI2\ntb.", "opcode BUILD on something other"),
        (b"I1\n.", "holds a int where a dictionary is expected"),
        (b"R.", "damaged"),
        (b"u.", "damaged"),
        (b"g9\n.", "damaged"),
        (b"}(I1\nu.", "damaged"),
        (b"}))s.", "damaged"),
        (b"I1\nI2\na.", "damaged"),
        (b".", "damaged"),
        (b"", "damaged"),
    ],
)
def test_opcodes_that_no_data_file_needs_are_refused(tmp_path, content, message):
    assert message in refusal(tmp_path, content)


def test_an_array_that_lies_about_its_size_is_refused(tmp_path):
    whole = pickle.dumps({"data": np.zeros((2, 5), np.uint8)}, 2)
    assert "does not fit its shape" in refusal(tmp_path, whole.replace(b"K\x02K\x05\x86", b"K\x02K\xff\x86"))


def test_a_text_encoded_again_and_again_cannot_fill_the_memory(tmp_path):
    once = b"c_codecs\nencode\nq\x00X\x00\x10\x00\x00" + b"a" * 4096 + b"q\x01X\x06\x00\x00\x00latin1q\x02\x86R0"
    content = b"\x80\x02]" + once.replace(b"R0", b"Ra") + b"h\x00h\x01h\x02\x86Ra" * 1000 + b"."
    assert "encodes more text than it holds" in refusal(tmp_path, content)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_keep_their_order_in_memory(tmp_path, order):
    array = np.asarray(np.arange(12, dtype=np.uint8).reshape(3, 4), order=order)
    dump(tmp_path / "file", {"data": array}, 2)
    assert np.array_equal(read_inert_pickle(tmp_path / "file")["data"], array)


def write_idx(path, array):
    header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
    content = header + array.tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_mnist(folder, suffix=""):
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 5), ("t10k", 2)):
        arrays[part] = rng.integers(0, 256, (count, 4, 6), dtype=np.uint8), rng.integers(0, 10, count, dtype=np.uint8)
        write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", arrays[part][0])
        write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", arrays[part][1])
    return arrays


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(("name", "flips"), [("mnist", False), ("fashion-mnist", True)])
def test_idx_files_come_back_as_written(tmp_path, suffix, name, flips):
    arrays = write_mnist(tmp_path, suffix)
    data = NAMED[name](tmp_path)
    assert torch.equal(data.inputs, torch.from_numpy(arrays["train"][0])[:, None])
    assert data.labels.observed.tolist() == arrays["train"][1].tolist()
    assert torch.equal(data.test.inputs, torch.from_numpy(arrays["t10k"][0])[:, None])
    assert data.test.labels.observed.tolist() == arrays["t10k"][1].tolist()
    assert (data.name, data.kind.flips, len(data.class_names)) == (name, flips, 10)
    assert data.ids[-1] == "train/00004"


def test_fashion_mnist_is_found_where_debian_puts_it_but_only_without_a_root(tmp_path, monkeypatch):
    write_mnist(tmp_path / "debian", ".gz")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelmend.data.readers.named.idx.DEBIAN_FASHION", tmp_path / "debian")
    assert len(NAMED["fashion-mnist"](None)) == 5
    with pytest.raises(InputError, match="fashion-mnist is not in elsewhere"):
        NAMED["fashion-mnist"](Path("elsewhere"))
    with pytest.raises(InputError, match="mnist is not in"):
        NAMED["mnist"](None)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin like an IDX file"),
        (b"\0\0\x08", "cannot be read|does not begin"),
        (struct.pack(">4I", 0x801, 5, 4, 6) + b"\0" * 120, "does not begin like an IDX file"),
        (struct.pack(">4I", 0x803, 5, 4, 6) + b"\0" * 119, "promises 120 bytes"),
        (struct.pack(">4I", 0x803, 5, 4, 6) + b"\0" * 121, "promises 120 bytes"),
        (struct.pack(">4I", 0x803, 0, 4, 6), "promises 0 bytes"),
        (struct.pack(">4I", 0x803, *[2**32 - 1] * 3) + b"\0" * 120, "promises 79228162458924105385300197375 bytes"),
        (struct.pack(">4I", 0x803, 4, 4, 6) + b"\0" * 96, "4 images, but .*train-labels-idx1-ubyte.* has 5 labels"),
        (struct.pack(">4I", 0x803, 5, 4, 5) + b"\0" * 100, "training images of"),
    ],
)
def test_a_damaged_idx_file_is_refused(tmp_path, suffix, content, message):
    write_mnist(tmp_path, suffix)
    path = tmp_path / f"train-images-idx3-ubyte{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    with pytest.raises(InputError, match=message) as caught:
        NAMED["mnist"](tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_damaged_gzip_stream_and_a_missing_file_are_refused_by_name(tmp_path):
    write_mnist(tmp_path, ".gz")
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    for content in (whole[:-10], b"not gzip", whole[:20] + b"\xff\xff\xff" + whole[23:]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"t10k-images-idx3-ubyte\.gz"):
            NAMED["mnist"](tmp_path)
    path.unlink()
    with pytest.raises(InputError, match="t10k-images-idx3-ubyte"):
        NAMED["mnist"](tmp_path)


def write_parquet(path, images, labels, names=None):
    cells = pa.array(
        [{"bytes": image, "path": None} for image in images], pa.struct({"bytes": "binary", "path": "string"})
    )
    table = pa.table({"image": cells, "label": pa.array(labels)})
    if names is not None:
        features = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(features)})
    pq.write_table(table, path)


@pytest.mark.parametrize(("name", "held"), [("cifar10", "test"), ("cifar100", "test"), ("tiny-imagenet", "val")])
def test_parquet_files_give_listings_of_bytes(tmp_path, name, held):
    write_parquet(tmp_path / "train.parquet", [b"a", b"b", b"c"], [2, 0, 1], ["x", "y", "z"])
    train = NAMED[name](tmp_path)
    test = train.test
    assert test is None
    assert (train.name, train.inputs.refs, train.label_names) == (name, [b"a", b"b", b"c"], ["z", "x", "y"])
    assert train.class_names == ["x", "y", "z"]
    assert train.ids == ["train/00000", "train/00001", "train/00002"]
    write_parquet(tmp_path / f"{held}.parquet", [b"d"], [1], ["x", "y", "z"])
    test = NAMED[name](tmp_path).test
    assert (test.inputs.refs, test.label_names, test.ids) == ([b"d"], ["y"], [f"{held}/00000"])


def test_parquet_labels_without_names_get_the_official_ones(tmp_path):
    write_parquet(tmp_path / "train.parquet", [b"a", b"b"], [9, 0])
    assert NAMED["cifar10"](tmp_path).label_names == ["truck", "airplane"]
    assert NAMED["tiny-imagenet"](tmp_path).label_names == ["9", "0"]


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        ([b"a", None], [0, 1], "row 1 has no image bytes"),
        ([b"a", b""], [0, 1], "row 1 has no image bytes"),
        ([b"a", b"b"], [0, 10], "row 1 has the label '10'"),
        ([b"a", b"b"], [-1, 0], "row 0 has the label '-1'"),
        ([b"a", b"b"], [0, None], "row 1 has the label ''"),
    ],
)
def test_a_damaged_parquet_row_is_refused(tmp_path, images, labels, message):
    write_parquet(tmp_path / "train.parquet", images, labels)
    with pytest.raises(InputError, match=rf"train\.parquet is damaged: {message}"):
        NAMED["cifar10"](tmp_path)


def test_a_truncated_parquet_file_is_refused_by_name(tmp_path):
    write_parquet(tmp_path / "train.parquet", [b"a"], [0])
    whole = (tmp_path / "train.parquet").read_bytes()
    (tmp_path / "train.parquet").write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"train\.parquet"):
        NAMED["cifar10"](tmp_path)
    pq.write_table(pa.table({"label": [0], "x": [1.0]}), tmp_path / "train.parquet")
    with pytest.raises(InputError, match=r"train\.parquet has no column 'image'"):
        NAMED["cifar10"](tmp_path)


def write_tiny(place, words=True):
    wnids = ["n02", "n01", "n03"]
    place.mkdir(parents=True, exist_ok=True)
    (place / "wnids.txt").write_text("\n".join(wnids) + "\n")
    if words:
        (place / "words.txt").write_text("n01\tcrane, bird\nn02\tfox\nn03\tcrane\nn09\tnot used\n")
    for wnid in wnids:
        (place / "train" / wnid / "images").mkdir(parents=True)
        for number in (10, 2, 0):
            (place / "train" / wnid / "images" / f"{wnid}_{number}.JPEG").write_bytes(b"")
    (place / "val" / "images").mkdir(parents=True)
    (place / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn03\t0\t1\t2\t3\nval_1.JPEG\tn02\t0\t1\t2\t3\n")


@pytest.mark.parametrize("folder", ["", "tiny-imagenet-200"])
def test_the_tiny_imagenet_tree_is_listed_in_official_order(tmp_path, folder):
    place = tmp_path / folder
    write_tiny(place)
    train = NAMED["tiny-imagenet"](tmp_path)
    test = train.test
    assert train.ids[:3] == [f"train/n02/images/n02_{number}.JPEG" for number in (0, 2, 10)]
    assert train.inputs.refs[3] == place / "train/n01/images/n01_0.JPEG"
    assert train.label_names == ["fox"] * 3 + ["crane (n01)"] * 3 + ["crane (n03)"] * 3
    assert train.class_names == test.class_names == ["fox", "crane (n01)", "crane (n03)"]
    assert test.inputs.refs == [place / "val/images/val_0.JPEG", place / "val/images/val_1.JPEG"]
    assert test.label_names == ["crane (n03)", "fox"]
    assert train.inputs.root == place


def test_without_words_tiny_imagenet_classes_are_called_by_their_number(tmp_path):
    write_tiny(tmp_path, words=False)
    assert NAMED["tiny-imagenet"](tmp_path).class_names == ["n02", "n01", "n03"]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("wnids.txt", "n01\n../../etc\n", r"wnids\.txt line 2: '../../etc' is not a path below"),
        ("wnids.txt", "n07\n", "has no images"),
        ("val/val_annotations.txt", "/etc/passwd\tn01\n", r"val_annotations\.txt line 1: '/etc/passwd' is not"),
        ("val/val_annotations.txt", "\nval_0.JPEG\tn07\n", r"val_annotations\.txt line 2 has the class 'n07'"),
        ("val/val_annotations.txt", "val_0.JPEG\n", r"val_annotations\.txt line 1 has the class ''"),
    ],
)
def test_a_damaged_tiny_imagenet_list_is_refused_by_line(tmp_path, file, text, message):
    write_tiny(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match=message):
        NAMED["tiny-imagenet"](tmp_path)


def write_clothing(place):
    texts = {
        "category_names_eng.txt": "T-Shirt\nShirt\nKnitwear\n",
        "noisy_train_key_list.txt": "images/1/b.jpg\nimages/0/a.jpg\n",
        "noisy_label_kv.txt": "images/0/a.jpg 2\nimages/1/b.jpg 0\nimages/2/c.jpg 1\n",
        "clean_train_key_list.txt": "images/3/d.jpg\n",
        "clean_val_key_list.txt": "images/4/e.jpg\n",
        "clean_test_key_list.txt": "images/2/c.jpg\n",
        "clean_label_kv.txt": "images/2/c.jpg 2\nimages/3/d.jpg 0\nimages/4/e.jpg 0\n",
    }
    for name, text in texts.items():
        (place / name).write_text(text)


def test_clothing1m_trains_on_noisy_keys_and_tests_on_clean_ones(tmp_path):
    write_clothing(tmp_path)
    train = NAMED["clothing1m"](tmp_path)
    test = train.test
    assert train.inputs.refs == [tmp_path / "images/1/b.jpg", tmp_path / "images/0/a.jpg"]
    assert (train.label_names, train.ids) == (["T-Shirt", "Knitwear"], ["images/1/b.jpg", "images/0/a.jpg"])
    assert (test.inputs.refs, test.label_names) == ([tmp_path / "images/2/c.jpg"], ["Knitwear"])
    assert train.class_names == ["T-Shirt", "Shirt", "Knitwear"]
    (tmp_path / "clean_test_key_list.txt").unlink()
    assert NAMED["clothing1m"](tmp_path).test is None


@pytest.mark.parametrize(
    "key", ["/etc/passwd", "images/../../x", "..", "C:\\x", "\\\\host\\x", "a\\..\\b", "~/x", "a\0b"]
)
def test_a_key_that_leaves_the_folder_is_refused_by_line(tmp_path, key):
    write_clothing(tmp_path)
    for keys, labels in (("clean_test_key_list", "clean_label_kv"), ("noisy_train_key_list", "noisy_label_kv")):
        (tmp_path / f"{labels}.txt").write_text(f"images/0/a.jpg 1\n{key} 1\n")
        (tmp_path / f"{keys}.txt").write_text(f"images/0/a.jpg\n{key}\n")
        with pytest.raises(InputError, match=rf"{keys}\.txt line 2: .* is not a path below the folder"):
            NAMED["clothing1m"](tmp_path)
        write_clothing(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "noisy_label_kv.txt",
            b"images/1/b.jpg 0\n",
            r"noisy_train_key_list\.txt line 2: 'images/0/a.jpg' has no label",
        ),
        ("noisy_label_kv.txt", b"images/1/b.jpg 3\n", r"line 1: 'images/1/b.jpg' has the label '3', which is no class"),
        ("noisy_label_kv.txt", b"images/1/b.jpg x\n", r"line 1: 'images/1/b.jpg' has the label 'x', which is no class"),
        ("noisy_label_kv.txt", b"\xff\xfe", r"noisy_label_kv\.txt is damaged: it is not UTF-8"),
        ("noisy_train_key_list.txt", b"\n", r"noisy_train_key_list\.txt lists no images"),
    ],
)
def test_a_damaged_clothing1m_list_is_refused(tmp_path, file, content, message):
    write_clothing(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        NAMED["clothing1m"](tmp_path)


@pytest.mark.parametrize("name", [name for name in NAMED if name not in ("clothes", "digits")])
@pytest.mark.parametrize("exists", [True, False])
def test_where_files_are_absent_the_message_says_what_to_put_where(tmp_path, name, exists):
    root = tmp_path if exists else tmp_path / "nowhere"
    with pytest.raises(InputError, match=rf"^{name} is not in .*; put .* there, or .* with --root$") as caught:
        NAMED[name](root)
    assert str(root) in str(caught.value)


@pytest.mark.parametrize("name", [name for name in NAMED if name not in ("clothes", "digits")])
def test_without_a_root_files_are_looked_for_in_the_folder_data(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("labelmend.data.readers.named.idx.DEBIAN_FASHION", tmp_path / "debian")
    with pytest.raises(InputError, match=rf"data/{name}"):
        NAMED[name](None)


@pytest.mark.parametrize(
    ("name", "counts", "first"), [("cifar10", (50_000, 10_000), "frog"), ("tiny-imagenet", (12_000, 3_000), None)]
)
def test_the_real_parquet_files_are_listed_whole(name, counts, first):
    if not (REAL / name / "train.parquet").is_file():
        pytest.skip(f"{REAL / name} is not on this machine")
    train = NAMED[name](REAL / name)
    test = train.test
    assert (len(train), len(test)) == counts
    assert train.label_names[0] == (first or train.label_names[0])
    assert set(train.label_names) == set(train.class_names)
    assert train.inputs.refs[0][:3] == b"\xff\xd8\xff"


def test_the_real_fashion_mnist_of_debian_is_read():
    if not DEBIAN_FASHION.is_dir():
        pytest.skip("Debian's package dataset-fashion-mnist is not installed")
    data = NAMED["fashion-mnist"](None)
    assert data.inputs.shape == (60_000, 1, 28, 28)
    assert torch.bincount(data.labels.observed).tolist() == [6_000] * 10
    assert torch.bincount(data.test.labels.observed).tolist() == [1_000] * 10
