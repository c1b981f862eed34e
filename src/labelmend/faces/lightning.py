"""A Lightning callback that finds wrong labels while a module is trained, and lets it learn less from them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

from torch import Tensor, nn

from ..errors import InputError
from .mixing import Mixing
from .positions import Positioned
from .tracker import Tracker

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback  # type: ignore[assignment, unused-ignore]
    except ImportError:
        raise InputError("labelmend.lightning needs Lightning: pip install 'labelmend[lightning]'") from None


class TrackerCallback(Callback):  # type: ignore[misc, unused-ignore]
    """Lets a module be trained by the loss of a tracker, and ends the tracker's epochs with its own.

    The loader of the training samples must be one of `indexed`, so that the positions of each batch are known; the
    module and its hooks see batches as they were. Its `training_step` is called as ever, and what it predicts is taken
    from `self(...)`, or from the part of the module that is called `network`; the loss that it returns is replaced by
    that of the tracker, unless `correct=False`, which only watches. `mix=True` mixes the inputs, the first part of each
    batch, before the module sees them, which keeps it from memorising wrong labels; what it logs is of mixed inputs.

    Validation, tests and predictions are as ever. Checkpoints of Lightning hold the state of the tracker.
    """

    def __init__(
        self, tracker: Tracker, *, correct: bool = True, mix: bool = False, network: str | None = None
    ) -> None:
        if mix and not correct:
            raise InputError("mix=True needs the tracker's loss; leave out correct=False")
        self.tracker, self.correct, self.mix, self.network = tracker, correct, mix, network
        self.index: Any = None
        self.restore: list[Callable[[], None]] = []

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Take the place of the module's step and of the first hook that sees its batches, for a fit."""
        if stage != "fit":
            return
        if self.correct and not pl_module.automatic_optimization:
            raise InputError(
                "a module with automatic_optimization=False learns from a loss of its own; only watch by correct=False"
            )
        if self.network is not None and self.network not in dict(pl_module.named_modules()):
            raise InputError(
                f"the module has no part called {self.network!r}; network= names the one that gives logits"
            )
        data = trainer.datamodule
        overrides = data is not None and "on_before_batch_transfer" in vars(type(data))
        self._put(data if overrides else pl_module, "on_before_batch_transfer", self._taking_positions(trainer))
        self._put(pl_module, "training_step", self._tracked_step(pl_module))

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Give the module back as it was."""
        while self.restore:
            self.restore.pop()()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """End the epoch of the tracker too."""
        self.tracker.end_epoch()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return self.tracker.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.tracker.load_state_dict(state_dict)

    def _put(self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Put a function around a method of the owner until the fit is over."""
        setattr(owner, name, around(getattr(owner, name)))
        self.restore.append(lambda: delattr(owner, name))

    def _taking_positions(self, trainer: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def around(own: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(own)
            def on_before_batch_transfer(batch: Any, dataloader_idx: int) -> Any:
                if trainer.training:
                    batch, self.index = _parted(batch)
                return own(batch, dataloader_idx)

            return on_before_batch_transfer

        return around

    def _tracked_step(self, module: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        part = module if self.network is None else module.get_submodule(self.network)

        def around(own: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(own)
            def training_step(batch: Any, *more: Any, **named: Any) -> Any:
                index = self.index
                if self.mix:
                    batch, index = self._mixed(batch)
                with _outputs_of(part) as seen:
                    found = own(batch, *more, **named)
                return self._learned(found, seen, index)

            return training_step

        return around

    def _mixed(self, batch: Any) -> tuple[Any, Mixing]:
        if not isinstance(batch, list | tuple) or not batch or not isinstance(batch[0], Tensor):
            raise InputError(f"mix=True takes batches whose first part are the inputs, not a {type(batch).__name__}")
        inputs, mixing = self.tracker.mix(batch[0], self.index)
        return [inputs, *batch[1:]], mixing

    def _learned(self, found: Any, seen: list[Any], index: Any) -> Any:
        """What the step gave, with the loss of the tracker in place of its own; a step that was skipped stays so."""
        if found is None:
            return None
        if not seen:
            called = "self(...)" if self.network is None else f"self.{self.network}(...)"
            raise InputError(
                f"training_step did not call {called}, so there are no logits; name the part of the module that gives "
                "them by network="
            )
        logits = getattr(seen[-1], "logits", seen[-1])
        if not self.correct:
            self.tracker.observe(index, logits)
            return found
        loss = self.tracker.loss(logits, index)
        return {**found, "loss": loss} if isinstance(found, Mapping) else loss


def _parted(batch: Any) -> tuple[Any, Tensor]:
    """What a batch was, and the positions of its samples."""
    if not isinstance(batch, Positioned):
        raise InputError("a training batch has no positions: give fit labelmend.lightning.indexed(loader)")
    return batch.batch, batch.positions


@contextmanager
def _outputs_of(part: nn.Module) -> Iterator[list[Any]]:
    """What this part of a network gives inside."""
    seen: list[Any] = []
    hook = part.register_forward_hook(lambda module, inputs, outputs: seen.append(outputs))
    try:
        yield seen
    finally:
        hook.remove()
