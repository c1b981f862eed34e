"""Makes label-studio-export.json and label-studio-min.json: real exports of a Label Studio that runs on this machine.

    LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN=true label-studio start --no-browser --port 8123 \
        --username ann@example.com --password local-only-1 --user-token 0123456789abcdef0123456789abcdef01234567
    python tests/exchange/label_studio_export.py

Label Studio 1.23.2 made those that are here. Of the tasks in their order, the first is answered by the given label, the
second by another class, the third is a bad sample, the fourth is cancelled, the fifth is answered twice (by another
class and then by the given label), and the sixth is not answered; and so on.
"""

import json
import tempfile
import urllib.request
from pathlib import Path

from exchanged import CLASSES, STRANGE, ids_run

from labelmend.exchange.formats import export_files
from labelmend.exchange.suspects import find_suspects

SERVER, TOKEN = "http://127.0.0.1:8123/api", "0123456789abcdef0123456789abcdef01234567"
EVERY = ("relabel", "look", "keep")


def ask(method, path, value=None):
    headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(f"{SERVER}/{path}", body, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


def results(place, given):
    """What is sent as annotations of a task: results, and whether they are cancelled."""

    def choice(name, value):
        return [{"from_name": name, "to_name": "sample", "type": "choices", "value": {"choices": [value]}}]

    other = choice("answer", next(name for name in CLASSES if name != given))
    right, bad = choice("answer", given), choice("problem", "bad sample")
    return ([(right, False)], [(other, False)], [(bad, False)], [(right, True)], [(other, False), (right, False)], [])[
        place % 6
    ]


def main():
    folder = Path(tempfile.mkdtemp())
    run = ids_run(folder / "run", ids=STRANGE, count=len(STRANGE), classes=CLASSES)
    _, files = export_files(find_suspects(run, verdicts=EVERY), "label-studio", folder / "tasks.json")
    tasks, config = files.values()
    project = ask("POST", "projects/", {"title": "labelmend", "label_config": config.decode()})["id"]
    ask("POST", f"projects/{project}/import", json.loads(tasks))
    stored = ask("GET", f"tasks/?project={project}&fields=all&page_size=100")["tasks"]
    for place, task in enumerate(sorted(stored, key=lambda task: task["id"])):
        for result, cancelled in results(place, task["data"]["given"]):
            ask("POST", f"tasks/{task['id']}/annotations/", {"result": result, "was_cancelled": cancelled})
    for kind, name in (("JSON&download_all_tasks=true", "export"), ("JSON_MIN", "min")):
        content = ask("GET", f"projects/{project}/export?exportType={kind}")
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (Path(__file__).parent / f"label-studio-{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
