"""Texts as rows of numbers: fitted, stored and restored, in any language, within limits."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from sklearn.feature_extraction.text import CountVectorizer

from labelmend.data import text
from labelmend.data.text import TextEncoder, composed, pieces_of, plain_text
from labelmend.data.words import character_scores, loudest_words
from labelmend.errors import InputError

LAW = ["the judge ruled against the appeal", "a judge and a jury in court", "the court heard the lawyer", "jury duty"]
FOOD = ["boil the soup with salt", "fresh bread and butter", "a soup of salt and bread", "the cook boils eggs"]
TEXTS = LAW + FOOD


@pytest.fixture(scope="module")
def encoder():
    return TextEncoder.fit(TEXTS, seed=0)


def test_rows_are_finite_and_as_wide_as_the_encoder_says(encoder):
    rows = encoder.transform(TEXTS)
    assert rows.dtype == torch.float32
    assert rows.shape == (8, encoder.width)
    assert bool(rows.isfinite().all())
    assert encoder.transform([]).shape == (0, encoder.width)


def test_rows_are_those_of_the_plain_formula(encoder):
    """TF-IDF of words and pieces, each half of length 1, by counting; then the components."""
    words = [plain_text(each).split() for each in TEXTS]
    pieces = [[piece for word in each for _, piece in pieces_of(word)] for each in words]
    halves = []
    for terms, known in ((words, encoder.vocabulary[0]), (pieces, encoder.vocabulary[1])):
        counts = np.array([[document.count(term) for term in known] for document in terms], dtype=float)
        idf = np.log((1 + len(TEXTS)) / (1 + (counts > 0).sum(axis=0))) + 1
        weighted = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
        halves.append(weighted / np.linalg.norm(weighted, axis=1, keepdims=True))
    expected = np.hstack(halves) @ encoder.components.double().numpy().T
    assert encoder.transform(TEXTS).numpy() == pytest.approx(expected, abs=1e-5)


def test_texts_of_one_kind_are_closer_to_each_other(encoder):
    rows = torch.nn.functional.normalize(encoder.transform(["the judge heard a lawyer", "salt in the bread"]), dim=1)
    law, food = (torch.nn.functional.normalize(encoder.transform(each), dim=1).mean(dim=0) for each in (LAW, FOOD))
    assert rows[0] @ law > rows[0] @ food
    assert rows[1] @ food > rows[1] @ law


def test_a_restored_encoder_gives_the_same_rows_and_nothing_is_pickled(encoder):
    described = json.loads(json.dumps(encoder.described()))
    restored = TextEncoder.restored(described, load(save(encoder.tensors())))
    assert torch.equal(restored.transform(TEXTS), encoder.transform(TEXTS))
    assert restored.identity == encoder.identity


def test_the_seed_decides_and_the_same_one_gives_the_same_rows(encoder):
    assert torch.equal(TextEncoder.fit(TEXTS, seed=0).transform(TEXTS), encoder.transform(TEXTS))


@pytest.mark.parametrize(
    "damage",
    [
        lambda described, tensors: described["words"].pop(),
        lambda described, tensors: described["words"].__setitem__(0, described["words"][1]),
        lambda described, tensors: described.update(version=2),
        lambda described, tensors: tensors.update(idf=tensors["idf"] * float("nan")),
        lambda described, tensors: tensors.update(components=tensors["components"][:, :-1]),
        lambda described, tensors: tensors.update(components=torch.zeros(300, len(tensors["idf"]))),
    ],
)
def test_parts_that_do_not_fit_each_other_are_refused(encoder, damage):
    described, tensors = encoder.described(), encoder.tensors()
    damage(described, tensors)
    with pytest.raises(ValueError):
        TextEncoder.restored(described, tensors)


@pytest.mark.parametrize(
    "texts",
    [
        ["今天天气很好我们去公园", "这部电影非常好看", "今天的电影不好看"],
        ["きょうはいい天気です", "この映画はとても良い", "映画がいい"],
        ["วันนี้อากาศดีมาก", "อากาศไม่ดีเลย", "หนังเรื่องนี้ดีมาก"],
        ["сегодня хорошая погода", "хороший фильм", "плохая погода"],
    ],
    ids=["Chinese", "Japanese", "Thai", "Russian"],
)
def test_languages_with_and_without_spaces_have_pieces_in_common(texts):
    rows = torch.nn.functional.normalize(TextEncoder.fit(texts, seed=0).transform(texts), dim=1)
    assert bool((rows @ rows.T - torch.eye(3) > 0.01).any())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café CRÈME", "cafe creme"),
        ("cafe\u0301", "café"),
        ("No. 123456", "no. 987654"),
        ("ＦＵＬＬ width", "full WIDTH"),
    ],
)
def test_case_accents_and_long_numbers_make_no_difference(one, other):
    assert plain_text(one) == plain_text(other)


@pytest.mark.parametrize(("one", "other"), [("が", "か"), ("й", "и"), ("in 1999", "in 2001")])
def test_letters_of_other_scripts_and_years_do(one, other):
    assert plain_text(one) != plain_text(other)


@pytest.mark.parametrize(
    "odd",
    [
        "\u0130stanbul \ufb01 \u00df \u01c5",
        "e\u0301\u0302 \u0301",
        "\U0001f600\u200d\U0001f52c",
        "a\0b\u202e",
        "12345 \u0663\u0664",
    ],
)
def test_plain_text_has_as_many_characters_as_the_composed_one(odd):
    assert len(plain_text(odd)) == len(composed(odd))


@pytest.mark.parametrize("word", ["a", "ab", "abc", "electricity", "不好看"])
def test_pieces_are_those_of_scikit_learn(word):
    analyzer = CountVectorizer(analyzer="char_wb", ngram_range=(2, 5)).build_analyzer()
    assert sorted(piece for _, piece in pieces_of(word)) == sorted(analyzer(word))
    assert all(f" {word} "[start + 1 :].startswith(piece) for start, piece in pieces_of(word))


def test_the_vocabulary_the_columns_and_the_text_that_is_looked_at_are_bounded(monkeypatch):
    monkeypatch.setattr(text, "MOST_WORDS", 5)
    monkeypatch.setattr(text, "MOST_PIECES", 7)
    monkeypatch.setattr(text, "COLUMNS", 3)
    monkeypatch.setattr(text, "LONGEST", 40)
    small = TextEncoder.fit([*TEXTS, "x " * 1000], seed=0)
    assert (len(small.vocabulary[0]), len(small.vocabulary[1]), small.width) == (5, 7, 3)
    assert torch.equal(small.transform(["a judge " * 10]), small.transform(["a judge " * 5]))


def test_of_many_texts_some_are_looked_at(monkeypatch):
    monkeypatch.setattr(text, "MOST_CHARACTERS", 70)
    few = TextEncoder.fit(TEXTS * 5, seed=0)
    assert 0 < len(few.vocabulary[0]) < len(TextEncoder.fit(TEXTS, seed=0).described()["words"]) + 10
    assert few.transform(TEXTS).shape[0] == 8


@pytest.mark.parametrize("texts", [["", " "], []])
def test_texts_without_a_word_are_refused(texts):
    with pytest.raises(InputError, match="holds a word"):
        TextEncoder.fit(texts, seed=0)


@pytest.mark.parametrize("texts", [["word"], ["!!!", "?!"], ["x", ""]])
def test_very_little_text_is_enough(texts):
    assert bool(TextEncoder.fit(texts, seed=0).transform(texts).isfinite().all())


def test_what_characters_contribute_adds_up_to_the_row(encoder):
    direction = np.random.default_rng(0).normal(size=encoder.width).astype(np.float32)
    for each in [*TEXTS, "The COURT, the court; été!", ""]:
        whole = float(encoder.transform([each])[0].numpy() @ direction)
        assert character_scores(encoder, each, direction).sum() == pytest.approx(whole, abs=1e-5)


def test_the_words_that_make_the_difference_are_marked_in_the_text_as_it_is_written(encoder):
    direction = (encoder.transform(FOOD).mean(dim=0) - encoder.transform(LAW).mean(dim=0)).numpy()
    written = "The judge likes SOUP\nand bread"
    marked = [written[begin:end] for begin, end in loudest_words(encoder, written, direction, within=100)]
    assert {"SOUP", "bread"} <= set(marked)
    assert "judge" not in marked
    assert loudest_words(encoder, written, direction, within=12) == []


def test_in_a_script_without_spaces_characters_are_marked():
    law, food = ["法官判决上诉", "法官和陪审团", "律师和法官"], ["面包和黄油", "一碗面包汤", "新鲜的面包"]
    encoder = TextEncoder.fit(law + food, seed=0)
    direction = (encoder.transform(food).mean(dim=0) - encoder.transform(law).mean(dim=0)).numpy()
    spans = loudest_words(encoder, "法官吃面包", direction, within=100)
    assert [("法官吃面包")[begin:end] for begin, end in spans] == ["面包"]
