"""Texts as rows of numbers: hashed words, which needs nothing to be learned."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

WIDTH = 256
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class TextEncoder:
    """Words counted in hashed columns, each text brought to length one."""

    width: int = WIDTH

    @classmethod
    def fit(cls, texts: Sequence[str], *, seed: int) -> "TextEncoder":
        """An encoder for texts like these."""
        return cls()

    def transform(self, texts: Sequence[str]) -> Tensor:
        """Rows of numbers, float32 [n, width]."""
        rows = torch.zeros(len(texts), self.width)
        for row, text in zip(rows, texts, strict=True):
            for word in WORD.findall(text.lower()):
                row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % self.width] += 1
        return torch.nn.functional.normalize(rows.log1p(), dim=1)

    def described(self) -> dict[str, Any]:
        """As plain values, for model.json."""
        return {"encoder": "hashed words", "width": self.width}

    def tensors(self) -> dict[str, Tensor]:
        """What is not plain values: nothing."""
        return {}

    @classmethod
    def restored(cls, described: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "TextEncoder":
        """The encoder that `described` and `tensors` came from."""
        return cls(int(described["width"]))
