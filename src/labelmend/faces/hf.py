"""A `transformers.Trainer` that finds wrong labels while it trains, and learns less from them."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..errors import InputError
from ..files import to_json, write_atomic
from ..training.checkpoint import flatten, unflatten
from .positions import KEY, Collated, Placed
from .tracker import Tracker

TENSORS, VALUES = "labelmend.safetensors", "labelmend.json"
"""What a checkpoint of the Trainer holds beside its own files."""
WARM_UP = 1
LABELS = ("labels", "label", "label_ids")


def track(trainer: Any, *, labels: Any = None, correct: bool = True, **options: Any) -> Tracker:
    """Let a Trainer find wrong labels, before `trainer.train()`; the tracker's `table()` has them afterwards.

    Training learns from `tracker.loss`: cross-entropy with the given labels in the warm-up, and then with labels that
    are moved toward what the model took the sample for, as far as they are probably wrong. With `correct=False` the
    Trainer's own loss stays, and labels are only watched. Evaluation and prediction are as ever.

    The positions of the samples go through the data set and the collator of the Trainer, whichever they are, and past
    `remove_unused_columns`. `labels` are the given ones in the order of the data set; by default they are read from its
    column of labels. The other options are those of `Tracker`; the warm-up is one epoch, because fine-tuning learns
    most in the first one, and class names come from the model or the data set. A checkpoint of the Trainer holds the
    state of the tracker, and a run that is resumed goes on with it.

    tracker = labelmend.hf.track(trainer)
    trainer.train()
    tracker.table()
    """
    _check(trainer, correct=correct)
    samples = trainer.train_dataset
    Placed(samples)  # refuses a stream, which has no positions
    given = _labels(samples, trainer.label_names) if labels is None else labels
    classes = int(trainer.model.config.num_labels)
    known = {"class_names": _class_names(trainer, samples, classes), "repeats": trainer.args.world_size > 1}
    warm_up = {} if "epochs" in options else {"warm_up": WARM_UP}
    tracker = Tracker(given, classes=classes, **(known | warm_up | options))
    if len(tracker) != len(samples):
        raise InputError(f"there are {len(tracker):,} labels for {len(samples):,} samples of the Trainer's data set")
    _bring_positions(trainer)
    _replace_loss(trainer, tracker, correct=correct)
    _keep_state(trainer, tracker)
    return tracker


def _check(trainer: Any, *, correct: bool) -> None:
    """Refuse what is no Trainer of a classifier, and what has a loss of its own that would be lost."""
    try:
        from transformers import Trainer
    except ImportError:
        raise InputError("labelmend.hf needs transformers: pip install 'labelmend[transformers]'") from None
    if not isinstance(trainer, Trainer):
        raise InputError(f"track takes a transformers.Trainer, not a {type(trainer).__name__}")
    if trainer.train_dataset is None:
        raise InputError("the Trainer has no train_dataset, so there are no labels to judge")
    if isinstance(trainer.train_dataset, Placed):
        raise InputError("this Trainer is tracked already; make a new one")
    if getattr(getattr(trainer.model, "config", None), "num_labels", 0) < 2:
        raise InputError(
            "the model of the Trainer is no classifier of at least 2 classes: its config has no num_labels"
        )
    if correct and (trainer.compute_loss_func is not None or trainer.args.label_smoothing_factor):
        raise InputError(
            "the Trainer has a loss of its own (compute_loss_func or label_smoothing_factor), which the corrected one "
            "would replace; leave it out, or only watch by correct=False"
        )


def _bring_positions(trainer: Any) -> None:
    """Let the samples of the training set bring their positions, to where the loss is computed."""
    datasets = _module("datasets")
    samples = trainer.train_dataset
    if datasets is not None and isinstance(samples, datasets.Dataset):
        # A column that nobody uses would be read, and might be no tensor: the Trainer only sees the placed samples.
        samples = trainer._remove_unused_columns(samples, description="training")
    trainer.train_dataset = Placed(samples)
    trainer.data_collator = Collated(trainer.data_collator, pairs=False)
    trainer._set_signature_columns_if_needed()
    trainer._signature_columns = [*trainer._signature_columns, KEY]


def _replace_loss(trainer: Any, tracker: Tracker, *, correct: bool) -> None:
    """Compute the loss of batches that have positions by the tracker, and of others, as in evaluation, as ever."""
    own = trainer.compute_loss
    if correct:
        # Ours is the mean of a batch, which the Trainer is to divide by the batches that are accumulated.
        trainer.model_accepts_loss_kwargs = False

    @wraps(own)
    def compute_loss(
        model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None, **more: Any
    ) -> Any:
        index = inputs.pop(KEY, None)
        if not model.training:
            return own(model, inputs, return_outputs, num_items_in_batch, **more)
        if index is None:
            raise InputError("a training batch has no positions: let get_train_dataloader use the Trainer's collator")
        if correct:
            outputs = model(**{name: value for name, value in inputs.items() if name not in trainer.label_names})
            loss = tracker.loss(_logits(outputs), index)
        else:
            loss, outputs = own(model, inputs, True, num_items_in_batch, **more)
            tracker.observe(index, _logits(outputs))
        return (loss, outputs) if return_outputs else loss

    trainer.compute_loss = compute_loss


def _logits(outputs: Any) -> Tensor:
    """The logits among the outputs of a model; of a tuple, what follows a loss."""
    found = outputs.get("logits") if isinstance(outputs, Mapping) else getattr(outputs, "logits", None)
    if found is None and isinstance(outputs, Sequence):
        found = next((part for part in outputs if isinstance(part, Tensor) and part.dim()), None)
    if not isinstance(found, Tensor):
        raise InputError(f"the outputs of the model have no logits: they are a {type(outputs).__name__}")
    return found


def _keep_state(trainer: Any, tracker: Tracker) -> None:
    """End epochs of the tracker with those of the Trainer, and keep its state in the Trainer's checkpoints."""
    from transformers import TrainerCallback
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint

    class TrackerCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
        """Tells the tracker of the end of each epoch."""

        def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            tracker.end_epoch()

        def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            folder = Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
            if args.should_save and folder.is_dir():
                save_state(tracker, folder)

    trainer.add_callback(TrackerCallback())
    train: Callable[..., Any] = trainer.train

    @wraps(train)
    def resumed(resume_from_checkpoint: Any = None, *args: Any, **more: Any) -> Any:
        folder = resume_from_checkpoint
        if folder is True:
            folder = get_last_checkpoint(trainer.args.output_dir)  # type: ignore[no-untyped-call, unused-ignore]
        if folder:
            load_state(tracker, Path(folder))
        return train(resume_from_checkpoint, *args, **more)

    trainer.train = resumed


def save_state(tracker: Tracker, folder: Path) -> None:
    """Write the state of a tracker to a folder, as safetensors and JSON."""
    tensors, values = flatten(tracker.state_dict())
    write_atomic(folder / TENSORS, save_tensors(tensors))
    write_atomic(folder / VALUES, to_json(values))


def load_state(tracker: Tracker, folder: Path) -> None:
    """Take back what `save_state` wrote; a folder that has no such state leaves the tracker as it is."""
    if (folder / TENSORS).is_file() and (folder / VALUES).is_file():
        values = json.loads((folder / VALUES).read_bytes())
        tracker.load_state_dict(unflatten(load_tensors((folder / TENSORS).read_bytes()), values))


def _labels(samples: Any, names: Sequence[str]) -> list[Any]:
    """The labels of a data set in its order: a column of a Hugging Face data set, else sample by sample."""
    wanted = tuple(dict.fromkeys((*names, *LABELS)))
    columns = getattr(samples, "column_names", None)
    if isinstance(columns, list):
        name = next((name for name in wanted if name in columns), None)
        if name is not None:
            return list(samples.with_format(None)[name])
    first = samples[0]
    name = next((name for name in wanted if isinstance(first, Mapping) and name in first), None)
    if name is None:
        raise InputError(f"the training set has no labels under {', '.join(wanted)}; give them by track(..., labels=)")
    return [int(samples[position][name]) for position in range(len(samples))]


def _class_names(trainer: Any, samples: Any, classes: int) -> list[str]:
    """Names of the classes: those of the model, or those of the data set if the model has none of its own."""
    named = trainer.model.config.id2label
    names = [str(named.get(position, position)) for position in range(classes)]
    features = getattr(samples, "features", None) or {}
    known = next((features[name] for name in LABELS if hasattr(features.get(name), "names")), None)
    if known is not None and len(known.names) == classes and all(name.startswith("LABEL_") for name in names):
        return [str(name) for name in known.names]
    return names


def _module(name: str) -> Any:
    """A module, if it is there already."""
    import sys

    return sys.modules.get(name)
