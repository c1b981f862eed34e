"""Several processes

`torchrun` starts as many processes as there are GPUs; each sees its part of every batch, and one run directory comes
of it. Here there are two processes on a CPU, on scikit-learn's digits, half of whose labels are redrawn at random.
"""

import subprocess
import sys

import labelmend as lm

launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "labelmend"]
words = ["train", "digits", "--noise", "symmetric:0.5", "--epochs", "12", "--threads", "1", "--out", "runs/digits"]
subprocess.run([sys.executable, *launch, *words], check=True, capture_output=True)

run = lm.load("runs/digits")
print(run.summary())
labels = run.labels
flagged, wrong = labels["verdict"] != "keep", labels["given"] != labels["truth"]
print(f"{len(labels)} samples, each once")
print(f"{(flagged & wrong).sum()} of the {wrong.sum()} wrong labels are among the {flagged.sum()} flagged ones")
