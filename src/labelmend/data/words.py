"""Which words of a text speak for one class and against another, where that is linear in the words and their pieces."""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .text import WORD, TextEncoder, pieces_of, plain_text

MOST_MARKED = 8
LEAST_SHARE = 0.25
"""Words that speak less than this share of the loudest are not marked."""
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
UNIT = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
"""What is marked as a whole: a word, or a character of a script that is written without spaces."""
Span = tuple[int, int]


def loudest_words(encoder: TextEncoder, text: str, direction: NDArray[np.float32], *, within: int) -> list[Span]:
    """Begin and end of the words that move a text's row most along a direction [columns], in the composed text.

    Only the first `within` characters of the text are looked at. Words that follow each other are one span.
    """
    score = np.cumsum(np.concatenate([[0.0], character_scores(encoder, text, direction)]))
    units = [unit.span() for unit in UNIT.finditer(plain_text(text)[:within])]
    spoken = {(begin, end): float(score[end] - score[begin]) for begin, end in units}
    loudest = sorted((span for span in units if spoken[span] > 0), key=spoken.__getitem__, reverse=True)[:MOST_MARKED]
    chosen = sorted(span for span in loudest if spoken[span] >= LEAST_SHARE * spoken[loudest[0]])
    found: list[Span] = []
    for begin, end in chosen:
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def character_scores(encoder: TextEncoder, text: str, direction: NDArray[np.float32]) -> NDArray[np.float64]:
    """How far each character moves the row of a text along a direction; their sum is the row times the direction.

    What a word or piece contributes is spread evenly over its occurrences and their characters.
    """
    plain, row = plain_text(text), encoder.weighted([text])
    moves = row.data * (encoder.components[:, row.indices].float().numpy().T @ direction)
    by_column = dict(zip(row.indices.tolist(), moves.tolist(), strict=True))
    places = [place for place in _occurrences(plain) if place[0] in encoder.columns]
    counts = Counter(term for term, _, _ in places)
    scores = np.zeros(len(plain))
    for term, begin, end in places:
        scores[begin:end] += by_column[encoder.columns[term]] / counts[term] / (end - begin)
    return scores


def _occurrences(plain: str) -> Iterator[tuple[tuple[str, bool], int, int]]:
    """Every word and piece of a text, with whether it is a piece, and where it begins and ends in it."""
    for word in WORD.finditer(plain):
        yield (word[0], False), *word.span()
    for run in re.finditer(r"\S+", plain):
        for start, piece in pieces_of(run[0]):
            begin = run.start() + start
            yield (piece, True), max(begin, run.start()), min(begin + len(piece), run.end())
