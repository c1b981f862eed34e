"""CVAT: "CVAT for images 1.1", an XML file with one tag an image; documents with a DOCTYPE are refused unread."""

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError

from ..data.limits import sized
from ..errors import InputError, visible
from .answers import Answer
from .suspects import Suspect, Suspects

DEEPEST = 40
BY_PEOPLE = ("manual", "semi-auto")
"""What CVAT has for the source of a tag that a person set; it has `file` for all that it was given."""
ASSIGNEE = ("annotations", "meta", "task", "assignee", "username")


def write(suspects: Suspects, out: Path, root: str | None = None) -> dict[Path, bytes]:
    """The annotations of a task: its labels, and an image with its suggestion as a tag, if there is one."""
    document = ElementTree.Element("annotations")
    ElementTree.SubElement(document, "version").text = "1.1"
    task = ElementTree.SubElement(ElementTree.SubElement(document, "meta"), "task")
    for name, text in (("name", "labelmend"), ("size", str(len(suspects))), ("mode", "annotation")):
        ElementTree.SubElement(task, name).text = text
    labels = ElementTree.SubElement(task, "labels")
    for name in suspects.class_names:
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = name
        ElementTree.SubElement(label, "type").text = "tag"
        ElementTree.SubElement(label, "attributes")
    for number, each in enumerate(suspects):
        size = _size(each)
        image = ElementTree.SubElement(document, "image", {"id": str(number), "name": each.content.name, **size})
        if each.suggested is not None:
            ElementTree.SubElement(image, "tag", label=each.suggested, source="auto")
    ElementTree.indent(document)
    return {out: ElementTree.tostring(document, encoding="utf-8", xml_declaration=True) + b"\n"}


def _size(suspect: Suspect) -> dict[str, str]:
    """Width and height of an image as its file states them; nothing if it cannot be read."""
    from ..data.kinds import decode

    try:
        header = decode.read_header(decode.read_bytes(suspect.content.file or b"", None))
    except decode.UnusableImageError:
        return {}
    return {"width": str(header.width), "height": str(header.height)}


def read(path: Path) -> list[Answer]:
    """The answers in annotations that CVAT exported: the tag of each image, which the assignee of the task set."""
    content = sized(str(path)).read_bytes()
    if content.startswith(b"PK\x03\x04"):
        raise InputError(f"{path} is a ZIP archive; unpack it, and import the annotations.xml inside")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8, as annotations of CVAT are") from None
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(f"{path} has a DOCTYPE or entities, which annotations of CVAT never have, so it is not read")
    found = _Annotations(path)
    parser = ElementTree.XMLParser(target=found)
    try:
        parser.feed(text)
        parser.close()
    except (ElementTree.ParseError, ExpatError) as error:
        raise InputError(f"{path} cannot be read as XML: {error}") from None
    return found.answers()


class _Annotations:
    """What is read of a document as it is parsed: no tree of it is ever built."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._open = list[str]()
        self._image: str | None = None
        self._tags = dict[str, list[tuple[str, str]]]()
        self._assignee = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        self._open.append(name)
        if len(self._open) > DEEPEST:
            raise InputError(f"{self.path} is nested more than {DEEPEST} deep, as annotations of CVAT never are")
        if len(self._open) == 1 and name != "annotations":
            raise InputError(f"{self.path} has no annotations of CVAT: it begins with <{visible(name):.60}>")
        if self._open[1:] == ["image"]:
            self._image = attributes.get("name")
            if self._image is None:
                raise InputError(f"{self.path} has an image without a name")
        elif self._open[1:] == ["image", "tag"]:
            label = attributes.get("label")
            if label is None:
                raise InputError(f"{self.path} has a tag without a label at {visible(self._image or '')!r:.200}")
            self._tags.setdefault(self._image or "", []).append((label, attributes.get("source", "manual")))

    def data(self, text: str) -> None:
        """Text inside of an element."""
        if tuple(self._open) == ASSIGNEE:
            self._assignee += text

    def end(self, name: str) -> None:
        """An element ends."""
        self._open.pop()

    def close(self) -> None:
        """The document ends."""

    def answers(self) -> list[Answer]:
        """One answer an image: what a person set, else what was there before."""
        found = []
        for name, tags in self._tags.items():
            by_people = {label: source for label, source in tags if source in BY_PEOPLE}
            said = by_people or dict(tags)
            if len(said) > 1:
                first, second, *_ = said
                raise InputError(
                    f"{self.path} has the tags {visible(first)!r:.60} and {visible(second)!r:.60} at "
                    f"{visible(name)!r:.200}, but one label is right; delete the other"
                )
            found += [Answer(name, label, "", self._assignee.strip(), "", by_people != {} or None) for label in said]
        return found
