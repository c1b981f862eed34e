"""The commands `export` and `import`."""

import csv
import json

import pytest

from labelmend.run.decisions import DecisionLog


def test_suspects_go_out_and_answers_come_back_by_commands(run_of, tmp_path, labelmend, said):
    run, tasks = run_of("pictures"), tmp_path / "tasks.json"
    ended = labelmend("export", run.path, "--to", "label-studio", "--out", tasks, "--top", 3)
    assert ended.returncode == 0, ended.stderr
    assert f"3 samples in {tasks} and {tasks.with_suffix('.xml')}" in ended.stdout
    assert "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT" in ended.stderr
    content = json.loads(tasks.read_text())
    assert all(task["data"]["image"].startswith("/data/local-files/?d=pictures/") for task in content)
    for task in content:
        value = {"choices": [task["data"]["given"]]}
        task["annotations"] = [{"completed_by": 4, "result": [{"type": "choices", "value": value}]}]
    tasks.write_text(json.dumps(content))
    ended = labelmend("import", run.path, tasks, "--from", "label-studio", "--reviewer", "ann")
    assert ended.returncode == 0, ended.stderr
    assert f"3 new decisions in {run.decisions}\n" in ended.stdout
    assert [line[1:] for line in said(run)] == [("keep", "", "ann")] * 3
    ended = labelmend("import", run.path, tasks, "--from", "label-studio", "--reviewer", "ann")
    assert "0 new decisions" in ended.stdout
    assert "3 answers already stood" in ended.stdout
    shown = labelmend("labels", run.path, "--verdict", "keep", "--out", tmp_path / "kept.csv")
    assert shown.returncode == 0
    lines = list(csv.DictReader((tmp_path / "kept.csv").read_text().splitlines()))
    assert {task["data"]["sample_id"] for task in content} <= {
        line["id"] for line in lines if line["decided"] == "keep"
    }
    ended = labelmend("export", run.path, "--to", "csv", "--out", tmp_path / "rest.csv")
    assert "3 samples are decided and left out" in ended.stderr


@pytest.mark.parametrize("to", ["fiftyone", "cvat"])
def test_suggestions_are_counted_when_all_of_the_file_was_looked_at(to, run_of, tmp_path, labelmend):
    run, out = run_of("pictures"), tmp_path / "out"
    assert labelmend("export", run.path, "--to", to, "--out", out, "--verdict", "relabel").returncode == 0
    file = out / "labels.json" if to == "fiftyone" else out
    ended = labelmend("import", run.path, file, "--from", to)
    assert "0 new decisions" in ended.stdout
    assert "--accept-suggestions counts them" in ended.stderr
    ended = labelmend("import", run.path, file, "--from", to, "--accept-suggestions")
    assert ended.returncode == 0
    log = DecisionLog.of(run).read()
    assert {(each.decision, each.reviewer) for each in log} == {("relabel", to)}
    assert len(log) > 30


def test_addresses_of_images_are_those_that_are_asked_for(run_of, tmp_path, labelmend):
    run, out = run_of("pictures"), tmp_path / "tasks.json"
    ended = labelmend("export", run.path, "--to", "label-studio", "--out", out, "--root", "https://example.com/a/")
    assert ended.returncode == 0
    task = json.loads(out.read_text())[0]
    assert task["data"]["image"] == f"https://example.com/a/{task['data']['sample_id']}"
    assert "LOCAL_FILES" not in ended.stderr


def test_what_does_not_fit_is_refused_in_one_sentence(run_of, tmp_path, labelmend):
    run, out = run_of("pictures"), tmp_path / "out"
    taken = tmp_path / "taken.json"
    taken.write_text("x")
    cases = [
        (("export", run.path, "--to", "onnxx", "--out", out), "valid: csv, cvat, fiftyone, label-studio, onnx"),
        (("export", run.path, "--to", "onnx", "--out", out, "--top", 3), "--top chooses suspects"),
        (("export", run.path, "--to", "csv", "--out", out, "--root", "/x"), "--root is for --to label-studio"),
        (("export", run.path, "--to", "csv", "--out", out, "--verdict", "bad"), "unknown verdict 'bad'"),
        (("export", run.path, "--to", "csv", "--out", out, "--source", "nowhere"), "nowhere is not there"),
        (("export", run.path, "--to", "csv", "--out", taken), "--force"),
        (("export", run.path, "--to", "csv", "--out", taken / "below.csv"), "choose another --out"),
        (("export", run.path, "--to", "csv", "--out", tmp_path), "not a file that can be replaced"),
        (("export", run.path, "--to", "label-studio", "--out", tmp_path / "a.xml"), "takes the tasks, as JSON"),
        (("export", run.path, "--to", "fiftyone", "--out", tmp_path / "a.json"), "takes a folder for FiftyOne"),
        (("export", tmp_path, "--to", "csv", "--out", out), "not a run directory"),
        (("import", run.path, taken, "--from", "csvv"), "did you mean 'csv'"),
        (("import", run.path, taken, "--from", "label-studio"), "cannot be read as JSON"),
        (("import", run.path, tmp_path / "no", "--from", "csv"), "there is no file"),
        (("import", tmp_path, taken, "--from", "csv"), "not a run directory"),
    ]
    for words, sentence in cases:
        ended = labelmend(*words)
        assert ended.returncode == 2, words
        assert sentence in ended.stderr, words
        assert ended.stderr.strip().count("\n") == 0, ended.stderr
    assert not out.exists()
    assert not run.decisions.exists()


def test_a_run_whose_data_set_moved_says_so_and_takes_the_new_place(run_of, tmp_path, labelmend):
    import shutil

    run, out = run_of("pictures"), tmp_path / "a.xml"
    source = run.read()["config"]["source"]
    moved = shutil.copytree(source, tmp_path / "moved")
    run.update(config=run.read()["config"] | {"source": str(tmp_path / "gone")})
    ended = labelmend("export", run.path, "--to", "cvat", "--out", out)
    assert ended.returncode == 2
    assert "give its place with --source" in ended.stderr
    ended = labelmend("export", run.path, "--to", "cvat", "--out", out, "--source", moved)
    assert ended.returncode == 0, ended.stderr


def test_help_teaches_by_an_example(labelmend):
    for command, example in (
        ("export", "labelmend export runs/mine --to label-studio"),
        ("import", "labelmend import"),
    ):
        ended = labelmend(command, "--help")
        assert ended.returncode == 0
        assert example in " ".join(ended.stdout.split())
