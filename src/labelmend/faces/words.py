"""Where a run stands, in words; for every way to show it."""

from typing import Any


class EpochState:
    """Where a run stands, in words; the estimated noise rate is kept between tracking passes."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.noise: float | None = None

    def after(self, record: dict[str, Any]) -> str:
        """The state after an epoch: its number, accuracy and estimated noise rate, as far as they are known."""
        parts = [f"epoch {record['epoch']}/{self.epochs}"]
        if record["test_accuracy"] is not None:
            parts.append(f"accuracy {record['test_accuracy']:.3f}")
        self.noise = record["noise_rate"] if record["tracked"] else self.noise
        if self.noise is not None:
            parts.append(f"noise {self.noise:.0%}")
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """A time in its two largest units: `2 h 5 min`, `3 min 20 s`, `12 s`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
