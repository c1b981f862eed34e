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
    row = encoder.weighted([text])
    moves = row.data * (encoder.components[:, row.indices].float().numpy().T @ direction)
    places = list(_occurrences(plain_text(text)))
    counts = Counter(term for term, _, _ in places)
    words, pieces = ({term: column for column, term in enumerate(terms)} for terms in encoder.vocabulary)
    columns = {(False, term): column for term, column in words.items() if (False, term) in counts}
    columns |= {(True, term): len(words) + column for term, column in pieces.items() if (True, term) in counts}
    by_column = dict(zip(row.indices.tolist(), moves.tolist(), strict=True))
    scores = np.zeros(len(plain_text(text)))
    for term, begin, end in places:
        if term in columns:
            scores[begin:end] += by_column[columns[term]] / counts[term] / (end - begin)
    return scores


def _occurrences(plain: str) -> Iterator[tuple[tuple[bool, str], int, int]]:
    """Every word and piece of a text, with whether it is a piece, and where it begins and ends in it."""
    for word in WORD.finditer(plain):
        yield (False, word[0]), *word.span()
    for run in re.finditer(r"\S+", plain):
        for start, piece in pieces_of(run[0]):
            yield (True, piece), max(run.start() + start, run.start()), min(run.start() + start + len(piece), run.end())
