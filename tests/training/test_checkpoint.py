import pytest
import torch

from labelmend.training.checkpoint import Checkpoint, flatten, load_newest, save, saved, unflatten
from labelmend.training.finite import NotFiniteError

STATE = {
    "net": {"w": torch.arange(6.0).view(2, 3)},
    "mixture": {"low": 0.1, "pairs": [[1, 2]], "verdict": None},
    "e": {},
}


def at(epoch, step=0):
    return Checkpoint(epoch, step, STATE | {"position": {"epoch": epoch, "step": step}})


def test_state_comes_back_as_it_was():
    back = unflatten(*flatten(STATE))
    assert torch.equal(back["net"].pop("w"), STATE["net"]["w"])
    assert back == {"net": {}, "mixture": STATE["mixture"], "e": {}}


def test_the_newest_of_two_kept_checkpoints_is_loaded(tmp_path):
    for epoch in range(1, 6):
        save(tmp_path, at(epoch))
    assert [path.name for path in saved(tmp_path)] == ["epoch-00004-step-0000000", "epoch-00005-step-0000000"]
    found, warnings = load_newest(tmp_path)
    assert found.epoch == 5
    assert warnings == []


@pytest.mark.parametrize("name", ["tensors.safetensors", "values.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path, name, damage):
    for epoch in (1, 2):
        save(tmp_path, at(epoch))
    path = tmp_path / "epoch-00002-step-0000000" / name
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()
    found, warnings = load_newest(tmp_path)
    assert found.epoch == 1
    assert "epoch-00002-step-0000000 is damaged" in warnings[0]


def test_an_unfinished_save_is_not_mistaken_for_a_checkpoint(tmp_path):
    (tmp_path / ".epoch-00001-step-0000000.tmp").mkdir()
    assert load_newest(tmp_path) == (None, [])


def test_steps_inside_an_epoch_come_after_it_and_before_the_next(tmp_path):
    for epoch, step in ((1, 0), (1, 5), (1, 12), (2, 0), (2, 1)):
        save(tmp_path, at(epoch, step))
        found, _ = load_newest(tmp_path)
        assert (found.epoch, found.step) == (epoch, step)


def test_a_good_checkpoint_of_the_same_place_is_left_alone_and_a_damaged_one_replaced(tmp_path):
    save(tmp_path, at(1))
    path = tmp_path / at(1).name / "values.json"
    before = path.stat().st_mtime_ns
    save(tmp_path, at(1))
    assert path.stat().st_mtime_ns == before
    path.write_bytes(b"{}")
    save(tmp_path, at(1))
    assert load_newest(tmp_path)[1] == []


@pytest.mark.parametrize("name", ["tensors.safetensors", "values.json", "manifest.json"])
def test_every_single_byte_counts(tmp_path, name):
    """Every byte of the small files and a sample of the tensors' is changed in turn, white space included."""
    save(tmp_path, at(1))
    path = tmp_path / at(1).name / name
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 200)):
        for other in (content[place] ^ 0x01, 0x20, 0x09):
            if other != content[place]:
                path.write_bytes(content[:place] + bytes([other]) + content[place + 1 :])
                assert load_newest(tmp_path)[0] is None, (place, other)


def test_a_checkpoint_under_another_name_is_refused(tmp_path):
    save(tmp_path, at(1))
    (tmp_path / at(1).name).rename(tmp_path / at(7).name)
    found, warnings = load_newest(tmp_path)
    assert found is None
    assert "that of epoch-00001" in warnings[0]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_is_never_saved(tmp_path, value):
    save(tmp_path, at(1))
    bad = at(2)
    bad.state["net"] = {"w": torch.tensor([1.0, value])}
    with pytest.raises(NotFiniteError, match="net/w is not finite"):
        save(tmp_path, bad)
    assert load_newest(tmp_path)[0].epoch == 1
