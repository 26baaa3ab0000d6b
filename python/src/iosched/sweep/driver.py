"""Runs the units of a plan with an engine, and summarizes the dataset."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .. import _native
from .._native import FleetSummary, SweepPlan, SweepUnit
from ..errors import UsageError
from . import engines
from .store import Store, reader, remote

TOGETHER_MAX = 8
"""Largest number of units of one workload in a batch. A worker reads the workload once per batch."""
BATCHES_MIN = 1000
"""Number of batches above which a batch can have units of several workloads. Each batch costs the driver time, but
small batches keep all workers busy to the end."""
BATCH_MAX = 64
"""Largest number of units in a batch. If a worker is lost, its batch is lost too."""

PlanLike: TypeAlias = SweepPlan | str | os.PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Failed:
    """A unit that failed, and the reason."""

    workload: str
    device: str | None
    id: str | None
    problem: str


@dataclass
class Outcome:
    """The result of a sweep."""

    made: int = 0
    before: int = 0
    failed: list[Failed] = field(default_factory=list)
    others: int = 0
    """Units of the dataset that are from another plan or version."""


@dataclass(frozen=True)
class Progress:
    """The progress of a sweep."""

    done: int
    of: int
    failed: int
    workload: str


def as_plan(plan: PlanLike) -> SweepPlan:
    if isinstance(plan, SweepPlan):
        return plan
    if isinstance(plan, Mapping):
        return SweepPlan(dict(plan))
    return SweepPlan.open(plan)


def units(plan: PlanLike) -> tuple[list[SweepUnit], list[Failed]]:
    """The units of a plan, and the workloads that do not exist."""
    found, refused = as_plan(plan).units(remote)
    return found, [Failed(workload, None, None, problem) for workload, problem in refused]


def estimate(plan: PlanLike) -> dict[str, Any]:
    """Estimates the cost of a plan from one run of a few of its units.

    The keys are units, runs, bytes, core_s (seconds of one core; None if no unit could be tried),
    memory_bytes (of one unit, at most) and unreadable (of the tried units).
    """
    found, refused = units(plan)
    return {**_native.estimate(found, reader), "refused": len(refused)}


def batches(wanted: list[SweepUnit]) -> Iterator[engines.Batch]:
    """Returns batches of units.

    A batch has units of one workload, or of several workloads if there are many units.
    """
    enough = min(BATCH_MAX, len(wanted) // BATCHES_MIN)
    batch: list[SweepUnit] = []
    for _, same in itertools.groupby(wanted, key=lambda unit: unit.place):
        while together := list(itertools.islice(same, TOGETHER_MAX)):
            if batch and len(batch) + len(together) > enough:
                yield packed(batch)
                batch = []
            batch += together
    if batch:
        yield packed(batch)


def packed(some: list[SweepUnit]) -> engines.Batch:
    others = len({unit.place for unit in some}) - 1
    named = f"{some[0].workload} and {others} more" if others else some[0].workload
    return engines.Batch(named, [one.id for one in some], [one.to_json() for one in some])


def run(
    plan: PlanLike,
    output: str | os.PathLike[str],
    *,
    engine: str = "threads",
    address: Any = None,
    jobs: int | None = None,
    cpus: int = 1,
    progress: Callable[[Progress], object] | None = None,
) -> Outcome:
    """Runs the units of a plan that are missing in the dataset `output`, a directory or a URL that
    fsspec opens. `engine` is "threads" (of this process), "ray" or "dask". `address` is the
    address of the cluster; for Dask it can also be a Client. Without an address, the engine
    starts `jobs` workers on this machine. Each unit uses `cpus` threads of a worker. iosched
    calls `progress` after each unit. After Ctrl-C, the dataset keeps the finished units, and the
    same call continues the sweep.
    """
    for argument, value in (("jobs", jobs), ("cpus", cpus)):
        if value is not None and value < 1:
            raise UsageError(f"{argument} {value}: must be 1 or more", argument=argument)
    store = Store(output)
    found, refused = units(plan)
    done = store.done()
    wanted = [unit for unit in found if unit.id not in done]
    outcome = Outcome(before=len(found) - len(wanted), failed=refused)
    outcome.others = len(done) - outcome.before
    by_id = {unit.id: unit for unit in wanted}
    go = engines.chosen(engine, store.root, jobs, address, cpus)
    for _, said in go(batches(wanted)):
        for name, problem in said:
            unit = by_id[name]
            if problem is None:
                outcome.made += 1
            else:
                outcome.failed.append(Failed(unit.workload, unit.device, unit.id, problem))
            if progress is not None:
                failed = len(outcome.failed)
                progress(Progress(outcome.made + failed - len(refused), len(wanted), failed, unit.workload))
    outcome.failed.sort(key=lambda one: (one.workload, one.device or "", one.id or "", one.problem))
    store.put_failed(
        {"workload": one.workload, "device": one.device, "id": one.id, "problem": one.problem} for one in outcome.failed
    )
    return outcome


def summary(dataset: str | os.PathLike[str], metric: str = "sync_mean") -> FleetSummary:
    """The summary of a dataset for one metric.

    It has the setting to choose for each volume (a workload on a device), with its certainty. It also has the gain of
    all volumes together: with one setting for all, with one for each device, and with one for each volume.
    """
    store = Store(dataset)
    if not store.files("runs"):
        raise UsageError(f"{store.root}: this dataset has no results of a sweep", argument="output")
    return FleetSummary(store.table("runs"), store.table("verdicts"), metric)
