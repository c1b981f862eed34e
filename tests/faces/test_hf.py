"""A Trainer of transformers that finds wrong labels: the real one, with tiny models made of configurations."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

import labelmend.hf
from labelmend.errors import InputError
from labelmend.faces.positions import KEY

transformers = pytest.importorskip("transformers", reason="the extra transformers is not installed")
pytestmark = [pytest.mark.xdist_group("transformers"), pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")]
CLASSES, SAMPLES, LENGTH = 3, 60, 6


def examples(samples=SAMPLES, wrong=0.25, seed=0):
    """Texts of which one word tells the class, of different lengths, with their labels; and the true ones."""
    rng = np.random.default_rng(seed)
    truth = np.arange(samples) % CLASSES
    flip = rng.permutation(samples) < wrong * samples
    given = np.where(flip, (truth + rng.integers(1, CLASSES, samples)) % CLASSES, truth)
    rows = []
    for label, word in zip(given, truth, strict=True):
        words = [int(word) + 1, *rng.integers(CLASSES + 1, 20, rng.integers(2, LENGTH)).tolist()]
        rows.append({"input_ids": words, "attention_mask": [1] * len(words), "label": int(label), "note": "unused"})
    return rows, truth, given


def padded(rows):
    """What a person's own collator gives: only what it knows."""
    ids = torch.zeros(len(rows), LENGTH, dtype=torch.long)
    for row, example in zip(ids, rows, strict=True):
        row[: len(example["input_ids"])] = torch.tensor(example["input_ids"])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor([e["label"] for e in rows])}


def model(classes=CLASSES):
    transformers.set_seed(0)
    config = transformers.DistilBertConfig(
        vocab_size=20, dim=16, hidden_dim=16, n_layers=1, n_heads=2, max_position_embeddings=LENGTH, num_labels=classes
    )
    config.dropout = config.attention_dropout = config.seq_classif_dropout = 0.0
    return transformers.DistilBertForSequenceClassification(config)


def make(folder, rows=None, *, epochs=2, network=None, collate=padded, eval_rows=None, trainer_class=None, **options):
    usual = {"learning_rate": 0.01, "per_device_train_batch_size": 10, "save_strategy": "no"} | options
    args = transformers.TrainingArguments(
        str(folder), num_train_epochs=epochs, use_cpu=True, report_to=[], disable_tqdm=True, seed=0, **usual
    )
    return (trainer_class or transformers.Trainer)(
        network or model(),
        args,
        data_collator=collate,
        train_dataset=examples()[0] if rows is None else rows,
        eval_dataset=eval_rows,
    )


def weights(trainer):
    return torch.cat([weight.detach().flatten() for weight in trainer.model.parameters()])


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("options", [{"correct": False}, {"warm_up": 5}], ids=["watched", "warm-up"])
def test_training_is_as_ever_until_labels_are_corrected(options, steps, tmp_path):
    """Positions go past `remove_unused_columns` and a collator that drops them, and accumulated batches count alike."""
    plain, tracked = (make(tmp_path / name, gradient_accumulation_steps=steps) for name in ("plain", "tracked"))
    if "warm_up" in options:
        # This model takes the number of accumulated samples and does not divide by it, so that its loss would be
        # the sum over the batches; the tracker's loss is their mean, as without accumulation.
        plain.model_accepts_loss_kwargs = False
    tracker = labelmend.hf.track(tracked, **options)
    plain.train()
    tracked.train()
    torch.testing.assert_close(weights(tracked), weights(plain), atol=1e-5, rtol=1e-4)
    assert len(tracker.table()) == SAMPLES
    assert tracker.epoch == 2


def test_wrong_labels_are_found_and_learned_less(tmp_path):
    rows, truth, given = examples(samples=150, wrong=0.3)
    trainer = make(tmp_path, rows, epochs=10)
    before = weights(trainer)
    tracker = labelmend.hf.track(trainer)
    trainer.train()
    table = tracker.table()
    wrong = given != truth
    assert table["given"].tolist() == [f"LABEL_{label}" for label in given]
    assert (table.flagged == wrong).mean() > 0.95
    assert (table["suggested"] == np.array([f"LABEL_{label}" for label in truth])).mean() > 0.95
    assert not torch.equal(weights(trainer), before)


def test_evaluation_and_prediction_are_as_ever(tmp_path):
    rows = examples(seed=1)[0]
    plain, tracked = make(tmp_path / "a", eval_rows=rows), make(tmp_path / "b", eval_rows=rows)
    labelmend.hf.track(tracked)
    found, expected = tracked.evaluate(), plain.evaluate()
    assert found["eval_loss"] == expected["eval_loss"]
    np.testing.assert_array_equal(tracked.predict(rows).predictions, plain.predict(rows).predictions)
    assert tracked.evaluate(tracked.train_dataset)["eval_loss"] == plain.evaluate(plain.train_dataset)["eval_loss"]


def test_positions_go_through_the_usual_collators_and_any_batches(tmp_path):
    """The tokenizer's collator pads examples and keeps every key; batches come in an order of lengths."""
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[PAD]": 0, "a": 1}, unk_token="a"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]")
    collate = transformers.DataCollatorWithPadding(tokenizer)
    named = {"train_sampling_strategy": "group_by_length"}
    if "train_sampling_strategy" not in transformers.TrainingArguments.__dataclass_fields__:
        named = {"group_by_length": True}  # its name before
    trainer = make(tmp_path, collate=collate, per_device_train_batch_size=7, **named)
    trainer.processing_class = tokenizer
    tracker = labelmend.hf.track(trainer)
    trainer.train()
    assert tracker.ledger.counts.tolist() == [2] * SAMPLES
    assert trainer.data_collator.tokenizer is tokenizer


def test_a_data_set_of_hugging_face_gives_its_labels_and_class_names(tmp_path):
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    rows, _, given = examples()
    data = datasets.Dataset.from_list(rows).cast_column("label", datasets.ClassLabel(names=["ant", "bee", "cat"]))
    trainer = make(tmp_path, data)
    tracker = labelmend.hf.track(trainer)
    trainer.train()
    assert tracker.table()["given"].tolist() == [["ant", "bee", "cat"][label] for label in given]


def test_an_image_model_is_tracked_alike(tmp_path):
    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, position):
            rng = np.random.default_rng(position)
            pixels = rng.normal(size=(3, 8, 8)) + 3 * (position % 2)
            return {"pixel_values": torch.tensor(pixels, dtype=torch.float32), "labels": position % 2}

    config = transformers.ViTConfig(
        image_size=8, patch_size=4, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    config.id2label = {0: "night", 1: "day"}
    transformers.set_seed(0)
    network = transformers.ViTForImageClassification(config)
    trainer = make(tmp_path, Pictures(), network=network, collate=None, remove_unused_columns=False)
    tracker = labelmend.hf.track(trainer)
    trainer.train()
    assert tracker.table()["given"].tolist() == ["night", "day"] * 12


def test_a_resumed_run_goes_on_with_what_was_recorded(tmp_path):
    rows = examples(samples=90, wrong=0.3)[0]
    whole = make(tmp_path / "whole", rows, epochs=4)
    expected = labelmend.hf.track(whole)
    whole.train()

    cut = make(tmp_path / "cut", rows, epochs=4, save_strategy="epoch")
    labelmend.hf.track(cut)
    cut.add_callback(_StopAfter(2))
    cut.train()
    again = make(tmp_path / "cut", rows, epochs=4, save_strategy="epoch")
    tracker = labelmend.hf.track(again)
    again.train(resume_from_checkpoint=True)
    assert tracker.epoch == 4
    torch.testing.assert_close(tracker.ledger.margins, expected.ledger.margins, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(weights(again), weights(whole), atol=1e-4, rtol=1e-3)


class _StopAfter(transformers.TrainerCallback):
    def __init__(self, epochs):
        self.epochs = epochs

    def on_epoch_end(self, args, state, control, **more):
        control.should_training_stop = round(state.epoch) >= self.epochs


def test_a_trainer_of_ones_own_that_overrides_the_loss_can_be_watched(tmp_path):
    class Own(transformers.Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
            assert KEY not in inputs
            return (2 * loss, outputs) if return_outputs else 2 * loss

    trainer = make(tmp_path, trainer_class=Own)
    tracker = labelmend.hf.track(trainer, correct=False)
    trainer.train()
    assert len(tracker.table()) == SAMPLES


def test_the_warm_up_is_one_epoch_unless_epochs_or_another_are_told(tmp_path):
    for options, expected in (({}, 1), ({"warm_up": 3}, 3), ({"epochs": 40}, 10)):
        assert labelmend.hf.track(make(tmp_path), **options).warm_up == expected


class _Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(examples()[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: setattr(t, "train_dataset", None), "no train_dataset"),
        (lambda t: labelmend.hf.track(t), "tracked already"),
        (lambda t: setattr(t, "compute_loss_func", len), "correct=False"),
        (lambda t: setattr(t.args, "label_smoothing_factor", 0.1), "correct=False"),
        (lambda t: setattr(t.model.config, "num_labels", 1), "no classifier"),
        (lambda t: setattr(t, "train_dataset", [{"input_ids": [1]}] * 3), "no labels under labels, label"),
        (lambda t: setattr(t, "train_dataset", _Stream()), "no positions"),
    ],
)
def test_what_cannot_be_tracked_is_refused_in_one_sentence(change, message, tmp_path):
    trainer = make(tmp_path)
    change(trainer)
    with pytest.raises(InputError, match=message):
        labelmend.hf.track(trainer)


def test_labels_must_be_as_many_as_samples_and_a_trainer_must_be_one(tmp_path):
    with pytest.raises(InputError, match="30 labels for 60 samples"):
        labelmend.hf.track(make(tmp_path), labels=[0, 1, 2] * 10)
    with pytest.raises(InputError, match=r"takes a transformers\.Trainer"):
        labelmend.hf.track(torch.nn.Linear(1, 1))


def test_a_loader_of_ones_own_that_drops_positions_is_named(tmp_path):
    class Own(transformers.Trainer):
        def get_train_dataloader(self):
            return torch.utils.data.DataLoader(examples()[0], batch_size=10, collate_fn=padded)

    trainer = make(tmp_path, trainer_class=Own)
    labelmend.hf.track(trainer)
    with pytest.raises(InputError, match="has no positions"):
        trainer.train()


def test_without_transformers_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"pip install 'labelmend\[transformers\]'"):
        labelmend.hf.track(object())


def test_importing_the_face_imports_no_transformers():
    program = (
        "import sys, labelmend, labelmend.hf; print([n for n in ('transformers', 'lightning') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.slow
def test_two_processes_have_one_table_of_every_sample(tmp_path):
    script = Path(__file__).with_name("hf_rank.py")
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, tmp_path]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, second = (np.load(tmp_path / f"{rank}.npz") for rank in (0, 1))
    assert len(first["probability"]) == 61
    np.testing.assert_array_equal(first["probability"], second["probability"])
    assert first["counts"].min() >= 2


def test_the_batch_of_a_mapping_is_still_its_own(tmp_path):
    trainer = make(tmp_path)
    labelmend.hf.track(trainer)
    batch = next(iter(trainer.get_train_dataloader()))
    assert isinstance(batch, Mapping)
    assert sorted(batch) == ["attention_mask", "input_ids", KEY, "labels"]
