"""Sweeps: many comparisons, on this machine or on a cluster of Ray or Dask, and the gain of a fleet.

A plan lists workloads, devices, schedulers and seeds. A sweep divides the plan into units. Each unit is one
comparison, and its name depends on all its inputs. When a unit ends, its rows go into a dataset of Parquet files. The
dataset is the same for every engine, order and failure. If you stop a sweep, the same call runs the missing units.

>>> import tempfile
>>> import iosched
>>> plan = {"workloads": [{"command": "dd if=/dev/zero of=/f bs=64K count=4"}], "devices": ["sata-ssd", "nvme"],
...         "schedulers": ["none", "bfq"], "runs": 2}
>>> with tempfile.TemporaryDirectory() as results:
...     outcome = iosched.sweep.run(plan, results)
...     outcome.made, len(iosched.sweep.summary(results, "finish").volumes)
(2, 2)
"""

from .._native import FleetSummary, SweepPlan, SweepUnit
from .driver import Failed, Outcome, Progress, estimate, run, summary, units

__all__ = [
    "Failed",
    "FleetSummary",
    "Outcome",
    "Progress",
    "SweepPlan",
    "SweepUnit",
    "estimate",
    "run",
    "summary",
    "units",
]
