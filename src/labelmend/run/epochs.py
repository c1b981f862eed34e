"""epochs.jsonl: one line of JSON for each epoch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_atomic


def read_epochs(path: Path) -> list[dict[str, Any]]:
    """The recorded epochs, in order. Version 0.1 recorded the mixture of losses, and not which mixture decided."""
    if not path.is_file():
        return []
    try:
        records = [json.loads(line) for line in path.read_text().splitlines() if line]
        return [{**record, "decided_by": record.get("decided_by", "losses")} for record in records]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


def append_epoch(path: Path, record: Mapping[str, Any]) -> None:
    """Add the record of an epoch; records of this and later epochs, from before an interruption, are replaced."""
    kept = [line for line in read_epochs(path) if line["epoch"] < record["epoch"]]
    lines = (json.dumps(line, allow_nan=False) for line in [*kept, dict(record)])
    write_atomic(path, "".join(f"{line}\n" for line in lines).encode())
