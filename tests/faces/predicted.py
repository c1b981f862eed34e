"""Predictions that depend on sample and epoch alone."""

import torch

CLASSES = 3
SAMPLES = 90
LABELS = torch.arange(SAMPLES) % CLASSES


def logits_of(index, epoch=0):
    """Predictions for these samples, in which every tenth label is contradicted."""
    rng = torch.Generator().manual_seed(epoch)
    noise = torch.randn(SAMPLES, CLASSES, generator=rng)
    believed = (LABELS + (torch.arange(SAMPLES) % 10 == 0)) % CLASSES
    return (noise + 4 * torch.eye(CLASSES)[believed])[index]
