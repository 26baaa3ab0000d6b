"""Converts dicts to the text that the native part reads."""

import json
from collections.abc import Mapping
from typing import Any


def as_json(fields: Mapping[str, Any]) -> str:
    """Returns the fields as JSON. Accepts numbers and arrays of numpy, but not NaN and infinity."""
    return json.dumps(fields, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"found {value!r:.80} of type {type(value).__name__}, expected a number, a text, a list or a dict")
