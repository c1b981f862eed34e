"""What Python code has is taken as it is, or refused by one clear sentence."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from labelmend.data.readers.objects import from_objects
from labelmend.data.sources import check_samples
from labelmend.errors import InputError

pandas = pytest.importorskip("pandas")

Y = np.arange(60) % 3
X = (np.random.default_rng(0).normal(size=(60, 4)) + Y[:, None]).astype(np.float32)
NAMES = np.array(["ant", "bee", "cow"])[Y]
FRAME = pandas.DataFrame(X, columns=[f"f{i}" for i in range(4)], index=[f"r{i}" for i in range(60)])
PIXELS = np.random.default_rng(1).integers(0, 256, (6, 8, 9, 3), dtype=np.uint8)


class Items:
    """A data set as PyTorch knows it: a length and items."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        return self.items[row]


FEATURES = {
    "arrays": (X, Y),
    "tensors": (torch.from_numpy(X), torch.from_numpy(Y)),
    "lists": (X.tolist(), Y.tolist()),
    "object labels": (X, NAMES.astype(object)),
    "a series of labels": (X, pandas.Series(NAMES)),
    "float labels": (X, Y.astype(float)),
}
ARROW = pa.table({name: FRAME[name].to_numpy() for name in FRAME} | {"label": NAMES})


class Stream:
    """What polars and others give: columns through Arrow's C interface, and nothing else."""

    def __arrow_c_stream__(self, requested_schema=None):
        return ARROW.__arrow_c_stream__(requested_schema)


TABLES = {
    "pandas": FRAME.assign(label=NAMES),
    "a categorical": FRAME.assign(label=pandas.Categorical(NAMES)),
    "arrow": ARROW,
    "arrow with short texts in place": ARROW.set_column(4, "label", ARROW["label"].cast(pa.string_view())),
    "an arrow stream": Stream(),
    "a frame and a series": (FRAME, pandas.Series(NAMES, index=FRAME.index)),
}
PAIRS = {
    "torch pairs": TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
    "dictionaries": Items([{"x": x, "label": y} for x, y in zip(X, Y, strict=True)]),
    "a list of pairs": list(zip(X, Y, strict=True)),
}


@pytest.mark.parametrize("case", FEATURES)
def test_rows_with_labels_beside_them_are_taken(case):
    for samples in (from_objects(*FEATURES[case]), from_objects(FEATURES[case])):
        assert torch.equal(samples.inputs, torch.from_numpy(X))
        assert samples.labels.observed.tolist() == Y.tolist()
        assert samples.kind.name == "features"


@pytest.mark.parametrize("case", PAIRS)
def test_data_sets_with_their_labels_are_taken(case):
    samples = from_objects(PAIRS[case])
    assert torch.equal(samples.inputs, torch.from_numpy(X))
    assert samples.labels.observed.tolist() == Y.tolist()


@pytest.mark.parametrize("case", TABLES)
def test_tables_with_their_labels_are_taken(case):
    samples, _ = check_samples(from_objects(TABLES[case]))
    middle = np.median(X, axis=0)
    spread = (np.quantile(X, 0.75, axis=0) - np.quantile(X, 0.25, axis=0)) / 1.349
    assert np.allclose(samples.inputs, (X - middle) / spread, atol=1e-5)
    assert samples.labels.observed.tolist() == Y.tolist()
    assert samples.kind.name == "table"


def test_a_frame_of_mixed_types_and_repeated_names_is_taken():
    frame = pandas.DataFrame({"a": [1.5, "x"] * 30, "b": FRAME["f0"].to_numpy(), "label": NAMES})
    samples, _ = check_samples(from_objects(frame.rename(columns={"a": "b"})))
    assert list(samples.kind.columns) == ["b = 1.5", "b = x", "b (2)"]


def test_columns_of_a_frame_keep_their_names_and_text_labels_theirs():
    samples, _ = check_samples(from_objects(FRAME.assign(species=NAMES), label="species"))
    assert list(samples.kind.columns) == ["f0", "f1", "f2", "f3"]
    assert list(samples.class_names) == ["ant", "bee", "cow"]


IMAGES = {
    "uint8 [N, H, W, 3]": PIXELS,
    "uint8 [N, 3, H, W]": np.moveaxis(PIXELS, -1, 1),
    "floats [N, 3, H, W]": np.moveaxis(PIXELS, -1, 1) / 255,
    "float tensors": torch.from_numpy(np.moveaxis(PIXELS, -1, 1)) / 255,
    "pictures": [Image.fromarray(pixels) for pixels in PIXELS],
    "an object array of pictures": np.array([Image.fromarray(p) for p in PIXELS] + [None], dtype=object)[:-1],
}


@pytest.mark.parametrize("case", IMAGES)
def test_images_of_one_size_become_bytes_with_channels_first(case):
    samples = from_objects(IMAGES[case], [0, 1] * 3)
    assert torch.equal(samples.inputs, torch.from_numpy(np.moveaxis(PIXELS, -1, 1).copy()))


def test_grey_floats_of_three_dimensions_are_images():
    grey = PIXELS[..., 0]
    assert torch.equal(from_objects(grey / 255, [0, 1] * 3).inputs, torch.from_numpy(grey)[:, None])


@pytest.mark.parametrize("form", ["pairs", "dictionaries", "frame"])
def test_pictures_of_several_sizes_come_to_one_and_keep_their_originals(form):
    pictures = [Image.fromarray(pixels) for pixels in PIXELS[:5]] + [Image.new("RGB", (40, 20))]
    labels = ["cat", "dog"] * 3
    data = {
        "pairs": Items(list(zip(pictures, labels, strict=True))),
        "dictionaries": Items([{"image": p, "label": y} for p, y in zip(pictures, labels, strict=True)]),
        "frame": pandas.DataFrame({"image": pictures, "label": labels}),
    }[form]
    samples, preflight = check_samples(from_objects(data))
    assert samples.inputs.shape == (6, 3, 8, 9)
    assert preflight.problems == []
    shown = samples.shown([5])["picture"][0]
    import io

    assert Image.open(io.BytesIO(shown)).size == (40, 20)


def test_paths_in_a_frame_are_opened_where_they_are(tmp_path):
    paths = []
    for i, pixels in enumerate(PIXELS):
        paths.append(str(tmp_path / f"{i}.png"))
        Image.fromarray(pixels).save(paths[-1])
    frame = pandas.DataFrame({"path": paths, "species": ["cat", "dog"] * 3})
    samples, _ = check_samples(from_objects(frame, label="species", image="path"))
    assert samples.inputs.shape == (6, 3, 8, 9)


def test_class_names_of_a_torch_data_set_are_used():
    items = Items([(x, int(y)) for x, y in zip(X, Y, strict=True)])
    items.classes = ["ant", "bee", "cow"]
    assert list(from_objects(items).class_names) == ["ant", "bee", "cow"]


def test_a_hugging_face_data_set_keeps_the_names_of_its_classes():
    datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
    features = datasets.Features({"f": datasets.Value("float32"), "label": datasets.ClassLabel(names=["zebra", "ant"])})
    samples = from_objects(datasets.Dataset.from_dict({"f": [0.0, 1.0], "label": [0, 1]}, features=features))
    assert samples.label_names == ["zebra", "ant"]


def test_a_test_set_of_the_same_form_is_kept():
    assert len(from_objects((X, Y), test=(X[:9], Y[:9])).test) == 9
    assert len(from_objects(TABLES["pandas"], test=TABLES["pandas"][:9]).test) == 9


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (X, {}, "without labels"),
        (FRAME, {}, "no column of data looks like labels"),
        (TABLES["pandas"], {"label": "kind"}, "no label column 'kind'"),
        (3, {}, "a int is not an array"),
        ((X, Y[:7]), {}, "60 samples in x but 7 labels"),
        ((X[:, 0], Y), {}, "x of shape"),
        ((X.astype(complex), Y), {}, "type complex"),
        ((np.moveaxis(PIXELS, -1, 1) / 9, [0, 1] * 3), {}, "floats outside 0..1"),
        ((X, np.stack([Y, Y], axis=1)), {}, "labels are one number or text"),
        (Items([(x,) for x in X]), {}, "must be a pair"),
        (Items([{"a": 1}]), {}, "has no input"),
        (([np.zeros(3), np.zeros(4)], [0, 1]), {}, "differ in shape"),
    ],
)
def test_what_cannot_be_used_is_refused_by_one_sentence(data, options, expected):
    with pytest.raises(InputError, match=expected) as error:
        from_objects(data, **options)
    assert "\n" not in str(error.value)
