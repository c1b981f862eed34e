"""Well-known data sets by name, read from the user's own files in the forms in which they are published."""

from collections.abc import Callable
from pathlib import Path

from ...samples import Samples
from .cifar import cifar10, cifar100
from .clothes import clothes
from .clothing1m import clothing1m
from .digits import digits
from .idx import fashion_mnist, mnist
from .tiny_imagenet import tiny_imagenet

NAMED: dict[str, Callable[[Path | None], Samples]] = {
    "digits": digits,
    "clothes": clothes,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "tiny-imagenet": tiny_imagenet,
    "clothing1m": clothing1m,
}

__all__ = ["NAMED"]
