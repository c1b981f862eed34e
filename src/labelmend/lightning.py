"""labelmend for Lightning: a callback that finds wrong labels, and a loader that tells which samples a batch has.

import labelmend.lightning

mend = labelmend.lightning.TrackerCallback(labelmend.Tracker(labels, classes=10, epochs=20))
trainer = lightning.Trainer(max_epochs=20, callbacks=[mend])
trainer.fit(module, labelmend.lightning.indexed(loader))
mend.tracker.table()
"""

from .faces.lightning import TrackerCallback
from .faces.positions import indexed

__all__ = ["TrackerCallback", "indexed"]
