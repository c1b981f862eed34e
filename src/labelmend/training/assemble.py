"""From a prepared run to a trainer: feeds, networks and optimisers on the device that trains."""

from collections.abc import Callable
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..core import Learner, Task, generator
from ..data.feed import ProcessShare, SampleFeed, TrustedSamples, WholeFeed
from ..data.kinds import Normaliser
from ..data.samples import Samples
from ..methods.variants import VARIANTS
from ..nets import BACKBONE, FastNet, Forest, build_net, is_trees, start_from
from ..nets.preact_resnet import NormAt
from .evaluation import most_views
from .observer import Observer
from .optimiser import rates_of
from .prepare import Prepared
from .processes import Processes
from .trainer import Trainer

WHITENED = 2_048
"""Images that the first layer of a fast network is set by."""


def assemble(
    prepared: Prepared,
    accelerator: Accelerator,
    normalise: Normaliser,
    *,
    observer: Observer | None = None,
    stop_signal: Callable[[], int | None] = lambda: None,
) -> Trainer:
    """The trainer of a run, at its first epoch."""
    data, choices, processes = prepared.data, prepared.choices, Processes()
    method = prepared.entry.build(prepared.options, choices.epochs)
    whole = method.networks if is_trees(choices.net) else None
    feed = _feed(prepared, accelerator, data, normalise, training=True, whole=whole)
    test = None if data.test is None else _feed(prepared, accelerator, data.test, normalise, training=False)
    truth = data.labels.truth
    trusted = None if data.trusted is None else _trusted(prepared, accelerator, data.trusted, normalise)
    return Trainer(
        method=method,
        learners=[_learner(prepared, accelerator, normalise, number) for number in range(method.networks)],
        feed=feed,
        task=Task(feed.labels, len(data.class_names), choices.epochs, trusted),
        run=prepared.run,
        seed=prepared.config.seed,
        test=test,
        wrong=None if truth is None else truth != data.labels.observed,
        observer=observer or Observer(),
        stop_signal=stop_signal,
        processes=processes,
        rates=rates_of(choices.optimiser),
        small_until=choices.optimiser.small_until,
        views=most_views(data, choices.net, published=choices.optimiser.rates == "published"),
        save_every=60 * prepared.config.save_every,
        sample_id=lambda index: data.ids[index],
    )


def _feed(
    prepared: Prepared,
    accelerator: Accelerator,
    samples: Samples,
    normalise: Normaliser,
    *,
    training: bool,
    whole: int | None = None,
) -> SampleFeed:
    """Batches of samples, or all of them for so many networks that learn everything at once."""
    if whole is not None:
        assert isinstance(samples.inputs, Tensor)
        return WholeFeed(
            samples.inputs,
            samples.labels.observed,
            normalise=normalise,
            times=whole,
            device=accelerator.device,
            share=ProcessShare(accelerator.process_index, accelerator.num_processes),
        )
    return SampleFeed(
        samples.prepared,
        samples.labels.observed,
        normalise=normalise,
        batch_size=prepared.choices.batch_size,
        augment=prepared.choices.augment if training else None,
        device=accelerator.device,
        share=ProcessShare(accelerator.process_index, accelerator.num_processes),
        workers=prepared.config.workers,
    )


def _trusted(prepared: Prepared, accelerator: Accelerator, index: Tensor, normalise: Normaliser) -> TrustedSamples:
    """The trusted samples, which are few, in memory even where the others are streamed."""
    samples = SampleFeed(
        prepared.data.loaded(index.tolist()),
        prepared.data.labels.observed[index],
        normalise=normalise,
        batch_size=prepared.choices.batch_size,
        augment=prepared.choices.augment,
        device=accelerator.device,
    )
    return TrustedSamples(index, samples)


def _network(prepared: Prepared, normalise: Normaliser, number: int) -> nn.Module:
    data = prepared.data
    network = build_net(
        prepared.choices.net,
        data.shape,
        len(data.class_names),
        rng=generator(prepared.config.seed, "network", number),
        norm_at=norm_at(prepared.options),
    )
    if isinstance(network, FastNet):
        rows = torch.randperm(len(data), generator=generator(0, "whitening"))[:WHITENED].tolist()
        network.fit_inputs(normalise.to("cpu")(data.loaded(rows)))
    pretrained = prepared.choices.net if prepared.choices.net.startswith(BACKBONE) else None
    if (start := prepared.config.init or pretrained) is not None:
        start_from(network, start)
    return network


def _learner(prepared: Prepared, accelerator: Accelerator, normalise: Normaliser, number: int) -> Learner:
    network = _network(prepared, normalise, number)
    network = network.to(accelerator.device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    settings = prepared.choices.optimiser
    trained, optimiser = accelerator.prepare(network, settings.build(network))
    return Learner(
        accelerator.unwrap_model(trained),
        optimiser,
        backward=accelerator.backward,
        trained=trained,
        fresh=lambda: _network(prepared, normalise, number),
        average=None if isinstance(network, Forest) else settings.average,
        fit=_tree_fit(network) if isinstance(network, Forest) else None,
    )


def _tree_fit(forest: Forest) -> Callable[[Tensor, Tensor, torch.Generator], None]:
    """How trees learn: all samples at once, with the threads of the run."""

    def fit(inputs: Tensor, targets: Tensor, rng: torch.Generator) -> None:
        seed = int(torch.randint(1 << 31, (), generator=rng))
        forest.fit(inputs, targets, seed=seed, threads=torch.get_num_threads())

    return fit


def norm_at(options: Any) -> NormAt:
    """Where the network has its last normalisation: before the head, or in the released code after the stem."""
    return VARIANTS[getattr(options, "details", "paper")].norm_at
