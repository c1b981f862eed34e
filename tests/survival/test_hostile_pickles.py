"""A pickle is never executed, under whatever name it comes."""

import pickle

import numpy as np
import pytest
import torch
from hostile import FROM_PROC, TRAIN, Corpus, cifar, noise, train_on, with_init, with_labels

corpus = Corpus()
pytestmark = FROM_PROC


def replaced(name: str, kind: str, *more: object) -> None:
    """A case for a file of a run that is a pickle."""
    label = f"pickle-as-{name.replace('/', '-')}-for-{kind}"
    corpus.cases[label] = kind, lambda world: [kind, world.run(name, world.pickled()), *more]


@corpus.case("npz")
def pickle_as_npz(world):
    world.write("x.npz", world.pickled())
    return noise(world, "x.npz")


@corpus.case("npz", quick=True)
def objects_inside_npz(world):
    np.savez(world.here / "x.npz", x=np.array([world.trap] * 4, dtype=object), y=np.array([world.trap] * 4))
    return noise(world, "x.npz")


@corpus.case("npz")
def npy_of_objects_as_npz(world):
    with (world.here / "x.npz").open("wb") as file:
        np.lib.format.write_array(file, np.array([world.trap], dtype=object))
    return noise(world, "x.npz")


@corpus.case("csv")
def pickle_as_csv(world):
    world.write("x.csv", world.pickled())
    return noise(world, "x.csv")


@corpus.case("parquet")
def pickle_as_parquet(world):
    world.write("x.parquet", world.pickled())
    return noise(world, "x.parquet")


@corpus.case("folder")
def pickle_as_png(world):
    return train_on(world.images("a/evil.png", world.pickled()), world)


@corpus.case("named", quick=True)
def pickle_as_cifar_batch(world):
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        world.write(name, world.pickled())
    return noise(world, "cifar10", "pair:0.1", "--root", world.here)


@corpus.case("named")
def pickle_as_cifar_names(world):
    cifar(world, pickle.dumps({"label_names": world.trap}))
    return noise(world, "cifar10", "pair:0.1", "--root", world.here)


@corpus.case("labels file")
def torch_archive_as_labels(world):
    torch.save({"label": world.trap}, world.here / "evil.pt")
    return with_labels(world, "evil.pt")


@corpus.case("labels file")
def pickle_as_labels(world):
    world.write("evil.pt", world.pickled())
    return with_labels(world, "evil.pt")


@corpus.case("labels file")
def objects_inside_labels(world):
    np.savez(world.here / "evil.npz", label=np.array([world.trap] * 4, dtype=object))
    return with_labels(world, "evil.npz")


@corpus.case("labels file")
def pickle_as_csv_labels(world):
    world.write("evil.csv", world.pickled())
    return with_labels(world, "evil.csv")


@corpus.case("init")
def pickle_as_weights(world):
    return with_init(world, world.pickled())


@corpus.case("init")
def torch_archive_as_weights(world):
    torch.save({"head.weight": world.trap}, world.here / "evil.pt")
    return with_init(world, (world.here / "evil.pt").read_bytes())


@corpus.case("undo")
def pickle_as_undo_log(world):
    return ["undo", world.corrected(world.pickled())]


@corpus.case("folder")
def pickles_as_checkpoints(world):
    run = world.run()
    for path in (run / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_bytes(world.pickled())
    return ["train", world.finished / "images", *TRAIN, "--out", run, "--resume"]


for _file in ("model.safetensors", "model.json"):
    replaced(_file, "predict", "digits")
for _file in ("run.json", "labels.parquet", "noise.json", "epochs.jsonl"):
    replaced(_file, "report")
for _file in ("evidence/suspects.parquet", "evidence/features.safetensors", "evidence/losses.f16"):
    replaced(_file, "report")
replaced("labels.parquet", "labels")
replaced("labels.parquet", "apply", "--out", "dest")
replaced("run.json", "apply", "--out", "dest")
replaced("preflight.json", "apply", "--out", "dest")


@pytest.mark.parametrize("name", corpus.names())
def test_a_pickle_runs_nothing(name, world, usual):
    corpus.meet(name, world, usual)
