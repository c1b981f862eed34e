"""One of the processes of a tracked Trainer: torchrun --nproc-per-node 2 hf_rank.py FOLDER."""

import os
import sys
from pathlib import Path

import numpy as np
from test_hf import examples, make

import labelmend.hf

if __name__ == "__main__":
    folder, rank = Path(sys.argv[1]), os.environ["RANK"]
    trainer = make(folder / f"trainer-{rank}", examples(samples=61)[0], epochs=3)
    tracker = labelmend.hf.track(trainer)
    trainer.train()
    table = tracker.table()
    counts = tracker.ledger.counts.cpu().numpy()
    np.savez(folder / f"{rank}.npz", probability=table["noisy_probability"], counts=counts)
