"""The callback for Lightning: wrong labels are found, and the module is trained as ever otherwise."""

import warnings

import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import labelmend as lm
from labelmend.errors import InputError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a deprecation of its own dependency
    lightning = pytest.importorskip("lightning", reason="the extra lightning is not installed")
    from labelmend.lightning import TrackerCallback, indexed

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning warns of workers, loggers and its own dependencies
EPOCHS = 12


class Linear(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.net = nn.Linear(4, 2)
        self.seen = []

    def forward(self, inputs):
        return self.net(inputs)

    def training_step(self, batch):
        inputs, labels = batch
        self.seen.append(len(labels))
        return nn.functional.cross_entropy(self(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


class Silent(Linear):
    """A module that does not call itself."""

    def training_step(self, batch):
        return self.net(batch[0]).sum()


def problem(count=240):
    """Two classes far apart, of whose labels one in five is wrong."""
    rng = torch.Generator().manual_seed(0)
    truth = torch.arange(count) % 2
    inputs = torch.randn(count, 4, generator=rng) + 3 * truth[:, None]
    wrong = torch.rand(count, generator=rng) < 0.2
    return inputs, torch.where(wrong, 1 - truth, truth), wrong


def fitted(callback, module=None, *, wrap=indexed):
    inputs, labels, _ = problem()
    loader = DataLoader(
        TensorDataset(inputs, labels), batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(0)
    )
    quiet = dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary", "logger"), False)
    trainer = lightning.Trainer(max_epochs=EPOCHS, accelerator="cpu", callbacks=[callback], **quiet)
    module = Linear() if module is None else module
    trainer.fit(module, wrap(loader))
    return module


@pytest.mark.parametrize("options", [{}, {"correct": False}, {"mix": True}])
def test_wrong_labels_are_ranked_first_whether_corrected_mixed_or_only_watched(options):
    _, labels, wrong = problem()
    callback = TrackerCallback(lm.Tracker(labels, classes=2, epochs=EPOCHS), **options)
    module = fitted(callback)
    table = callback.tracker.table()
    assert sum(module.seen) == EPOCHS * len(labels)
    assert roc_auc_score(wrong.numpy(), table.score) > 0.9
    assert "training_step" not in vars(module)


def test_a_loader_without_positions_is_refused_with_the_remedy():
    callback = TrackerCallback(lm.Tracker(problem()[1], classes=2))
    with pytest.raises(InputError, match="indexed"):
        fitted(callback, wrap=lambda loader: loader)


def test_a_step_that_gives_no_logits_is_refused_with_the_remedy():
    callback = TrackerCallback(lm.Tracker(problem()[1], classes=2))
    with pytest.raises(InputError, match="network="):
        fitted(callback, Silent())
    named = TrackerCallback(lm.Tracker(problem()[1], classes=2, epochs=EPOCHS), network="net")
    fitted(named, Silent())
    assert len(named.tracker.table()) == 240


def test_the_state_of_the_tracker_goes_with_a_checkpoint():
    _, labels, _ = problem()
    first = TrackerCallback(lm.Tracker(labels, classes=2, epochs=EPOCHS))
    fitted(first)
    second = TrackerCallback(lm.Tracker(labels, classes=2, epochs=EPOCHS))
    second.load_state_dict(first.state_dict())
    assert (second.tracker.table().noisy_probability == first.tracker.table().noisy_probability).all()
