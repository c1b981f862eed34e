"""Runs on texts, from source to prediction and correction."""

import hashlib
import json
import shutil

import numpy as np
import pandas as pd
import pytest

import labelmend as lm
from labelmend.data.readers.objects import from_objects
from labelmend.errors import InputError
from labelmend.fix.plan import plan
from labelmend.fix.undo import undo
from labelmend.nets.sentences import find_sentence_encoder
from labelmend.run.evidence import read_neighbours, read_suspects
from labelmend.run.model import load_model
from labelmend.training.config import TrainConfig
from labelmend.training.features import plan_features

PARTS = {
    "law": (["the judge", "a lawyer", "the jury", "this court"], ["heard the appeal", "ruled on the case"]),
    "food": (["the cook", "my mother", "a baker", "this kitchen"], ["makes fresh bread", "boils salty soup"]),
}
WRONG = (3, 20, 41)
FAST = {"net": "linear", "epochs": 8, "threads": 1, "settings": {"folds": 3, "batch_size": 16}}


def made_texts():
    """Sixty short texts of two kinds, and labels of which three are wrong."""
    rng, texts, labels = np.random.default_rng(0), [], []
    for number in range(60):
        label = ("law", "food")[number % 2]
        who, what = PARTS[label]
        texts.append(f"{rng.choice(who)} {rng.choice(what)} <i>{number}</i>")
        labels.append(("law", "food")[(number + (number in WRONG)) % 2])
    return texts, labels


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run on a folder of text files, which are in the ids."""
    root = tmp_path_factory.mktemp("texts")
    for number, (text, label) in enumerate(zip(*made_texts(), strict=True)):
        (root / "mails" / label).mkdir(parents=True, exist_ok=True)
        (root / "mails" / label / f"{number:02}.txt").write_bytes(text.encode("utf-16" if number % 3 else "utf-8"))
    return lm.train(root / "mails", out=root / "run", progress=False, **FAST)


pytestmark = pytest.mark.xdist_group("texts")


def test_wrong_labels_of_texts_are_found(run):
    first = run.labels.sort_values("rank")["id"][: len(WRONG)]
    assert {int(id.rpartition("/")[2][:2]) for id in first} == set(WRONG)


def test_the_run_says_what_texts_were_made_into(run):
    described = run.directory.read()
    assert described["chosen"]["reasons"]["features"].startswith("words and pieces of words")
    assert described["chosen"]["features"]["identity"].startswith("text@")


def test_the_report_shows_texts_with_the_words_that_speak_against_their_label(run):
    table, _ = read_suspects(run.directory)
    first = table.to_pylist()[0]
    marked = [first["text"][a:b] for a, b in zip(first["marks"][::2], first["marks"][1::2], strict=True)]
    assert marked
    who, what = PARTS[first["rival"]]
    assert set(marked) & set(" ".join([*who, *what]).split())
    page = (run.path / "report.html").read_text()
    assert f"<mark>{marked[0]}</mark>" in page
    assert "&lt;i&gt;" in page
    assert "<i>2" not in page
    known = read_neighbours(run.directory).to_pylist()
    given = first["id"].partition("/")[0]
    assert [known[row]["given"] for row in first["like_given"]] == [given] * 3
    assert [known[row]["given"] for row in first["like_rival"]] == [first["rival"]] * 3


def test_a_loaded_model_predicts_texts_folders_and_tables_alike(run, tmp_path):
    texts = ["the judge heard the appeal", "a baker makes fresh bread"]
    model = load_model(run.path)
    expected = model.predict_proba(texts)
    assert model.predict(texts) == ["law", "food"]
    (tmp_path / "new").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "new" / f"{number}.txt").write_text(text)
    assert model.predict_proba(tmp_path / "new") == pytest.approx(expected)
    assert model.predict_proba(tmp_path / "new" / "1.txt") == pytest.approx(expected[1:])
    assert model.predict_proba(np.array(texts)) == pytest.approx(expected)
    pd.DataFrame({"text": texts}).to_csv(tmp_path / "new.csv", index=False)
    assert model.predict_proba(tmp_path / "new.csv") == pytest.approx(expected)
    with pytest.raises(InputError, match="takes texts"):
        model.predict_proba(np.zeros((2, 8, 8, 3), np.uint8))


def test_a_model_whose_encoder_was_changed_is_refused(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "run")
    described = json.loads((tmp_path / "run/model.json").read_text())
    described["encoder"]["words"] = described["encoder"]["words"][1:]
    (tmp_path / "run/model.json").write_text(json.dumps(described))
    with pytest.raises(InputError, match="do not fit their weights"):
        load_model(tmp_path / "run")


def hashes(root):
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files(root)}


def files(root):
    return [path for path in root.rglob("*") if path.is_file()]


def test_a_corrected_folder_has_the_same_bytes_in_other_folders_and_undo_brings_them_back(run, tmp_path):
    source = run.path.parent / "mails"
    corrections = plan(run.path)
    corrections.write(tmp_path / "fixed")
    moved = set(hashes(source)) - set(hashes(tmp_path / "fixed"))
    assert len(moved) == corrections.relabelled.total() > 0
    assert sorted(hashes(source).values()) == sorted(
        value for path, value in hashes(tmp_path / "fixed").items() if path.endswith(".txt")
    )
    undo(tmp_path / "fixed")
    assert hashes(tmp_path / "fixed") == hashes(source)


def test_a_table_goes_by_the_name_of_its_text_column(tmp_path):
    texts, labels = made_texts()
    frame = pd.DataFrame({"mail": texts, "label": labels})
    run = lm.train(frame, progress=False, report=False, out=tmp_path / "run", **FAST)
    model = load_model(tmp_path / "run")
    more = pd.DataFrame({"other": ["a baker boils salty soup"] * 2, "mail": texts[:2]})
    assert model.predict_proba(more) == pytest.approx(run.model.predict_proba(texts[:2]))
    with pytest.raises(InputError, match="'mail'"):
        model.predict_proba(more[["other"]].assign(label=1))


def test_pretrained_sentences_are_encoded_once_and_used_by_the_model(tiny_sentences, tmp_path):
    texts, labels = made_texts()
    options = FAST | {"features": "sentence-transformers:tiny", "epochs": 2}
    run = lm.train((texts, labels), progress=False, report=False, out=tmp_path / "run", **options)
    assert run.directory.read()["chosen"]["features"]["columns"] == 4
    model = load_model(tmp_path / "run")
    assert model.predict_proba(texts[:3]).shape == (3, 2)
    assert "marks" not in read_suspects(run.directory)[0].column_names
    tiny_sentences.scale = 3.0
    find_sentence_encoder.cache_clear()
    with pytest.raises(InputError, match="the same network with other weights"):
        model.predict_proba(texts[:3])


def planned(samples, **options):
    return plan_features(samples, TrainConfig("texts", "run", **options), on_gpu=False)


@pytest.mark.parametrize("features", [None, "auto", "none"])
def test_texts_are_words_and_pieces_unless_more_is_asked_for(features):
    assert planned(from_objects(made_texts()), features=features).fitted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "efficientnet-lite0"}, "no features of texts"),
        ({"features": "sentence-transformers:x", "unfreeze": True}, "--unfreeze"),
        ({"unfreeze": True}, "--unfreeze"),
    ],
)
def test_features_that_texts_do_not_have_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        planned(from_objects(made_texts()), **options)


def test_sentences_of_rows_are_refused():
    rows = from_objects((np.zeros((4, 2)), [0, 1, 0, 1]))
    with pytest.raises(InputError, match="computed of texts"):
        planned(rows, features="sentence-transformers:x")
