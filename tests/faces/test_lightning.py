"""A Lightning callback that finds wrong labels: the real Lightning, with tiny modules."""

import logging
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import labelmend as lm
from labelmend.errors import InputError

L = pytest.importorskip("lightning", reason="the extra lightning is not installed")
from labelmend.lightning import TrackerCallback, indexed  # noqa: E402

pytestmark = [
    pytest.mark.xdist_group("lightning"),
    pytest.mark.filterwarnings(
        "ignore:.*LeafSpec.*:FutureWarning",
        "ignore:The '.*_dataloader' does not have many workers",
        "ignore:Checkpoint directory .* exists",
        "ignore:You're resuming from a checkpoint that ended before the epoch ended",
    ),
]
SAMPLES, CLASSES = 90, 3


@pytest.fixture(autouse=True)
def quiet():
    """Lightning tells of devices and of what it restores."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


def data(wrong=0.3):
    """Points around three centres, with labels of which some are wrong, and the true ones."""
    rng = torch.Generator().manual_seed(0)
    truth = torch.arange(SAMPLES) % CLASSES
    flip = torch.randperm(SAMPLES, generator=rng) < wrong * SAMPLES
    y = torch.where(flip, (truth + torch.randint(1, CLASSES, (SAMPLES,), generator=rng)) % CLASSES, truth)
    x = torch.randn(SAMPLES, 4, generator=rng) + 4 * torch.eye(CLASSES, 4)[truth]
    return x, y, truth


class Module(L.LightningModule):
    """What somebody has: a step that gives a loss."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, CLASSES))
        self.seen = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        self.seen.append(len(y))
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loader(size=15):
    x, y, _ = data()
    return DataLoader(TensorDataset(x, y), size, shuffle=True, generator=torch.Generator().manual_seed(3))


def fit(module, loader, callbacks=(), *, epochs=3, validate=None, ckpt_path=None, **options):
    usual = {"logger": False, "enable_checkpointing": False} | options
    trainer = L.Trainer(
        max_epochs=epochs, accelerator="cpu", callbacks=list(callbacks), enable_progress_bar=False, log_every_n_steps=1,
        enable_model_summary=False, **usual,
    )  # fmt: skip
    trainer.fit(module, loader, validate, ckpt_path=ckpt_path)
    return trainer


def tracker(**options):
    return lm.Tracker(data()[1], classes=CLASSES, **({"warm_up": 1} | options))


def weights(module):
    return torch.cat([weight.detach().flatten() for weight in module.parameters()])


@pytest.mark.parametrize("accumulated", [1, 2])
@pytest.mark.parametrize("options", [{"correct": False}, {}], ids=["watched", "warm-up"])
def test_training_is_as_ever_until_labels_are_corrected(options, accumulated):
    plain, tracked = Module(), Module()
    fit(plain, loader(), accumulate_grad_batches=accumulated)
    mend = TrackerCallback(tracker(warm_up=9), **options)
    fit(tracked, indexed(loader()), [mend], accumulate_grad_batches=accumulated)
    torch.testing.assert_close(weights(tracked), weights(plain), atol=1e-6, rtol=1e-5)
    assert mend.tracker.ledger.counts.tolist() == [3] * SAMPLES


@pytest.mark.parametrize("mix", [False, True])
def test_wrong_labels_are_found_and_learned_less(mix):
    _, y, truth = data()
    mend = TrackerCallback(tracker(epochs=15, warm_up=None), mix=mix)
    fit(Module(), indexed(loader()), [mend], epochs=15)
    table = mend.tracker.table()
    assert (table.flagged == (y != truth).numpy()).mean() > 0.95
    assert (np.asarray(table.suggested) == truth.numpy()).mean() > 0.95


class Validated(Module):
    """The same with a step of validation."""

    validated = 0

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.validated += len(y)
        self.log("loss", nn.functional.cross_entropy(self(x), y))


def test_validation_and_the_module_are_as_ever():
    x, _, truth = data()
    checked = DataLoader(TensorDataset(x, truth), 50)
    module = Validated()
    fit(module, indexed(loader()), [TrackerCallback(tracker())], epochs=1, validate=checked, num_sanity_val_steps=0)
    assert module.validated == SAMPLES
    assert module.seen == [15] * 6
    assert not {"training_step", "on_before_batch_transfer"} & vars(module).keys()


def test_hooks_of_the_module_and_of_a_data_module_see_batches_as_they_were():
    class Hooked(Module):
        def on_before_batch_transfer(self, batch, dataloader_idx):
            x, y = batch
            return [x + 0, y]

        def on_after_batch_transfer(self, batch, dataloader_idx):
            x, y = batch
            return [x * 1, y]

    class Data(L.LightningDataModule):
        def train_dataloader(self):
            return indexed(loader())

        def on_before_batch_transfer(self, batch, dataloader_idx):
            x, y = batch
            return [x, y]

    for module, source in ((Hooked(), indexed(loader())), (Module(), Data())):
        mend = TrackerCallback(tracker())
        fit(module, source, [mend], epochs=2)
        assert len(mend.tracker.table()) == SAMPLES


def test_a_step_that_calls_a_part_of_the_module_and_returns_more_than_a_loss():
    class Own(Module):
        def training_step(self, batch, batch_idx):
            x, y = batch
            return {"loss": nn.functional.cross_entropy(self.net(x), y), "size": len(y)}

    mend = TrackerCallback(tracker(), network="net")
    fit(Own(), indexed(loader()), [mend], epochs=2)
    assert mend.tracker.epoch == 2
    with pytest.raises(InputError, match=r"did not call self\(\.\.\.\)"):
        fit(Own(), indexed(loader()), [TrackerCallback(tracker())], epochs=1)


def test_a_resumed_run_goes_on_with_what_was_recorded(tmp_path):
    whole, expected = Module(), TrackerCallback(tracker())
    fit(whole, indexed(DataLoader(loader().dataset, 15)), [expected], epochs=4)

    def saver():
        return L.pytorch.callbacks.ModelCheckpoint(tmp_path, save_last=True)

    fit(Module(), indexed(DataLoader(loader().dataset, 15)), [TrackerCallback(tracker()), saver()], epochs=2,
        enable_checkpointing=True)  # fmt: skip
    again, mend = Module(), TrackerCallback(tracker())
    fit(again, indexed(DataLoader(loader().dataset, 15)), [mend, saver()], ckpt_path=tmp_path / "last.ckpt", epochs=4,
        enable_checkpointing=True)  # fmt: skip
    assert mend.tracker.epoch == 4
    torch.testing.assert_close(weights(again), weights(whole))
    torch.testing.assert_close(mend.tracker.ledger.margins, expected.tracker.ledger.margins)


def test_manual_optimisation_can_only_be_watched():
    class Manual(Module):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch, batch_idx):
            loss = super().training_step(batch, batch_idx)
            self.manual_backward(loss)
            self.optimizers().step()
            return loss

    with pytest.raises(InputError, match="correct=False"):
        fit(Manual(), indexed(loader()), [TrackerCallback(tracker())], epochs=1)
    mend = TrackerCallback(tracker(), correct=False)
    fit(Manual(), indexed(loader()), [mend], epochs=2)
    assert len(mend.tracker.table()) == SAMPLES


def test_what_cannot_be_tracked_is_refused_in_one_sentence():
    with pytest.raises(InputError, match=r"give fit labelmend\.lightning\.indexed"):
        fit(Module(), loader(), [TrackerCallback(tracker())], epochs=1)
    with pytest.raises(InputError, match="no part called 'head'"):
        fit(Module(), indexed(loader()), [TrackerCallback(tracker(), network="head")], epochs=1)
    with pytest.raises(InputError, match="mix=True needs"):
        TrackerCallback(tracker(), mix=True, correct=False)


def test_without_lightning_the_extra_is_named():
    program = (
        "import sys; sys.modules.update(lightning=None, pytorch_lightning=None)\n"
        "from labelmend.errors import InputError\n"
        "try:\n    import labelmend.lightning\nexcept InputError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'labelmend[lightning]'" in said.stdout, said.stderr
