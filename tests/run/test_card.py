"""The model card: everything that a run knows of its model, in Markdown that names cannot break."""

import pytest

from labelmend.run.card import card, source_commit
from labelmend.run.noise import read_noise

HOSTILE = "<script>alert(1)</script>|[x](http://a.b)\n# *Title* `"
FACTS = {"takes": "images of 1x8x8", "networks": 2, "weights": 1234, "commit": "abc123"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    from labelmend.training.config import TrainConfig
    from labelmend.training.prepare import prepare
    from labelmend.training.session import train

    out = tmp_path_factory.mktemp("card") / "run"
    config = TrainConfig("digits", str(out), epochs=1, limit=60, threads=1, noise="symmetric:0.3", seed=3)
    return train(prepare(config))[0]


def test_a_run_leaves_a_card_that_says_what_run_json_says(finished):
    text, described = finished.card.read_text(), finished.read()
    summary = described["summary"]
    for known in (
        "A classifier of images of 1x8x8",
        "into 10 classes",
        "- network: convnet",
        "- method: m-dyr-h",
        "- seed: 3",
        f"symmetric\\: {described['noise']['real']:.1%} of the labels are known to be wrong",
        described["data"]["fingerprint"],
        f"{summary['last_accuracy']:.4f} on {described['data']['test_samples']} test samples",
        f"AUC {summary['auc']:.4f}",
        read_noise(finished)["headline"],
        "labelmend predict RUN",
        described["versions"]["torch"],
    ):
        assert known in text
    assert text.count("\n| ") == 1 + 10
    assert str(finished.path) not in text


def test_hostile_names_stay_text_in_a_card(finished):
    described, noise = finished.read(), read_noise(finished)
    described["data"] |= {"name": HOSTILE, "classes": [HOSTILE, "b"]}
    noise["classes"] = [noise["classes"][0] | {"name": HOSTILE}]
    described["config"]["settings"] = {"key": HOSTILE}
    text = card(described, noise, FACTS)
    assert "<script" not in text
    assert "[x](http" not in text
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert len(titles) == 9
    (row,) = (line for line in text.splitlines() if line.startswith("| &lt;script"))
    assert row.replace("\\|", "").count("|") == 5


def test_a_card_without_a_test_set_says_that_accuracy_was_not_measured(finished):
    described, noise = finished.read(), read_noise(finished)
    described["summary"] |= {"last_accuracy": None, "auc": None}
    described["noise"], described["config"]["noise"] = None, None
    noise |= {"finding": "cannot judge", "evidence": False, "reason": "the network learned nothing"}
    text = card(described, noise, FACTS | {"commit": None})
    assert "Not measured: no test set was given" in text
    assert "AUC" not in text
    assert "made wrong on purpose" not in text
    assert "could not be told, because the network learned nothing" in text
    assert "commit of labelmend" not in text


def test_many_classes_are_cut(finished):
    noise = read_noise(finished)
    noise["classes"] = noise["classes"] * 20
    text = card(finished.read(), noise, FACTS)
    assert text.count("\n| ") == 1 + 100
    assert "and 100 more classes" in text


def test_the_commit_of_a_checkout_is_known():
    known = source_commit()
    assert known is None or len(known) == 40
