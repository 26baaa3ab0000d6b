"""Choose, tune and run I/O schedulers, with evidence.

Runs a workload (a block trace, a fio job file, tasks, or an application's command line) on modelled disks under Linux'
I/O schedulers, decision for decision as Linux takes them, and says which serves it best, and how sure that is.

>>> import iosched
>>> c = iosched.compare(None, "sata-7200", ["mq-deadline", "bfq"], runs=5)
>>> c.verdicts.column_names[:3]
['device', 'scheduler', 'metric']

Tables speak the Arrow PyCapsule protocol: pandas, polars, DuckDB and pyarrow take them without copying.
"""

from . import sweep
from ._native import (
    Advice,
    Comparison,
    Device,
    Goal,
    Judgement,
    Request,
    Run,
    Search,
    Setting,
    Table,
    Trace,
    Validation,
    Workload,
    __version__,
    compare,
    devices,
    doctor,
    judge,
    plan,
    read_trace,
    schedulers,
    simulate,
    space,
    tune,
    validate,
)
from .errors import (
    ArgumentTypeError,
    ColumnError,
    DeviceError,
    FileError,
    IoschedError,
    IoschedWarning,
    MissingFileError,
    PolicyError,
    RunError,
    TraceError,
    UsageError,
    WorkloadError,
)
from .policy import Elevator
from .search import advise, objective

__all__ = [
    "Advice",
    "ArgumentTypeError",
    "ColumnError",
    "Comparison",
    "Device",
    "DeviceError",
    "Elevator",
    "FileError",
    "Goal",
    "IoschedError",
    "IoschedWarning",
    "Judgement",
    "MissingFileError",
    "PolicyError",
    "Request",
    "Run",
    "RunError",
    "Search",
    "Setting",
    "Table",
    "Trace",
    "TraceError",
    "UsageError",
    "Validation",
    "Workload",
    "WorkloadError",
    "__version__",
    "advise",
    "compare",
    "devices",
    "doctor",
    "judge",
    "objective",
    "plan",
    "read_trace",
    "schedulers",
    "simulate",
    "space",
    "sweep",
    "tune",
    "validate",
]
