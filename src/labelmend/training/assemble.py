"""From a prepared run to a trainer: feeds, networks and optimisers on the device that trains."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..core import Learner, Task, generator
from ..data.feed import MemoryFeed, Normaliser, Share, TrustedSamples
from ..data.stream import StreamedImages, StreamFeed
from ..methods.variants import VARIANTS
from ..nets import build_net, start_from
from ..nets.preact_resnet import NormAt
from .prepare import Prepared
from .processes import Processes
from .trainer import Observer, Trainer


def assemble(
    prepared: Prepared,
    normalise: Normaliser,
    *,
    observer: Observer | None = None,
    stop_signal: Callable[[], int | None] = lambda: None,
) -> Trainer:
    """The trainer of a run, at its first epoch."""
    data, choices, processes = prepared.data, prepared.choices, Processes()
    feed = _feed(prepared, data.inputs, data.labels.observed, normalise, training=True)
    test = None
    if data.test is not None:
        test = _feed(prepared, data.test.inputs, data.test.labels, normalise, training=False)
    method = prepared.entry.build(prepared.options, choices.epochs)
    truth = data.labels.truth
    trusted = None if data.trusted is None else _trusted(prepared, data.trusted, normalise)
    return Trainer(
        method=method,
        learners=[_learner(prepared, number) for number in range(method.networks)],
        feed=feed,
        task=Task(feed.labels, len(data.class_names), choices.epochs, trusted),
        run=prepared.run,
        seed=prepared.config.seed,
        test=test,
        wrong=None if truth is None else truth != data.labels.observed,
        observer=observer or Observer(),
        stop_signal=stop_signal,
        processes=processes,
        save_every=60 * prepared.config.save_every,
        sample_id=lambda index: data.ids[index],
    )


def _feed(
    prepared: Prepared, inputs: Tensor | StreamedImages, labels: Tensor, normalise: Normaliser, *, training: bool
) -> MemoryFeed | StreamFeed:
    choices, device = prepared.choices, prepared.accelerator.device
    augment = choices.augment if training else None
    size = choices.batch_size
    share = Share(prepared.accelerator.process_index, prepared.accelerator.num_processes)
    if isinstance(inputs, Tensor):
        return MemoryFeed(
            inputs, labels, normalise=normalise, batch_size=size, augment=augment, device=device, share=share
        )
    return StreamFeed(
        inputs,
        labels,
        normalise=normalise,
        batch_size=size,
        augment=augment is not None,
        workers=prepared.config.workers,
        device=device,
        share=share,
    )


def _trusted(prepared: Prepared, index: Tensor, normalise: Normaliser) -> TrustedSamples:
    """The trusted samples, which are few, in memory even where the others are streamed."""
    data, choices = prepared.data, prepared.choices
    samples = MemoryFeed(
        data.samples(index.tolist()),
        data.labels.observed[index],
        normalise=normalise,
        batch_size=choices.batch_size,
        augment=choices.augment,
        device=prepared.accelerator.device,
    )
    return TrustedSamples(index, samples)


def _network(prepared: Prepared, number: int) -> nn.Module:
    network = build_net(
        prepared.choices.net,
        prepared.data.shape,
        len(prepared.data.class_names),
        rng=generator(prepared.config.seed, "network", number),
        norm_at=norm_at(prepared.options),
    )
    if prepared.config.init is not None:
        start_from(network, prepared.config.init)
    return network


def _learner(prepared: Prepared, number: int) -> Learner:
    optimisation, accelerator = prepared.optimisation, prepared.accelerator
    network = _network(prepared, number)
    network = network.to(accelerator.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(
        network.parameters(),
        lr=optimisation.learning_rate,
        momentum=optimisation.momentum,
        weight_decay=optimisation.weight_decay,
    )
    trained, optimiser = accelerator.prepare(network, optimiser)
    return Learner(
        accelerator.unwrap_model(trained),
        optimiser,
        backward=accelerator.backward,
        trained=trained,
        fresh=lambda: _network(prepared, number),
    )


def norm_at(options: Any) -> NormAt:
    """Where the network has its last normalisation: before the head, or in the released code after the stem."""
    return VARIANTS[getattr(options, "details", "paper")].norm_at
