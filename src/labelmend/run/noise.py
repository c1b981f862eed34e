"""noise.json: the estimate of the noise in the whole data set, as `detect.summary.describe_noise` gives it."""

import json
from collections.abc import Mapping
from typing import Any

from ..detect.summary import NoiseSummary
from ..errors import InputError
from ..files import to_json, write_atomic
from .directory import RunDirectory

LARGEST = 256 << 20


def write_noise(run: RunDirectory, described: Mapping[str, Any]) -> None:
    """Write noise.json."""
    write_atomic(run.noise_json, to_json(dict(described)))


def read_noise(run: RunDirectory) -> NoiseSummary:
    """The content of noise.json."""
    path = run.noise_json
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise InputError(f"{path} is missing or larger than any that labelmend writes; make the run anew")
    return NoiseSummary(json.loads(path.read_bytes()))
