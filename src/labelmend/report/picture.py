"""Pictures inside a page: checked, as data URLs."""

import base64
import io
from dataclasses import dataclass

MOST_BYTES = 12_000
SMALL = 64
LARGEST_SIDE = 1024
KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg"}


@dataclass(frozen=True)
class Picture:
    """A picture as a data URL, and whether it is so small that its pixels should be shown as squares."""

    url: str
    small: bool


def as_picture(content: bytes | None, *, side: int | None = None) -> Picture | None:
    """The picture, brought to at most this many pixels a side; None if it is none."""
    from PIL import Image

    kind = next((name for start, name in KINDS.items() if content and content.startswith(start)), None)
    if content is None or kind is None:
        return None
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            if max(image.size) > LARGEST_SIDE:  # ours are small, and a bomb would hit the reader's browser
                return None
            small, shrunk = max(image.size) < SMALL, side is not None and max(image.size) > side
            if len(content) > MOST_BYTES or shrunk:
                plain = image.convert("RGB")
                if shrunk and side is not None:
                    plain.thumbnail((side, side))
                buffer = io.BytesIO()
                plain.save(buffer, "JPEG", quality=80)
                content, kind = buffer.getvalue(), "jpeg"
    except Exception:  # decoders raise whatever they like on a damaged file
        return None
    return Picture(f"data:image/{kind};base64,{base64.b64encode(content).decode()}", small)
