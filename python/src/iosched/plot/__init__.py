"""Pictures of runs and comparisons, for a notebook or a paper; needs matplotlib: pip install 'iosched[plot]'.

Every function draws into the Axes `ax` or into a new figure, and returns the Axes. A notebook shows `ax.figure`, and
`save(ax, path)` writes the figure to a file. The functions need no display and no pyplot. The legend is above the axes.
For a title, use `ax.figure.suptitle(...)`.

`runs` is a Run, a mapping of labels to Runs, a list of (label, Run), or a Comparison. For a comparison, the function
repeats the first run of each setting. It cannot do this for a comparison that was read from a file. Pictures show the
whole run, also the warm-up. A line has at most 4,000 points. More than 20,000 dots become an image in the file.

>>> with iosched.plot.style(paper=True):
...     ax = iosched.plot.latency_cdf({"bfq": one, "none": other}, op="read", tail=True)
>>> iosched.plot.save(ax, "latency.pdf")
"""

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, TypeAlias

try:
    import matplotlib
except ModuleNotFoundError:
    raise ImportError("iosched.plot needs matplotlib: pip install 'iosched[plot]'", name="matplotlib") from None

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator, PercentFormatter
from numpy.typing import NDArray

from .._native import Comparison, Run
from .._whole import write_whole
from ..errors import ArgumentTypeError, UsageError
from ._rows import OTHERS, SECTOR_BYTES, Floats, Rows

__all__ = ["depth", "head", "latency_cdf", "save", "shares", "style", "throughput", "verdicts"]

_Runs: TypeAlias = Run | Comparison | Mapping[str, Run] | Iterable[tuple[str, Run]]
_Bins: TypeAlias = int | Sequence[float]

# The palette of Okabe and Ito, for colour-blind readers too. Colours pale on white are last.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#F0E442"]
_QUIET = "#8C8C8C"
_DASHES = ["-", (0, (4, 1.2)), (0, (4, 1.2, 1, 1.2)), (0, (1.2, 0.8))]
# A latency of 0 is drawn at this latency, because a log axis has no 0.
_SHORTEST_S = 1e-9
# On paper, more points make no line finer. More dots make a vector file slow to display.
_LINE_POINTS_MOST = 4000
_VECTOR_POINTS_MOST = 20_000
_ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "frameon": False}
_AS_TEXT: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "iosched", "pdf.fonttype": 42, "ps.fonttype": 42}
# Metadata of the files, without a date, so that the same picture gives the same bytes.
_METADATA: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}


def latency_cdf(
    runs: _Runs, *, op: str | None = None, sync: bool | None = None, tail: bool = False, ax: Axes | None = None
) -> Axes:
    """Cumulative distribution of latency, with a line for each run: the share of bios completed within a time.

    Latency is the time from the submission of a bio to its completion. `op` is "read", "write", "discard",
    "write_zeroes" or "flush"; None selects all bios except flushes. `sync` selects only sync bios (True) or only async
    ones (False). With `tail`, the picture shows the share that took as long or longer, down to the slowest bio. Bios
    that were not complete at the end of the run are left out.
    """
    drawn = [(label, np.sort(Rows(label, run).latencies_s(op, sync))) for label, run in _labelled(runs)]
    ax = _axes(ax)
    for number, (label, latencies_s) in enumerate(drawn, len(ax.lines)):
        count = len(latencies_s)
        ranks = _ranks(count)
        x, look = latencies_s[ranks].clip(_SHORTEST_S), {"label": label, **_line(number, dash=number)}
        if tail:
            ax.plot(np.r_[x, x[-1]], np.r_[(count - ranks) / count, 0], drawstyle="steps-pre", **look)
        else:
            ax.plot(np.r_[x[0], x], np.r_[0, (ranks + 1) / count], drawstyle="steps-post", **look)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    decades = LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,))
    ax.xaxis.set_major_locator(MaxNLocator(4) if high < 5 * low else decades)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(EngFormatter(unit="s"))
    if tail:
        ax.set_yscale("log")
        ax.set_ylim(top=1.3, auto=True)
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    else:
        ax.set_ylim(0, 1.02)
        ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    what = " ".join(filter(None, ["" if sync is None else "sync" if sync else "async", op]))
    x_name = f"latency ({what})" if what else "latency"
    return _told(ax, x_name, "bios as long or longer" if tail else "bios done within")


def throughput(
    runs: _Runs, *, by: Literal["process", "op"] | None = None, bins: _Bins = 100, ax: Axes | None = None
) -> Axes:
    """MB/s read and written over time, with a line for each run, or for each of its processes or operations (`by`).

    Bytes count at the completion of their bio. `bins` is the number of steps, or their edges in s.
    """
    if by not in (None, "process", "op"):
        raise UsageError(f"by {by!r}: must be 'process', 'op' or None", argument="by")
    rows = [Rows(label, run) for label, run in _labelled(runs)]
    edges = _edges(bins, rows)
    ax = _axes(ax)
    places: dict[str, int] = {}
    for number, own in enumerate(rows):
        for name, chosen in own.groups(by, len(_COLOURS)):
            if by is None or own.bytes[chosen].any():
                label = " ".join(filter(None, [own.label, name]))
                look = _line(places.setdefault(name, len(places)), number, name) if by else _line(len(ax.patches))
                ax.stairs(own.mb_per_s(chosen, edges), edges, baseline=None, label=label, **look)
    return _over_time(ax, "throughput, MB/s")


def shares(run: Run, *, bins: _Bins = 100, ax: Axes | None = None) -> Axes:
    """The share of the throughput of each process over time; empty if no bytes were read or written.

    Processes have their names. With more than eight processes, the smallest processes are one part, "others". `bins` is
    as for `throughput`.
    """
    rows = Rows("", run)
    edges = _edges(bins, [rows])
    rates = [(name, rows.mb_per_s(chosen, edges)) for name, chosen in rows.groups("process", len(_COLOURS))]
    total = np.sum([rate for _, rate in rates], axis=0)
    if not total.any():
        raise UsageError(
            f"from {edges[0]:g} to {edges[-1]:g} s: no byte was read or written; choose other bins",
            argument="bins",
        )
    total[total == 0] = np.nan
    ax = _axes(ax)
    below = np.zeros(len(total))
    for number, (name, rate) in enumerate(rates):
        if rate.any():
            above = below + rate / total
            look = {"facecolor": _line(number, group=name)["color"], "edgecolor": "white", "linewidth": 0.2}
            ax.stairs(above, edges, baseline=below, fill=True, label=name, **look)
            below = above
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0, symbol=" %"))
    _over_time(ax, "share of throughput").set_ylim(0, 1)
    return ax


def head(run: Run, *, start: float | None = None, end: float | None = None, ax: Axes | None = None) -> Axes:
    """The positions of the head: the first sector of each request (in GB) at the time of its dispatch, by process.

    `start` and `end` are in s.
    """
    rows = Rows("", run)
    time_s, first_gb, inside = rows.dispatched_s, rows.first_sector() * SECTOR_BYTES / 1e9, rows.dispatched()
    last_s = time_s[inside].max(initial=0)
    after_s, before_s = 0 if start is None else start, last_s if end is None else end
    inside &= (time_s >= after_s) & (time_s <= before_s)
    points = np.count_nonzero(inside)
    if points == 0:
        raise UsageError(
            f"from {after_s:g} to {before_s:g} s: no request was dispatched; the last was at {last_s:.3f} s",
            argument="start",
        )
    size = min(3, max(0.5, 100 / points**0.5))
    look: dict[str, Any] = {"linestyle": "", "marker": "o", "markeredgewidth": 0, "markersize": size}
    ax = _axes(ax)
    for number, (name, chosen) in enumerate(rows.groups("process", len(_COLOURS))):
        x, y = time_s[chosen & inside], first_gb[chosen & inside]
        if len(x):
            colour, layer = _line(number, group=name)["color"], 1.9 if name == OTHERS else 2
            ax.plot(x, y, color=colour, label=name, zorder=layer, rasterized=points > _VECTOR_POINTS_MOST, **look)
    return _told(ax, "time, s", "position, GB", markerscale=3 / size)


def depth(runs: _Runs, *, bins: _Bins = 200, ax: Axes | None = None) -> Axes:
    """Bios in flight over time, in the queue and the device: the mean within each step.

    `bins` is as for `throughput`. A bio that was not complete at the end of the run is in flight until the end.
    """
    rows = [Rows(label, run) for label, run in _labelled(runs)]
    edges = _edges(bins, rows)
    ax = _axes(ax)
    for number, own in enumerate(rows, len(ax.patches)):
        ax.stairs(own.depth(edges), edges, baseline=None, label=own.label, **_line(number))
    return _over_time(ax, "bios in flight")


def verdicts(comparison: Comparison, metric: str, *, device: str | int | None = None, ax: Axes | None = None) -> Axes:
    """The mean of a metric under each setting, and the 95 % interval of its difference from the baseline.

    If an interval reaches the dashed line of the baseline, the difference is not certain. A full dot is the baseline,
    or a setting that is better or worse. `metric` is a metric of `comparison.verdicts`. With several devices, `device`
    is the name of a device, or its number from 0.
    """
    columns, devices = comparison.verdicts.to_dict(), comparison.devices
    if device is None and len(devices) > 1:
        raise UsageError(
            f"device: this comparison has several devices; name one of {', '.join(devices)}", argument="device"
        )
    name = device if isinstance(device, str) else next(iter(devices[device or 0 :][:1]), str(device))
    if name not in devices:
        raise UsageError(
            f"device {name}: this comparison does not have this device; available: {', '.join(devices)}",
            argument="device",
        )
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    rows = [row for row in rows if row["device"] == name]
    known = list(dict.fromkeys(row["metric"] for row in rows))
    if metric not in known:
        raise UsageError(
            f"metric {metric}: this comparison does not have this metric; available: {', '.join(known)}",
            argument="metric",
        )
    rows = [row for row in rows if row["metric"] == metric]
    # An application may report one metric in several units, the main one first.
    rows = [row for row in rows if row["unit"] == rows[0]["unit"]]
    baseline = next(row for row in rows if row["baseline"])
    ax = _axes(ax, len(rows))
    ax.axvline(baseline["mean"], color=_QUIET, linewidth=0.8, linestyle="--", zorder=1)
    for place, row in enumerate(rows):
        colour = {"better": _COLOURS[0], "worse": _COLOURS[1]}.get(row["verdict"], "black")
        inner = colour if row["baseline"] or row["verdict"] in ("better", "worse") else "white"
        reach = None
        if row["low"] is not None:
            reach = np.maximum(0, [[row["difference"] - row["low"]], [row["high"] - row["difference"]]])
        ax.errorbar(row["mean"], place, xerr=reach, fmt="o", color=colour, markerfacecolor=inner, capsize=2)
    ax.set_yticks(range(len(rows)), [row["scheduler"] for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(False, axis="y")
    # A fixed number of ticks. Otherwise their number depends on the space beside the verdicts, and
    # can change with each drawing.
    ax.xaxis.set_major_locator(MaxNLocator(nbins=3))
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(rows)), [_verdict(row) for row in rows])
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    good = {"lower": " (← lower is better)", "higher": " (higher is better →)"}.get(baseline["better"], "")
    ax.set_xlabel(f"{metric.replace('p999', 'p99.9').replace('_', ' ')}, {baseline['unit']}{good}")
    return ax


def style(paper: bool = True, *, columns: Literal[1, 2] = 1) -> AbstractContextManager[None]:
    """A `with` block that sets the sizes and the look of figures.

    A figure is as wide as one column of a paper (3.3 in) or two (7 in), with 8 pt. With `paper=False`, it is for a
    screen: 7 in with 10 pt. `ax.figure.set_size_inches` changes the size of one figure. Text stays text in SVG and PDF.
    """
    size = 8 if paper else 10
    look: dict[Any, Any] = {
        **_AS_TEXT,
        "figure.figsize": ((3.3, 2.3) if columns == 1 else (7.0, 2.8)) if paper else (7.0, 4.0),
        "figure.dpi": 150 if paper else 100,
        "font.size": size,
        **dict.fromkeys(["axes.labelsize", "axes.titlesize"], size),
        **dict.fromkeys(["xtick.labelsize", "ytick.labelsize", "legend.fontsize"], size - 1),
        "lines.linewidth": 1.0 if paper else 1.5,
        "lines.markersize": 4 if paper else 6,
        "axes.linewidth": 0.6 if paper else 0.8,
        "axes.prop_cycle": f"cycler(color={_COLOURS})",
        **dict.fromkeys(["axes.spines.top", "axes.spines.right"], False),
        **dict.fromkeys(["axes.grid", "axes.axisbelow"], True),
        "grid.color": "#E4E4E4",
        "grid.linewidth": 0.5,
    }
    return matplotlib.rc_context(look)


def save(figure: Figure | Axes, path: str | os.PathLike[str]) -> None:
    """Writes a figure, or the figure of an Axes, as PDF, SVG or PNG (300 dpi).

    The extension of the path chooses the format. The function writes the file completely or not at all. The same data
    and the same version of matplotlib give the same bytes. Text stays text.
    """
    place = Path(path)
    kind = place.suffix.lower()
    if kind not in _METADATA:
        raise UsageError(f"{place}: the name of a picture must end in {', '.join(_METADATA)}", argument="path")
    drawn = figure.get_figure(root=True) if isinstance(figure, Axes) else figure
    if drawn is None:
        raise UsageError("these Axes were removed from their figure; draw again", argument="figure")
    file = io.BytesIO()
    with matplotlib.rc_context(_AS_TEXT):
        drawn.savefig(file, format=kind[1:], dpi=300, metadata=_METADATA[kind])
    write_whole(place, file.getvalue())


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


# A notebook shows this figure without pyplot. Not a class statement, because matplotlib adds methods
# without types to classes.
_Figure: type[Figure] = type("_Figure", (Figure,), {"_repr_png_": _png})


def _labelled(runs: _Runs) -> list[tuple[str, Run]]:
    if isinstance(runs, Run):
        return [("", runs)]
    if isinstance(runs, Comparison):
        devices = runs.devices
        on = [f" on {device}" if len(devices) > 1 else "" for device in devices]
        return [(own + on[n], runs.run(own, device=n)) for n in range(len(devices)) for own in runs.schedulers]
    try:
        pairs = [(str(label), run) for label, run in (runs.items() if isinstance(runs, Mapping) else runs)]
    except (TypeError, ValueError) as error:
        told = "runs must be a Run, a Comparison, a mapping of labels to Runs or a list of (label, Run)"
        raise ArgumentTypeError(told, argument="runs") from error
    if not pairs:
        raise UsageError("runs: there is no run to draw; give at least one run", argument="runs")
    return pairs


def _edges(bins: _Bins, rows: list[Rows]) -> Floats:
    last_s = max(own.last_s() for own in rows)
    edges = np.linspace(0, last_s, max(bins, 0) + 1) if isinstance(bins, int | np.integer) else np.asarray(bins, float)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise UsageError(
            f"bins {bins}: must be a number of steps, at least 1, or two or more ascending edges in s", argument="bins"
        )
    return edges


def _ranks(count: int) -> NDArray[np.intp]:
    """Returns the indices of the sorted values to draw: all, or a sample of the body and all of the
    slowest.
    """
    if count <= _LINE_POINTS_MOST:
        return np.arange(count)
    half = _LINE_POINTS_MOST // 2
    body, slowest = np.linspace(0, count - 1, half), count - np.geomspace(1, count, half)
    return np.unique(np.r_[body, slowest].astype(np.intp))


def _axes(ax: Axes | None, rows: int = 0) -> Axes:
    """Returns the given Axes, or those of a new figure with room for this many rows of text."""
    if ax is not None:
        return ax
    figure = _Figure(layout="constrained")
    figure.set_figheight(max(figure.get_figheight(), matplotlib.rcParams["font.size"] / 72 * (2 * rows + 5)))
    return figure.add_subplot()


def _line(number: int, dash: int = 0, group: str = "") -> dict[str, Any]:
    further, colour = divmod(number, len(_COLOURS))
    return {
        "color": _QUIET if group == OTHERS else _COLOURS[colour],
        "linestyle": _DASHES[(dash + further) % len(_DASHES)],
        "linewidth": matplotlib.rcParams["lines.linewidth"],
    }


def _verdict(row: dict[str, Any]) -> str:
    if row["baseline"]:
        return "baseline"
    verdict, percent = row["verdict"] or "", row["percent"]
    if verdict in ("", "equal", "cannot_tell") or percent is None:
        return verdict.replace("_", " ")
    return f"{verdict}, {percent:+.{0 if abs(percent) >= 10 else 1}f} %".replace("-", "\N{MINUS SIGN}")


def _over_time(ax: Axes, y: str) -> Axes:
    ax.margins(x=0, y=0.08)
    ax.set_ylim(bottom=0, auto=True)
    return _told(ax, "time, s", y)


def _told(ax: Axes, x: str, y: str, markerscale: float = 1) -> Axes:
    """Adds names of the axes, and a legend above the axes."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    labels = ax.get_legend_handles_labels()[1]
    if labels:
        size = FontProperties(size=matplotlib.rcParams["legend.fontsize"]).get_size_in_points()
        room = ax.bbox.width / ax.figure.dpi * 72 / size
        fits = [columns for columns in range(1, len(labels) + 1) if _width(labels, columns) <= room]
        rows = -(-len(labels) // max(fits, default=1))
        small = size * min(1, room / _width(labels, 1))
        look = {"fontsize": small, "columnspacing": 1.2, "handlelength": 1.8, "markerscale": markerscale, **_ABOVE}
        for text in ax.legend(ncols=-(-len(labels) // rows), **look).get_texts():
            text.set_parse_math(False)
    return ax


def _width(labels: list[str], columns: int) -> float:
    """Returns the approximate width of a legend, in units of its font size."""
    return sum(0.58 * max(map(len, column)) + 3.8 for column in np.array_split(labels, columns))
