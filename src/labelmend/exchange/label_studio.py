"""Label Studio: tasks with predictions and the labelling configuration they need; and its JSON and JSON_MIN exports."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from ..data.noise import read_json
from ..errors import InputError
from ..files import to_json
from ..run.standing import BAD, OTHER
from .answers import Answer, read_time
from .suspects import Content, Suspect, Suspects

LOCAL_FILES = "/data/local-files/?d="
"""How Label Studio addresses files below LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT."""
SAMPLE, ANSWER, PROBLEM = "sample", "answer", "problem"
"""Names of the object that is labelled and of the two questions about it, in configuration and results."""
PROBLEMS = {"none of these classes": OTHER, "bad sample": BAD}
ID = "sample_id"
"""Not `id`, which JSON_MIN has for the number of the task."""
SIGNATURES = {b"\x89PNG": "png", b"\xff\xd8": "jpeg"}


def write(suspects: Suspects, out: Path, root: str | None = None) -> dict[Path, bytes]:
    """The tasks, and the labelling configuration beside them as XML.

    `root` stands before the paths of image files; by default it is the address of a local storage of Label Studio. That
    must be a folder below the document root, so it is the data set, below the folder that it is in.
    """
    if out.suffix.lower() == ".xml":
        raise InputError(f"--out {out} takes the tasks, as JSON; the configuration is written beside them as XML")
    folder = "" if suspects.folder is None else f"{quote(suspects.folder.name)}/"
    prefix = LOCAL_FILES + folder if root is None else root
    tasks = [_task(each, prefix) for each in suspects]
    kinds = {kind for task in tasks for kind in ("image", "text", "fields") if kind in task["data"]}
    kind = "image" if "image" in kinds else "text" if "text" in kinds else "fields"
    tasks = [task if kind in task["data"] else _filled(task, kind) for task in tasks]
    return {out: to_json(tasks), out.with_suffix(".xml"): configuration(suspects.class_names, kind)}


def advice(suspects: Suspects) -> str | None:
    """How Label Studio is told to show the image files; None if there are none."""
    if suspects.folder is None:
        return None
    return (
        "to see the images, start Label Studio with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and "
        f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={suspects.folder.parent}, and add {suspects.folder} to the project "
        "as a local storage"
    )


def configuration(class_names: Iterable[str], kind: str) -> bytes:
    """The labelling configuration of a project: what is shown (image, text or fields), and what is asked about it."""
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Header", value="given: $given, suggested: $suggested", size="5")
    shown = {"image": "Image", "text": "Text", "fields": "Table"}[kind]
    ElementTree.SubElement(view, shown, name=SAMPLE, value=f"${kind}")
    for name, values in ((ANSWER, class_names), (PROBLEM, PROBLEMS)):
        asked = ElementTree.SubElement(view, "Choices", name=name, toName=SAMPLE, choice="single", showInline="true")
        for value in values:
            ElementTree.SubElement(asked, "Choice", value=value)
    ElementTree.indent(view)
    content: bytes = ElementTree.tostring(view, encoding="utf-8")
    return content + b"\n"


def read(path: Path) -> list[Answer]:
    """The answers in a file that Label Studio exported as JSON or JSON_MIN: the newest one of each annotator a task."""
    tasks = read_json(str(path))
    if not isinstance(tasks, list):
        raise InputError(
            f"{path} is no export of Label Studio: a list of tasks is expected; export as JSON or JSON-MIN"
        )
    found = list[Answer]()
    for number, task in enumerate(tasks, 1):
        where = f"{path}, task {number}"
        if not isinstance(task, dict):
            raise InputError(f"{where} is not an object, as the tasks of Label Studio are")
        found += _minimal(task, where) if "annotations" not in task else _annotated(task, where)
    newest = dict[tuple[str, str], Answer]()
    for each in found:
        if (each.name, each.reviewer) not in newest or each.time >= newest[each.name, each.reviewer].time:
            newest[each.name, each.reviewer] = each
    return sorted(newest.values(), key=lambda each: each.time)


def _task(suspect: Suspect, prefix: str) -> dict[str, Any]:
    data = {
        ID: suspect.id,
        **_data(suspect.content, prefix),
        "given": suspect.given,
        "suggested": suspect.suggested or "",
        "noisy_probability": f"{suspect.noisy_probability:.3f}",
    }
    if suspect.suggested is None:
        return {"data": data, "predictions": []}
    value = {"choices": [suspect.suggested]}
    result = {"from_name": ANSWER, "to_name": SAMPLE, "type": "choices", "value": value}
    prediction = {"model_version": "labelmend", "score": suspect.confidence, "result": [result]}
    return {"data": data, "predictions": [prediction]}


def _data(content: Content, prefix: str) -> dict[str, Any]:
    if content.file is not None:
        return {"image": prefix + quote(content.name)}
    if content.picture is not None:
        kind = next((kind for start, kind in SIGNATURES.items() if content.picture.startswith(start)), "png")
        return {"image": f"data:image/{kind};base64,{base64.b64encode(content.picture).decode()}"}
    if content.text is not None:
        return {"text": content.text.encode(errors="replace").decode()}
    return {"fields": {name: value.encode(errors="replace").decode() for name, value in (content.fields or {}).items()}}


def _filled(task: dict[str, Any], kind: str) -> dict[str, Any]:
    """A task whose sample could not be shown as the others are: it needs the key, and has nothing to show."""
    return task | {"data": task["data"] | {kind: ""}}


def _annotated(task: Mapping[str, Any], where: str) -> Iterator[Answer]:
    """Answers of a task of the JSON export."""
    annotations, data = task["annotations"], task.get("data")
    if not isinstance(annotations, list) or not all(isinstance(each, dict) for each in annotations):
        raise InputError(f"{where} has annotations that are no list of objects, as Label Studio writes them")
    for each in annotations:
        answer = None if each.get("was_cancelled") else _answer(each.get("result"), where)
        if answer is not None:
            yield Answer(_id(data, where), *answer, _annotator(each.get("completed_by")), _time(each))


def _answer(result: Any, where: str) -> tuple[str, str] | None:
    """Class and word of a decision in the result of an annotation; None if it holds no answer."""
    if not isinstance(result, list) or not all(isinstance(each, dict) for each in result):
        raise InputError(f"{where} has an annotation whose result is no list of objects, as Label Studio writes it")
    said = {True: list[str](), False: list[str]()}
    for each in result:
        value = each.get("value")
        if each.get("type", "choices") == "choices" and isinstance(value, dict) and "choices" in value:
            said[each.get("from_name") == PROBLEM] += _choices(value["choices"], where)
    return _said(said[False], said[True], where)


def _minimal(task: Mapping[str, Any], where: str) -> list[Answer]:
    """The answer of an entry of the JSON_MIN export, which has data and results side by side."""
    labels, problems = ([] if task.get(name) is None else _choices(task[name], where) for name in (ANSWER, PROBLEM))
    said = _said(labels, problems, where)
    if said is None:
        return []
    return [Answer(_id(task, where), *said, _annotator(task.get("annotator")), _time(task))]


def _choices(value: Any, where: str) -> list[str]:
    value = value.get("choices") if isinstance(value, dict) else value
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InputError(f"{where} has choices that are no texts, as Label Studio writes them")
    return [each for each in values if each]


def _said(labels: list[str], problems: list[str], where: str) -> tuple[str, str] | None:
    for each in (labels, problems):
        if len(each) > 1:
            raise InputError(f"{where} has the answers {each[0]!r:.60} and {each[1]!r:.60}, but one label is right")
    if problems:
        if problems[0] not in PROBLEMS:
            raise InputError(f"{where} has the problem {problems[0]!r:.60}, which is none of {', '.join(PROBLEMS)}")
        return "", PROBLEMS[problems[0]]
    return (labels[0], "") if labels else None


def _id(data: Any, where: str) -> str:
    found = data.get(ID) if isinstance(data, dict) else None
    if not isinstance(found, str):
        raise InputError(f"{where} has no {ID!r} in its data; were these tasks made by labelmend export?")
    return found


def _time(about: Mapping[str, Any]) -> str:
    return read_time(about.get("updated_at")) or read_time(about.get("created_at"))


def _annotator(value: Any) -> str:
    """Who answered: the e-mail address where the export has it, else the number that Label Studio gave."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    if isinstance(value, str):
        return value
    return f"label-studio-{value}" if type(value) is int else ""
