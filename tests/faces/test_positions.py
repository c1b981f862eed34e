"""Samples that bring their positions, through any data set, collator and loader."""

import pickle

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, TensorDataset, default_collate

from labelmend.errors import InputError
from labelmend.faces.positions import KEY, Collated, Placed, indexed


class Rows:
    """Rows of a mapping, that can be read together."""

    name = "rows"

    def __init__(self):
        self.together = 0

    def __len__(self):
        return 5

    def __getitem__(self, position):
        return {"x": 10 * position}

    def __getitems__(self, positions):
        self.together += 1
        return [self[position] for position in positions]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


def test_a_mapping_gets_one_more_entry_and_anything_else_a_pair():
    assert Placed(Rows())[3] == {"x": 30, KEY: 3}
    assert Placed("abc")[1] == ("b", 1)


def test_samples_that_can_be_read_together_are_and_other_questions_are_passed_on():
    rows = Rows()
    placed = Placed(rows)
    assert placed.__getitems__([4, 0]) == [{"x": 40, KEY: 4}, {"x": 0, KEY: 0}]
    assert rows.together == 1
    assert placed.name == "rows"
    assert len(placed) == 5
    assert len(pickle.loads(pickle.dumps(placed))) == 5
    with pytest.raises(AttributeError):
        placed.colour  # noqa: B018


def test_a_collator_never_sees_positions_and_other_samples_are_collated_as_ever():
    seen = []

    def collate(samples):
        seen.extend(samples)
        return {"x": torch.tensor([sample["x"] for sample in samples])}

    batch = Collated(collate, pairs=False)([{"x": 1, KEY: 7}, {"x": 2, KEY: 3}])
    assert seen == [{"x": 1}, {"x": 2}]
    assert batch[KEY].tolist() == [7, 3]
    assert list(Collated(collate, pairs=False)([{"x": 1}])) == ["x"]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_keeps_its_order_its_batches_and_its_collator(workers):
    def make():
        rng = torch.Generator().manual_seed(1)
        return DataLoader(Rows(), 2, shuffle=True, generator=rng, drop_last=True, num_workers=workers)

    expected = [batch["x"].tolist() for batch in make()]
    found = [(batch["x"].tolist(), index.tolist()) for batch, index in indexed(make())]
    assert [x for x, _ in found] == expected
    assert all(x == [10 * position for position in index] for x, index in found)


def test_a_batch_sampler_of_ones_own_is_kept():
    data = TensorDataset(torch.arange(6))
    sampler = BatchSampler(RandomSampler(data, generator=torch.Generator().manual_seed(0)), 4, drop_last=False)

    class Longest(BatchSampler):
        pass

    own = Longest(sampler.sampler, 3, drop_last=False)
    loader = indexed(DataLoader(data, batch_sampler=own, collate_fn=default_collate))
    assert loader.batch_sampler is own
    assert sorted(position for _, index in loader for position in index.tolist()) == list(range(6))


def test_what_has_no_positions_is_refused():
    for make in (lambda: Placed(Stream()), lambda: indexed(DataLoader(Stream(), 2)), lambda: Placed(object())):
        with pytest.raises(InputError, match="has no positions"):
            make()
    with pytest.raises(InputError, match="takes a torch DataLoader"):
        indexed([1, 2])
    with pytest.raises(InputError, match="makes no batches"):
        indexed(DataLoader(Rows(), batch_size=None))
