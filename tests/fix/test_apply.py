"""A corrected set has exactly the planned labels, in the form it came in, and undo brings back every byte."""

import csv
import hashlib
import io
import json
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from labelmend.data.readers.named.digits import digits
from labelmend.data.readers.table import Columns
from labelmend.data.sources import SourceOptions, open_source, read_source
from labelmend.errors import InputError
from labelmend.fix.plan import plan
from labelmend.fix.undo import undo

ROWS = 12
CLASSES = ("cat", "dog", 'a "b", c')
GIVEN = [CLASSES[i % 3] for i in range(ROWS)]


def png(seed):
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def labels_of(source, **options):
    """Class name of every sample by its id, as the source is read."""
    data, _ = open_source(str(source), SourceOptions(**options))
    names = [data.class_names[label] for label in data.labels.observed.tolist()]
    return dict(zip(data.ids, names, strict=True))


def hashes(root):
    """SHA-256 of every file below a folder."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def made_run(path, source, labels, *, relabel=None, look=(), **config):
    """A finished run directory with these given labels (by id), relabelled ids and ids to look at."""
    relabel = relabel or {}
    path.mkdir()
    known = {"source": str(source), "noise": None, "labels": None, "root": None, "limit": None, "skip_bad": False}
    described = {"status": "finished", "config": known | config, "data": {"fingerprint": "f00d"}}
    (path / "run.json").write_text(json.dumps(described))
    ids = list(labels)
    verdicts = ["relabel" if id in relabel else "look" if id in look else "keep" for id in ids]
    table = {
        "id": ids,
        "given": list(labels.values()),
        "noisy_probability": [{"relabel": 0.9, "look": 0.7, "keep": 0.1}[verdict] for verdict in verdicts],
        "suggested": [relabel.get(id, given) for id, given in labels.items()],
        "confidence": [0.8 + 0.01 * i for i in range(len(ids))],
        "loss": [1.0] * len(ids),
        "steadiness": [1.0] * len(ids),
        "verdict": verdicts,
    }
    pq.write_table(pa.table(table), path / "labels.parquet")
    return path


def image_folder(root):
    for i, name in enumerate(GIVEN):
        (root / name / "deep").mkdir(parents=True, exist_ok=True)
        (root / name / ("deep" if i > 8 else "") / f"{i // 3}.png").write_bytes(png(i))
    (root / "README.txt").write_text("about")
    return root


def split_folder(root):
    image_folder(root / "train")
    image_folder(root / "test")
    return root


def image_csv(root):
    (root / "img").mkdir(parents=True)
    for i in range(ROWS):
        (root / "img" / f"{i}.png").write_bytes(png(i))
    with (root / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["path", "label"], *([f"img/{i}.png", name] for i, name in enumerate(GIVEN))])
    return root / "rows.csv"


def feature_csv(root):
    root.mkdir()
    with (root / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([["f", "class", "g"], *([i, name, i / 2] for i, name in enumerate(GIVEN))])
    return root / "rows.csv"


def odd_tsv(root):
    """CRLF, a byte order mark, quotes with line ends in them, blank lines, and no line end at the end."""
    root.mkdir()
    lines = [
        f'"n\r\n""{i}"\t{name if "," not in name else chr(34) + CLASSES[2].replace(chr(34), chr(34) * 2) + chr(34)}'
        f"\t{i}.50"
        for i, name in enumerate(GIVEN)
    ]
    text = '"id"\tLabel\tf\r\n' + "\r\n".join(lines[:6]) + "\r\n\r\n\r\n" + "\r\n".join(lines[6:])
    (root / "rows.tsv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    return root / "rows.tsv"


def workbook(root):
    openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")
    root.mkdir()
    book = openpyxl.Workbook()
    for row in (["f", "label", "g"], *([i / 4, name, "<&>"] for i, name in enumerate(GIVEN))):
        book.active.append(row)
    book.active["B3"].font = openpyxl.styles.Font(bold=True)
    book.create_sheet("other").append(["kept"])
    book.save(root / "rows.xlsx")
    return root / "rows.xlsx"


def parquet(labels, images=False, names=None):
    def make(root):
        root.mkdir()
        content = [{"bytes": png(i), "path": f"{i}.png"} for i in range(ROWS)] if images else list(range(ROWS))
        metadata = {b"mine": b"kept"}
        if names:
            features = {"label": {"names": names, "_type": "ClassLabel"}}
            metadata[b"huggingface"] = json.dumps({"info": {"features": features}}).encode()
        table = pa.table({"image" if images else "f": content, "label": labels}).replace_schema_metadata(metadata)
        pq.write_table(table, root / "rows.parquet", compression="gzip", row_group_size=5)
        return root / "rows.parquet"

    return make


def npz(labels):
    def make(root):
        root.mkdir()
        x = np.random.default_rng(0).normal(size=(ROWS, 3))
        arrays = {"x": x, "y": np.array(labels), "x_test": x[:2], "y_test": np.array(labels[:2])}
        np.savez_compressed(root / "rows.npz", **arrays, extra=np.arange(5), group=np.arange(ROWS))
        return root / "rows.npz"

    return make


NUMBERS = [i % 3 + 1 for i in range(ROWS)]
FORMS = {
    "folder": image_folder,
    "folder with train and test": split_folder,
    "csv of images": image_csv,
    "csv of features": feature_csv,
    "workbook": workbook,
    "odd tsv": odd_tsv,
    "parquet of strings": parquet(pa.array(GIVEN)),
    "parquet of dictionary": parquet(pa.array(GIVEN).dictionary_encode()),
    "parquet of ints": parquet(pa.array(NUMBERS, pa.int16())),
    "parquet of Hugging Face": parquet(pa.array(NUMBERS), images=True, names=["none", *CLASSES]),
    "parquet of images": parquet(pa.array(GIVEN), images=True),
    "npz of ints": npz(NUMBERS),
    "npz of floats": npz([float(n) for n in NUMBERS]),
    "npz of strings": npz(GIVEN),
}


@pytest.fixture(params=FORMS)
def case(request, tmp_path):
    """A source in each form with a run that relabels two samples and would look at a third."""
    source = FORMS[request.param](tmp_path / "origin")
    labels = labels_of(source)
    ids = list(labels)
    one, two, three = ids[1], ids[5], ids[6]
    other = {id: next(name for name in labels.values() if name != labels[id]) for id in ids}
    run = made_run(tmp_path / "run", source, labels, relabel={one: other[one], two: other[two]}, look=[three])
    corrected = tmp_path / "out"
    loads = corrected if source.is_dir() else corrected / source.name
    return SimpleNamespace(
        source=source,
        root=tmp_path / "origin",
        run=run,
        out=corrected,
        loads=loads,
        labels=labels,
        other=other,
        changed=(one, two),
        look=three,
        form=request.param,
    )


def expected_names(case, drop=False):
    gone = {*case.changed, case.look} if drop else set()
    new = {} if drop else {id: case.other[id] for id in case.changed}
    return sorted(name for id, name in (case.labels | new).items() if id not in gone)


def test_the_corrected_set_loads_with_the_planned_labels_and_undo_restores_every_byte(case):
    before = hashes(case.root)
    planned = plan(case.run)
    assert planned.relabelled.total() == 2
    assert (planned.kept, planned.look, planned.unseen) == (ROWS - 2, 1, 0)
    planned.write(case.out)
    assert hashes(case.root) == before
    found = labels_of(case.loads)
    if case.source.is_dir():
        assert sorted(found.values()) == expected_names(case)
    else:
        assert found == case.labels | {id: case.other[id] for id in case.changed}
    undo(case.out, out=case.out.with_name("back"))
    assert hashes(case.out.with_name("back")) == before
    undo(case.out)
    assert hashes(case.out) == before


def test_dropped_samples_are_left_out_and_come_back(case):
    before = hashes(case.root)
    planned = plan(case.run, drop=True)
    assert planned.dropped.total() == 3
    planned.write(case.out)
    assert sorted(labels_of(case.loads).values()) == expected_names(case, drop=True)
    undo(case.out, out=case.out.with_name("back"))
    assert hashes(case.out.with_name("back")) == before
    undo(case.out)
    assert hashes(case.out) == before


@pytest.mark.parametrize("case", [form for form in FORMS if "folder" not in form], indirect=True)
def test_a_file_can_be_written_as_a_file_beside_its_images(case, labelmend):
    before = hashes(case.root)
    fixed = case.root / f"fixed{case.source.suffix}"
    shown = labelmend("apply", case.run, "--out", fixed, "--write")
    assert shown.returncode == 0, shown.stderr
    assert labels_of(fixed) == case.labels | {id: case.other[id] for id in case.changed}
    assert set(hashes(case.root)) - set(before) == {
        fixed.name,
        f"{fixed.name}.undo.json",
        f".undo/{fixed.name}/{case.source.name}",
    }
    assert labelmend("undo", fixed).returncode == 0
    assert fixed.read_bytes() == case.source.read_bytes()
    fixed.unlink()
    assert hashes(case.root) == before


def test_the_same_plan_writes_the_same_bytes(case):
    for name in ("one", "two"):
        plan(case.run).write(case.out.with_name(name))
    assert hashes(case.out.with_name("one")) == hashes(case.out.with_name("two"))


def small(tmp_path, make=feature_csv, **options):
    """A source, its labels and a run that relabels the second sample to the first one's class."""
    source = make(tmp_path / "origin")
    labels = labels_of(source)
    first, second = list(labels)[:2]
    target = next(name for name in labels.values() if name != labels[second])
    run = made_run(tmp_path / "run", source, labels, relabel={second: target}, **options)
    return SimpleNamespace(source=source, labels=labels, run=run, first=first, second=second, target=target)


def refused(shown, *words):
    assert shown.returncode == 2
    assert shown.stderr.startswith("labelmend: ")
    assert "Traceback" not in shown.stderr
    for word in words:
        assert word in shown.stderr


def test_only_the_label_cells_of_changed_rows_differ(tmp_path):
    source = odd_tsv(tmp_path / "origin")
    labels = labels_of(source)
    ids = list(labels)
    made_run(tmp_path / "run", source, labels, relabel={ids[0]: CLASSES[2], ids[2]: "dog", ids[11]: "cat"})
    plan(tmp_path / "run").write(tmp_path / "out")
    old, new = (path.read_bytes().split(b"\r\n") for path in (source, tmp_path / "out" / "rows.tsv"))
    assert len(old) == len(new)
    changed = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    assert changed == [
        (b'""0"\tcat\t0.50', b'""0"\t"a ""b"", c"\t0.50'),
        (b'""2"\t"a ""b"", c"\t2.50', b'""2"\tdog\t2.50'),
        (b'""11"\t"a ""b"", c"\t11.50', b'""11"\tcat\t11.50'),
    ]


def test_a_parquet_file_keeps_schema_metadata_compression_and_row_groups(tmp_path):
    made = small(tmp_path, FORMS["parquet of Hugging Face"])
    plan(made.run).write(tmp_path / "out")
    old, new = (pq.ParquetFile(path) for path in (made.source, tmp_path / "out" / "rows.parquet"))
    assert old.schema_arrow.equals(new.schema_arrow, check_metadata=True)
    assert old.schema_arrow.metadata[b"mine"] == b"kept"
    for one, two in ((old.metadata.row_group(i), new.metadata.row_group(i)) for i in range(3)):
        assert one.num_rows == two.num_rows
        assert [one.column(i).compression for i in range(3)] == [two.column(i).compression for i in range(3)]


def test_a_declared_class_without_samples_gets_its_number(tmp_path):
    source = FORMS["parquet of Hugging Face"](tmp_path / "origin")
    labels = labels_of(source)
    made_run(tmp_path / "run", source, labels, relabel={list(labels)[3]: "none"})
    plan(tmp_path / "run").write(tmp_path / "out")
    numbers = pq.read_table(tmp_path / "out" / "rows.parquet")["label"].to_pylist()
    assert numbers == [0 if i == 3 else n for i, n in enumerate(NUMBERS)]


def test_an_archive_keeps_types_and_other_arrays(tmp_path):
    made = small(tmp_path, npz(NUMBERS))
    plan(made.run).write(tmp_path / "out")
    plan(made.run, drop=True).write(tmp_path / "fewer")
    old, new, fewer = (
        np.load(path / "rows.npz") for path in (tmp_path / "origin", tmp_path / "out", tmp_path / "fewer")
    )
    assert new.files == old.files
    assert [name for name in old.files if not np.array_equal(old[name], new[name])] == ["y"]
    assert all(old[name].dtype == new[name].dtype for name in old.files)
    assert fewer["group"].tolist() == [0, *range(2, ROWS)]
    assert fewer["extra"].tolist() == list(range(5))


def test_a_moved_image_whose_name_is_taken_gets_a_number(tmp_path):
    source = image_folder(tmp_path / "origin")
    made_run(tmp_path / "run", source, labels_of(source), relabel={"cat/0.png": "dog", 'a "b", c/0.png': "dog"})
    plan(tmp_path / "run").write(tmp_path / "out")
    content = {path.name: path.read_bytes() for path in (tmp_path / "out" / "dog").glob("0*.png")}
    assert content["0.png"] == (source / "dog/0.png").read_bytes()
    assert {content["0-2.png"], content["0-3.png"]} == {
        (source / "cat/0.png").read_bytes(),
        (source / 'a "b", c/0.png').read_bytes(),
    }


def test_links_share_the_content_with_the_source(tmp_path):
    made = small(tmp_path, image_folder)
    plan(made.run).write(tmp_path / "out", link=True)
    kept = next(id for id in made.labels if id != made.second)
    assert os.path.samefile(made.source / kept, tmp_path / "out" / kept)
    undo(tmp_path / "out")
    assert hashes(tmp_path / "out") == hashes(made.source)


def test_links_fall_back_to_copies(tmp_path, monkeypatch):
    made = small(tmp_path, image_folder)

    def across_devices(*paths):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", across_devices)
    plan(made.run).write(tmp_path / "out", link=True)
    assert len(labels_of(tmp_path / "out")) == ROWS


def test_images_of_another_root_are_written_beside_the_table(tmp_path):
    source = image_csv(tmp_path / "origin")
    moved = tmp_path / "tables" / "rows.csv"
    moved.parent.mkdir()
    shutil.move(source, moved)
    labels = labels_of(moved, root=str(tmp_path / "origin"))
    made_run(tmp_path / "run", moved, labels, relabel={"img/0.png": "dog"}, root=str(tmp_path / "origin"))
    plan(tmp_path / "run").write(tmp_path / "out")
    assert labels_of(tmp_path / "out" / "rows.csv") == labels | {"img/0.png": "dog"}
    with pytest.raises(InputError, match="give a folder"):
        plan(tmp_path / "run").write(tmp_path / "fixed.csv")


def test_the_label_column_of_the_run_is_the_one_that_changes(tmp_path):
    (tmp_path / "rows.csv").write_text("g,mine,f\n" + "".join(f"7,{'ab'[i % 2]},{i}\n" for i in range(6)))
    columns = Columns(label="mine")
    labels = {str(i): "ab"[i % 2] for i in range(6)}
    made_run(tmp_path / "run", tmp_path / "rows.csv", labels, relabel={"0": "b"}, label_column="mine")
    plan(tmp_path / "run").write(tmp_path / "out.csv")
    opened = read_source(str(tmp_path / "out.csv"), SourceOptions(columns=columns))
    assert opened.label_names == ["b", *"babab"]


def test_a_named_set_becomes_an_archive(tmp_path):
    data = digits()
    labels = dict(zip(data.ids, map(str, data.labels.observed.tolist()), strict=True))
    first = data.ids[0]
    new = str((int(labels[first]) + 1) % 10)
    made_run(tmp_path / "run", "digits", labels, relabel={first: new})
    plan(tmp_path / "run").write(tmp_path / "out")
    found, _ = open_source(str(tmp_path / "out" / "digits.npz"))
    assert found.labels.observed.tolist() == [int(new), *data.labels.observed[1:].tolist()]
    assert (found.inputs == data.inputs).all()
    assert (found.test.inputs == data.test.inputs).all()
    undo(tmp_path / "out")
    back, _ = open_source(str(tmp_path / "out" / "digits.npz"))
    assert back.labels.observed.equal(data.labels.observed)


def test_a_named_set_of_listed_images_is_written_only_from_memory(tmp_path):
    made = parquet(pa.array([i % 3 for i in range(ROWS)]), images=True)(tmp_path / "origin")
    made.rename(tmp_path / "origin" / "train.parquet")
    labels = labels_of("cifar10", root=str(tmp_path / "origin"))
    first = next(iter(labels))
    for name, memory in (("run", 2.0), ("large", 0.0)):
        where = {"root": str(tmp_path / "origin"), "memory": memory}
        made_run(tmp_path / name, "cifar10", labels, relabel={first: "truck"}, **where)
    plan(tmp_path / "run").write(tmp_path / "out.npz")
    assert list(labels_of(tmp_path / "out.npz").values()) == ["truck", *list(labels.values())[1:]]
    with pytest.raises(InputError, match=r"labels\.csv"):
        plan(tmp_path / "large")


def test_confidence_is_a_least_confidence_and_with_drop_a_least_probability(tmp_path):
    source = feature_csv(tmp_path / "origin")
    labels = labels_of(source)
    made_run(tmp_path / "run", source, labels, relabel={"0": "dog", "3": "dog", "6": "dog"}, look=["1"])
    assert plan(tmp_path / "run", confidence=0.83).relabelled == {("cat", "dog"): 2}
    assert plan(tmp_path / "run", confidence=0.9).relabelled.total() == 0
    assert plan(tmp_path / "run", drop=True).dropped == {"cat": 3, "dog": 1}
    assert plan(tmp_path / "run", drop=True, confidence=0.8).dropped == {"cat": 3}
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="between 0 and 1"):
            plan(tmp_path / "run", confidence=bad)


def test_without_write_it_shows_the_plan_and_writes_nothing(tmp_path, labelmend):
    made = small(tmp_path, look=["4"])
    before = hashes(tmp_path)
    shown = labelmend("apply", made.run, "--out", tmp_path / "out")
    assert shown.returncode == 0, shown.stderr
    assert "--write" in shown.stdout
    assert "1 look wrong" in shown.stdout
    assert hashes(tmp_path) == before


def test_the_most_frequent_changes_are_listed_first(tmp_path, labelmend):
    source = feature_csv(tmp_path / "origin")
    made_run(tmp_path / "run", source, labels_of(source), relabel={"0": "dog", "1": "cat", "3": "dog"})
    lines = [line.split() for line in labelmend("apply", tmp_path / "run", "--out", tmp_path / "o").stdout.splitlines()]
    assert lines[1:3] == [["cat", "dog", "2"], ["dog", "cat", "1"]]


def test_a_run_on_injected_noise_gives_the_labels_of_the_run_and_says_so(tmp_path, labelmend):
    source = feature_csv(tmp_path / "origin")
    given = labels_of(source) | {"0": "dog", "1": "cat"}
    made_run(tmp_path / "run", source, given, relabel={"0": "cat"}, noise="symmetric:0.2")
    shown = labelmend("apply", tmp_path / "run", "--out", tmp_path / "out", "--write")
    assert "--noise symmetric:0.2" in shown.stdout
    assert labels_of(tmp_path / "out" / "rows.csv") == given | {"0": "cat"}
    assert json.loads((tmp_path / "out" / "undo.json").read_text())["changes"] == [
        {"id": "1", "from": "dog", "to": "cat"}
    ]
    undo(tmp_path / "out")
    assert hashes(tmp_path / "out") == hashes(source.parent)


def test_samples_that_the_run_did_not_see_stay_and_are_counted(tmp_path, labelmend):
    source = image_folder(tmp_path / "origin")
    labels = labels_of(source)
    seen = dict(list(labels.items())[:5])
    first = next(iter(seen))
    made_run(tmp_path / "run", source, seen, relabel={first: "dog"}, limit=5)
    assert (
        f"{ROWS - 5} samples that were not in the run"
        in labelmend("apply", tmp_path / "run", "--out", tmp_path / "out", "--write").stdout
    )
    assert len(labels_of(tmp_path / "out")) == ROWS


def test_of_samples_with_one_id_the_one_that_the_run_used_changes(tmp_path):
    (tmp_path / "rows.csv").write_text("id,f,label\nx,,a\nx,1,a\ny,2,b\nx,3,a\n")
    made_run(tmp_path / "run", tmp_path / "rows.csv", {"x": "a", "y": "b"}, relabel={"x": "b"}, skip_bad=True)
    problems = [("rows.csv row 1", "a missing or infinite feature"), ("rows.csv row 2", "id 'x' is used 3 times")]
    listed = {"problems": [{"place": place, "what": what} for place, what in problems]}
    (tmp_path / "run" / "preflight.json").write_text(json.dumps(listed))
    plan(tmp_path / "run").write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "id,f,label\nx,,a\nx,1,b\ny,2,b\nx,3,a\n"


HOSTILE = ["../escaped", "..", "/etc/passwd", ".", "", "cat/../../x", "c\0t"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("column", ["id", "suggested", "given"])
def test_a_hostile_label_table_is_refused_and_nothing_is_written(tmp_path, labelmend, name, column):
    made = small(tmp_path, image_folder)
    table = pq.read_table(made.run / "labels.parquet").to_pydict()
    table[column][1] = name
    pq.write_table(pa.table(table), made.run / "labels.parquet")
    before = hashes(tmp_path)
    refused(labelmend("apply", made.run, "--out", tmp_path / "out", "--write"))
    assert hashes(tmp_path) == before
    assert not (tmp_path / "out").exists()


def test_a_class_folder_that_is_a_link_is_not_followed(tmp_path, labelmend):
    made = small(tmp_path, image_folder)
    (tmp_path / "elsewhere").mkdir()
    (made.source / "link").symlink_to(tmp_path / "elsewhere")
    refused(labelmend("apply", made.run, "--out", tmp_path / "out", "--write"), "link to a folder")
    assert not (tmp_path / "out").exists()


def test_a_link_out_of_the_source_is_not_copied(tmp_path, labelmend):
    made = small(tmp_path, image_folder)
    (tmp_path / "secret.png").write_bytes(png(0))
    (made.source / "cat" / "x.png").symlink_to(tmp_path / "secret.png")
    before = hashes(tmp_path)
    refused(labelmend("apply", made.run, "--out", tmp_path / "out", "--write"), "not a file inside")
    assert hashes(tmp_path) == before


def test_an_image_path_that_leads_out_of_the_root_is_not_copied(tmp_path):
    source = image_csv(tmp_path / "origin")
    (tmp_path / "secret.png").write_bytes(png(0))
    labels = labels_of(source)
    with source.open("a") as file:
        file.write("../secret.png,cat\r\n")
    made_run(tmp_path / "run", source, labels, relabel={"img/0.png": "dog"}, skip_bad=True)
    plan(tmp_path / "run").write(tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "secret.png").exists()
    made_run(tmp_path / "other", source, labels | {"../secret.png": "cat"})
    with pytest.raises(InputError, match="no longer inside"):
        plan(tmp_path / "other").write(tmp_path / "deep" / "more")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


BAD_RECORDS = {
    "move to a parent": {"moves": [["cat/1.png", "../escaped.png"]]},
    "move from a parent": {"moves": [["../secret.txt", "cat/9.png"]]},
    "move to an absolute path": {"moves": [["cat/1.png", "/tmp/escaped.png"]]},
    "move through a link": {"moves": [["cat/1.png", "link/escaped.png"]]},
    "move onto itself": {"moves": [["cat/1.png", "."]]},
    "two moves to one place": {"moves": [["cat/1.png", "x"], ["cat/2.png", "x"]]},
    "label file outside": {
        "label_file": {
            "now": "../secret.txt",
            "kept": ".undo/a",
            **dict.fromkeys(("corrected_sha256", "original_sha256"), ""),
        }
    },
    "original outside": {
        "label_file": {
            "now": "README.txt",
            "kept": "../secret.txt",
            **dict.fromkeys(("corrected_sha256", "original_sha256"), ""),
        }
    },
    "no moves": {"moves": None},
    "moves of three": {"moves": [["a", "b", "c"]]},
    "numbers": {"moves": [[1, 2]]},
    "other version": {"version": 99},
    "label file of another kind": {"label_file": "README.txt"},
}


@pytest.mark.parametrize("fault", BAD_RECORDS)
@pytest.mark.parametrize("back", [False, True])
def test_a_hostile_undo_record_is_refused_and_nothing_changes(tmp_path, labelmend, fault, back):
    made = small(tmp_path, image_folder)
    plan(made.run).write(tmp_path / "out")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "elsewhere")
    record = tmp_path / "out" / "undo.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | BAD_RECORDS[fault]))
    before = hashes(tmp_path)
    words = ("--out", tmp_path / "back") if back else ()
    refused(labelmend("undo", tmp_path / "out", "--force", *words))
    assert hashes(tmp_path) == before


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"not json", b"\xff", b"[" * 100_000])
def test_a_damaged_undo_record_is_refused(tmp_path, labelmend, content):
    (tmp_path / "undo.json").write_bytes(content)
    refused(labelmend("undo", tmp_path), "damaged")


def test_an_attic_that_is_a_link_is_refused(tmp_path):
    made = small(tmp_path)
    plan(made.run).write(tmp_path / "out")
    (tmp_path / "out" / ".undo").rename(tmp_path / "attic")
    (tmp_path / "out" / ".undo").symlink_to(tmp_path / "attic")
    with pytest.raises(InputError, match="leads out"):
        undo(tmp_path / "out", force=True)
    assert (tmp_path / "attic" / "rows.csv").is_file()


def test_a_corrected_file_that_was_edited_is_only_undone_by_force(tmp_path, labelmend):
    made = small(tmp_path)
    plan(made.run).write(tmp_path / "out")
    with (tmp_path / "out" / "rows.csv").open("a") as file:
        file.write("1,cat,2\n")
    refused(labelmend("undo", tmp_path / "out"), "changed since", "--force")
    assert labelmend("undo", tmp_path / "out" / "undo.json", "--force").returncode == 0
    assert hashes(tmp_path / "out") == hashes(made.source.parent)


def test_a_corrected_folder_that_was_changed_is_only_undone_by_force(tmp_path):
    made = small(tmp_path, image_folder)
    plan(made.run).write(tmp_path / "out")
    (tmp_path / "out" / "README.txt").unlink()
    with pytest.raises(InputError, match="files, not"):
        undo(tmp_path / "out")
    undo(tmp_path / "out", force=True)
    expected = hashes(made.source)
    assert hashes(tmp_path / "out") == {path: digest for path, digest in expected.items() if path != "README.txt"}


def test_an_original_that_was_edited_is_never_brought_back(tmp_path, labelmend):
    made = small(tmp_path)
    plan(made.run).write(tmp_path / "out")
    (tmp_path / "out" / ".undo" / "rows.csv").write_text("other")
    refused(labelmend("undo", tmp_path / "out", "--force"), "not the original any more")


def test_a_file_in_the_way_is_not_overwritten(tmp_path):
    made = small(tmp_path, image_folder)
    plan(made.run).write(tmp_path / "out")
    (tmp_path / "out" / made.second).write_text("mine")
    with pytest.raises(InputError, match="in the way"):
        undo(tmp_path / "out", force=True)
    assert (tmp_path / "out" / made.second).read_text() == "mine"


def test_what_has_no_record_cannot_be_undone(tmp_path, labelmend):
    refused(labelmend("undo", tmp_path), "nothing to undo")
    refused(labelmend("undo", tmp_path / "nowhere.csv"), "nothing to undo")


def spoil_label(made):
    made.source.write_text(made.source.read_text().replace("0,cat,0.0", "0,dog,0.0"))


def spoil_rows(made):
    made.source.write_text("".join(made.source.read_text().splitlines(keepends=True)[:-1]))


def rewritten(**changes):
    def change(made):
        path = made.run / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def without_verdicts(made):
    table = pq.read_table(made.run / "labels.parquet")
    pq.write_table(table.drop_columns(["verdict"]), made.run / "labels.parquet")


UNFIT = {
    "label changed": (spoil_label, "changed since the run"),
    "row missing": (spoil_rows, "changed since the run"),
    "source gone": (lambda made: made.source.unlink(), "is not there"),
    "unfinished": (rewritten(status="running"), "is running"),
    "no run": (lambda made: (made.run / "run.json").unlink(), "not a run directory"),
    "no data": (rewritten(data=None), "damaged"),
    "config of another kind": (rewritten(config={"source": 7}), "damaged"),
    "no label table": (lambda made: (made.run / "labels.parquet").unlink(), "there is no"),
    "damaged label table": (lambda made: (made.run / "labels.parquet").write_bytes(b"PAR1"), "cannot be read"),
    "no verdicts": (without_verdicts, "cannot be read"),
}


@pytest.mark.parametrize("fault", UNFIT)
def test_a_run_that_does_not_fit_is_refused_in_one_sentence(tmp_path, labelmend, fault):
    change, expected = UNFIT[fault]
    made = small(tmp_path)
    change(made)
    refused(labelmend("apply", made.run, "--out", tmp_path / "out", "--write"), expected)
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_taken_is_refused(tmp_path, labelmend):
    made = small(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "mine.csv").write_text("mine")
    before = hashes(tmp_path)
    for name, expected in (("full", "not empty"), ("file", "not a folder"), ("mine.csv", "there already")):
        refused(labelmend("apply", made.run, "--out", tmp_path / name, "--write"), expected)
        refused(labelmend("apply", made.run, "--out", tmp_path / name), expected)
    assert hashes(tmp_path) == before


def test_a_place_inside_the_source_is_refused(tmp_path):
    made = small(tmp_path, image_folder)
    with pytest.raises(InputError, match="inside the source"):
        plan(made.run).destination(made.source / "fixed")


def test_an_empty_folder_is_a_place(tmp_path):
    made = small(tmp_path, image_folder)
    (tmp_path / "out").mkdir()
    plan(made.run).write(tmp_path / "out")
    assert len(labels_of(tmp_path / "out")) == ROWS


@pytest.mark.parametrize("make", [image_folder, image_csv])
def test_a_failure_half_way_leaves_nothing(tmp_path, monkeypatch, make):
    made = small(tmp_path, make)
    before = sorted(tmp_path.rglob("*"))
    copies = []

    def fails(path, to):
        copies.append(path)
        if len(copies) > 3:
            raise OSError(28, "No space left on device")
        return shutil.copyfile(path, to)

    monkeypatch.setattr(shutil, "copy2", fails)
    with pytest.raises(OSError, match="No space"):
        plan(made.run).write(tmp_path / "out")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_correction_can_be_corrected_again(tmp_path):
    made = small(tmp_path, image_folder)
    plan(made.run).write(tmp_path / "one")
    labels = labels_of(tmp_path / "one")
    made_run(tmp_path / "again", tmp_path / "one", labels, relabel={next(iter(labels)): "dog"})
    plan(tmp_path / "again").write(tmp_path / "two")
    undo(tmp_path / "two")
    undo(tmp_path / "one", out=tmp_path / "back")
    assert hashes(tmp_path / "back") == hashes(made.source)
    assert labels_of(tmp_path / "two") == labels


def test_all_samples_dropped_is_refused(tmp_path):
    source = feature_csv(tmp_path / "origin")
    labels = labels_of(source)
    made_run(tmp_path / "run", source, labels, look=list(labels))
    with pytest.raises(InputError, match="all samples"):
        plan(tmp_path / "run", drop=True)


def test_help_teaches(labelmend):
    assert "Try: labelmend apply" in labelmend("apply", "--help").stdout
    assert "Try: labelmend undo" in labelmend("undo", "--help").stdout
