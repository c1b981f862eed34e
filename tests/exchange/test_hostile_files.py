"""Files that are wrong, damaged or made to harm are refused in one sentence, and leave the decisions as they were."""

import json

import pytest

from labelmend.errors import InputError
from labelmend.exchange.formats import FORMATS, export_files, import_file
from labelmend.exchange.suspects import Content, Suspect, Suspects, find_suspects

ANSWER = {"from_name": "answer", "type": "choices", "value": {"choices": ["circle"]}}
FIRST = "circle/002.png"


def task(**changes):
    annotation = {"completed_by": 1, "result": [ANSWER], "updated_at": "2026-03-01T10:00:00Z"}
    return {"data": {"sample_id": FIRST}, "annotations": [annotation]} | changes


def labelled(labels):
    return json.dumps({"classes": ["circle", "square", "triangle"], "labels": labels})


def tagged(name, label):
    return f'<annotations><image id="0" name="{name}"><tag label="{label}"/></image></annotations>'


def answers(of, pairs):
    """A file of a format that answers (id, class) pairs."""
    if of == "label-studio":
        return json.dumps(
            [
                task(
                    data={"sample_id": id},
                    annotations=[{"result": [ANSWER | {"value": {"choices": [label]}}], "completed_by": 1}],
                )
                for id, label in pairs
            ]
        )
    if of == "fiftyone":
        return json.dumps({"classes": None, "labels": {id.removesuffix(".png"): label for id, label in pairs}})
    if of == "cvat":
        images = "".join(f'<image id="0" name="{id}"><tag label="{label}"/></image>' for id, label in pairs)
        return f"<annotations>{images}</annotations>"
    return "id,decision,label\n" + "".join(f"{id},relabel,{label}\n" for id, label in pairs)


def refused(run, path, of, content, match):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=match) as error:
        import_file(run, path, of)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000
    assert not run.decisions.exists()


@pytest.mark.parametrize("of", FORMATS)
def test_a_class_that_the_run_does_not_know_is_named_and_nothing_is_taken(of, run_of, tmp_path):
    good = [("circle/014.png", "square"), ("circle/032.png", "triangle")]
    run = run_of("pictures")
    refused(run, tmp_path / "f", of, answers(of, [*good, ("circle/050.png", "hexagon")]), "no class 'hexagon'; its")
    several = [*good, ("circle/050.png", "hexagon"), ("circle/068.png", "cube"), ("square/024.png", "ball")]
    refused(
        run, tmp_path / "f", of, answers(of, several), r"no class 'hexagon' \(and none of 2 more\); its classes are"
    )


@pytest.mark.parametrize("of", FORMATS)
def test_a_sample_that_the_run_does_not_know_is_named_and_nothing_is_taken(of, run_of, tmp_path):
    good, run = [("circle/014.png", "square")], run_of("pictures")
    strange = [(f"elsewhere/{number}.png", "square") for number in range(4)]
    name = "elsewhere/0" if of == "fiftyone" else "elsewhere/0.png"
    refused(run, tmp_path / "f", of, answers(of, [*good, *strange[:1]]), f"no sample '{name}' in this run")
    refused(run, tmp_path / "f", of, answers(of, [*good, *strange]), rf"'{name}' \(and none of 3 more\)")


@pytest.mark.parametrize("of", FORMATS)
@pytest.mark.parametrize("label", ["circle\x1b[31m", "x" * 100_000], ids=["escape", "long"])
def test_names_in_messages_are_harmless(of, label, run_of, tmp_path):
    if of == "cvat":
        label = label.replace("\x1b", "\u202e")
    run = run_of("pictures")
    (tmp_path / "f").write_text(answers(of, [("circle/014.png", label)]))
    with pytest.raises(InputError) as error:
        import_file(run, tmp_path / "f", of)
    assert not {"\x1b", "\u202e"} & set(str(error.value))
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("of", FORMATS)
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 99, b"\xff\xfe\x00", b"PK\x03\x04 archive", b"{", b"<annotations>", b"hello", b"[1, null]"]
)
def test_what_is_no_file_of_the_format_is_refused(of, content, run_of, tmp_path):
    if of == "csv" and not content:  # as a sheet that nobody filled in
        content = b"id,label\n"
    refused(run_of("pictures"), tmp_path / "f", of, content, "f")


@pytest.mark.parametrize("of", FORMATS)
def test_missing_files_folders_and_large_files_are_refused(of, run_of, tmp_path):
    run = run_of("pictures")
    with pytest.raises(InputError, match="no file"):
        import_file(run, tmp_path / "missing", of)
    with pytest.raises(InputError, match="no file"):
        import_file(run, tmp_path, of)
    with (tmp_path / "large").open("wb") as file:
        file.truncate((64 << 20) + (1 << 20))
    with pytest.raises(InputError, match="at most 64 MB"):
        import_file(run, tmp_path / "large", of)


@pytest.mark.parametrize("of", ["label-studio", "fiftyone"])
@pytest.mark.parametrize("deep", ["[" * 100_000, '{"labels":' * 100_000])
def test_deep_json_is_refused(of, deep, run_of, tmp_path):
    refused(run_of("pictures"), tmp_path / "f", of, deep, "nested too deep|cannot be read as JSON")


@pytest.mark.parametrize(
    "value",
    [
        {},
        7,
        "text",
        [[]],
        [{}],
        [task(annotations=3)],
        [task(annotations=[3])],
        [task(annotations=[{"result": 3}])],
        [task(annotations=[{"result": [3]}])],
        [task(annotations=[{"result": [ANSWER | {"value": {"choices": 3}}]}])],
        [task(annotations=[{"result": [ANSWER | {"value": {"choices": [3]}}]}])],
        [task(annotations=[{"result": [ANSWER | {"value": {"choices": ["circle", "square"]}}]}])],
        [task(annotations=[{"result": [ANSWER | {"from_name": "problem"}]}])],
        [task(data=None)],
        [task(data={"sample_id": 3})],
        [task(data={"sample_id": ["a"]})],
        [{"sample_id": FIRST, "answer": 3}],
        [{"sample_id": 3, "answer": "circle"}],
        [task(annotations=[{"result": [ANSWER], "completed_by": "x\ny"}])],
        [task(annotations=[{"result": [ANSWER], "completed_by": "x" * 1000}])],
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_wrong_types_in_an_export_of_label_studio_are_refused(value, run_of, tmp_path):
    content = json.dumps(value)
    if value == [{}]:  # an entry of the short export without an answer
        (tmp_path / "f").write_text(content)
        assert not import_file(run_of("pictures"), tmp_path / "f", "label-studio").new
        return
    refused(run_of("pictures"), tmp_path / "f", "label-studio", content, ".")


@pytest.mark.parametrize("when", [3, None, "yesterday", "9999-99-99", [], "0001-01-01T00:00:00+23:59"])
def test_a_time_that_is_none_becomes_that_of_the_import(when, run_of, tmp_path):
    each = {"result": [ANSWER], "completed_by": True, "updated_at": when}
    (tmp_path / "f").write_text(json.dumps([task(annotations=[each])]))
    (decision,) = import_file(run_of("pictures"), tmp_path / "f", "label-studio").new
    assert decision.time > "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"labels": []}',
        '{"labels": {"circle/002": 1}}',
        '{"classes": 3, "labels": {}}',
        '{"classes": [3], "labels": {}}',
        labelled({"circle/002": 3}),
        labelled({"circle/002": -1}),
        labelled({"circle/002": True}),
        labelled({"circle/002": 1.5}),
        labelled({"circle/002": [1]}),
        labelled({"circle/002": {"label": {}}}),
    ],
)
def test_wrong_types_in_a_file_of_fiftyone_are_refused(content, run_of, tmp_path):
    refused(run_of("pictures"), tmp_path / "f", "fiftyone", content, "f has|f is no labels.json")


BOMB = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;&b;">]>'
LEAK = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (BOMB + tagged(FIRST, "&c;"), "DOCTYPE"),
        (LEAK + tagged(FIRST, "&b;"), "DOCTYPE"),
        (
            '<?xml version="1.0"?>\n<!DOCTYPE annotations SYSTEM "http://example.com/x.dtd">' + tagged(FIRST, "x"),
            "DOCT",
        ),
        (("<?xml version='1.0' encoding='utf-16'?>" + LEAK + tagged(FIRST, "&b;")).encode("utf-16"), "not UTF-8"),
        (tagged(FIRST, "&b;"), "cannot be read as XML"),
        ("<annotations>" + "<image>" * 100_000, "deep|without a name"),
        ("<annotations>" + "<meta>" * 100_000, "nested more than 40 deep"),
        ("<html></html>", "begins with <html>"),
        ('<annotations><image id="0"><tag label="circle"/></image></annotations>', "image without a name"),
        ('<annotations><image name="a"><tag/></image></annotations>', "tag without a label"),
        (tagged(FIRST, "square").replace("</image>", '<tag label="circle"/></image>'), "one label is right"),
        ("<annotations><image name='a'></annotations>", "cannot be read as XML"),
    ],
    ids=range(12),
)
def test_documents_that_cvat_does_not_write_are_refused_before_anything_is_expanded(content, match, run_of, tmp_path):
    refused(run_of("pictures"), tmp_path / "f", "cvat", content, match)


@pytest.mark.parametrize("to", ["label-studio", "fiftyone", "cvat"])
def test_classes_that_a_tool_cannot_name_are_refused_and_such_ids_left_out(to, tmp_path):
    content = Content(file=tmp_path / "a.png", name="a.png")
    each = Suspect("a.png", "cat", "dog", 0.9, 0.9, content)
    odd = [Suspect(id, "cat", "dog", 0.9, 0.9, content) for id in ("bell\a", "byte\udcff", "\x00")]
    fit, _ = export_files(Suspects("run", ["cat", "dog"], [each, *odd]), to, tmp_path / "out")
    assert [one.id for one in fit] == ["a.png"]
    assert any("3 samples are left out" in note for note in fit.notes)
    for name in ("", "bell\a", "byte\udcff"):
        with pytest.raises(InputError, match="--to csv"):
            export_files(Suspects("run", ["cat", name], [each]), to, tmp_path / "out")


def test_an_export_that_could_not_be_read_back_is_refused(made, tmp_path, monkeypatch):
    monkeypatch.setattr("labelmend.exchange.formats.READ_WHOLE", 1000)
    with pytest.raises(InputError, match="fewer with --top"):
        export_files(find_suspects(made["pictures"]), "csv", tmp_path / "sheet.csv")
    with pytest.raises(InputError, match="unknown format 'cvatt'; did you mean 'cvat'"):
        export_files(find_suspects(made["pictures"]), "cvatt", tmp_path / "sheet.csv")
