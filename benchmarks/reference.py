"""The cost structure of the authors' released M-DYR-H, as something to measure against.

Written from the facts in `shared/paper/released-code.md`, not from the code. What costs time is kept: images are loaded
one by one through PIL by a worker process; a step makes three forward passes, none of them without autograd; memory is
in the usual channel order; a tracking pass over augmented images follows every epoch; and the mixture is fitted with
SciPy to all losses. Where the facts leave a choice, the cheaper one is taken: workers stay alive between epochs, the
tracking pass keeps no graph, and the network is labelmend's, whose one BatchNorm outside the blocks is at the head.
"""

import random
from typing import Self

import numpy as np
import scipy.stats
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, Dataset

from labelmend.core import generator
from labelmend.nets import build_net

Floats = NDArray[np.float64]

PAD = 4
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
MIXUP_ALPHA = 32.0


class ScipyBetaMixture:
    """Two beta components fitted to the losses between the 5th and the 95th percentile by ten EM steps."""

    STEPS = 10
    BINS = 100
    EDGE, FIT_EDGE = 1e-3, 1e-4
    LEAST_DENSITY = 1e-12

    def __init__(self) -> None:
        self.low, self.span = 0.0, 1.0
        self.alphas, self.betas, self.weights = np.zeros(2), np.zeros(2), np.zeros(2)
        self.table = torch.zeros(self.BINS)

    def fit(self, losses: Floats) -> Self:
        """Fit from the same start every time, and tabulate P(wrong)."""
        self.alphas, self.betas, self.weights = np.array([1.0, 2.0]), np.array([2.0, 1.0]), np.array([0.5, 0.5])
        low, high = np.percentile(losses, [5, 95])
        self.low = low + 1e-5
        self.span = high - self.low + 1e-6
        kept = losses[(losses >= low) & (losses <= high)]
        scaled = np.clip(self._scale(kept), self.FIT_EDGE, 1 - self.FIT_EDGE)
        for _ in range(self.STEPS):
            shares = self._responsibilities(scaled)
            mass = shares.sum(axis=1)
            means = (shares * scaled).sum(axis=1) / mass
            variances = (shares * (scaled - means[:, None]) ** 2).sum(axis=1) / mass
            concentration = means * (1 - means) / variances - 1
            self.alphas, self.betas = means * concentration, (1 - means) * concentration
            self.weights = mass / mass.sum()
        self._tabulate()
        return self

    def wrong(self, losses: Tensor) -> Tensor:
        """P(wrong) of each loss, looked up."""
        scaled = torch.from_numpy(self._scale(losses.numpy()))
        cell = (scaled * self.BINS).long().clamp(0, self.BINS - 1)
        return self.table[cell].clamp(1e-4, 1 - 1e-4)

    def _scale(self, losses: Floats) -> Floats:
        scaled = (losses - self.low) / self.span
        scaled[scaled >= 1] = 1 - self.EDGE
        scaled[scaled <= 0] = self.EDGE
        return scaled

    def _responsibilities(self, scaled: Floats) -> Floats:
        components = zip(self.weights, self.alphas, self.betas, strict=True)
        densities = np.stack([weight * scipy.stats.beta.pdf(scaled, a, b) for weight, a, b in components])
        densities = np.maximum(densities, self.LEAST_DENSITY)
        return densities / densities.sum(axis=0)

    def _tabulate(self) -> None:
        noisy = self._responsibilities(np.linspace(self.FIT_EDGE, 1 - self.FIT_EDGE, self.BINS))[1]
        noisy[noisy.argmax() :] = noisy.max()
        self.table = torch.from_numpy(noisy).float()


class OneByOne(Dataset[tuple[Tensor, int, int]]):
    """Images padded, cropped, flipped and normalised one at a time, each with its label and its place."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images = np.ascontiguousarray(images.permute(0, 2, 3, 1).numpy())
        self.labels = labels.tolist()
        self.mean, self.std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> tuple[Tensor, int, int]:
        image = Image.fromarray(self.images[place])
        width, height = image.size
        padded = ImageOps.expand(image, border=PAD, fill=0)
        left, top = random.randint(0, 2 * PAD), random.randint(0, 2 * PAD)
        image = padded.crop((left, top, left + width, top + height))
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        return (pixels - self.mean) / self.std, self.labels[place], place


class Reference:
    """Released M-DYR-H after its warm-up: every epoch learns with corrected labels, tracks and refits."""

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        classes: int,
        *,
        net: str,
        batch_size: int = 128,
        learning_rate: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.classes = classes
        self.network = build_net(net, images.shape[1:], classes, rng=generator(seed, "network"))
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=learning_rate, momentum=0.9, weight_decay=1e-4)
        self.loader = DataLoader(
            OneByOne(images, labels), batch_size, shuffle=True, num_workers=1, persistent_workers=True
        )
        self.shares = np.random.default_rng(seed)
        self.mixture = ScipyBetaMixture()
        self.losses = np.zeros(len(labels))

    def epoch(self) -> None:
        """Learn, track and refit."""
        self.learn()
        self.track()

    def learn(self) -> None:
        """One epoch of optimisation steps."""
        self.network.train()
        for images, labels, _ in self.loader:
            guesses = self.network(images).detach().argmax(dim=1)
            share, partner = float(self.shares.beta(MIXUP_ALPHA, MIXUP_ALPHA)), torch.randperm(len(labels))
            logits = self.network(share * images + (1 - share) * images[partner])
            wrong = self._wrong(images, labels)
            log_probabilities = logits.log_softmax(dim=1)
            own = corrected_loss(log_probabilities, labels, guesses, wrong)
            other = corrected_loss(log_probabilities, labels[partner], guesses[partner], wrong[partner])
            loss = share * own + (1 - share) * other + self._penalty(logits)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()

    def track(self) -> None:
        """Losses of all samples on augmented images in evaluation mode, and the mixture fitted to them."""
        self.network.eval()
        with torch.no_grad():
            for images, labels, places in self.loader:
                self.losses[places.numpy()] = F.cross_entropy(self.network(images), labels, reduction="none").numpy()
        self.mixture.fit(self.losses)

    def _wrong(self, images: Tensor, labels: Tensor) -> Tensor:
        self.network.eval()
        losses = F.cross_entropy(self.network(images), labels, reduction="none")
        self.network.train()
        return self.mixture.wrong(losses.detach())

    def _penalty(self, logits: Tensor) -> Tensor:
        mean = logits.softmax(dim=1).mean(dim=0)
        prior = torch.full_like(mean, 1 / self.classes)
        return (prior * (prior / mean).log()).sum()


def corrected_loss(log_probabilities: Tensor, labels: Tensor, guesses: Tensor, wrong: Tensor) -> Tensor:
    """Cross-entropy against labels and guesses, weighted by P(wrong)."""
    given, guessed = (F.nll_loss(log_probabilities, target, reduction="none") for target in (labels, guesses))
    return ((1 - wrong) * given + wrong * guessed).mean()
