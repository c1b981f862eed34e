"""A model of a table goes by the names of columns, and says what differs in new rows."""

import csv

import numpy as np
import pytest

from labelmend.run.model import load_model

HEADER = ["id", "size", "town", "seen", "ok", "label"]


def rows():
    rng = np.random.default_rng(0)
    for i in range(80):
        wrong = i % 2
        town = ["Köln", "Bonn", ""][int(rng.integers(3))]
        seen = np.datetime64("2023-01-01") + int(rng.integers(400))
        yield [
            f"r{i}",
            f"{rng.normal() + 2 * wrong:.3f}",
            town,
            str(seen),
            ["yes", "no"][int(rng.integers(2))],
            "ab"[wrong],
        ]


def write(path, table, header=HEADER, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *table])
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    from labelmend.faces.python import train

    folder = tmp_path_factory.mktemp("table")
    source = write(folder / "train.csv", rows())
    train(source, out=folder / "run", epochs=1, method="ce", net="linear", progress=False, report=False)
    return folder


@pytest.fixture
def predict(trained, labelmend, tmp_path):
    def predicted(table, header=HEADER, **options):
        new = write(tmp_path / "new.csv", table, header, **options)
        done = labelmend("predict", trained / "run", new, "--out", tmp_path / "p.csv")
        found = (tmp_path / "p.csv").read_text() if done.returncode == 0 else None
        return found, " ".join(done.stderr.split())

    return predicted


def test_the_order_of_columns_and_the_dialect_change_nothing(predict):
    usual, said = predict(rows())
    assert said == ""
    assert predict([row[::-1] for row in rows()], HEADER[::-1]) == (usual, "")
    other, said = predict(rows(), delimiter=";")
    assert other == usual
    assert "semicolons between cells" in said


def test_a_further_column_is_named_and_not_used(predict):
    usual, _ = predict(rows())
    found, said = predict([[*row, "x"] for row in rows()], [*HEADER, "more"])
    assert found == usual
    assert "columns that the model was not trained on are not used: more" in said


def test_labels_are_not_needed(predict):
    usual, _ = predict(rows())
    assert predict([row[:-1] for row in rows()], HEADER[:-1]) == (usual, "")


def test_a_column_that_is_missing_or_of_another_type_is_refused_in_one_sentence(predict):
    found, said = predict([[row[0], *row[2:]] for row in rows()], [HEADER[0], *HEADER[2:]])
    assert found is None
    assert "new.csv has no column 'size', which the model was trained on" in said
    found, said = predict([[row[0], "big", *row[2:]] for row in rows()])
    assert found is None
    assert "column 'size' of new.csv holds 'big' where numbers are expected" in said


def test_new_categories_are_noted_and_one_row_is_enough(predict):
    found, said = predict([["r1", "0.5", "Aachen", "2023-05-05", "no"]], HEADER[:-1])
    assert found.count("\n") == 2
    assert "column 'town' has 1 new value that counts as unknown: 'Aachen'" in said


def test_an_array_has_the_columns_by_position_only_if_it_has_as_many(trained):
    model = load_model(trained / "run")
    with pytest.raises(ValueError, match="the model takes the columns size, town, seen, ok; give a table"):
        model.predict(np.zeros((2, model.shape[0])))


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: table.clear(),
        lambda table: table[2].update(role="category"),
        lambda table: table[2]["fitted"].update(scale={"center": 0, "spread": 0}),
        lambda table: table[3]["fitted"].update(kept=99),
        lambda table: table[3]["fitted"].pop("values"),
    ],
)
def test_a_damaged_encoding_is_refused(trained, tmp_path, damage, labelmend):
    import json
    import shutil

    run = shutil.copytree(trained / "run", tmp_path / "run")
    described = json.loads((run / "model.json").read_text())
    damage(described["table"])
    (run / "model.json").write_text(json.dumps(described))
    done = labelmend("predict", run, trained / "train.csv", "--out", tmp_path / "p.csv")
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


def test_the_columns_of_a_text_keep_their_relative_scales_and_numbers_beside_it_are_standardised(tmp_path):
    from labelmend.data.sources import open_source

    words = ["red", "blue", "old", "new", "house", "garden", "small", "large"]
    rng = np.random.default_rng(1)
    table = [[" ".join(rng.choice(words, 6)), f"{100 * rng.normal():.2f}", "ab"[i % 2]] for i in range(60)]
    data, _ = open_source(str(write(tmp_path / "mixed.csv", table, ["note", "size", "label"])))
    std = data.kind.normaliser(data.inputs).std
    (text,) = data.kind.encoding.text_columns()
    assert text.stop - text.start > 5
    assert len(set(std[text].tolist())) == 1
    number = data.kind.normaliser(data.inputs)(data.inputs)[:, [i for i in range(len(std)) if i >= text.stop]]
    assert number.std(dim=0, correction=0).numpy() == pytest.approx(1, abs=1e-3)
