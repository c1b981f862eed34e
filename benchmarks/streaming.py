"""Streaming against memory: the same losses in the tracking pass, and peak memory that does not grow with the set.

    python benchmarks/streaming.py --images FOLDER [--small 2000] [--times 10]

FOLDER is an image folder with at least small x times images. Each measurement runs in a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq


def run(images: Path, samples: int, memory: float, out: Path) -> dict[str, float]:
    """One epoch of cross-entropy without augmentation; gives peak memory in MiB and seconds."""
    from labelmend.training.config import TrainConfig
    from labelmend.training.prepare import prepare
    from labelmend.training.session import train

    config = TrainConfig(
        source=str(images), out=str(out), method="ce", epochs=1, limit=samples, memory=memory, threads=1, workers=1,
        net="convnet", settings={"augment": "none", "batch_size": "128"},
    )  # fmt: skip
    done, _ = train(prepare(config))
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"peak_mib": round(peak / 1024, 1), "seconds": done.read()["summary"]["seconds"]}


def measure(images: Path, samples: int, memory: float, out: Path) -> dict[str, float]:
    words = [sys.executable, __file__, "--images", images, "--child", samples, memory, out]
    shown = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout
    return json.loads(shown.splitlines()[-1])


def subset(images: Path, samples: int, folder: Path) -> Path:
    """Links to the first images of every class, so that preflight sees only these."""
    classes = sorted(path for path in images.iterdir() if path.is_dir())
    for of_class in classes:
        (folder / of_class.name).mkdir(parents=True)
        for path in sorted(of_class.iterdir())[: samples // len(classes)]:
            (folder / of_class.name / path.name).hardlink_to(path)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--small", type=int, default=2000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--child", nargs=3)
    asked = parser.parse_args()
    if asked.child:
        samples, memory, out = asked.child
        print(json.dumps(run(asked.images, int(samples), float(memory), Path(out))))
        return
    with tempfile.TemporaryDirectory(dir=asked.images.parent) as temporary:
        root = Path(temporary)
        sizes = (asked.small, asked.small * asked.times)
        small, large = (subset(asked.images, size, root / f"images-{size}") for size in sizes)
        found = {
            "held_small": measure(small, sizes[0], 4.0, root / "held"),
            "streamed_small": measure(small, sizes[0], 0.0, root / "small"),
            "streamed_large": measure(large, sizes[1], 0.0, root / "large"),
        }
        losses = [pq.read_table(root / name / "labels.parquet")["loss"].to_numpy() for name in ("held", "small")]
        found["largest_loss_difference"] = float(abs(losses[0] - losses[1]).max())
        found["samples"] = list(sizes)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
