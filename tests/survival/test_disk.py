"""A disk that is full, read-only or failing ends a run in one sentence and costs no checkpoint."""

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from faults import SMALL, newest, sentence, train
from runs import ONE_THREAD

from labelmend.training.checkpoint import saved

BEGIN = 4
"""Waits for the disk before a run is under way: run.json, preflight.json, and their names."""
pytestmark = pytest.mark.usefixtures("without_looks")


def waits(monkeypatch, action=lambda: None):
    """Call something before each wait for the disk, of which every file and folder has one."""
    sync = os.fsync

    def waited(descriptor):
        action()
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", waited)


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_fails_at_any_write_costs_no_checkpoint(every, run, labelmend, monkeypatch, shown):
    """Every file and folder that a run puts on the disk in turn, of 4 epochs and of the files that it leaves."""
    seen, whole = [], run("whole", *SMALL)
    with monkeypatch.context() as patch:
        waits(patch, lambda: seen.append(1))
        assert labelmend(*whole.words).returncode == 0
    expected, same = whole.digest(), 0
    for number in range(1, len(seen) + 1, every):
        cut, left = run(f"cut{number}", *SMALL), iter(range(number, 0, -1))

        def full(left=left):
            if next(left, 1) == 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            waits(patch, full)
            ended = labelmend(*cut.words)
        assert "No space left on device" in sentence(ended)
        assert ended.returncode == (2 if number <= BEGIN else 1)
        assert cut.folder.exists() is (number > BEGIN)
        if number > BEGIN:
            newest(cut.folder)
        assert labelmend(*cut.words, *(["--resume"] if number > BEGIN else [])).returncode == 0
        same += cut.digest() == expected
        shutil.rmtree(cut.folder)
    tried = len(range(1, len(seen) + 1, every))
    shown("a disk that is full at each write in turn", f"{same} of {tried} runs byte-identical after `--resume`")
    assert same == tried


@pytest.fixture
def in_namespace(tmp_path):
    """Run a shell script where it may mount what nobody else sees; gives the exit codes that it printed, and errors."""
    (tmp_path / "probe").mkdir()
    tried = [("unshare", "--mount", "--user", "--map-root-user"), ("unshare", "--mount")]
    probe = f"mount -t tmpfs tmpfs {tmp_path}/probe"

    def permitted(words):
        return not subprocess.run([*words, "sh", "-c", probe], capture_output=True).returncode

    words = next((words for words in tried if shutil.which(words[0]) and permitted(words)), None)
    if words is None:
        pytest.skip("mounting is not permitted here, not even in a user namespace")

    def run(script):
        whole = [*words, "sh", "-c", script]
        shown = subprocess.run(whole, env=ONE_THREAD, capture_output=True, text=True, timeout=300)
        return list(map(int, re.findall(r"^code (\d+)$", shown.stdout, re.M))), shown.stderr

    return run


def command(run, *more):
    return shlex.join([sys.executable, "-m", "labelmend", *run.words, *more])


def test_a_full_disk_ends_a_run_in_a_sentence_and_it_goes_on_where_there_is_space(run, labelmend, in_namespace):
    whole, cut, copy = (run(name, *SMALL) for name in ("whole", "cut", "copy"))
    assert labelmend(*whole.words).returncode == 0
    one = sum(-(-path.stat().st_size // 4096) * 4 for path in saved(whole.folder / "checkpoints")[0].iterdir())
    cut.folder.mkdir()
    codes, shown = in_namespace(f"""
        mount -t tmpfs -o size={one * 5 // 2 + 40}k tmpfs {cut.folder}
        {command(cut)} >/dev/null; echo code $?
        cp -r {cut.folder} {copy.folder}""")
    assert codes == [1], shown
    assert "Traceback" not in shown
    assert re.search(r"^labelmend: No space left on device: .*; the last good checkpoint is kept", shown, re.M)
    assert newest(copy.folder) == "epoch-00002-step-0000000"
    assert labelmend(*copy.words, "--resume").returncode == 0
    assert copy.digest() == whole.digest()


@pytest.mark.slow
def test_a_disk_that_becomes_read_only_ends_a_run_in_a_sentence_and_it_goes_on_later(run, config, in_namespace):
    cut, locked = run("cut", *SMALL, "--epochs", 40), run("locked").folder
    cut.folder.mkdir()
    locked.mkdir()
    codes, shown = in_namespace(f"""
        mount --bind {cut.folder} {locked} && mount -o remount,bind,ro {locked}
        {command(cut)} >/dev/null & train=$!
        until ls {cut.folder}/checkpoints/epoch-* >/dev/null 2>&1; do sleep 0.05; done
        mount --bind {locked} {cut.folder}
        wait $train; echo code $?
        {command(cut, "--resume")} >/dev/null; echo code $?""")
    assert codes == [1, 2], shown
    assert "Traceback" not in shown
    ended, refused = re.findall(r"^labelmend: .*$", shown, re.M)
    assert "Read-only file system" in ended
    assert refused == f"labelmend: cannot write to {cut.folder}: Read-only file system; choose another --out"
    assert newest(cut.folder) is not None
    train(config("cut", epochs=40, resume=True))
    train(config("whole", epochs=40))
    assert cut.digest() == run("whole").digest()


@pytest.mark.parametrize(("mode", "what"), [(0o500, "write to"), pytest.param(0o000, "use", marks=pytest.mark.slow)])
def test_a_folder_that_cannot_be_written_is_refused_before_training(mode, what, run):
    """Root writes anywhere, unless it lets go of that right."""
    words = []
    if os.geteuid() == 0:
        words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        if not shutil.which("setpriv") or subprocess.run([*words, "true"], capture_output=True).returncode:
            pytest.skip("root may write anywhere, and setpriv is not there to stop it")
    cut = run("locked/run", *SMALL)
    cut.folder.parent.mkdir(mode=mode)
    script = shlex.join([*words, sys.executable, "-m", "labelmend", *cut.words])
    ended = subprocess.run(["sh", "-c", script], env=ONE_THREAD, capture_output=True, text=True)
    assert ended.returncode == 2
    assert sentence(ended) == f"labelmend: cannot {what} {cut.folder}: Permission denied; choose another --out"
