"""Whatever users have: odd and hostile files are named or handled by their documented rule, and nothing crashes."""

import csv
import io
import os
import struct
import unicodedata
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from labelmend.data.kinds.images import Images
from labelmend.data.preflight import PreflightError
from labelmend.data.readers.table import Columns
from labelmend.data.sources import SourceOptions, open_inputs, open_source
from labelmend.errors import InputError

SKIP = SourceOptions(skip_bad=True)


def picture(mode="RGB", size=(12, 12), seed=0):
    rng = np.random.default_rng(seed)
    pixels = Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
    return pixels.convert(mode)


def encoded(image, format="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def png_bomb(width, height):
    """A small PNG that claims to be huge."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


def folder(root, extra=None, each=6):
    """A good image folder with two classes, and the extra files."""
    for k, name in enumerate(("cat", "dog")):
        (root / name).mkdir(parents=True)
        for i in range(each):
            (root / name / f"{i}.png").write_bytes(encoded(picture(seed=100 * k + i)))
    for name, content in (extra or {}).items():
        (root / name).write_bytes(content)
    return root


DEEP_GREY = Image.fromarray((np.arange(144, dtype=np.uint16) * 400).reshape(12, 12))
TURNED = Image.Exif()
TURNED[0x0112] = 6
HANDLED = {
    "jpeg": encoded(picture(), "JPEG"),
    "cmyk jpeg": encoded(picture("CMYK"), "JPEG"),
    "palette png": encoded(picture("P")),
    "palette gif with transparency": encoded(picture("P"), "GIF", transparency=0),
    "alpha png": encoded(picture("RGBA")),
    "grey png": encoded(picture("L")),
    "grey alpha png": encoded(picture("LA")),
    "one-bit png": encoded(picture("1")),
    "16-bit png": encoded(DEEP_GREY),
    "16-bit tiff": encoded(DEEP_GREY, "TIFF"),
    "float tiff": encoded(picture("F"), "TIFF"),
    "exif rotation": encoded(picture(size=(20, 10)), "JPEG", exif=TURNED),
    "animated gif": encoded(picture("P"), "GIF", save_all=True, append_images=[picture("P", seed=1)]),
    "animated webp": encoded(picture(), "WEBP", save_all=True, append_images=[picture(seed=1)]),
    "bmp": encoded(picture(), "BMP"),
    "ppm": encoded(picture(), "PPM"),
    "lab tiff": encoded(picture("LAB"), "TIFF"),
    "ycbcr tiff": encoded(picture("YCbCr"), "TIFF"),
    "one pixel": encoded(picture(size=(1, 1))),
    "very wide": encoded(picture(size=(400, 2))),
    "wrong extension": encoded(picture(), "GIF"),
    "large": encoded(picture(size=(600, 500)), "JPEG"),
}
REFUSED = {
    "empty": (b"", "an empty file"),
    "text": (b"hello", "not an image"),
    "html": (b"<html><script>alert(1)</script></html>", "not an image"),
    "zip": (b"PK\x03\x04" + b"\0" * 60, "not an image"),
    "pickle": (b"cos\nsystem\n(S'true'\ntR.", "not an image"),
    "pdf": (b"%PDF-1.7\n%%EOF", "not an image"),
    "cut jpeg": (encoded(picture(size=(64, 64)), "JPEG")[:900], "damaged"),
    "cut png": (encoded(picture(size=(64, 64)))[:3000], "damaged"),
    "png header only": (encoded(picture())[:33], ""),
    "jpeg header only": (encoded(picture(), "JPEG")[:20], "not an image"),
    "flipped png": (encoded(picture())[:60] + b"\xff" * 40 + encoded(picture())[100:], "damaged"),
    "gif header only": (b"GIF89a" + b"\0" * 4, ""),
    "bomb of 10^10 pixels": (png_bomb(100_000, 100_000), "pixels"),
    "bomb of 10^8 pixels": (png_bomb(10_000, 10_000), "pixels"),
    "png of no width": (png_bomb(0, 10), ""),
}


@pytest.mark.parametrize("case", HANDLED)
def test_an_odd_image_is_handled_by_its_rule(case, tmp_path):
    data, preflight = open_source(str(folder(tmp_path / "set", {"cat/odd.png": HANDLED[case]})))
    assert len(data) == 13
    assert preflight.problems == []
    assert data.inputs.shape[1] == 3


@pytest.mark.parametrize("case", REFUSED)
def test_an_unusable_file_is_named_and_can_be_skipped(case, tmp_path):
    content, reason = REFUSED[case]
    root = folder(tmp_path / "set", {"dog/odd.png": content})
    with pytest.raises(PreflightError) as error:
        open_source(str(root))
    assert f"{root / 'dog' / 'odd.png'}: " in str(error.value)
    assert reason in str(error.value)
    data, preflight = open_source(str(root), SKIP)
    assert len(data) == 12
    assert preflight.skipped == 1


def test_links_that_leave_the_folder_and_special_files_are_refused(tmp_path):
    root = folder(tmp_path / "set")
    (tmp_path / "secret.png").write_bytes(encoded(picture()))
    (root / "cat" / "out.png").symlink_to(tmp_path / "secret.png")
    (root / "cat" / "loop.png").symlink_to(root / "cat" / "loop.png")
    os.mkfifo(root / "cat" / "pipe.png")
    with pytest.raises(PreflightError) as error:
        open_source(str(root))
    assert "leads outside" in str(error.value)
    assert "not a regular file" in str(error.value)
    assert len(error.value.preflight.problems) == 3


def test_at_most_twenty_problems_are_shown_and_all_are_kept(tmp_path):
    root = folder(tmp_path / "set", {f"cat/bad{i}.png": b"x" for i in range(30)})
    with pytest.raises(PreflightError, match="and 10 more") as error:
        open_source(str(root))
    assert len(error.value.preflight.problems) == 30


def test_the_same_image_with_two_labels_is_noted(tmp_path):
    same = encoded(picture(seed=7))
    _, preflight = open_source(str(folder(tmp_path / "set", {"cat/same.png": same, "dog/same.png": same})))
    assert "labels cat and dog" in str(preflight.notes[0])


def test_exif_rotation_transparency_and_depth_follow_the_rules(tmp_path):
    turned = open_inputs_of(tmp_path / "a", HANDLED["exif rotation"])
    assert turned.shape[1:] == (3, 20, 10)
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert (open_inputs_of(tmp_path / "b", encoded(clear)) == 255).all()
    deep = Image.fromarray(np.full((4, 4), 0x8000, dtype=np.uint16))
    assert (open_inputs_of(tmp_path / "c", encoded(deep)) == 0x80).all()


def open_inputs_of(root, content):
    for name in ("one", "two"):
        (root / name).mkdir(parents=True)
        (root / name / "x.png").write_bytes(content)
    return open_source(str(root))[0].inputs


def test_images_of_several_sizes_come_to_one_and_size_is_obeyed(tmp_path):
    root = folder(tmp_path / "set", {"cat/big.png": encoded(picture(size=(200, 100)))})
    assert open_source(str(root))[0].shape == (3, 12, 12)
    assert open_source(str(root), SourceOptions(size=20))[0].shape == (3, 20, 20)


def test_a_second_reading_comes_from_the_cache_and_a_changed_file_does_not(tmp_path, monkeypatch):
    root = folder(tmp_path / "set")
    first = open_source(str(root))[0].inputs
    monkeypatch.setattr("labelmend.data.kinds.images.ImageFiles.headers", lambda *_: pytest.fail("read again"))
    assert (open_source(str(root))[0].inputs == first).all()
    monkeypatch.undo()
    (root / "cat" / "0.png").write_bytes(encoded(picture(seed=999)))
    assert not (open_source(str(root))[0].inputs == first).all()


def test_a_train_and_test_folder_share_classes_size_and_colour(tmp_path):
    folder(tmp_path / "set" / "train")
    folder(tmp_path / "set" / "test", {"dog/grey.png": encoded(picture("L", size=(30, 30)))})
    data, _ = open_source(str(tmp_path / "set"))
    assert data.test.inputs.shape == (13, 3, 12, 12)
    assert list(data.class_names) == ["cat", "dog"]


def test_folder_csv_and_parquet_of_the_same_images_agree(tmp_path):
    root = folder(tmp_path / "set")
    rows = [(f"{c}/{i}.png", c) for c in ("dog", "cat") for i in range(6)]
    with (root / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *rows])
    structs = [{"bytes": (root / path).read_bytes(), "path": path} for path, _ in rows]
    pq.write_table(pa.table({"image": structs, "label": [name for _, name in rows]}), tmp_path / "table.parquet")
    found = []
    for source in (root, root / "table.csv", tmp_path / "table.parquet"):
        data, _ = open_source(str(source))
        names = [data.class_names[i] for i in data.labels.observed.tolist()]
        found.append({i: (n, x.numpy().tobytes()) for i, n, x in zip(data.ids, names, data.inputs, strict=True)})
    assert found[0] == found[1] == found[2]


def test_paths_of_a_table_that_are_missing_are_named_by_row(tmp_path):
    root = folder(tmp_path / "set")
    (root / "t.csv").write_text("path,label\ncat/0.png,cat\nnowhere.png,dog\ndog/0.png,dog\n")
    with pytest.raises(PreflightError, match=r"t\.csv row 2: no such file"):
        open_source(str(root / "t.csv"))


def test_paths_of_a_table_may_not_leave_its_folder_unless_root_says_so(tmp_path):
    root = folder(tmp_path / "set")
    (tmp_path / "tables").mkdir()
    table = tmp_path / "tables" / "t.csv"
    table.write_text("path,label\n../set/cat/0.png,cat\n../set/dog/0.png,dog\n")
    with pytest.raises(PreflightError, match="leads outside"):
        open_source(str(table))
    table.write_text("path,label\ncat/0.png,cat\ndog/0.png,dog\n")
    assert len(open_source(str(table), SourceOptions(root=str(root)))[0]) == 2


def rows_csv(path, labels, header="a,b,label"):
    lines = [header, *(f"{i},{i % 3},{label}" for i, label in enumerate(labels))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


NFC, NFD = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
TABLES = {
    "text": (["red", "blue"] * 3, ["blue", "red"]),
    "numbers sort by value": (["10", "9", "2"] * 2, ["2", "9", "10"]),
    "01 and 1 stay apart": (["01", "1"] * 3, ["01", "1"]),
    "composed and decomposed are one": ([NFC, NFD, "b"] * 2, ["b", NFC]),
    "booleans": (["True", "False"] * 3, ["False", "True"]),
    "floats": (["1.5", "2.5"] * 3, ["1.5", "2.5"]),
    "minus one is a class": (["-1", "1"] * 3, ["-1", "1"]),
    "spaces are trimmed": ([" a", "a ", "b"] * 2, ["a", "b"]),
    "case matters": (["A", "a"] * 3, ["A", "a"]),
    "emoji": (["🐱", "🐶"] * 3, ["🐱", "🐶"]),
    "markup": (["<b>", "&amp;"] * 3, ["&amp;", "<b>"]),
    "null is a word": (["null", "NA"] * 3, ["NA", "null"]),
    "quoted comma": (['"a,b"', "c"] * 3, ["a,b", "c"]),
    "formula": (["=1+1", "x"] * 3, ["=1+1", "x"]),
}
BAD_LABELS = {
    "blank": (["a", "", "b", "a"], "row 2: an empty label"),
    "only spaces": (["a", "  ", "b", "a"], "row 2: an empty label"),
    "very long": (["a", "x" * 5000, "b", "a"], "row 2: a label of 5,000 characters"),
    "control character": (["a", "b\x1b[31m", "b", "a"], "row 2: a label with control"),
    "bidi override": (["a", "b\u202ecba", "b", "a"], "row 2: a label with control"),
    "zero-width space": (["a", "b\u200b", "b", "a"], "row 2: a label with control"),
}


@pytest.mark.parametrize("case", TABLES)
def test_an_odd_label_column_follows_the_documented_rule(case, tmp_path):
    labels, names = TABLES[case]
    data, _ = open_source(str(rows_csv(tmp_path / "t.csv", labels)))
    assert list(data.class_names) == names
    assert data.shape == (2,)


@pytest.mark.parametrize("case", BAD_LABELS)
def test_an_unusable_label_is_named_by_row_and_can_be_skipped(case, tmp_path):
    labels, expected = BAD_LABELS[case]
    path = rows_csv(tmp_path / "t.csv", labels)
    with pytest.raises(PreflightError) as error:
        open_source(str(path))
    assert expected in str(error.value)
    assert str(error.value).isprintable() or "\x1b" not in str(error.value)
    assert len(open_source(str(path), SKIP)[0]) == 3


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (pa.array([1.0, 2.0] * 3), ["1", "2"]),
        (pa.array([True, False] * 3), ["false", "true"]),
        (pa.array([3, 11] * 3), ["3", "11"]),
        (pa.array(["x", "y"] * 3).dictionary_encode(), ["x", "y"]),
    ],
)
def test_labels_of_parquet_types_become_names(values, names, tmp_path):
    pq.write_table(pa.table({"f": list(range(6)), "label": values}), tmp_path / "t.parquet")
    assert list(open_source(str(tmp_path / "t.parquet"))[0].class_names) == names


def test_missing_labels_in_parquet_are_named_and_missing_numbers_are_not(tmp_path):
    pq.write_table(pa.table({"f": [0.0, None, 2.0, 3.0], "label": ["a", "b", None, "b"]}), tmp_path / "t.parquet")
    with pytest.raises(PreflightError) as error:
        open_source(str(tmp_path / "t.parquet"))
    assert [problem.location for problem in error.value.preflight.problems] == ["t.parquet row 3"]
    assert "row 3: no label" in str(error.value)


def test_duplicate_ids_are_named_and_the_first_is_kept(tmp_path):
    (tmp_path / "t.csv").write_text("id,f,label\nx,1,a\nx,2,b\ny,3,b\nz,4,a\n")
    with pytest.raises(PreflightError, match="id 'x' is used 2 times"):
        open_source(str(tmp_path / "t.csv"))
    assert list(open_source(str(tmp_path / "t.csv"), SKIP)[0].ids) == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", "no label column"),
        ("a,label\n", "no samples"),
        ("a,label\n1,x\n2,x\n", "single class"),
        ("a,label\nred,x\nred,y\n", "no column to learn from: 'a' \\(constant\\)"),
        ("label\nx\ny\n", "neither an image column nor feature columns"),
        ("a,label\n1,x,3\n", "cannot be read as a table"),
        ("", "cannot be read as a table"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_sentence(text, expected, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=expected):
        open_source(str(tmp_path / "t.csv"))


def test_columns_can_be_named_and_a_wrong_name_gets_the_nearest(tmp_path):
    (tmp_path / "t.tsv").write_text("who\tf\tkind\nx\t1\ta\ny\t2\tb\n")
    data, _ = open_source(str(tmp_path / "t.tsv"), SourceOptions(columns=Columns(label="kind", id="who")))
    assert list(data.ids) == ["x", "y"]
    with pytest.raises(InputError, match="did you mean 'kind'"):
        open_source(str(tmp_path / "t.tsv"), SourceOptions(columns=Columns(label="knd")))


def test_hugging_face_class_names_keep_their_order(tmp_path):
    meta = {b"huggingface": b'{"info": {"features": {"label": {"names": ["zebra", "ant"], "_type": "ClassLabel"}}}}'}
    table = pa.table({"f": [1, 2, 3, 4], "label": [0, 1, 0, 1]}).replace_schema_metadata(meta)
    pq.write_table(table, tmp_path / "t.parquet")
    data, _ = open_source(str(tmp_path / "t.parquet"))
    assert [data.class_names[i] for i in data.labels.observed.tolist()] == ["zebra", "ant", "zebra", "ant"]


def test_prediction_needs_no_labels_and_brings_images_to_the_models_shape(tmp_path):
    root = folder(tmp_path / "set")
    (root / "t.csv").write_text("path\ncat/0.png\ndog/0.png\n")
    samples = open_inputs(str(root / "t.csv"), Images(), (1, 8, 8))
    assert samples.inputs.shape == (2, 1, 8, 8)
    assert samples.ids == ["cat/0.png", "dog/0.png"]


def test_a_test_table_with_an_unknown_class_is_refused(tmp_path):
    train = rows_csv(tmp_path / "train.csv", ["a", "b"] * 3)
    test = rows_csv(tmp_path / "test.csv", ["a", "c"])
    with pytest.raises(InputError, match="'c', which no training sample has"):
        open_source(str(train), SourceOptions(test=str(test)))
