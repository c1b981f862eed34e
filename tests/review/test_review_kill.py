"""kill -9 of the server while somebody answers: what was acknowledged is in the file, once, and it is readable."""

import http.client
import threading
from collections import Counter

import numpy as np
import pytest
from processes import Client, Command
from review_runs import ids_run

from labelmend.run.decisions import read_decisions

WORDS = ("keep", "bad", "other", "skip")
GONE = (OSError, http.client.HTTPException, ValueError)


def answer_until_killed(run, first: int, after: float) -> tuple[int, set[int]]:
    """Start a server, answer rows from the first on, kill it after so many seconds; gives the row to go on with.

    The row that was not acknowledged is asked again at the next server, as the page does.
    """
    command = Command(run.path)
    client, row, acknowledged = Client(command), first, set[int]()
    killer = threading.Timer(after, command.kill)
    killer.start()
    try:
        while True:
            client.decide(row, WORDS[row % 4])
            acknowledged.add(row)
            row += 1
    except GONE:
        pass
    killer.join()
    client.connection.close()
    return row, acknowledged


def check_killed(run, moments: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    row, acknowledged = 0, set[int]()
    for moment in range(moments):
        row, more = answer_until_killed(run, row, rng.uniform(0.02, 1.0))
        acknowledged |= more
        written = Counter(decision.id for decision in read_decisions(run.decisions)) if run.decisions.exists() else {}
        assert {f"s{each}" for each in acknowledged} <= set(written), f"lost at moment {moment}"
        assert not [id for id, times in written.items() if times > 1], f"doubled at moment {moment}"
        assert len(written) - len(acknowledged) in (0, 1)  # the one that was written and not yet acknowledged
    assert acknowledged == set(range(row))
    said = {decision.id: decision.decision for decision in read_decisions(run.decisions)}
    assert all(said[f"s{each}"] == WORDS[each % 4] for each in acknowledged)
    return f"{len(acknowledged):,} acknowledged answers, {len(said):,} written: 0 lost, 0 doubled"


def test_three_kills_lose_and_double_nothing(tmp_path):
    assert "0 lost" in check_killed(ids_run(tmp_path / "run", 20_000), 3, seed=1)


@pytest.mark.slow
def test_fifty_kills_lose_and_double_nothing(tmp_path, shown):
    seen = check_killed(ids_run(tmp_path / "run", 200_000), 50, seed=2)
    shown("kill -9 of the review server at 50 moments while a client answers as fast as it can", seen)
