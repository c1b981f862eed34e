import pytest
import torch

from labelmend.engine.checkpoint import Checkpoint, flatten, load_newest, save, saved, unflatten

STATE = {
    "net": {"w": torch.arange(6.0).view(2, 3)},
    "mixture": {"low": 0.1, "pairs": [[1, 2]], "verdict": None},
    "e": {},
}


def test_state_comes_back_as_it_was():
    back = unflatten(*flatten(STATE))
    assert torch.equal(back["net"].pop("w"), STATE["net"]["w"])
    assert back == {"net": {}, "mixture": STATE["mixture"], "e": {}}


def test_the_newest_of_two_kept_checkpoints_is_loaded(tmp_path):
    for epoch in range(1, 6):
        save(tmp_path, Checkpoint(epoch, STATE))
    assert [path.name for path in saved(tmp_path)] == ["epoch-00004", "epoch-00005"]
    found, warnings = load_newest(tmp_path)
    assert found.epoch == 5
    assert warnings == []


@pytest.mark.parametrize("name", ["tensors.safetensors", "values.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path, name, damage):
    for epoch in (1, 2):
        save(tmp_path, Checkpoint(epoch, STATE))
    path = tmp_path / "epoch-00002" / name
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
    assert "epoch-00002 is damaged" in warnings[0]


def test_an_unfinished_save_is_not_mistaken_for_a_checkpoint(tmp_path):
    (tmp_path / ".epoch-00001.tmp").mkdir()
    assert load_newest(tmp_path) == (None, [])
