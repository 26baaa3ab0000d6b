"""`python -m iosched.sweep`: runs a plan of `iosched sweep` on threads, Ray or Dask."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from datetime import timedelta
from typing import Any

from .._native import SweepPlan
from ..errors import IoschedError
from . import Outcome, Progress, estimate, run, summary
from .driver import as_plan

TOLD_MAX = 10
BAR = 30


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m iosched.sweep",
        description="Compare schedulers for many workloads, devices and seeds, on this machine or on a cluster. "
        "The plan is that of iosched sweep. If you stop a sweep, the dataset keeps the finished comparisons. "
        "The same command then runs the missing comparisons.",
    )
    parser.add_argument("plan", help="plan of the sweep, a TOML file")
    parser.add_argument("-o", "--output", metavar="DIR|URL", help="dataset: a directory, or a URL that fsspec opens")
    parser.add_argument(
        "--engine",
        choices=["threads", "ray", "dask"],
        default="threads",
        help="engine that runs the comparisons [default: threads]",
    )
    parser.add_argument(
        "--address", metavar="A", help="address of the cluster [default: start workers on this machine]"
    )
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="workers on this machine [default: one per CPU]")
    parser.add_argument("--cpus", type=int, default=1, metavar="N", help="threads of each comparison [default: 1]")
    parser.add_argument("--metric", default="sync_mean", help="metric to choose settings by [default: sync_mean]")
    parser.add_argument("--report", metavar="FILE", help="write a report (one HTML page) to this file")
    parser.add_argument("--dry-run", action="store_true", help="only print the plan, and estimate its time and memory")
    return parser


class Bar:
    """Shows the progress, on a terminal only."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.shown = 0.0
        self.on_terminal = sys.stderr.isatty()

    def __call__(self, now: Progress) -> None:
        moment = time.monotonic()
        if not self.on_terminal or (moment - self.shown < 0.1 and now.done < now.of):
            return
        self.shown = moment
        part = now.done / max(now.of, 1)
        left = timedelta(seconds=round((moment - self.began) * (1 - part) / max(part, 1e-9)))
        bar = ("=" * round(BAR * part)).ljust(BAR)
        sys.stderr.write(f"\r\x1b[K{bar} {now.done} of {now.of}, {left} to go, {now.failed} failed")
        sys.stderr.flush()

    def clear(self) -> None:
        if self.on_terminal and self.shown:
            sys.stderr.write("\r\x1b[K")


def told(outcome: Outcome, seconds: float) -> None:
    for one in outcome.failed[:TOLD_MAX]:
        named = "" if one.workload in one.problem else f"{one.workload}: "
        print(f"failed: {named}{one.problem}", file=sys.stderr)
    if len(outcome.failed) > TOLD_MAX:
        print(f"and {len(outcome.failed) - TOLD_MAX} more; failed.json in the dataset lists all", file=sys.stderr)
    made, before, failed = outcome.made, outcome.before, len(outcome.failed)
    print(f"{made:,} comparisons ran in {seconds:.1f} s, {before:,} existed already, {failed:,} failed")
    if outcome.others:
        print(
            f"{outcome.others:,} comparisons in the dataset are from another plan or version. "
            "The results below include these comparisons; to exclude them, use another directory"
        )


def dry_run(plan: SweepPlan, jobs: int) -> None:
    found = estimate(plan)
    print(f"comparisons   {found['units']:,}")
    print(f"runs          {found['runs']:,}, plus runs of each task alone")
    print(f"workloads     {found['bytes'] / 1e6:,.1f} MB; {found['refused']} do not exist")
    core_s = found["core_s"]
    if core_s is None:
        print("time          unknown, because iosched can read none of the sampled workloads")
    else:
        alone, here = timedelta(seconds=round(core_s)), timedelta(seconds=round(core_s / jobs))
        print(f"time          about {here} with {jobs} workers; {alone} on one core")
    print(f"memory        at most about {found['memory_bytes'] / 1e6:,.0f} MB for each worker")


def main(words: list[str] | None = None) -> int:
    parser = arguments()
    given = parser.parse_args(words)
    if given.output is None and not given.dry_run:
        parser.error("--output is missing; name the directory of the dataset, for example --output results")
    bar = Bar()

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        bar.clear()
        print(f"warning: {message}", file=sys.stderr)

    warnings.showwarning = warn
    try:
        plan = as_plan(given.plan)
        if given.dry_run:
            dry_run(plan, given.jobs or os.cpu_count() or 1)
            return 0
        began = time.monotonic()
        options = {"engine": given.engine, "address": given.address, "jobs": given.jobs, "cpus": given.cpus}
        outcome = run(plan, given.output, progress=bar, **options)
        bar.clear()
        told(outcome, time.monotonic() - began)
        if outcome.made + outcome.before:
            found = summary(given.output, given.metric)
            print()
            print(found.answer.replace(". ", ".\n"))
            for doubt in found.doubts:
                print(f"doubt: {doubt}")
            if given.report:
                found.report(given.report)
        return 1 if outcome.failed else 0
    except KeyboardInterrupt:
        bar.clear()
        print("stopped; to continue, run the same command again", file=sys.stderr)
        return 130
    except (IoschedError, ImportError) as error:
        bar.clear()
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        bar.clear()
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
