"""Images that are bombs, films or no images are refused."""

import io
import struct
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import FROM_PROC, Corpus, train_on
from PIL import Image

corpus = Corpus()
pytestmark = FROM_PROC


def png_claiming(width: int, height: int, *more: tuple[bytes, bytes]) -> bytes:
    """A PNG whose header promises this size, and whose pixels are all alike."""
    rows = zlib.compressobj(9)
    pixels = b"".join([*(rows.compress(bytes(width + 1)) for _ in range(min(height, 10_000))), rows.flush()])
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), *more, (b"IDAT", pixels), (b"IEND", b"")]
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


@corpus.case("folder", quick=True)
def png_bomb(world):
    return train_on(world.images("a/bomb.png", png_claiming(60_000, 60_000)), world)


@corpus.case("folder")
def png_bomb_below_the_library_limit(world):
    return train_on(world.images("a/bomb.png", png_claiming(9_400, 9_400)), world)


@corpus.case("folder")
def png_with_a_text_bomb(world):
    text = zlib.compress(bytes(200 << 20), 9)
    return train_on(world.images("a/bomb.png", png_claiming(8, 8, (b"zTXt", b"a\0\0" + text))), world)


@corpus.case("folder")
def jpeg_bomb(world):
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    content = bytearray(file.getvalue())
    start = content.index(b"\xff\xc0") + 5
    content[start : start + 4] = struct.pack(">HH", 65_000, 65_000)
    return train_on(world.images("a/bomb.jpg", bytes(content)), world)


@corpus.case("folder")
def gif_of_five_thousand_frames(world):
    frames = [Image.new("L", (8, 8), number % 256) for number in range(5000)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return train_on(world.images("a/film.gif", file.getvalue()), world)


@corpus.case("folder")
def svg_and_html_as_png(world):
    world.images("a/evil.png", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    world.write("images/b/evil.png", "<!doctype html><script>alert(1)</script>")
    return train_on(world.here / "images", world)


@corpus.case("folder")
def postscript_as_png(world):
    script = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n({world.canary}) (w) file closefile\n"
    return train_on(world.images("a/evil.png", script.encode()), world)


@corpus.case("report")
def picture_bomb_in_the_evidence(world):
    run = world.run()
    labels = pq.read_table(run / "labels.parquet")
    flagged = pa.array(["look"] * labels.num_rows)
    pq.write_table(labels.set_column(labels.column_names.index("verdict"), "verdict", flagged), run / "labels.parquet")
    pictures = pa.array([png_claiming(60_000, 60_000)] * labels.num_rows, pa.binary())
    pq.write_table(pa.table({"id": labels["id"], "picture": pictures}), run / "evidence" / "suspects.parquet")
    return ["report", run]


@pytest.mark.parametrize("name", corpus.names())
def test_an_image_that_harms_is_refused(name, world, usual):
    corpus.meet(name, world, usual)
