"""Converts a run's table of requests to arrays, and computes latencies, rates and depths."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._native import Run
from ..errors import ArgumentTypeError, UsageError

Floats: TypeAlias = NDArray[np.float64]
Chosen: TypeAlias = NDArray[np.bool_]

SECTOR_BYTES = 512
OTHERS = "others"


class Rows:
    """The columns of a run as arrays. Times are in s, and NaN if missing. Words are indices into lists of words."""

    def __init__(self, label: str, run: Run) -> None:
        if not isinstance(run, Run):
            told = f"a run must be an iosched.Run, a result of simulate(...), not {type(run).__name__}"
            raise ArgumentTypeError(told, argument="runs")
        table = run.requests
        self.label = label
        self.who = f"run {label}" if label else "this run"
        if len(table) == 0:
            raise UsageError(f"{self.who}: has no I/O to draw; use a longer run", argument="runs")
        try:
            columns = {name: table[name] for name in table.column_names}
        except ImportError:
            columns = dict(table.to_dict())
        self.submitted_s, self.dispatched_s, self.completed_s = (
            _numbers(columns[f"{what}_ns"]) / 1e9 for what in ("submitted", "dispatched", "completed")
        )
        self.sync = _numbers(columns["sync"]) == 1
        self.sector = _numbers(columns["sector"])
        self.request = _numbers(columns["request"]).astype(np.intp)
        self.op, self.ops = _words(columns["op"])
        self.process, self.processes = _words(columns["process"])
        if "" in self.processes:
            nameless = self.process == self.processes.index("")
            pids, own = np.unique(_numbers(columns["pid"])[nameless], return_inverse=True)
            self.process[nameless] = len(self.processes) + own
            self.processes += [f"pid {pid:.0f}" for pid in pids]
        moves = np.isin(self.op, [number for number, op in enumerate(self.ops) if op in ("read", "write")])
        self.bytes = np.where(moves, _numbers(columns["nr_sectors"]) * SECTOR_BYTES, 0)

    def last_s(self) -> float:
        """Returns the time of the last completion."""
        if np.isnan(self.completed_s).all():
            raise UsageError(f"{self.who}: no I/O was completed; use a longer run", argument="runs")
        return float(np.nanmax(self.completed_s))

    def latencies_s(self, op: str | None, sync: bool | None) -> Floats:
        """Returns latencies of completed I/Os. Flushes are included only with op="flush"."""
        if op is not None and op not in self.ops:
            raise UsageError(
                f"op {op}: {self.who} has no I/O with this operation; available: {', '.join(self.ops)}", argument="op"
            )
        wanted = [number for number, own in enumerate(self.ops) if (own != "flush" if op is None else own == op)]
        chosen = np.isin(self.op, wanted) & ~np.isnan(self.completed_s)
        if sync is not None:
            chosen &= self.sync == sync
        if not chosen.any():
            kind = "" if sync is None else "sync " if sync else "async "
            told = f"{self.who}: no {kind}{op or 'I/O'} was completed; leave out op= and sync= to select all"
            raise UsageError(told, argument="sync")
        return self.completed_s[chosen] - self.submitted_s[chosen]

    def groups(self, by: str | None, most: int) -> list[tuple[str, Chosen]]:
        """Returns the processes or operations in the order of their first I/O.

        If there are more than `most`, the ones with the fewest bytes become one group. `by=None` means one group.
        The order does not depend on the scheduler, so a process has the same colour in every run.
        """
        if by is None:
            return [("", np.full(len(self.bytes), True))]
        numbers, names = (self.process, self.processes) if by == "process" else (self.op, self.ops)
        here = np.flatnonzero(np.bincount(numbers))
        order = here[np.argsort(-np.bincount(numbers, weights=self.bytes)[here], kind="stable")]
        shown = order if len(order) <= most else order[: most - 1]
        first = {number: np.argmax(numbers == number) for number in shown}
        groups = [(names[number], numbers == number) for number in sorted(shown, key=lambda number: first[number])]
        return groups if len(shown) == len(order) else [*groups, (OTHERS, ~np.isin(numbers, shown))]

    def mb_per_s(self, chosen: Chosen, edges: Floats) -> Floats:
        chosen = chosen & ~np.isnan(self.completed_s)
        moved = np.histogram(self.completed_s[chosen], edges, weights=self.bytes[chosen])[0]
        return np.asarray(moved / np.diff(edges) / 1e6)

    def depth(self, edges: Floats) -> Floats:
        """Returns the mean number of bios in flight between two edges."""
        under_way_s = _elapsed(self.submitted_s, edges) - _elapsed(self.completed_s, edges)
        return np.asarray(under_way_s / np.diff(edges))

    def dispatched(self) -> Chosen:
        """Selects the rows of dispatched requests. Rows of merged bios are left out."""
        own = self.request == np.arange(len(self.request))
        return np.asarray(own & ~np.isnan(self.dispatched_s))

    def first_sector(self) -> Floats:
        """Returns the first sector of each request.

        A merged bio can have a lower sector than the first bio.
        """
        first = self.sector.copy()
        np.minimum.at(first, self.request, self.sector)
        return first


def _elapsed(times_s: Floats, edges: Floats) -> Floats:
    """Returns, for each step between two edges, the sum of the times since each of `times_s`."""
    times_s = np.sort(times_s[~np.isnan(times_s)])
    passed = np.searchsorted(times_s, edges)
    return np.diff(passed * edges - np.r_[0, np.cumsum(times_s)][passed])


def _numbers(column: Any) -> Floats:
    return np.asarray(column if isinstance(column, list) else column.to_numpy(), dtype=np.float64)


def _words(column: Any) -> tuple[NDArray[np.intp], list[str]]:
    if isinstance(column, list):
        numbers = {word: number for number, word in enumerate(dict.fromkeys(column))}
        return np.fromiter(map(numbers.__getitem__, column), np.intp, len(column)), list(numbers)
    whole = column.combine_chunks()
    return np.array(whole.indices.to_numpy(), dtype=np.intp), whole.dictionary.to_pylist()
