"""Sentence embeddings: frozen pretrained encoders of texts, by the library sentence-transformers where it is installed.

`sentence-transformers:NAME` is what the library has under this name, or a folder with such a model. Nothing is loaded
over the network where the environment variable HF_HUB_OFFLINE says so, and of a folder nothing ever is.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError

SENTENCES = "sentence-transformers:"
"""Before the name or folder of a model, this makes the name of its features."""
LIBRARY = "sentence_transformers"
AT_ONCE = 64
LONGEST = 20_000
"""Characters of a text that are given to the encoder, which takes some hundreds of words of them."""


@dataclass(frozen=True, eq=False)
class SentenceEncoder:
    """A frozen encoder of texts: a list of n texts to features [n, width]; `identity` tells its weights apart."""

    name: str
    identity: str
    model: Any
    batch: int = AT_ONCE

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str], *, mirrored: bool = False) -> Tensor:
        """Features, float32; a text has no mirror image."""
        clipped = [text[:LONGEST] for text in texts]
        found: Tensor = self.model.encode(
            clipped, batch_size=self.batch, convert_to_tensor=True, show_progress_bar=False
        )
        return found.float().cpu()

    def to(self, device: torch.device | str) -> "SentenceEncoder":
        """The same, computing on this device."""
        self.model.to(device)
        return self


@lru_cache(maxsize=2)
def find_sentence_encoder(name: str) -> SentenceEncoder:
    """The encoder of this name with its pretrained weights; InputError if there is none, or not the library."""
    short = name.removeprefix(SENTENCES)
    is_folder = short != "" and Path(short).is_dir()
    if not is_folder and not re.fullmatch(r"\w[\w.-]*(/\w[\w.-]*)?", short):
        raise InputError(f"{short!r:.100} is no folder, and no name of a model")
    library = _imported(name)
    offline = is_folder or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    try:
        model = library.SentenceTransformer(
            short,
            device="cpu",
            local_files_only=offline,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},  # other weights are pickles
        )
    except Exception as error:  # the library raises errors of many others for unknown names and failed downloads
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        hint = "; nothing is downloaded, because HF_HUB_OFFLINE is set" if offline and not is_folder else ""
        raise InputError(f"sentence-transformers cannot load {short!r:.200}: {reason}{hint}") from None
    model.eval().requires_grad_(False)
    return SentenceEncoder(name, _identity(short if not is_folder else Path(short).name, model), model)


def _identity(short: str, model: Any) -> str:
    """The name with a digest of the weights, so that other weights of the same name are told apart."""
    bare = [value.detach().cpu().reshape(-1).contiguous().view(torch.uint8) for value in model.state_dict().values()]
    digests = sorted(hashlib.sha256(value.numpy().data).digest() for value in bare)
    return f"{SENTENCES}{short}@{hashlib.sha256(b''.join(digests)).hexdigest()[:16]}"


def _imported(name: str) -> Any:
    try:
        return __import__(LIBRARY)
    except (ImportError, RuntimeError) as error:  # a torchvision that does not fit torch raises RuntimeError
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{name:.200} needs sentence-transformers, which cannot be imported ({reason}); "
            "pip install 'labelmend[text]'"
        ) from None
