"""Pictures: what they show is what the tables have, files are whole and the same each time, what is wrong is told."""

import subprocess
import sys
import time
import xml.etree.ElementTree as xml
import zlib
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import iosched

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.figure import Figure  # noqa: E402

from iosched import plot  # noqa: E402

SAMPLE = ["mq-deadline", "bfq", "cfq:slice_idle=0"]


def tasks(*, count: int, total: int, op: str = "read", names: str = "worker{}") -> dict:
    own = [
        {"pid": n + 1, "name": names.format(n), "pattern": "random", "total": total * (n + 1), "op": op}
        for n in range(count)
    ]
    return {"name": "many", "tasks": own}


@pytest.fixture(scope="module")
def runs() -> dict[str, iosched.Run]:
    return {scheduler: iosched.simulate(scheduler=scheduler) for scheduler in SAMPLE}


@pytest.fixture(scope="module")
def run(runs) -> iosched.Run:
    return runs["bfq"]


@pytest.fixture(scope="module")
def crowd() -> iosched.Run:
    return iosched.simulate(tasks(count=12, total=100), "sata-7200", "bfq")


@pytest.fixture(scope="module")
def compared() -> iosched.Comparison:
    return iosched.compare(scheduler=SAMPLE, runs=4)


@pytest.fixture(scope="module")
def several() -> iosched.Comparison:
    return iosched.compare(tasks(count=2, total=50), ["sata-ssd", "nvme"], ["none", "bfq"], runs=2)


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def latencies_s(run: iosched.Run, **wanted: object) -> pd.Series:
    rows = run.requests.to_pandas()
    rows = rows[rows.op != "flush"] if wanted.get("op") is None else rows
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    return ((rows.completed_ns - rows.submitted_ns) / 1e9).dropna()


def labels(ax) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def test_matplotlib_is_needed_for_pictures_only():
    assert python("import iosched, sys; print('matplotlib' in sys.modules, 'numpy' in sys.modules)") == "False False\n"
    assert python("import iosched.plot, sys; print('matplotlib.pyplot' in sys.modules)") == "False\n"
    told = python(
        "import sys; sys.modules['matplotlib'] = None\n"
        "try: import iosched.plot\nexcept ImportError as error: print(error.name, error)"
    )
    assert told == "matplotlib iosched.plot needs matplotlib: pip install 'iosched[plot]'\n"


@pytest.mark.parametrize("wanted", [{}, {"op": "read"}, {"sync": False}, {"op": "flush", "sync": True}], ids=repr)
def test_a_distribution_is_that_of_the_table(run, wanted):
    own = latencies_s(run, **wanted)
    x, y = plot.latency_cdf(run, **wanted).lines[0].get_data()
    assert (y[0], y[-1]) == (0, 1)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) > 0).all()
    assert x[-1] == pytest.approx(own.max())
    for share in (0.1, 0.5, 0.99):
        wanted_s = np.quantile(own, share, method="inverted_cdf")
        assert x[np.searchsorted(y, share)] == pytest.approx(wanted_s, rel=0.02)


def test_quantiles_are_those_of_the_figures(runs):
    # Figures come from buckets 1.6 % wide.
    for scheduler, run in runs.items():
        x, y = plot.latency_cdf({scheduler: run}, sync=True).lines[0].get_data()
        assert x[np.searchsorted(y, 0.5)] * 1e3 == pytest.approx(run.metrics["sync_p50"], rel=0.04)
        x, y = plot.latency_cdf({scheduler: run}, sync=True, tail=True).lines[0].get_data()
        assert x[np.flatnonzero(y >= 0.01)[-1]] * 1e3 == pytest.approx(run.metrics["sync_p99"], rel=0.04)
        assert x.max() * 1e3 == pytest.approx(run.metrics["sync_worst"])


def test_of_many_points_few_are_drawn_and_the_slowest_all():
    run = iosched.simulate(tasks(count=2, total=20_000), "sata-7200", "none")
    own = np.sort(latencies_s(run))
    for tail in (False, True):
        x, y = plot.latency_cdf(run, tail=tail).lines[0].get_data()
        assert len(x) < 5000
        assert np.abs(x - own[-50:, None]).min(axis=1).max() < 1e-12
        # No step is larger than half a thousandth of all.
        assert np.abs(np.diff(y)).max() < 1 / 1900
    assert y[-2] == 1 / len(own)


def test_throughput_adds_up_to_the_bytes_done(runs):
    ax = plot.throughput(runs, bins=37)
    assert labels(ax) == SAMPLE
    for run, patch in zip(runs.values(), ax.patches, strict=True):
        rate, edges, _ = patch.get_data()
        assert (len(rate), edges[0]) == (37, 0)
        assert (rate * np.diff(edges)).sum() == pytest.approx(run.metrics["throughput"] * run.metrics["finish"])


@pytest.mark.parametrize("by", ["process", "op"])
def test_parts_of_throughput_are_the_whole(run, by):
    edges = [0.5, 1, 3, 10]
    (whole,) = plot.throughput(run, bins=edges).patches
    ax = plot.throughput(run, by=by, bins=edges)
    assert np.sum([patch.get_data().values for patch in ax.patches], axis=0) == pytest.approx(whole.get_data().values)
    rows = run.requests.to_pandas()
    moved = rows[rows.op.isin(["read", "write"])].groupby(by, observed=True).nr_sectors.sum()
    assert labels(ax) == [name for name in rows[by].unique() if moved.get(name, 0) > 0]


def test_a_process_has_one_colour_in_all_runs_and_pictures(runs, crowd):
    by_label = {patch.get_label(): patch for patch in plot.throughput(runs, by="process").patches}
    assert len({by_label[f"{scheduler} postgres"].get_edgecolor() for scheduler in SAMPLE}) == 1
    assert len({by_label[f"{scheduler} postgres"].get_linestyle() for scheduler in SAMPLE}) == len(SAMPLE)
    shares = {patch.get_label(): patch.get_facecolor() for patch in plot.shares(crowd).patches}
    rates = {patch.get_label(): patch.get_edgecolor() for patch in plot.throughput(crowd, by="process").patches}
    dots = {line.get_label(): matplotlib.colors.to_rgba(line.get_color()) for line in plot.head(crowd).lines}
    assert shares == rates == dots


def test_shares_are_stacked_up_to_one(run, crowd):
    for own, names in ((run, None), (crowd, 8)):
        ax = plot.shares(own)
        total = plot.throughput(own).patches[0].get_data().values
        below = np.zeros(100)
        for patch in ax.patches:
            above, _, base = patch.get_data()
            assert base[total > 0] == pytest.approx(below[total > 0])
            assert (above[total > 0] >= base[total > 0]).all()
            below = above
        assert below[total > 0] == pytest.approx(1)
        assert np.isnan(below[total == 0]).all()
        assert names is None or len(ax.patches) == names
        assert ax.get_ylim() == (0, 1)
    assert set(labels(ax)[:-1]) == {f"worker{number}" for number in range(5, 12)}, "those that move most"
    assert labels(ax)[-1] == "others"


def test_the_head_goes_where_requests_were_dispatched(run):
    rows = run.requests.to_pandas()
    rows = rows[rows.dispatched_ns.notna()]
    first = rows.groupby("request").agg(at=("dispatched_ns", "first"), sector=("sector", "min")).sort_values("at")

    def drawn(**window: float) -> np.ndarray:
        points = np.concatenate([np.transpose(line.get_data()) for line in plot.head(run, **window).lines])
        return points[np.lexsort(points.T[::-1])]

    wanted = np.transpose([first["at"] / 1e9, first.sector * 512 / 1e9])
    wanted = wanted[np.lexsort(wanted.T[::-1])]
    assert drawn() == pytest.approx(wanted)
    inside = (wanted[:, 0] >= 2) & (wanted[:, 0] <= 3)
    assert 0 < inside.sum() < len(wanted)
    assert drawn(start=2, end=3) == pytest.approx(wanted[inside])


def test_depth_adds_up_to_the_time_that_all_were_under_way(runs):
    for run, patch in zip(runs.values(), plot.depth(runs).patches, strict=True):
        mean, edges, _ = patch.get_data()
        assert (mean * np.diff(edges)).sum() == pytest.approx(
            latencies_s(run).sum() + latencies_s(run, op="flush").sum()
        )
        assert (mean > -1e-6).all()
    rows = run.requests.to_pandas()
    fine = plot.depth(run, bins=[4, 4.001, 4.002]).patches[0].get_data().values
    for mean, start in zip(fine, (4e9, 4.001e9), strict=True):
        began, ended = rows.submitted_ns.clip(start, start + 1e6), rows.completed_ns.clip(start, start + 1e6)
        assert mean == pytest.approx((ended - began).sum() / 1e6, abs=1e-6)


@pytest.mark.parametrize("metric", ["throughput", "sync_p99", "utilisation", "fairness"])
def test_verdicts_are_those_of_the_comparison(compared, metric):
    ax = plot.verdicts(compared, metric)
    rows = compared.verdicts.to_pandas()
    rows = rows[rows.metric == metric]
    base = rows[rows.baseline]["mean"].item()
    for bars, (_, row) in zip(ax.containers, rows.iterrows(), strict=True):
        assert bars.lines[0].get_xdata() == [row["mean"]]
        if not row.baseline:
            (segment,) = bars.lines[2][0].get_segments()
            assert segment[:, 0] == pytest.approx([base + row.low, base + row.high])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == rows.scheduler.tolist() == SAMPLE
    (right,) = ax.child_axes
    told = [tick.get_text().split(",")[0].replace(" ", "_") for tick in right.get_yticklabels()]
    assert told == ["baseline", *rows.verdict.tolist()[1:]]
    side = {"higher": "higher is better →", "lower": "← lower is better"}.get(rows.better.iloc[0], "")
    assert ax.get_xlabel().endswith(f"({side})" if side else rows.unit.iloc[0])


def test_of_several_devices_one_is_named(several):
    with pytest.raises(iosched.UsageError, match="name one of sata-ssd, nvme"):
        plot.verdicts(several, "finish")
    means = several.verdicts.to_pandas().query("metric == 'finish' and device == 'nvme'")["mean"].tolist()
    for device in ("nvme", 1):
        ax = plot.verdicts(several, "finish", device=device)
        assert [bars.lines[0].get_xdata()[0] for bars in ax.containers] == means
    assert labels(plot.depth(several)) == [f"{s} on {d}" for d in several.devices for s in several.schedulers]


def test_one_run_several_and_a_comparison_are_taken(runs, run, compared):
    assert labels(plot.latency_cdf(run)) == []
    assert labels(plot.latency_cdf(runs)) == labels(plot.latency_cdf(list(runs.items()))) == SAMPLE
    ax = plot.latency_cdf(compared)
    assert labels(ax) == SAMPLE
    assert ax.lines[1].get_xdata().tolist() == plot.latency_cdf(compared.run("bfq")).lines[0].get_xdata().tolist()


def test_what_is_given_is_drawn_into(runs, compared):
    left, right = Figure().subplots(1, 2)
    assert plot.latency_cdf({"a": runs["bfq"]}, ax=left) is left
    assert plot.latency_cdf({"b": runs["mq-deadline"]}, ax=left) is left
    assert labels(left) == ["a", "b"]
    assert left.lines[0].get_color() != left.lines[1].get_color()
    assert plot.verdicts(compared, "finish", ax=right) is right
    assert len(left.figure.axes) == 2


def test_without_pyarrow_the_pictures_are_the_same(run, monkeypatch):
    def data() -> list:
        shown = [*plot.latency_cdf(run, op="write").lines, *plot.head(run).lines]
        stairs = [*plot.shares(run).patches, *plot.depth(run).patches]
        return [np.nan_to_num(own.get_data()) for own in shown] + [
            np.nan_to_num(own.get_data().values) for own in stairs
        ]

    with_it = data()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    without = data()
    assert len(with_it) == len(without)
    assert all(np.array_equal(one, other) for one, other in zip(with_it, without, strict=True))


def test_processes_without_names_go_by_their_numbers():
    rows = {"time_us": [0, 10, 20], "op": ["read"] * 3, "sector": [0, 64, 999], "nr_sectors": [8, 16, 8]}
    frame = pd.DataFrame(rows | {"pid": [7, 8, 9], "process": ["", "", "$a$ $$"]})
    ax = plot.shares(iosched.simulate(iosched.Trace.from_arrow(frame)))
    assert labels(ax) == ["pid 7", "pid 8", "$a$ $$"], "in the order in which they begin"
    ax.figure.draw_without_rendering()


def everything(runs, run, crowd, compared) -> dict:
    return {
        "cdf": plot.latency_cdf(runs),
        "tail": plot.latency_cdf(runs, op="write", tail=True),
        "throughput": plot.throughput(runs, by="op"),
        "shares": plot.shares(crowd),
        "head": plot.head(run, start=1, end=2),
        "depth": plot.depth(runs),
        "verdicts": plot.verdicts(compared, "sync_mean"),
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("look", [{}, {"columns": 2}, {"paper": False}], ids=repr)
def test_nothing_covers_anything(runs, run, crowd, compared, look):
    with plot.style(**look):
        shown = everything(runs, run, crowd, compared)
    for name, ax in shown.items():
        figure = ax.figure
        figure.draw_without_rendering()
        assert figure.get_size_inches()[0] == pytest.approx({(): 3.3}.get(tuple(look), 7.0))
        legend = ax.get_legend()
        if legend is not None:
            box = legend.get_window_extent()
            assert box.y0 >= ax.bbox.y1
            assert 0 <= box.x0 < box.x1 <= figure.bbox.x1, name
        for axis, begin, end in ((ax.xaxis, "x0", "x1"), (ax.yaxis, "y0", "y1")):
            texts = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_text()]
            boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: getattr(box, begin))
            assert len(boxes) >= 2, name
            assert all(getattr(a, end) < getattr(b, begin) for a, b in pairwise(boxes)), name


@pytest.mark.parametrize("ending", [".pdf", ".svg", ".png"])
def test_files_are_whole_and_the_same_each_time(runs, run, crowd, compared, tmp_path, ending):
    def written() -> dict:
        with plot.style():
            for name, ax in everything(runs, run, crowd, compared).items():
                plot.save(ax, tmp_path / f"{name}{ending}")
        plot.save(ax.figure, tmp_path / f"again{ending}")
        return {path: path.read_bytes() for path in tmp_path.iterdir()}

    first = written()
    time.sleep(1.1)
    assert written() == first
    assert first[tmp_path / f"again{ending}"] == first[tmp_path / f"verdicts{ending}"]
    for path, content in first.items():
        if ending == ".pdf":
            assert content.startswith(b"%PDF-")
            assert b"/FontFile2" in content
            assert b"CreationDate" not in content
        elif ending == ".svg":
            words = {node.text for node in xml.fromstring(content).iter("{http://www.w3.org/2000/svg}text")}
            assert words & {"latency", "latency (write)", "time, s", "sync mean, ms (← lower is better)"}, path
        else:
            assert content.startswith(b"\x89PNG\r\n\x1a\n")
            assert content[-8:-4] == b"IEND"
            assert zlib.crc32(b"IEND").to_bytes(4, "big") == content[-4:]


def test_what_cannot_be_written_leaves_what_was_there(run, tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_text("before")
    ax = plot.latency_cdf(run)
    with pytest.raises(iosched.UsageError, match=r"must end in \.pdf, \.svg, \.png"):
        plot.save(ax, tmp_path / "a.jpeg")
    with pytest.raises(FileNotFoundError):
        plot.save(ax, tmp_path / "none" / "a.png")
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            plot.save(ax, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    plot.save(ax, str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    ax.remove()
    with pytest.raises(iosched.UsageError, match="removed"):
        plot.save(ax, path)


def test_a_figure_shows_itself_in_a_notebook(run):
    assert plot.latency_cdf(run).figure._repr_png_().startswith(b"\x89PNG")


def test_a_style_ends_with_its_block(run):
    before = dict(matplotlib.rcParams)
    with plot.style():
        inside = plot.depth(run).figure
    assert dict(matplotlib.rcParams) == before
    assert inside.get_figwidth() == pytest.approx(3.3)


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda run, _: plot.latency_cdf(run, op="trim"), iosched.UsageError, "op trim: this run has no I/O"),
        (lambda run, _: plot.latency_cdf({"x": run}, op="discard"), iosched.UsageError, "run x has no I/O with this"),
        (lambda run, _: plot.latency_cdf(run, op="read", sync=False), iosched.UsageError, "no async read was complete"),
        (lambda *_: plot.depth(iosched.simulate(requests=False)), iosched.UsageError, "requests=True"),
        (lambda *_: plot.latency_cdf({}), iosched.UsageError, "no run to draw"),
        (lambda *_: plot.latency_cdf(3), TypeError, "runs must be a Run"),
        (lambda run, _: plot.latency_cdf([run]), TypeError, "runs must be a Run"),
        (lambda *_: plot.latency_cdf({"x": 3}), TypeError, "an iosched.Run"),
        (lambda _, c: plot.shares(c), TypeError, "an iosched.Run"),
        (lambda run, _: plot.throughput(run, by="pid"), iosched.UsageError, "must be 'process', 'op' or None"),
        (lambda run, _: plot.throughput(run, bins=0), iosched.UsageError, "at least 1"),
        (lambda run, _: plot.throughput(run, bins=-3), iosched.UsageError, "at least 1"),
        (lambda run, _: plot.depth(run, bins=[1, 1]), iosched.UsageError, "ascending"),
        (lambda run, _: plot.depth(run, bins=[1, float("nan")]), iosched.UsageError, "ascending"),
        (lambda run, _: plot.shares(run, bins=[1000, 2000]), iosched.UsageError, "from 1000 to 2000 s"),
        (lambda run, _: plot.head(run, start=1000), iosched.UsageError, "the last was at 1"),
        (lambda run, _: plot.head(run, start=3, end=2), iosched.UsageError, "from 3 to 2 s: no request"),
        (lambda _, c: plot.verdicts(c, "p99"), iosched.UsageError, "this metric; available: postgres_iops"),
        (lambda _, c: plot.verdicts(c, "finish", device="nvme"), iosched.UsageError, "available: sata-7200"),
        (lambda _, c: plot.verdicts(c, "finish", device=1), iosched.UsageError, "device 1: this comparison does not"),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(run, compared, make, error, told):
    with pytest.raises(error) as caught:
        make(run, compared)
    assert told in str(caught.value)


@pytest.mark.parametrize("draw", [plot.latency_cdf, plot.throughput, plot.shares, plot.head, plot.depth])
def test_a_run_that_did_nothing_is_told(draw):
    with pytest.raises(iosched.UsageError, match="use a longer run"):
        draw(iosched.simulate(tasks(count=1, total=0), "sata-7200", "none"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tail", [False, True])
def test_a_single_io_is_drawn(tail):
    ax = plot.latency_cdf(iosched.simulate(tasks(count=1, total=1), "nvme", "none"), tail=tail)
    ax.figure.draw_without_rendering()
    x, y = ax.lines[0].get_data()
    assert x[0] == x[-1] > 0
    assert {*y} == {0, 1}


def test_no_share_of_nothing_is_drawn():
    discards = iosched.simulate(tasks(count=1, total=5, op="discard"), "sata-ssd", "none")
    with pytest.raises(iosched.UsageError, match="no byte was read or written"):
        plot.shares(discards)
    assert not plot.throughput(discards).patches[0].get_data().values.any()


def test_a_comparison_that_was_read_says_so(compared, tmp_path):
    compared.save(tmp_path / "c.jsonl")
    again = iosched.Comparison.load(tmp_path / "c.jsonl")
    assert len(plot.verdicts(again, "finish").containers) == len(SAMPLE)
    with pytest.raises(iosched.UsageError, match="read from a file"):
        plot.latency_cdf(again)
