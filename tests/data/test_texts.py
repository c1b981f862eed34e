"""Where texts come from: folders of .txt files, columns of tables, and lists in Python."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from labelmend.data.kinds.text import LONGEST_TEXT, Text, Texts
from labelmend.data.preflight import PreflightError
from labelmend.data.readers.objects import from_objects
from labelmend.data.readers.texts import LARGEST_FILE, UnusableTextError, decoded
from labelmend.data.sources import SourceOptions, check_samples, open_inputs, open_source, read_source
from labelmend.errors import InputError

SENTENCES = ["the cat sat on the mat", "a dog barks at night", "my cat likes warm milk", "this dog runs very fast"]
LABELS = ["cat", "dog", "cat", "dog"]


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "texts"
    for number, (sentence, label) in enumerate(zip(SENTENCES, LABELS, strict=True)):
        (root / label).mkdir(parents=True, exist_ok=True)
        (root / label / f"{number}.txt").write_text(sentence)
    return root


def test_a_folder_of_text_files_is_a_set_of_texts(folder):
    data, _ = open_source(str(folder))
    assert data.kind.name == "texts"
    assert list(data.ids) == ["cat/0.txt", "cat/2.txt", "dog/1.txt", "dog/3.txt"]
    assert data.label_names == ["cat", "cat", "dog", "dog"]
    assert data.inputs.values[2] == SENTENCES[1]
    assert data.shown([2]) == {"text": [SENTENCES[1]]}
    assert data.take([2]).shown([0]) == {"text": [SENTENCES[1]]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_the_encoding_of_a_file_is_found(encoding):
    assert decoded("Füße – né".replace("–", "-").encode(encoding)) == "Füße - né"


def test_quotes_of_windows_are_read():
    assert decoded(b"\x93so\x94 \x96 \x80 5") == "“so” – € 5"


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\xff", b"\xff\xfe\x00", b"ab\0\xff"])
def test_what_is_no_text_is_refused(content):
    with pytest.raises(UnusableTextError):
        decoded(content)


def test_unusable_files_are_named_and_can_be_passed_over(folder):
    (folder / "cat" / "empty.txt").write_text("  \n\u200b")
    (folder / "cat" / "binary.txt").write_bytes(b"\0\xff\0\xff")
    (folder / "dog" / "notes.md").write_text("not one of them")
    (folder / "dog" / "outside.txt").symlink_to(folder.parent / "secret")
    with (folder / "dog" / "huge.txt").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(PreflightError) as error:
        open_source(str(folder))
    found = {problem.location.rpartition("/")[2]: problem.what for problem in error.value.preflight.problems}
    assert set(found) == {"empty.txt", "binary.txt", "notes.md", "outside.txt", "huge.txt"}
    assert found["empty.txt"] == "an empty text"
    assert "zero bytes" in found["binary.txt"]
    assert "at most 4" in found["huge.txt"]
    data, preflight = open_source(str(folder), SourceOptions(skip_bad=True))
    assert (len(data), preflight.skipped) == (4, 5)


def test_a_folder_with_more_pictures_than_texts_stays_one_of_pictures(folder):
    for number in range(5):
        (folder / "cat" / f"{number}.png").write_bytes(b"")
    assert read_source(str(folder)).kind.name == "images"


@pytest.mark.parametrize("name", ["text", "review", "image", "file"])
def test_a_table_whose_only_column_is_free_text_is_a_set_of_texts_whatever_its_name(tmp_path, name):
    frame = pd.DataFrame({"id": list("abcd"), name: SENTENCES, "label": LABELS})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    data, _ = open_source(str(tmp_path / "rows.csv"))
    assert (data.kind.name, list(data.kind.columns)) == ("texts", [name])
    assert list(data.ids) == list("abcd")
    assert data.inputs.values == SENTENCES
    assert data.label_names == LABELS


def test_a_column_of_paths_is_still_one_of_pictures(tmp_path):
    frame = pd.DataFrame({"image": ["my photos/a b.png", "my photos/c.png"], "label": ["x", "y"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert read_source(str(tmp_path / "rows.csv")).kind.name == "images"


@pytest.mark.parametrize(
    "data",
    [
        (SENTENCES, LABELS),
        (tuple(SENTENCES), np.array(LABELS)),
        (np.array(SENTENCES), LABELS),
        (np.array(SENTENCES, dtype=object), LABELS),
        (pd.Series(SENTENCES), pd.Series(LABELS)),
        list(zip(SENTENCES, LABELS, strict=True)),
        pd.DataFrame({"text": SENTENCES, "label": LABELS}),
        pa.table({"text": SENTENCES, "label": LABELS}),
    ],
    ids=["list", "tuple", "array", "objects", "series", "pairs", "frame", "arrow"],
)
def test_texts_of_python_are_samples(data):
    samples = from_objects(data)
    assert samples.kind.name == "texts"
    assert list(samples.inputs.values) == SENTENCES
    assert samples.label_names == LABELS


def test_missing_and_endless_texts_are_problems():
    samples = from_objects(([*SENTENCES, None, float("nan"), "x" * (LONGEST_TEXT + 1)], [*LABELS, "cat", "dog", "dog"]))
    with pytest.raises(PreflightError) as error:
        check_samples(samples)
    assert [problem.location for problem in error.value.preflight.problems] == [
        "data row 4",
        "data row 5",
        "data row 6",
    ]


def test_labels_that_are_too_few_are_refused():
    with pytest.raises(InputError, match="4 texts but 3 labels"):
        from_objects((SENTENCES, LABELS[:3]))


def test_the_same_text_with_two_labels_is_noted():
    _, preflight = check_samples(from_objects(([*SENTENCES, SENTENCES[0]], [*LABELS, "dog"])))
    assert [note.what for note in preflight.notes] == ["the same text with the labels cat and dog"]


def test_broken_characters_do_not_stop_a_set():
    data, _ = check_samples(from_objects(([*SENTENCES, "half \ud83d emoji here"], [*LABELS, "cat"])))
    assert len(data.fingerprint()) == 64


def test_texts_without_labels_are_taken_for_a_model():
    assert open_inputs(SENTENCES, Text(), ()).inputs == Texts(SENTENCES)
    frame = pd.DataFrame({"more": 1, "review": SENTENCES})
    assert open_inputs(frame, Text(("review",)), ()).inputs.values == SENTENCES
    assert open_inputs(frame[["review"]], Text(), ()).inputs.values == SENTENCES
    with pytest.raises(InputError, match="has no column 'review', which the model was trained on"):
        open_inputs(frame[["more"]], Text(("review",)), ())


def test_fingerprints_tell_texts_apart():
    one, other = (check_samples(from_objects((texts, LABELS)))[0] for texts in (SENTENCES, SENTENCES[::-1]))
    assert one.fingerprint() != other.fingerprint()
