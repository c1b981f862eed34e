"""The Trainer of Hugging Face

One line watches a `Trainer` of transformers, whatever its model and data set. Here a small network tells from which
library a paragraph of documentation is; three in ten of the labels are wrong. With a pretrained model the program is
the same.
"""

import inspect
from types import ModuleType

import numpy as np
import scipy.stats
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    ModernBertConfig,
    ModernBertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

import labelmend.hf

LIBRARIES = {"numpy": np, "scipy": scipy.stats, "torch": torch}
EACH, TRAINED = 800, 2000
rng = np.random.default_rng(0)


def paragraphs(library: ModuleType) -> list[str]:
    """Some of the paragraphs that document what a library has."""
    pages = [inspect.getdoc(getattr(library, name)) or "" for name in sorted(dir(library))]
    found = {" ".join(part.split()) for page in pages for part in page.split("\n\n") if ">>>" not in part}
    long = sorted(text for text in found if len(text) >= 80)
    return [long[position] for position in rng.permutation(len(long))[:EACH]]


pairs = [(text, label) for label, library in enumerate(LIBRARIES.values()) for text in paragraphs(library)]
pairs = [pairs[position] for position in rng.permutation(len(pairs))]
texts, truth = [text for text, _ in pairs], np.array([label for _, label in pairs])
wrong = rng.random(TRAINED) < 0.3
labels = np.where(wrong, (truth[:TRAINED] + rng.integers(1, 3, TRAINED)) % 3, truth[:TRAINED])

words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
words.normalizer, words.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
words.train_from_iterator(
    texts[:TRAINED], trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"], vocab_size=4000)
)
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")


def encoded(texts: list[str], labels: np.ndarray) -> list[dict[str, object]]:
    """A data set as the Trainer takes it."""
    rows = tokenizer(texts, truncation=True, max_length=48)["input_ids"]
    return [{"input_ids": row, "label": int(label)} for row, label in zip(rows, labels, strict=True)]


set_seed(0)
config = ModernBertConfig(
    vocab_size=4000,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    classifier_pooling="mean",
    mlp_dropout=0.3,
    **dict.fromkeys(("cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id"), 1),
    pad_token_id=0,
    id2label=dict(enumerate(LIBRARIES)),
)
trainer = Trainer(
    ModernBertForSequenceClassification(config),
    TrainingArguments(
        "out",
        num_train_epochs=5,
        learning_rate=1e-3,
        per_device_train_batch_size=64,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    ),
    train_dataset=encoded(texts[:TRAINED], labels),
    processing_class=tokenizer,
)
tracker = labelmend.hf.track(trainer)
trainer.train()

predicted = trainer.predict(encoded(texts[TRAINED:], truth[TRAINED:])).predictions.argmax(axis=1)
print(f"{(predicted == truth[TRAINED:]).mean():.1%} of {len(predicted)} other paragraphs are told right")
table = tracker.table()
print(table.summary())
for row in table.suspects()[:3]:
    print(f"{table['given'][row]} or {table['suggested'][row]}? {texts[row][:90]}")
