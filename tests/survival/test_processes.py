"""Two processes that train together: every sample once, the same mixture on both, and the same end after a kill."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from runs import ONE_THREAD, Run

RANK = Path(__file__).with_name("rank.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


class Pair(Run):
    """A run in two processes."""

    def start(self, place: str = "none", number: int = 0, *more: str) -> subprocess.Popen:
        resume = ["--resume"] if self.described() else []
        command = [*TORCHRUN, str(RANK), str(self.folder.parent), *self.words, *resume, *more]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=ONE_THREAD, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def ranks(self) -> list[int]:
        """Process ids of the two, as far as they are there."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if (
                str(RANK).encode() in words
                and str(self.folder).encode() in words
                and b"torch.distributed.run" not in words
            ):
                found.append(int(path.parent.name))
        return found

    def kill_a_rank(self, seconds: float, which: int) -> float:
        """Kill one of the two after a while; gives how long the other and torchrun took to end."""
        process = self.start()
        time.sleep(seconds)
        ranks = self.ranks()
        if len(ranks) < 2:
            process.communicate(timeout=120)
            return 0.0
        os.kill(sorted(ranks)[which], signal.SIGKILL)
        killed = time.monotonic()
        process.communicate(timeout=120)
        assert process.returncode != 0
        return time.monotonic() - killed


@pytest.fixture
def pair(tmp_path):
    return lambda name, *words: Pair(tmp_path / name, *words)


@pytest.mark.parametrize(
    "words",
    [("--set", "details=paper"), pytest.param(("--method", "elr", "--set", "track_every=1"), marks=pytest.mark.slow)],
)
def test_two_processes_see_every_sample_once_and_agree_to_the_last_bit(words, pair, tmp_path):
    both = pair("both", "--epochs", 2, "--limit", 101, *words)
    code, said = both.finish()
    assert code == 0, said
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    for mine, other in zip(first["written"], second["written"], strict=True):
        assert [a + b for a, b in zip(mine, other, strict=True)] == [1] * 101
    assert first["mixture"] == second["mixture"]
    assert first["ledger"] == second["ledger"]
    assert all(first["ledger"].values())
    assert len((both.folder / "labels.csv").read_text().splitlines()) == 102


def test_two_processes_share_what_each_network_judges_of_what_it_did_not_learn(pair, tmp_path):
    """In the first round three networks judge each sample, in the second one; no process ends inside the group.

    Threads of a group that is still there when Python ends abort the process now and then.
    """
    words = ("--method", "mend", "--net", "linear", "--set", "folds=7")
    code, said = pair("both", "--epochs", 2, "--limit", 101, *words).finish()
    assert code == 0, said
    first, second = (json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in (0, 1))
    passes = zip(first["written"], second["written"], strict=True)
    totals = [[a + b for a, b in zip(*each, strict=True)] for each in passes]
    assert totals == [[3] * 101, [1] * 101]
    assert first["ledger"] == second["ledger"]
    assert [(tmp_path / f"left{rank}").read_text() for rank in (0, 1)] == ["the group"] * 2


@pytest.mark.slow
def test_two_processes_learn_as_well_as_one(pair, run, shown):
    """Same global batch, three seeds, half of the labels redrawn: the mean last accuracy is within a point."""
    means = []
    for make in (run, pair):
        found = []
        for seed in range(3):
            each = make(f"{make.__name__}{len(means)}-{seed}", "--seed", seed)
            code, said = each.finish()
            assert code == 0, said
            found.append(json.loads((each.folder / "run.json").read_text())["summary"]["last_accuracy"])
        means.append(sum(found) / 3)
    what = "one process and two, same global batch, half of the labels of digits redrawn, 3 seeds"
    shown(what, f"last accuracy {means[0]:.3f} and {means[1]:.3f} in the mean")
    assert abs(means[0] - means[1]) <= 0.01


@pytest.mark.slow
def test_twenty_kills_of_a_rank_end_the_job_and_resume_exactly(pair, shown):
    rng, words = random.Random(2), ("--epochs", 12)
    whole = pair("whole", *words)
    started = time.monotonic()
    assert whole.finish()[0] == 0
    seconds, expected, slowest, same = time.monotonic() - started, whole.digest(), 0.0, 0
    for number in range(20):
        cut = pair(f"cut{number}", *words)
        slowest = max(slowest, cut.kill_a_rank(rng.uniform(4, seconds - 2), number % 2))
        assert cut.ranks() == []
        code, said = cut.finish()
        assert code == 0, said
        same += cut.digest() == expected
    seen = f"{same} of 20 byte-identical; the job ended within {slowest:.1f} s, and no process was left"
    shown("one of two processes killed 20 times, resumed", seen)
    assert same == 20
    assert slowest <= 30
