"""Suspects go out, a person answers in the tool, and exactly these answers are decisions of the run."""

import csv
import io
import json
from xml.etree import ElementTree

import pytest

from labelmend.data.sources import read_source
from labelmend.errors import InputError
from labelmend.exchange.formats import FORMATS, export_files, import_file
from labelmend.exchange.suspects import find_suspects
from labelmend.run.decisions import Decision, DecisionLog, decided_labels, read_decisions
from labelmend.run.labels import read_label_table


def lines_of(path):
    return list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def samples_of(run):
    source = run.read()["config"]["source"]
    return read_source(source) if source else None


def exported(run, to, out, **options):
    suspects = find_suspects(run, samples_of(run), **options)
    _, files = export_files(suspects, to, out)
    for path, content in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return list(suspects)


def other_class(run, suspect):
    names = run.read()["data"]["classes"]
    return next(name for name in names if name not in (suspect.given, suspect.suggested))


def annotated(task, label, *, by=1, at="2026-03-01T10:00:00.5Z", **more):
    value = {"choices": [label]}
    result = [{"from_name": "answer", "to_name": "sample", "type": "choices", "value": value}]
    return {"completed_by": by, "created_at": at, "updated_at": at, "result": result, "was_cancelled": False} | more


@pytest.mark.parametrize("kind", ["pictures", "rows", "ids", "texts"])
def test_label_studio_gives_back_what_was_answered(kind, run_of, tmp_path, said):
    run, out = run_of(kind), tmp_path / "tasks.json"
    suspects = exported(run, "label-studio", out)
    tasks = json.loads(out.read_text())
    assert [task["data"]["sample_id"] for task in tasks] == [each.id for each in suspects]
    expected = []
    for place, (task, each) in enumerate(zip(tasks, suspects, strict=True)):
        label = each.given if place % 2 else run.read()["data"]["classes"][place % 2 - 1]
        task["annotations"] = [annotated(task, label)]
        word = ("keep", "") if label == each.given else ("relabel", label)
        expected.append((each.id, *word, "label-studio-1"))
    out.write_text(json.dumps(tasks))
    found = import_file(run, out, "label-studio")
    assert said(run) == expected
    assert (len(found.new), found.standing, found.untouched) == (len(suspects), 0, 0)
    assert {each.time for each in found.new} == {"2026-03-01T10:00:00.500Z"}


@pytest.mark.parametrize(("kind", "shown"), [("pictures", "image"), ("rows", "fields"), ("texts", "text")])
def test_label_studio_shows_a_sample_as_it_is_and_its_configuration_fits(kind, shown, made, tmp_path):
    exported(made[kind], "label-studio", tmp_path / "tasks.json")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    config = ElementTree.parse(tmp_path / "tasks.xml").getroot()
    (named,) = config.findall(f".//*[@value='${shown}']")
    classes = [choice.get("value") for choice in config.findall("Choices[@name='answer']/Choice")]
    assert classes == list(made[kind].read()["data"]["classes"])
    assert {asked.get("toName") for asked in config.findall("Choices")} == {named.get("name")}
    for task in tasks:
        value = task["data"][shown]
        assert isinstance(value, str) or all(isinstance(cell, str) for cell in value.values())
        for prediction in task["predictions"]:
            (result,) = prediction["result"]
            assert (result["from_name"], result["to_name"]) == ("answer", named.get("name"))
            assert result["value"]["choices"][0] in classes
            assert result["value"]["choices"] == [task["data"]["suggested"]] != [task["data"]["given"]]


def test_a_table_goes_out_with_its_cells_and_a_text_with_its_markup_as_it_is(made, tmp_path):
    exported(made["rows"], "label-studio", tmp_path / "rows.json")
    task = json.loads((tmp_path / "rows.json").read_text())[0]
    (line,) = [
        line for line in lines_of(made["rows"].path.parent / "rows.csv") if line[-1] == task["data"]["sample_id"]
    ]
    assert task["data"]["fields"] == dict(zip(("length", "width", "colour"), line, strict=False))
    exported(made["texts"], "label-studio", tmp_path / "texts.json")
    task = json.loads((tmp_path / "texts.json").read_text())[0]
    assert task["data"]["text"] == f'text {task["data"]["sample_id"]}, with <b>markup</b> and "quotes"'


def test_a_suspect_without_a_sure_suggestion_has_no_prediction(made, tmp_path):
    exported(made["pictures"], "label-studio", tmp_path / "tasks.json", verdicts=["look"])
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert tasks
    assert all(task["predictions"] == [] and task["data"]["suggested"] == "" for task in tasks)


def test_of_several_annotations_the_newest_of_each_annotator_counts_and_cancelled_ones_do_not(run_of, tmp_path, said):
    run, out = run_of("pictures"), tmp_path / "tasks.json"
    first, second, third = exported(run, "label-studio", out, top=3)
    tasks = json.loads(out.read_text())
    right = other_class(run, first)
    ann, bob = {"id": 1, "email": "ann@example.com"}, {"id": 2, "email": "bob@example.com"}
    tasks[0]["annotations"] = [
        annotated(tasks[0], right, by=ann, at="2026-03-01T12:00:00Z"),
        annotated(tasks[0], first.given, by=ann, at="2026-03-01T11:00:00Z"),
        annotated(tasks[0], first.given, by=bob, at="2026-03-01T12:30:00Z"),
        annotated(tasks[0], first.given, by=ann, at="2026-03-01T13:00:00Z", was_cancelled=True),
    ]
    tasks[1]["annotations"] = [
        annotated(tasks[1], second.given, was_cancelled=True),
        annotated(tasks[1], "", result=[]),
    ]
    bad = {"from_name": "problem", "type": "choices", "value": {"choices": ["bad sample"]}}
    tasks[2]["annotations"] = [annotated(tasks[2], "", result=[bad])]
    out.write_text(json.dumps(tasks))
    import_file(run, out, "label-studio")
    assert said(run) == [
        (third.id, "bad", "", "label-studio-1"),
        (first.id, "relabel", right, "ann@example.com"),
        (first.id, "keep", "", "bob@example.com"),
    ]


def test_the_short_export_of_label_studio_is_read_too(run_of, tmp_path, said):
    run, out = run_of("rows"), tmp_path / "min.json"
    one, two, three, four = exported(run, "label-studio", tmp_path / "tasks.json", top=4)
    times = {"annotator": 3, "id": 17, "annotation_id": 1, "updated_at": "2026-03-01T10:00:00Z"}
    lines = [
        {"sample_id": one.id, "answer": one.given} | times,
        {"sample_id": two.id, "answer": {"choices": [other_class(run, two)]}} | times,
        {"sample_id": three.id, "problem": "none of these classes"} | times,
        {"sample_id": four.id} | times,
    ]
    out.write_text(json.dumps(lines))
    import_file(run, out, "label-studio", reviewer="ann")
    words = [("keep", ""), ("relabel", other_class(run, two)), ("other", "")]
    assert said(run) == [(each.id, *word, "ann") for each, word in zip((one, two, three), words, strict=True)]


def test_fiftyone_gives_back_what_was_answered(run_of, tmp_path, said):
    run, out = run_of("pictures"), tmp_path / "set"
    suspects = exported(run, "fiftyone", out)
    content, files = json.loads((out / "labels.json").read_text()), json.loads((out / "data.json").read_text())
    classes = run.read()["data"]["classes"]
    assert content["classes"] == classes
    assert content["labels"].keys() == files.keys()
    for each in suspects:
        key = each.id.removesuffix(".png")
        assert files[key].endswith(each.id)
        label = content["labels"][key]
        assert (classes[label["label"]] if label else None) == each.suggested
    kept, changed, none = suspects[:3]
    labels = {kept.id[:-4]: classes.index(kept.given), changed.id[:-4]: other_class(run, changed), none.id[:-4]: None}
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"classes": classes, "labels": labels}))
    import_file(run, answers, "fiftyone", samples=samples_of(run))
    expected = [(kept.id, "keep", "", "fiftyone"), (changed.id, "relabel", other_class(run, changed), "fiftyone")]
    assert said(run) == expected
    import_file(run, answers, "fiftyone")  # without the data set, ids are the names of files
    assert said(run) == expected


def test_cvat_gives_back_what_was_answered(run_of, tmp_path, said):
    run, out = run_of("pictures"), tmp_path / "annotations.xml"
    suspects = exported(run, "cvat", out)
    document = ElementTree.parse(out)
    assert [label.text for label in document.iterfind("meta/task/labels/label/name")] == run.read()["data"]["classes"]
    images = document.findall("image")
    assert [image.get("name") for image in images] == [each.id for each in suspects]
    assert {(image.get("width"), image.get("height")) for image in images} == {("96", "72")}
    assert [[tag.get("label") for tag in image] for image in images] == [
        [each.suggested] if each.suggested else [] for each in suspects
    ]
    sure = [(image, each) for image, each in zip(images, suspects, strict=True) if each.suggested]
    for tag in document.iter("tag"):
        tag.set("source", "file")  # as CVAT does with all that it is given
    expected = []
    for place, (image, each) in enumerate(sure):
        if place % 3 == 0:  # changed
            image[0].set("label", each.given)
            image[0].set("source", "manual")
            expected.append((each.id, "keep", "", "ann"))
        elif place % 3 == 1:  # another tag beside the suggestion
            ElementTree.SubElement(image, "tag", label=other_class(run, each), source="manual")
            expected.append((each.id, "relabel", other_class(run, each), "ann"))
    assignee = ElementTree.SubElement(document.find("meta/task"), "assignee")
    ElementTree.SubElement(assignee, "username").text = "ann"
    document.write(out)
    found = import_file(run, out, "cvat", samples=samples_of(run))
    assert said(run) == expected
    assert found.untouched == len(sure) - len(expected)
    found = import_file(run, out, "cvat", samples=samples_of(run), accept_suggestions=True)
    assert len(found.new) == len(sure) - len(expected)
    assert {(each.decision, each.reviewer) for each in found.new} == {("relabel", "ann")}


def test_given_labels_go_to_fiftyone_too_and_are_no_answers_either(run_of, tmp_path, said):
    run, out = run_of("pictures"), tmp_path / "set"
    suspects = exported(run, "fiftyone", out)
    content = json.loads((out / "given.json").read_text())
    classes = [content["classes"][label["label"]] for label in content["labels"].values()]
    assert classes == [each.given for each in suspects]
    assert import_file(run, out / "given.json", "fiftyone").untouched == len(suspects)
    assert said(run) == []


@pytest.mark.parametrize(("to", "name"), [("fiftyone", "labels.json"), ("cvat", "")])
def test_suggestions_that_nobody_touched_are_no_answers(to, name, run_of, tmp_path, said):
    run, out = run_of("pictures"), tmp_path / "out"
    suspects = exported(run, to, out)
    found = import_file(run, out / name if name else out, to, samples=samples_of(run))
    assert said(run) == []
    assert found.untouched == sum(each.suggested is not None for each in suspects)


def test_images_whose_ids_are_not_their_names_are_found_by_their_files(tmp_path, made, said):
    from exchanged import SHAPES, judged_run, shape

    lines = ["image,label,id"]
    for row in range(12):
        (tmp_path / f"{row}.png").write_bytes(shape(row % 3, row))
        lines.append(f"{row}.png,{SHAPES[(row + row % 2) % 3]},{11 - row}.png")  # ids that are names of other files
    (tmp_path / "set.csv").write_text("\n".join(lines) + "\n")
    samples = read_source(str(tmp_path / "set.csv"))
    run = judged_run(
        tmp_path / "run",
        given=samples.labels.observed.numpy(),
        truth=[row % 3 for row in range(12)],
        classes=samples.class_names,
        ids=samples.ids,
        source=str(tmp_path / "set.csv"),
        samples=samples,
    )
    first = exported(run, "cvat", tmp_path / "a.xml", top=1)[0]
    assert first.content.name == f"{11 - int(first.id[:-4])}.png"
    (tmp_path / "a.xml").write_text(
        f'<annotations><image id="0" name="{first.content.name}"><tag label="{first.given}"/></image></annotations>'
    )
    import_file(run, tmp_path / "a.xml", "cvat", samples=samples)
    assert said(run) == [(first.id, "keep", "", "cvat")]


@pytest.mark.parametrize("kind", ["pictures", "rows", "ids", "texts"])
@pytest.mark.parametrize("dialect", [{"delimiter": ","}, {"delimiter": ";"}])
def test_a_sheet_gives_back_what_was_filled_in_and_decisions_takes_it_too(kind, dialect, run_of, tmp_path, said):
    run, out = run_of(kind), tmp_path / "sheet.csv"
    suspects = exported(run, "csv", out)
    rows = lines_of(out)
    names = rows[0]
    assert names[:6] == ["id", "given", "suggested", "noisy_probability", "decision", "label"]
    words, expected = ("keep", "relabel", "bad", "", "label alone"), []
    for place, (row, each) in enumerate(zip(rows[1:], suspects, strict=True)):
        word = words[place % 5]
        label = next(name for name in run.read()["data"]["classes"] if name != each.given)
        row[4] = "" if word == "label alone" else word
        row[5] = label if word in ("relabel", "label alone") else ""
        if word:
            word = "relabel" if word == "label alone" else word
            expected.append((each.id, word, label if word == "relabel" else "", "csv"))
    text = io.StringIO(newline="")
    csv.writer(text, **dialect).writerows(rows)
    out.write_bytes(text.getvalue().encode("utf-8-sig"))
    import_file(run, out, "csv")
    assert said(run) == expected
    (tmp_path / "before").mkdir()
    taken = [(each.id, each.decision, each.label) for each in read_decisions(out)]
    assert taken == [line[:3] for line in expected]
    run.decisions.unlink()
    table = decided_labels(run, out)
    decided = [id for id, word in zip(table["id"].to_pylist(), table["decided"].to_pylist(), strict=True) if word]
    assert sorted(decided) == sorted(line[0] for line in expected)


def test_a_sheet_has_texts_and_cells_and_nothing_that_a_spreadsheet_would_run(made, tmp_path):
    exported(made["rows"], "csv", tmp_path / "rows.csv")
    exported(made["texts"], "csv", tmp_path / "texts.csv")
    exported(made["ids"], "csv", tmp_path / "ids.csv")
    assert lines_of(tmp_path / "rows.csv")[0][6:] == ["length", "width", "colour"]
    assert all("<b>markup</b>" in line[6] for line in lines_of(tmp_path / "texts.csv")[1:])
    for name in ("rows", "ids"):
        cells = [cell for line in lines_of(tmp_path / f"{name}.csv") for cell in line]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize("to", FORMATS)
def test_importing_the_same_file_twice_adds_nothing(to, run_of, tmp_path, said):
    run = run_of("pictures")
    out = tmp_path / ("set" if to == "fiftyone" else "file")
    suspects = exported(run, to, out, top=6)
    if to == "csv":
        out.write_text("id,decision,label\n" + "".join(f"{each.id},keep,\n" for each in suspects))
    if to == "label-studio":
        tasks = json.loads(out.read_text())
        for task in tasks:
            task["annotations"] = [annotated(task, task["data"]["given"])]
        out.write_text(json.dumps(tasks))
    file, options = out / "labels.json" if to == "fiftyone" else out, {"accept_suggestions": True}
    first = import_file(run, file, to, samples=samples_of(run), **options)
    lines = said(run)
    assert len(lines) == len(first.new) > 0
    again = import_file(run, file, to, samples=samples_of(run), **options)
    assert said(run) == lines
    assert (len(again.new), again.standing) == (0, len(first.new))


def test_an_old_file_does_not_override_what_its_reviewer_said_since(run_of, tmp_path, said):
    run, out = run_of("pictures"), tmp_path / "tasks.json"
    (each,) = exported(run, "label-studio", out, top=1)
    tasks = json.loads(out.read_text())
    tasks[0]["annotations"] = [annotated(tasks[0], each.given)]
    out.write_text(json.dumps(tasks))
    import_file(run, out, "label-studio", reviewer="ann")
    DecisionLog.of(run).append(Decision(each.id, "bad", "", "ann", "2026-03-02T10:00:00.000Z"))
    found = import_file(run, out, "label-studio", reviewer="ann")
    assert (len(found.new), found.standing) == (0, 1)
    assert [line[1] for line in said(run)] == ["keep", "bad"]
    assert len(import_file(run, out, "label-studio", reviewer="bob").new) == 1


def test_what_is_decided_does_not_go_out_again_unless_it_is_asked_for(run_of):
    run = run_of("pictures")
    first, second, *_ = find_suspects(run)
    log = DecisionLog.of(run)
    log.append_all([Decision(first.id, "keep", "", "ann"), Decision(second.id, "skip", "", "ann")])
    assert next(iter(find_suspects(run))).id == second.id
    assert [each.id for each in find_suspects(run, decided=True, top=2)] == [first.id, second.id]


def test_verdicts_and_top_choose_what_goes_out(made):
    run = made["pictures"]
    table = read_label_table(run).sort_by("rank").to_pylist()
    for verdicts in (["look"], ["relabel"], ["keep", "look"]):
        wanted = [row["id"] for row in table if row["verdict"] in verdicts]
        assert [each.id for each in find_suspects(run, verdicts=verdicts, top=5)] == wanted[:5]
    with pytest.raises(InputError, match="verdict"):
        find_suspects(run, verdicts=["wrong"])


@pytest.mark.parametrize("to", ["fiftyone", "cvat"])
@pytest.mark.parametrize("kind", ["rows", "texts", "ids"])
def test_tools_for_images_refuse_what_is_no_image(to, kind, made, tmp_path):
    with pytest.raises(InputError, match="--to label-studio or --to csv"):
        exported(made[kind], to, tmp_path / "out")


def test_images_that_have_no_file_go_to_label_studio_inside_the_tasks(tmp_path):
    import base64

    import numpy as np
    from exchanged import judged_run

    images = np.random.default_rng(0).integers(0, 255, (12, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", x=images, y=np.arange(12) % 2)
    samples = read_source(str(tmp_path / "set.npz"))
    given = samples.labels.observed.numpy()
    run = judged_run(
        tmp_path / "run",
        given=given,
        truth=1 - given,
        classes=samples.class_names,
        ids=samples.ids,
        source=str(tmp_path / "set.npz"),
        samples=samples,
    )
    exported(run, "label-studio", tmp_path / "tasks.json")
    kind, _, content = json.loads((tmp_path / "tasks.json").read_text())[0]["data"]["image"].partition(";base64,")
    assert kind == "data:image/png"
    assert base64.b64decode(content).startswith(b"\x89PNG")


def test_a_run_whose_data_set_is_gone_shows_what_it_kept(made, tmp_path):
    suspects = find_suspects(made["rows"], None)
    assert {"length", "width", "colour"} == next(iter(suspects)).content.fields.keys()
    assert next(iter(find_suspects(made["pictures"], None))).content.picture
