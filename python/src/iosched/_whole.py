"""Writes files completely or not at all."""

import os
import secrets
from pathlib import Path


def write_whole(place: Path, content: bytes) -> None:
    """Writes a temporary file in the same directory and renames it."""
    beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fdatasync(file.fileno())
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)
