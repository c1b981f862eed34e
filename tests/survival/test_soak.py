"""A long run takes no more memory and files than a short one."""

import os
from pathlib import Path

import pytest
from faults import train

from labelmend.training.observer import Observer

pytestmark = pytest.mark.usefixtures("without_looks")


class Meter(Observer):
    """Resident memory and open files after some epochs."""

    def __init__(self, *epochs):
        self.epochs, self.memory, self.files = epochs, [], []

    def epoch(self, record):
        if record["epoch"] in self.epochs:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
            self.files.append(len(os.listdir("/proc/self/fd")))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_five_hundred_epochs_take_no_more_memory_and_files_than_fifty(config, shown):
    meter = Meter(50, 500)
    train(config("soak", epochs=500, net="convnet"), observer=meter)
    (early, late), (few, many) = meter.memory, meter.files
    seen = f"memory {late / early - 1:+.1%} of {early >> 20} MB, open files {many - few:+d}"
    shown("500 epochs in one process, since the fiftieth", seen)
    assert late <= 1.02 * early
    assert many <= few
