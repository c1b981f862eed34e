"""labelmend for Hugging Face: `track(trainer)` lets a `transformers.Trainer` find wrong labels.

import labelmend.hf

tracker = labelmend.hf.track(trainer)  # any Trainer of a classifier, before trainer.train()
trainer.train()
tracker.table()
"""

from .faces.hf import track

__all__ = ["track"]
