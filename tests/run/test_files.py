"""Files that are written completely or not at all, and one owner of a run directory at a time."""

import os

import pytest

from labelmend.errors import InputError
from labelmend.files import atomic, is_inside, write_atomic
from labelmend.run.lock import owned


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path):
    path = tmp_path / "labels.csv"
    write_atomic(path, b"old")

    def fill_the_disk():
        with atomic(path) as temporary:
            temporary.write_bytes(b"ne")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fill_the_disk()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_processes_that_write_one_file_at_once_do_not_disturb_each_other(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    with atomic(path) as first:
        first.write_bytes(b"one")
        monkeypatch.setattr("os.getpid", lambda: 1)
        write_atomic(path, b"two")
        assert path.read_bytes() == b"two"
    assert path.read_bytes() == b"one"
    assert [each.name for each in tmp_path.iterdir()] == ["table.csv"]


def test_inside_means_after_links_and_dots(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to(tmp_path)
    assert is_inside(tmp_path / "root" / "a" / ".." / "b", tmp_path / "root")
    for path in ("root/../b", "root/out/b", "rooted/b"):
        assert not is_inside(tmp_path / path, tmp_path / "root")


def test_a_second_owner_is_refused_by_the_name_of_the_first(tmp_path):
    for _ in range(2):  # and an owner that has let go is not in the way
        with owned(tmp_path):
            for _ in range(2):
                with pytest.raises(InputError, match=f"in use by process {os.getpid()} on "), owned(tmp_path):
                    pass
