"""One of several processes that train together; writes what it saw to rank<N>.json in FOLDER.

torchrun --nproc-per-node 2 rank.py FOLDER WORDS...
"""

import atexit
import json
import os
import sys
from pathlib import Path

import torch
from torch import distributed

from labelmend.__main__ import main
from labelmend.detect.ledger import Ledger
from labelmend.training.trainer import Trainer

folder, *words = sys.argv[1:]
written = []
write, track = Ledger.write, Trainer.track


def counted(self, index, *seen):
    written[-1] += torch.bincount(index, minlength=len(self.losses))
    write(self, index, *seen)


def tracked(self, epoch):
    written.append(torch.zeros(len(self.task), dtype=torch.long))
    track(self, epoch)
    state = {name: values.double().sum().item() for name, values in self.ledgers[0].recorded().items()}
    state |= {name: self.method.get_buffer(name).double().sum().item() for name in self.method.per_sample}
    fitted = self.method.noise_tracker.model.get_extra_state()
    seen = {"written": [counts.tolist() for counts in written], "ledger": state, "mixture": fitted}
    (Path(folder) / f"rank{os.environ['RANK']}.json").write_text(json.dumps(seen))


def at_the_end():
    (Path(folder) / f"left{os.environ['RANK']}").write_text("" if distributed.is_initialized() else "the group")


atexit.register(at_the_end)  # first of all, so that it is called last
Ledger.write, Trainer.track = counted, tracked
sys.argv = ["labelmend", *words]
main()
