"""Links, devices and paths that lead elsewhere are not followed."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import FROM_PROC, Corpus, noise, train_on

corpus = Corpus()
pytestmark = FROM_PROC


@corpus.case("folder")
def image_linked_from_outside(world):
    world.images()
    (world.here / "images" / "a" / "link.png").symlink_to(world.finished / "images" / "a" / "0.png")
    return train_on(world.here / "images", world)


@corpus.case("folder")
def class_folder_linked_to_the_whole_disk(world):
    world.images()
    (world.here / "images" / "c").symlink_to("/")
    return train_on(world.here / "images", world)


@corpus.case("folder", quick=True)
def pipes_and_endless_devices_as_images(world):
    world.images()
    os.mkfifo(world.here / "images" / "a" / "pipe.png")
    (world.here / "images" / "b" / "zero.png").symlink_to("/dev/zero")
    return train_on(world.here / "images", world)


@corpus.case("csv")
def endless_device_as_table(world):
    (world.here / "x.csv").symlink_to("/dev/zero")
    return noise(world, "x.csv")


@corpus.case("npz")
def pipe_as_npz(world):
    os.mkfifo(world.here / "x.npz")
    return noise(world, "x.npz")


@corpus.case("predict")
def endless_device_as_model_json(world):
    run = world.run()
    (run / "model.json").unlink()
    (run / "model.json").symlink_to("/dev/zero")
    return ["predict", run, world.finished / "images"]


@corpus.case("report")
def endless_device_as_noise_json(world):
    run = world.run()
    (run / "noise.json").unlink()
    (run / "noise.json").symlink_to("/dev/zero")
    return ["report", run]


@corpus.case("csv", quick=True)
def paths_out_of_the_root_in_a_table(world):
    paths = ["../../etc/passwd", "/etc/passwd", "a\0b.png", "~root/x.png", str(world.finished / "images/a/0.png")]
    world.write("x.csv", "image,label\n" + "".join(f"{path},{'ab'[i % 2]}\n" for i, path in enumerate(paths)))
    return noise(world, "x.csv")


@corpus.case("apply")
def ids_out_of_the_root(world):
    run = world.run()
    labels = pq.read_table(run / "labels.parquet")
    ids = pa.array([f"../../{id}" for id in labels["id"].to_pylist()])
    pq.write_table(labels.set_column(0, "id", ids), run / "labels.parquet")
    return ["apply", run, "--out", world.here / "dest", "--write"]


@corpus.case("undo")
def moves_out_of_the_root(world):
    record = json.loads((world.finished / "corrected" / "undo.json").read_text())
    record["moves"] = [["a/0.png", "../../escaped.png"], ["/etc/passwd", "a/0.png"]]
    return ["undo", world.corrected(json.dumps(record)), "--force"]


@pytest.mark.parametrize("name", corpus.names())
def test_a_path_that_leads_elsewhere_is_not_followed(name, world, usual):
    corpus.meet(name, world, usual)
