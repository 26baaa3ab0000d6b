"""Pictures: they show the data of the tables, files are complete and reproducible, and errors are clear."""

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
    listed = [
        {"pid": n + 1, "name": names.format(n), "pattern": "random", "total": total * (n + 1), "op": op}
        for n in range(count)
    ]
    return {"name": "many", "tasks": listed}


@pytest.fixture(scope="module")
def runs() -> dict[str, iosched.Run]:
    return {scheduler: iosched.simulate(scheduler=scheduler) for scheduler in SAMPLE}


@pytest.fixture(scope="module")
def run(runs) -> iosched.Run:
    return runs["bfq"]


@pytest.fixture(scope="module")
def many_processes() -> iosched.Run:
    return iosched.simulate(tasks(count=12, total=100), "sata-7200", "bfq")


@pytest.fixture(scope="module")
def comparison() -> iosched.Comparison:
    return iosched.compare(scheduler=SAMPLE, runs=4)


@pytest.fixture(scope="module")
def two_devices() -> iosched.Comparison:
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


def test_only_pictures_need_matplotlib():
    assert python("import iosched, sys; print('matplotlib' in sys.modules, 'numpy' in sys.modules)") == "False False\n"
    assert python("import iosched.plot, sys; print('matplotlib.pyplot' in sys.modules)") == "False\n"
    printed = python(
        "import sys; sys.modules['matplotlib'] = None\n"
        "try: import iosched.plot\nexcept ImportError as error: print(error.name, error)"
    )
    assert printed == "matplotlib iosched.plot needs matplotlib: pip install 'iosched[plot]'\n"


@pytest.mark.parametrize("selection", [{}, {"op": "read"}, {"sync": False}, {"op": "flush", "sync": True}], ids=repr)
def test_latency_distribution_equals_that_of_the_table(run, selection):
    latencies = latencies_s(run, **selection)
    x, y = plot.latency_cdf(run, **selection).lines[0].get_data()
    assert (y[0], y[-1]) == (0, 1)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) > 0).all()
    assert x[-1] == pytest.approx(latencies.max())
    for share in (0.1, 0.5, 0.99):
        expected_s = np.quantile(latencies, share, method="inverted_cdf")
        assert x[np.searchsorted(y, share)] == pytest.approx(expected_s, rel=0.02)


def test_quantiles_equal_the_metrics(runs):
    # Metrics come from a histogram, whose buckets are 1.6 % wide.
    for scheduler, run in runs.items():
        x, y = plot.latency_cdf({scheduler: run}, sync=True).lines[0].get_data()
        assert x[np.searchsorted(y, 0.5)] * 1e3 == pytest.approx(run.metrics["sync_p50"], rel=0.04)
        x, y = plot.latency_cdf({scheduler: run}, sync=True, tail=True).lines[0].get_data()
        assert x[np.flatnonzero(y >= 0.01)[-1]] * 1e3 == pytest.approx(run.metrics["sync_p99"], rel=0.04)
        assert x.max() * 1e3 == pytest.approx(run.metrics["sync_worst"])


def test_long_lines_are_sampled_but_keep_the_slowest_bios():
    run = iosched.simulate(tasks(count=2, total=20_000), "sata-7200", "none")
    latencies = np.sort(latencies_s(run))
    for tail in (False, True):
        x, y = plot.latency_cdf(run, tail=tail).lines[0].get_data()
        assert len(x) < 5000
        assert np.abs(x - latencies[-50:, None]).min(axis=1).max() < 1e-12
        # No step is larger than about 0.05 % of the bios.
        assert np.abs(np.diff(y)).max() < 1 / 1900
    assert y[-2] == 1 / len(latencies)


def test_throughput_adds_up_to_the_bytes_done(runs):
    ax = plot.throughput(runs, bins=37)
    assert labels(ax) == SAMPLE
    for run, patch in zip(runs.values(), ax.patches, strict=True):
        rate, edges, _ = patch.get_data()
        assert (len(rate), edges[0]) == (37, 0)
        assert (rate * np.diff(edges)).sum() == pytest.approx(run.metrics["throughput"] * run.metrics["finish"])


@pytest.mark.parametrize("by", ["process", "op"])
def test_parts_of_throughput_add_up_to_the_total(run, by):
    edges = [0.5, 1, 3, 10]
    (total,) = plot.throughput(run, bins=edges).patches
    ax = plot.throughput(run, by=by, bins=edges)
    assert np.sum([patch.get_data().values for patch in ax.patches], axis=0) == pytest.approx(total.get_data().values)
    rows = run.requests.to_pandas()
    moved = rows[rows.op.isin(["read", "write"])].groupby(by, observed=True).nr_sectors.sum()
    assert labels(ax) == [name for name in rows[by].unique() if moved.get(name, 0) > 0]


def test_a_process_has_one_colour_in_all_runs_and_pictures(runs, many_processes):
    by_label = {patch.get_label(): patch for patch in plot.throughput(runs, by="process").patches}
    assert len({by_label[f"{scheduler} postgres"].get_edgecolor() for scheduler in SAMPLE}) == 1
    assert len({by_label[f"{scheduler} postgres"].get_linestyle() for scheduler in SAMPLE}) == len(SAMPLE)
    shares = {patch.get_label(): patch.get_facecolor() for patch in plot.shares(many_processes).patches}
    throughput = plot.throughput(many_processes, by="process")
    rates = {patch.get_label(): patch.get_edgecolor() for patch in throughput.patches}
    dots = {line.get_label(): matplotlib.colors.to_rgba(line.get_color()) for line in plot.head(many_processes).lines}
    assert shares == rates == dots


def test_shares_add_up_to_one(run, many_processes):
    for drawn, parts in ((run, None), (many_processes, 8)):
        ax = plot.shares(drawn)
        total = plot.throughput(drawn).patches[0].get_data().values
        below = np.zeros(100)
        for patch in ax.patches:
            above, _, base = patch.get_data()
            assert base[total > 0] == pytest.approx(below[total > 0])
            assert (above[total > 0] >= base[total > 0]).all()
            below = above
        assert below[total > 0] == pytest.approx(1)
        assert np.isnan(below[total == 0]).all()
        assert parts is None or len(ax.patches) == parts
        assert ax.get_ylim() == (0, 1)
    assert set(labels(ax)[:-1]) == {f"worker{number}" for number in range(5, 12)}, "those with most bytes"
    assert labels(ax)[-1] == "others"


def test_head_shows_the_first_sector_of_each_request(run):
    rows = run.requests.to_pandas()
    rows = rows[rows.dispatched_ns.notna()]
    first = rows.groupby("request").agg(at=("dispatched_ns", "first"), sector=("sector", "min")).sort_values("at")

    def drawn(**window: float) -> np.ndarray:
        points = np.concatenate([np.transpose(line.get_data()) for line in plot.head(run, **window).lines])
        return points[np.lexsort(points.T[::-1])]

    expected = np.transpose([first["at"] / 1e9, first.sector * 512 / 1e9])
    expected = expected[np.lexsort(expected.T[::-1])]
    assert drawn() == pytest.approx(expected)
    inside = (expected[:, 0] >= 2) & (expected[:, 0] <= 3)
    assert 0 < inside.sum() < len(expected)
    assert drawn(start=2, end=3) == pytest.approx(expected[inside])


def test_depth_adds_up_to_the_sum_of_latencies(runs):
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
def test_verdicts_equal_those_of_the_comparison(comparison, metric):
    ax = plot.verdicts(comparison, metric)
    rows = comparison.verdicts.to_pandas()
    rows = rows[rows.metric == metric]
    base = rows[rows.baseline]["mean"].item()
    for bars, (_, row) in zip(ax.containers, rows.iterrows(), strict=True):
        assert bars.lines[0].get_xdata() == [row["mean"]]
        if not row.baseline:
            (segment,) = bars.lines[2][0].get_segments()
            assert segment[:, 0] == pytest.approx([base + row.low, base + row.high])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == rows.scheduler.tolist() == SAMPLE
    (right,) = ax.child_axes
    shown = [tick.get_text().split(",")[0].replace(" ", "_") for tick in right.get_yticklabels()]
    assert shown == ["baseline", *rows.verdict.tolist()[1:]]
    direction = {"higher": "higher is better →", "lower": "← lower is better"}.get(rows.better.iloc[0], "")
    assert ax.get_xlabel().endswith(f"({direction})" if direction else rows.unit.iloc[0])


def test_verdicts_of_several_devices_need_a_device(two_devices):
    with pytest.raises(iosched.UsageError, match="name one of sata-ssd, nvme"):
        plot.verdicts(two_devices, "finish")
    means = two_devices.verdicts.to_pandas().query("metric == 'finish' and device == 'nvme'")["mean"].tolist()
    for device in ("nvme", 1):
        ax = plot.verdicts(two_devices, "finish", device=device)
        assert [bars.lines[0].get_xdata()[0] for bars in ax.containers] == means
    expected = [f"{s} on {d}" for d in two_devices.devices for s in two_devices.schedulers]
    assert labels(plot.depth(two_devices)) == expected


def test_pictures_accept_runs_and_comparisons(runs, run, comparison):
    assert labels(plot.latency_cdf(run)) == []
    assert labels(plot.latency_cdf(runs)) == labels(plot.latency_cdf(list(runs.items()))) == SAMPLE
    ax = plot.latency_cdf(comparison)
    assert labels(ax) == SAMPLE
    assert ax.lines[1].get_xdata().tolist() == plot.latency_cdf(comparison.run("bfq")).lines[0].get_xdata().tolist()


def test_pictures_draw_into_the_given_axes(runs, comparison):
    left, right = Figure().subplots(1, 2)
    assert plot.latency_cdf({"a": runs["bfq"]}, ax=left) is left
    assert plot.latency_cdf({"b": runs["mq-deadline"]}, ax=left) is left
    assert labels(left) == ["a", "b"]
    assert left.lines[0].get_color() != left.lines[1].get_color()
    assert plot.verdicts(comparison, "finish", ax=right) is right
    assert len(left.figure.axes) == 2


def test_pictures_are_equal_without_pyarrow(run, monkeypatch):
    def data() -> list:
        lines = [*plot.latency_cdf(run, op="write").lines, *plot.head(run).lines]
        stairs = [*plot.shares(run).patches, *plot.depth(run).patches]
        return [np.nan_to_num(line.get_data()) for line in lines] + [
            np.nan_to_num(patch.get_data().values) for patch in stairs
        ]

    with_pyarrow = data()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    without_pyarrow = data()
    assert len(with_pyarrow) == len(without_pyarrow)
    assert all(np.array_equal(one, other) for one, other in zip(with_pyarrow, without_pyarrow, strict=True))


def test_processes_without_a_name_are_labelled_by_pid():
    rows = {"time_us": [0, 10, 20], "op": ["read"] * 3, "sector": [0, 64, 999], "nr_sectors": [8, 16, 8]}
    frame = pd.DataFrame(rows | {"pid": [7, 8, 9], "process": ["", "", "$a$ $$"]})
    ax = plot.shares(iosched.simulate(iosched.Trace.from_arrow(frame)))
    assert labels(ax) == ["pid 7", "pid 8", "$a$ $$"], "in the order of their first I/O"
    ax.figure.draw_without_rendering()


def all_pictures(runs, run, many_processes, comparison) -> dict:
    return {
        "cdf": plot.latency_cdf(runs),
        "tail": plot.latency_cdf(runs, op="write", tail=True),
        "throughput": plot.throughput(runs, by="op"),
        "shares": plot.shares(many_processes),
        "head": plot.head(run, start=1, end=2),
        "depth": plot.depth(runs),
        "verdicts": plot.verdicts(comparison, "sync_mean"),
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("look", [{}, {"columns": 2}, {"paper": False}], ids=repr)
def test_legends_and_tick_labels_do_not_overlap(runs, run, many_processes, comparison, look):
    with plot.style(**look):
        shown = all_pictures(runs, run, many_processes, comparison)
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
def test_files_are_complete_and_reproducible(runs, run, many_processes, comparison, tmp_path, ending):
    def written() -> dict:
        with plot.style():
            for name, ax in all_pictures(runs, run, many_processes, comparison).items():
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


def test_a_failed_save_keeps_the_old_file(run, tmp_path, monkeypatch):
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


def test_notebooks_show_a_figure_as_png(run):
    assert plot.latency_cdf(run).figure._repr_png_().startswith(b"\x89PNG")


def test_a_style_ends_with_its_block(run):
    before = dict(matplotlib.rcParams)
    with plot.style():
        inside = plot.depth(run).figure
    assert dict(matplotlib.rcParams) == before
    assert inside.get_figwidth() == pytest.approx(3.3)


@pytest.mark.parametrize(
    ("draw", "error", "text"),
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
def test_wrong_arguments_raise_the_expected_error(run, comparison, draw, error, text):
    with pytest.raises(error) as caught:
        draw(run, comparison)
    assert text in str(caught.value)


@pytest.mark.parametrize("draw", [plot.latency_cdf, plot.throughput, plot.shares, plot.head, plot.depth])
def test_pictures_refuse_runs_without_ios(draw):
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


def test_shares_refuse_runs_that_move_no_bytes():
    discards = iosched.simulate(tasks(count=1, total=5, op="discard"), "sata-ssd", "none")
    with pytest.raises(iosched.UsageError, match="no byte was read or written"):
        plot.shares(discards)
    assert not plot.throughput(discards).patches[0].get_data().values.any()


def test_loaded_comparisons_have_verdicts_but_no_runs(comparison, tmp_path):
    comparison.save(tmp_path / "c.jsonl")
    again = iosched.Comparison.load(tmp_path / "c.jsonl")
    assert len(plot.verdicts(again, "finish").containers) == len(SAMPLE)
    with pytest.raises(iosched.UsageError, match="read from a file"):
        plot.latency_cdf(again)
