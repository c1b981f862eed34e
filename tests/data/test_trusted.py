import pytest
import torch

from labelmend.core import generator
from labelmend.data import NoisyLabels, Samples
from labelmend.data.feed import SampleFeed, TrustedSamples
from labelmend.data.kinds import Normaliser
from labelmend.data.kinds.features import Features
from labelmend.data.trusted import trust
from labelmend.errors import InputError


def make_data(*, truth=True):
    """Twenty samples of two classes, a and b by turns; every label is wrong."""
    right = torch.arange(20) % 2
    labels = NoisyLabels(1 - right, right if truth else None)
    return Samples("set", Features(), torch.arange(40.0).view(20, 2), labels, ["a", "b"], [f"s{i}" for i in range(20)])


@pytest.mark.parametrize("text", ["3", "3-per-class"])
def test_so_many_of_each_class_get_their_right_labels_and_no_others(text):
    data = trust(text, make_data(), generator(0))
    assert data.labels.truth[data.trusted].bincount().tolist() == [3, 3]
    right = data.labels.observed == data.labels.truth
    assert right.nonzero()[:, 0].tolist() == data.trusted.tolist() == sorted(data.trusted.tolist())


def test_a_file_of_ids_and_labels_is_believed_over_everything(tmp_path):
    file = tmp_path / "checked.csv"
    file.write_text("id,label\ns4,b\ns1,a\n")
    data = trust(str(file), make_data(truth=False), generator(0))
    assert data.trusted.tolist() == [1, 4]
    assert data.labels.observed[[1, 4]].tolist() == [0, 1]


def test_ids_alone_say_that_the_labels_from_before_the_noise_are_right(tmp_path):
    file = tmp_path / "checked.txt"
    file.write_text("s4\n\ns7\n")
    assert trust(str(file), make_data(), generator(0)).labels.observed[[4, 7]].tolist() == [0, 1]
    assert trust(str(file), make_data(truth=False), generator(0)).labels.observed[[4, 7]].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("2-per-class", "are not; name samples that somebody has checked"),
        ("checked.json", "is neither N-per-class"),
        ("nowhere.csv", "there is no file"),
    ],
)
def test_what_cannot_be_trusted_is_said_in_a_sentence(text, complaint):
    with pytest.raises(InputError, match=complaint):
        trust(text, make_data(truth=False), generator(0))


@pytest.mark.parametrize("text", ["0", "11", "11-per-class"])
def test_a_class_cannot_give_more_than_it_has(text):
    with pytest.raises(InputError, match=r"at least 1|has only 10"):
        trust(text, make_data(), generator(0))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("id,label\nx,a\n", "are not in set"),
        ("id,label\ns1,a\ns1,b\n", "more than once"),
        ("id,label\ns1,c\n", "none of the 2 classes"),
        ("id\n", "names no sample"),
        ("name\ns1\n", "no column 'id'"),
    ],
)
def test_a_file_with_a_fault_is_refused(tmp_path, content, complaint):
    file = tmp_path / "checked.csv"
    file.write_text(content)
    with pytest.raises(InputError, match=complaint):
        trust(str(file), make_data(), generator(0))


def test_what_is_trusted_is_part_of_the_fingerprint():
    data = make_data()
    right = trust("10-per-class", data, generator(0))
    assert right.fingerprint() != Samples(**(vars(right) | {"trusted": None})).fingerprint()


def test_trusted_batches_know_where_their_samples_stand_in_the_training_set():
    index = torch.tensor([3, 5, 8])
    inputs = torch.tensor([[3.0], [5.0], [8.0]])
    same = Normaliser(torch.zeros(1), torch.ones(1))
    trusted = TrustedSamples(index, SampleFeed(inputs, torch.tensor([0, 1, 0]), normalise=same, batch_size=2))
    drawn = trusted.draw(2, generator(0))
    assert len(drawn) == 2
    assert drawn.inputs[:, 0].tolist() == drawn.index.tolist()
    assert len(trusted.draw(9, generator(0))) == len(trusted) == 3
    (swept,) = trusted.sweep()
    assert swept.index.tolist() == [3, 5, 8]
    assert swept.labels.tolist() == [0, 1, 0]
