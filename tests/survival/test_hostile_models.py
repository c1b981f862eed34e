"""Weights and descriptions of models that lie about themselves are refused before they cost memory."""

import json
import struct

import numpy as np
import pytest
from hostile import EVIL, FROM_PROC, Corpus, World, with_init
from safetensors.numpy import save as save_tensors

corpus = Corpus()
pytestmark = FROM_PROC


def lying(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(begin: int, end: int, size: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": [size], "data_offsets": [begin, end]}


@corpus.case("init")
def header_of_an_exabyte(world):
    return with_init(world, struct.pack("<Q", 2**60) + b"{}")


@corpus.case("predict", quick=True)
def header_of_ninety_megabytes(world):
    entries = b",".join(b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(1_500_000))
    return ["predict", world.run("model.safetensors", struct.pack("<Q", len(entries) + 2) + b"{" + entries + b"}"), "x"]


@corpus.case("init")
def header_of_ninety_megabytes_as_weights(world):
    entries = b",".join(b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(1_500_000))
    return with_init(world, struct.pack("<Q", len(entries) + 2) + b"{" + entries + b"}")


@corpus.case("init")
def overlapping_tensors(world):
    return with_init(world, lying({"a": tensor(0, 16, 4), "b": tensor(8, 24, 4)}, bytes(24)))


@corpus.case("predict")
def tensors_beyond_the_end(world):
    return ["predict", world.run("model.safetensors", lying({"0/a": tensor(0, 2**40, 2**38)})), world.images()]


@corpus.case("report")
def features_of_no_sample(world):
    content = save_tensors({"index": np.array([10**9]), "features": np.zeros((1, 2), np.float32)})
    return ["report", world.run("evidence/features.safetensors", content)]


def described(world: World, **changes: object) -> list[object]:
    model = json.loads((world.finished / "run" / "model.json").read_text()) | changes
    return ["predict", world.run("model.json", json.dumps(model)), world.images()]


@corpus.case("predict")
def model_of_absurd_size(world):
    return described(world, net="mlp", shape=[3, 4000, 4000])


@corpus.case("predict")
def model_for_absurd_images(world):
    return described(world, shape=[1, 10**6, 10**6])


@corpus.case("predict")
def billions_of_networks(world):
    return described(world, networks=10**10)


@corpus.case("predict")
def no_network(world):
    return described(world, networks=0)


@corpus.case("predict")
def network_from_a_hub(world):
    return described(world, net="timm:hf-hub:evil/model")


@corpus.case("predict")
def statistics_of_another_shape(world):
    return described(world, mean=[0.0] * 100_000)


@corpus.case("predict")
def class_names_that_steer_the_terminal(world):
    return described(world, classes=[EVIL, "b\nc"])


@pytest.mark.parametrize("name", corpus.names())
def test_a_lying_model_is_refused(name, world, usual):
    corpus.meet(name, world, usual, terminal=name == "class-names-that-steer-the-terminal")
