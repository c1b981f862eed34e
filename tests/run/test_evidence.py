"""Evidence: pictures as a person would see them, features along their principal directions, losses of every pass."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from labelmend.data.kinds import decode
from labelmend.data.kinds.decode import UnusableImageError
from labelmend.run.directory import RunDirectory
from labelmend.run.evidence import (
    KeptFeatures,
    principal_components,
    read_features,
    read_suspects,
    write_features,
    write_suspects,
)
from labelmend.run.losses import append_losses, read_losses

TURNED_RIGHT = 6


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def thumbnail(original, root):
    return decode.thumbnail(decode.read_bytes(original, root))


def opened(content):
    return Image.open(io.BytesIO(content))


def test_a_thumbnail_keeps_the_proportions_of_its_original(tmp_path):
    (tmp_path / "wide.png").write_bytes(encoded(Image.new("RGB", (640, 200), "red")))
    small = opened(thumbnail(tmp_path / "wide.png", tmp_path))
    assert (small.size, small.format) == ((160, 50), "JPEG")
    red, green, _ = small.getpixel((80, 25))
    assert red > 200 > 50 > green


def test_a_thumbnail_is_turned_as_exif_says():
    exif = Image.Exif()
    exif[0x0112] = TURNED_RIGHT
    assert opened(thumbnail(encoded(Image.new("RGB", (400, 100)), "JPEG", exif=exif), None)).size == (40, 160)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "I;16"])
def test_a_tiny_image_keeps_its_size_and_is_lossless(mode):
    small = opened(thumbnail(encoded(Image.new(mode, (32, 20))), None))
    assert (small.size, small.format) == ((32, 20), "PNG")


def test_a_thumbnail_of_a_file_outside_the_root_is_refused(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "secret.png").write_bytes(encoded(Image.new("L", (9, 9))))
    with pytest.raises(UnusableImageError, match="outside"):
        thumbnail(tmp_path / "root" / ".." / "secret.png", tmp_path / "root")


def test_principal_components_are_those_of_the_singular_value_decomposition():
    features = torch.randn(200, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([9, 5, 3, 1, 0.5, 0.1])
    components, shares = principal_components(features)
    centred = (features - features.mean(dim=0)).double().numpy()
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    assert np.abs(components) == pytest.approx(np.abs(left * values), abs=1e-4)
    assert shares == pytest.approx(values**2 / (values**2).sum())


@pytest.mark.parametrize("features", [torch.ones(1, 4), torch.ones(30, 4)])
def test_features_without_variance_have_components_of_zero(features):
    components, shares = principal_components(features)
    assert not components.any()
    assert shares == [0.0]


def test_features_are_read_as_they_were_written(tmp_path):
    run = RunDirectory(tmp_path)
    run.evidence.mkdir()
    assert read_features(run) is None
    write_features(run, KeptFeatures(np.arange(3), np.eye(3, dtype=np.float32), [0.5, 0.25]))
    kept = read_features(run)
    assert kept.samples.tolist() == [0, 1, 2]
    assert (kept.components == np.eye(3)).all()
    assert kept.explained == [0.5, 0.25]


def test_losses_of_a_repeated_pass_replace_those_of_the_interrupted_one(tmp_path):
    path = tmp_path / "losses.f16"
    assert read_losses(path, samples=2, most_passes=9) is None
    for after, losses in ((0, [1.0, 2.0]), (1, [3.0, 4.0]), (1, [5.0, 1e9])):
        append_losses(path, torch.tensor(losses), after=after)
    assert read_losses(path, samples=2, most_passes=9).tolist() == [[1, 2], [5, 65504]]


@pytest.mark.parametrize(
    ("flagged", "expected"), [([1, 3], ["3", "1", "0", "2", "4"]), ([], ["0", "3", "2", "1", "4"])]
)
def test_flagged_labels_are_kept_first_and_then_the_others_by_rank(tmp_path, flagged, expected):
    run = RunDirectory(tmp_path)
    run.evidence.mkdir()
    table = SimpleNamespace(rank=np.array([1, 4, 3, 2, 5]), flagged=np.isin(np.arange(5), flagged))
    write_suspects(run, SimpleNamespace(ids=[str(row) for row in range(5)], shown=lambda rows: {}), table)
    assert read_suspects(run)[0]["id"].to_pylist() == expected
