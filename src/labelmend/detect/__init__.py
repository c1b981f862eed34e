"""Which labels are wrong: arrays in, a table out. Needs no files, no data sets and no trainer."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .dynamics import judge_ledgers, judge_passes
    from .judge import Judgement, judge_predictions
    from .ledger import Ledger
    from .summary import describe_noise, headline
    from .table import LabelTable

__all__ = [
    "Judgement",
    "LabelTable",
    "Ledger",
    "describe_noise",
    "headline",
    "judge_ledgers",
    "judge_passes",
    "judge_predictions",
]

__getattr__ = lazily(
    __name__,
    {
        "Judgement": "judge",
        "LabelTable": "table",
        "Ledger": "ledger",
        "describe_noise": "summary",
        "headline": "summary",
        "judge_ledgers": "dynamics",
        "judge_passes": "dynamics",
        "judge_predictions": "judge",
    },
)
