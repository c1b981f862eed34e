"""Texts as rows of numbers, without a pretrained network: words and pieces of words, weighted and reduced.

TF-IDF of words and of n-grams of characters inside words (scikit-learn), brought to few columns by a truncated singular
value decomposition. Pieces carry what words cannot: endings, misspellings, punctuation, and languages that are written
without spaces. The columns are those of the decomposition, the strongest first, and should keep their relative scales:
standardised, the many weak ones would drown the few strong ones.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..core import generator
from ..errors import InputError

COLUMNS = 256
MOST_WORDS, MOST_PIECES = 10_000, 30_000
SHORTEST_PIECE, LONGEST_PIECE = 2, 5
LEAST_TEXTS = 2
"""Texts that a word or piece must occur in to be known, if any does."""
LONGEST = 20_000
"""Characters of a text that are looked at."""
MOST_CHARACTERS = 4_000_000
"""Characters that words, pieces and columns are found in; of a larger set, as many texts at random as hold them."""
AT_ONCE = 2_000
ROUNDS = 2
"""Power iterations of the decomposition, each of which takes about as long as the rest of it."""
WORD = re.compile(r"\w+")
NUMBER = re.compile(r"\d{5,}")
"""Numbers that rather name one thing, such as an order or a telephone, than mean something."""


class TextEncoder:
    """Texts to rows, by what the texts that it was fitted to have in common.

    `vocabulary` are the known words and pieces, `idf` [terms] weighs them, words first, and `components` [columns,
    terms] reduce them; these are of half precision, as they are stored, so that a restored encoder gives the same rows.
    """

    def __init__(self, vocabulary: "tuple[Sequence[str], Sequence[str]]", idf: Tensor, components: Tensor) -> None:
        self.vocabulary = vocabulary
        self.idf = idf
        self.components = components.half()
        words, pieces = vocabulary
        weights = idf.double().numpy()
        self._weighers = [
            _weigher(kind, terms, weights[start : start + len(terms)])
            for kind, terms, start in (("word", words, 0), ("char_wb", pieces, len(words)))
            if terms
        ]
        self._reducing = np.ascontiguousarray(self.components.float().numpy().T)

    @classmethod
    def fit(cls, texts: Sequence[str], *, seed: int) -> "TextEncoder":
        """An encoder of what these texts have in common; InputError if there is not one word in them."""
        chosen = _sampled(texts, seed)
        found = [_fitted(kind, chosen, most) for kind, most in (("word", MOST_WORDS), ("char_wb", MOST_PIECES))]
        vocabulary = tuple([] if each is None else each.get_feature_names_out().tolist() for each in found)
        if not any(vocabulary):
            raise InputError(f"not one of the {len(texts):,} texts holds a word; are they in another column?")
        idf = torch.from_numpy(np.concatenate([each.idf_ for each in found if each is not None])).float()
        unreduced = cls((vocabulary[0], vocabulary[1]), idf, torch.zeros(0, len(idf)))
        components = strongest_directions(unreduced.weighted(chosen), generator(seed, "text columns"))
        return cls(unreduced.vocabulary, idf, components)

    def transform(self, texts: Sequence[str]) -> Tensor:
        """Rows of these texts, float32 [n, columns]."""
        blocks = [texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)]
        rows = [np.asarray(self.weighted(block) @ self._reducing, dtype=np.float32) for block in blocks]
        return torch.from_numpy(np.concatenate([np.zeros((0, self.width), dtype=np.float32), *rows]))

    def weighted(self, texts: Sequence[str]) -> Any:
        """TF-IDF of words and pieces, a sparse matrix [n, terms]; each of the two halves of a row has length 1."""
        from scipy.sparse import hstack

        return hstack([weigher.transform(texts) for weigher in self._weighers], format="csr", dtype=np.float32)

    @cached_property
    def columns(self) -> dict[tuple[str, bool], int]:
        """Where in a row of TF-IDF each term is; it is a word, or with True a piece."""
        words, pieces = self.vocabulary
        terms = [*((word, False) for word in words), *((piece, True) for piece in pieces)]
        return {term: column for column, term in enumerate(terms)}

    @property
    def width(self) -> int:
        """Columns of a row."""
        return len(self.components)

    @property
    def name(self) -> str:
        """What it is, in words."""
        return "words and pieces of words"

    @property
    def identity(self) -> str:
        """What tells fitted encoders apart, if it is not the last digits of their columns."""
        digest = hashlib.sha256("\0".join([*self.vocabulary[0], "", *self.vocabulary[1]]).encode())
        digest.update(self.idf.numpy().tobytes())
        return f"text@{digest.hexdigest()[:16]}"

    def described(self) -> dict[str, Any]:
        """What JSON can hold of it: the words and pieces."""
        return {"version": 1, "words": list(self.vocabulary[0]), "pieces": list(self.vocabulary[1])}

    def tensors(self) -> dict[str, Tensor]:
        """The rest of it."""
        return {"idf": self.idf, "components": self.components}

    @classmethod
    def restored(cls, described: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "TextEncoder":
        """The encoder that was described; ValueError if the parts do not fit each other."""
        words, pieces = ([str(term) for term in described[key]] for key in ("words", "pieces"))
        idf, components = tensors["idf"].float(), tensors["components"]
        terms = len(words) + len(pieces)
        fits = tuple(idf.shape) == (terms,) and components.dim() == 2 and components.shape[1] == terms > 0
        distinct = len(set(words)) == len(words) and len(set(pieces)) == len(pieces)
        small = len(words) <= MOST_WORDS and len(pieces) <= MOST_PIECES and len(components) <= COLUMNS
        if described.get("version") != 1 or not (fits and distinct and small):
            raise ValueError("its words do not fit their weights")
        if not (bool(idf.isfinite().all()) and bool(components.isfinite().all())):
            raise ValueError("weights of its words are not finite")
        return cls((words, pieces), idf, components)


def composed(text: str) -> str:
    """The beginning of a text that is looked at, in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", text[:LONGEST])


def plain_text(text: str) -> str:
    """A text as it is compared: without case and accents of Latin letters, and long numbers by their length only.

    It has as many characters as `composed`, so that places in one are places in the other. Accents of other scripts
    stay, because they make other letters there.

    >>> plain_text("Café No. 4, order 20231177"), plain_text("がぎ й")
    ('cafe no. 4, order 00000000', 'がぎ й')
    """
    found = composed(text).translate(_PLAIN)
    return NUMBER.sub(lambda number: "0" * len(number[0]), found)


class _Plain(dict[int, str]):
    """For each character one in its place."""

    def __missing__(self, code: int) -> str:
        char = unicodedata.normalize("NFKC", chr(code))
        char = char if len(char) == 1 else chr(code)
        lower = char.lower()
        char = lower if len(lower) == 1 else char
        base = unicodedata.normalize("NFD", char)[0]
        self[code] = base if base.isascii() and base.isalpha() else char
        return self[code]


_PLAIN = _Plain()


def pieces_of(word: str) -> Iterator[tuple[int, str]]:
    """Pieces of a word with a space before and after it, each with where in the word it starts, -1 being the space.

    They are those of scikit-learn's analyzer `char_wb`: a word shorter than a piece gives itself once.
    """
    padded = f" {word} "
    for length in range(SHORTEST_PIECE, LONGEST_PIECE + 1):
        for start in range(max(1, len(padded) - length + 1)):
            yield start - 1, padded[start : start + length]
        if len(padded) <= length:
            return


def _sampled(texts: Sequence[str], seed: int) -> list[str]:
    """All texts or, of more than can be taken, some at random, in their order."""
    order = torch.randperm(len(texts), generator=generator(seed, "texts")).tolist()
    chosen, characters = list[int](), 0
    for row in order:
        characters += min(len(texts[row]), LONGEST)
        if characters > MOST_CHARACTERS and chosen:
            break
        chosen.append(row)
    return [texts[row] for row in sorted(chosen)]


def strongest_directions(weighted: Any, rng: torch.Generator) -> Tensor:
    """The strongest directions of a sparse matrix [n, terms], [columns, terms]; if terms are few, each for itself."""
    from sklearn.decomposition import TruncatedSVD

    texts, terms = weighted.shape
    if terms <= COLUMNS:
        return torch.eye(terms)
    if texts <= COLUMNS:
        found = np.linalg.svd(weighted.toarray(), full_matrices=False)[2]
    else:
        reduction = TruncatedSVD(COLUMNS, n_iter=ROUNDS, random_state=int(torch.randint(2**31, (), generator=rng)))
        with np.errstate(divide="ignore", invalid="ignore"):  # shares of a variance that texts may not have
            found = reduction.fit(weighted).components_
    return torch.from_numpy(np.ascontiguousarray(found))


def _fitted(kind: str, texts: Sequence[str], most: int) -> Any:
    """A fitted vectorizer; None if the texts have no terms of this kind."""
    for least in (LEAST_TEXTS, 1):
        if least <= len(texts):
            try:
                return _vectorizer(kind, min_df=least, max_features=most).fit(texts)
            except ValueError:  # an empty vocabulary
                continue
    return None


def _weigher(kind: str, terms: Sequence[str], idf: NDArray[np.float64]) -> Any:
    vectorizer = _vectorizer(kind, vocabulary={term: column for column, term in enumerate(terms)})
    vectorizer.idf_ = idf
    return vectorizer


def _vectorizer(kind: str, **options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    shape = {"token_pattern": WORD.pattern} if kind == "word" else {"ngram_range": (SHORTEST_PIECE, LONGEST_PIECE)}
    return TfidfVectorizer(analyzer=kind, preprocessor=plain_text, sublinear_tf=True, **shape, **options)
