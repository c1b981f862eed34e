"""Names that steer the terminal or are far too long are shown harmlessly."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import EVIL, FROM_PROC, Corpus, noise, png, train_on

corpus = Corpus()
pytestmark = FROM_PROC


@corpus.case("folder")
def file_names_that_steer_the_terminal(world):
    return train_on(world.images(f"a/{EVIL.replace('/', '')}\n.png", b"no image"), world)


@corpus.case("folder")
def file_names_that_are_no_text(world):
    return train_on(world.images(b"a/\xff\xfe\x1b.png", png(seed=99)), world)


@corpus.case("folder")
def class_folder_that_steers_the_terminal(world):
    world.images()
    folder = world.here / "images" / EVIL.replace("/", "")
    folder.mkdir()
    (folder / "0.png").write_bytes(png(seed=99))
    return train_on(world.here / "images", world)


@corpus.case("csv")
def cells_that_steer_the_terminal(world):
    header = f"f,{EVIL},label,id\n".replace("\r", "")
    rows = "".join(f'{i},{i},"{EVIL}{i % 2}","{EVIL}{i}"\n' for i in range(8))
    world.write("x.csv", header + rows)
    return noise(world, "x.csv")


@corpus.case("npz")
def array_labels_that_steer_the_terminal(world):
    np.savez(world.here / "x.npz", x=np.zeros((8, 2)), y=np.array([EVIL, "plain"] * 4))
    return noise(world, "x.npz")


@corpus.case("npz")
def labels_of_a_megabyte(world):
    np.savez_compressed(world.here / "x.npz", x=np.zeros((8, 2)), y=np.array(["x" * (1 << 20), "y"] * 4))
    return noise(world, "x.npz")


@corpus.case("labels")
def labels_table_that_steers_the_terminal(world):
    run = world.run()
    labels = pq.read_table(run / "labels.parquet")
    for column in ("id", "given", "suggested"):
        evil = pa.array([f"{EVIL}{i}" for i in range(labels.num_rows)])
        labels = labels.set_column(labels.column_names.index(column), column, evil)
    pq.write_table(labels, run / "labels.parquet")
    return ["labels", run, "--verdict", "keep,relabel,look"]


@corpus.case("report")
def arguments_that_steer_the_terminal(world):
    return ["report", world.here / EVIL.replace("/", ""), f"--{EVIL}"]


@pytest.mark.parametrize("name", corpus.names())
def test_a_name_that_steers_the_terminal_is_neutralised(name, world, usual):
    corpus.meet(name, world, usual)
