"""Errors and warnings of the package.

Every error is an `IoschedError`. Its attribute `argument` has the name of the wrong argument, or None. If Python has a
class for the same kind of error, the class here is also a subclass of that class. For example, MissingFileError is also
a FileNotFoundError.
"""

from __future__ import annotations

import re
from typing import Any

_QUOTED_CHARS_MAX = 200
_NOTE_CHARS_MAX = 40


def _shortened(text: object) -> object:
    """Shortens the long words of a text, because they are quoted input."""

    def short(word: re.Match[str]) -> str:
        more = len(word[0]) - _QUOTED_CHARS_MAX
        return f"{word[0][:_QUOTED_CHARS_MAX]}… ({more} more characters)"

    if not isinstance(text, str):
        return text
    least = _QUOTED_CHARS_MAX + _NOTE_CHARS_MAX
    # Carets that mark a part of the text that is cut off.
    text = re.sub(rf" {{{least},}}\^+", "", text)
    return re.sub(rf"\S{{{least},}}", short, text)


class IoschedError(Exception):
    """Any error that iosched reports. Its text quotes at most 200 characters of an input."""

    argument: str | None = None
    """The name of the wrong argument. None if no argument is wrong."""

    def __init__(self, *text: object, argument: str | None = None) -> None:
        super().__init__(*map(_shortened, text))
        if argument is not None:
            self.argument = argument

    def __str__(self) -> str:
        # KeyError.__str__ would put the text in quotes.
        return Exception.__str__(self)

    def add_note(self, note: str, /) -> None:
        """Adds a note, as other exceptions do.

        The native part uses it to name the wrong argument.
        """
        named = re.fullmatch(r"while processing '(\w+)'", note)
        if named is None:
            self.__notes__ = [*getattr(self, "__notes__", ()), note]
        elif self.argument is None:
            self.argument = named[1]
            self.args = (f"{self.argument}: {self}",)


class UsageError(IoschedError, ValueError):
    """An argument has a wrong value. Change the value."""


class ArgumentTypeError(UsageError, TypeError):
    """An argument has a wrong type."""


class ColumnError(UsageError, KeyError):
    """A table has no column with this name."""


class DeviceError(UsageError):
    """The device profile does not exist or is not valid."""


class WorkloadError(UsageError):
    """The workload is not valid."""


class TraceError(WorkloadError):
    """The trace is not valid, or a part of the recording is missing."""


class FileError(IoschedError, OSError):
    """A file cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file does not exist."""


class RunError(IoschedError):
    """A run failed."""


class PolicyError(RunError):
    """An elevator written in Python raised an exception or returned a wrong value."""

    time_ns: int
    """The virtual time of the error, in ns from the start of the run."""
    method: str
    """The method that failed."""
    queued: list[Any]
    """The requests that the elevator held."""
    policy: Any
    """The elevator."""


class IoschedWarning(UserWarning):
    """The package changed or left out a part of its input, or a sweep waits for workers."""
