"""Tables and JSON that are huge, deep or of the wrong kind are refused."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import EVIL, FROM_PROC, Corpus, noise, npy_header, png

corpus = Corpus()
pytestmark = FROM_PROC


DEEP = b"[" * 100_000


@corpus.case("parquet")
def parquet_of_millions_of_equal_rows(world):
    pq.write_table(
        pa.table({"f": np.zeros(20_000_000, np.int8), "label": np.zeros(20_000_000, np.int8)}), world.here / "x.parquet"
    )
    return noise(world, "x.parquet")


@corpus.case("labels")
def labels_table_of_millions_of_equal_rows(world):
    run = world.run()
    table = pq.read_table(run / "labels.parquet").slice(0, 1)
    pq.write_table(table.take(pa.array(np.zeros(2_000_000, np.int64))), run / "labels.parquet")
    return ["labels", run]


@corpus.case("parquet")
def parquet_with_a_million_class_names(world):
    names = {"info": {"features": {"label": {"names": [str(i) for i in range(1_000_000)]}}}}
    rows = pa.table({"image": [png(seed=i) for i in range(4)], "label": pa.array([0, 1, 0, 1])})
    pq.write_table(rows.replace_schema_metadata({"huggingface": json.dumps(names)}), world.here / "x.parquet")
    return noise(world, "x.parquet")


@corpus.case("csv")
def cell_of_fifty_megabytes(world):
    world.write("x.csv", b"f,label\n1,a\n2," + b"b" * (50 << 20) + b"\n")
    return noise(world, "x.csv")


@corpus.case("csv")
def header_of_fifty_megabytes(world):
    world.write("x.csv", b"b" * (50 << 20))
    return noise(world, "x.csv")


@corpus.case("csv")
def csv_of_nothing_but_nul(world):
    world.write("x.csv", b"f,label\n" + b"\0" * (1 << 20))
    return noise(world, "x.csv")


@corpus.case("csv")
def hundred_thousand_columns(world):
    world.write("x.csv", "".join(",".join(f"{p}{i}" for i in range(100_000)) + "\n" for p in ("c", "", "")))
    return noise(world, "x.csv")


@corpus.case("csv")
def unknown_column_of_a_hundred_thousand(world):
    world.write("x.csv", "".join(",".join(f"{p}{i}" for i in range(100_000)) + "\n" for p in ("c", "", "")))
    return noise(world, "x.csv", "pair:0.1", "--label-column", "nowhere")


@corpus.case("report", quick=True)
def deep_run_json(world):
    return ["report", world.run("run.json", DEEP)]


@corpus.case("report")
def deep_noise_json(world):
    return ["report", world.run("noise.json", DEEP)]


@corpus.case("report")
def deep_epochs(world):
    return ["report", world.run("epochs.jsonl", DEEP)]


@corpus.case("predict")
def deep_model_json(world):
    return ["predict", world.run("model.json", DEEP), world.images()]


@corpus.case("undo")
def deep_undo_log(world):
    return ["undo", world.corrected(DEEP)]


@corpus.case("named")
def deep_class_map(world):
    return noise(world, "digits", f"asymmetric:0.2:{world.write('map.json', DEEP)}")


@corpus.case("named")
def deep_matrix(world):
    return noise(world, "digits", f"matrix:{world.write('matrix.json', DEEP)}")


@corpus.case("named")
def yaml_as_matrix(world):
    evil = f"!!python/object/apply:os.system ['touch {world.canary}']"
    return noise(world, "digits", f"matrix:{world.write('matrix.json', evil)}")


@corpus.case("named")
def absurd_shape_as_matrix(world):
    return noise(world, "digits", f"matrix:{world.write('matrix.npy', npy_header((1 << 40, 1 << 40), '<f8'))}")


@corpus.case("report")
def run_json_of_wrong_kinds(world):
    text = {"status": "finished", "config": [], "data": EVIL, "summary": 7, "noise": {"real": "x"}}
    return ["report", world.run("run.json", json.dumps(text))]


@corpus.case("apply")
def run_json_with_wrong_options(world):
    run = json.loads((world.finished / "run" / "run.json").read_text())
    run["config"] |= {"size": "x", "memory": None}
    return ["apply", world.run("run.json", json.dumps(run)), "--out", world.here / "dest"]


@pytest.mark.parametrize("name", corpus.names())
def test_a_table_or_json_that_harms_is_refused(name, world, usual):
    corpus.meet(name, world, usual)
