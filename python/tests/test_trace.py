"""Traces: read from files, file objects and tables, written, and read again."""

import io
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iosched

OPS = ["read", "write", "discard", "flush", "R", "W"]


@pytest.fixture
def table() -> pa.Table:
    return pa.table(
        {
            "time_us": [0, 150, 300],
            "op": ["read", "write", "R"],
            "offset_bytes": [4096, 8192, 0],
            "length_bytes": [4096, 512, 1024],
            "pid": [7, 8, 7],
            "process": ["a", 'b, "c"', None],
            "sync": [True, False, True],
            "latency_ns": [1000, None, 2000],
        }
    )


def test_tables_of_several_libraries_give_equal_traces(table):
    trace = iosched.Trace.from_arrow(table, "mine")
    rows = trace.to_arrow().to_dict()
    assert rows["arrival_ns"] == [0, 150_000, 300_000]
    assert rows["op"] == ["read", "write", "read"]
    assert rows["sector"] == [8, 16, 0]
    assert rows["nr_sectors"] == [8, 1, 2]
    assert rows["sync"] == [True, False, True]
    assert rows["latency_ns"] == [1000, None, 2000]
    assert rows["process"] == ["a", 'b, "c"', "a"]
    assert iosched.Trace.from_arrow(pl.DataFrame(table), "mine") == trace
    assert iosched.Trace.from_arrow(pa.Table.from_pandas(table.to_pandas(), preserve_index=False), "mine") == trace
    assert iosched.Trace.from_arrow(trace.to_arrow(), "mine") == trace
    assert rows["flags"] == ["", "", ""]
    info = trace.info()
    assert (info["requests"], info["reads"], info["bytes_written"], info["span_ns"]) == (3, 2, 512, 300_000)
    assert [name for _, name, _ in info["processes"]] == ["a", 'b, "c"']


@pytest.mark.parametrize(
    ("drop", "text"),
    [
        ("time_us", "a time .*time_us.* is missing"),
        ("op", "op is missing"),
        ("offset_bytes", "sector, offset_bytes, offset_kib or offset_mib is missing"),
        ("length_bytes", "nr_sectors, length_bytes, length_kib or length_mib is missing"),
    ],
)
def test_errors_name_a_missing_column(table, drop, text):
    with pytest.raises(iosched.TraceError, match=text) as caught:
        iosched.Trace.from_arrow(table.drop_columns([drop]))
    assert caught.value.argument == "table"


def test_other_objects_are_not_a_trace(table):
    with pytest.raises(iosched.TraceError):
        iosched.Trace.from_arrow(table.set_column(1, "op", pa.array(["?", "?", "?"])))
    with pytest.raises(iosched.ArgumentTypeError) as caught:
        iosched.Trace.from_arrow({"a": [1]})
    assert caught.value.argument == "table"
    with pytest.raises(iosched.WorkloadError):
        iosched.Trace.from_arrow(table.slice(0, 0))
    with pytest.raises(iosched.TraceError):
        iosched.read_trace(io.BytesIO(b"nothing of the kind\n" * 20))
    with pytest.raises(FileNotFoundError):
        iosched.read_trace("none.blktrace")
    with pytest.raises(iosched.UsageError, match="formats are"):
        iosched.read_trace("none.blktrace", format="sideways")


class Dripping(io.BytesIO):
    """A file whose `read` returns at most 7 bytes."""

    def read(self, most=-1):
        return super().read(min(most, 7) if most >= 0 else 7)


class Broken(io.BytesIO):
    def read(self, most=-1):
        raise PermissionError("not yours")


def test_paths_and_file_objects_give_equal_traces(tmp_path):
    lines = ["time_us,op,offset_bytes,length_bytes", *(f"{i},read,{i * 4096},4096" for i in range(60_000))]
    content = "\n".join(lines).encode()
    assert len(content) > 1 << 20
    path = tmp_path / "long.csv"
    path.write_bytes(content)
    expected = iosched.read_trace(path, name="mine")
    assert expected.name == "mine"
    assert expected == iosched.read_trace(io.BytesIO(content), name="mine")
    assert expected == iosched.read_trace(Dripping(content), name="mine")
    with path.open("rb") as file:
        assert expected == iosched.read_trace(file, name="mine")
        assert not file.closed


def test_file_objects_that_cannot_be_read_are_errors(tmp_path):
    with pytest.raises(PermissionError, match="not yours"):
        iosched.read_trace(Broken())
    with pytest.raises(TypeError, match="binary mode; this file returns str"):
        iosched.read_trace(io.StringIO("time_us,op"))


@pytest.mark.parametrize("ending", ["csv", "blktrace.0", "iolog", "spc", "parquet"])
def test_written_traces_can_be_read(table, tmp_path, ending):
    trace = iosched.Trace.from_arrow(table, "mine")
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table(trace.to_arrow()), path)
    else:
        assert trace.write(path, format="blktrace" if ending.startswith("blktrace") else None) == 0
    again = iosched.read_trace(path).to_arrow().to_dict()
    original = trace.to_arrow().to_dict()
    assert (again["sector"], again["nr_sectors"]) == (original["sector"], original["nr_sectors"])
    with open(path, "rb") as file:
        if ending != "parquet":
            assert iosched.read_trace(file).to_arrow().to_dict() == again
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_writing_warns_of_data_that_the_format_loses(tmp_path):
    table = pa.table(
        {"time_ns": [0, 1], "op": ["R", "D"], "sector": [0, 8], "nr_sectors": [8, 8], "latency_ns": [5, 6]}
    )
    trace = iosched.Trace.from_arrow(table)
    text = r"x\.spc: the format spc cannot represent the whole trace\. Affected I/Os: 1 left out.*; 1 without their"
    with pytest.warns(iosched.IoschedWarning, match=text):
        assert trace.write(tmp_path / "x.spc") == 1
    with pytest.raises(iosched.UsageError, match="cannot write this format") as caught:
        trace.write(tmp_path / "x.spc", format="sideways")
    assert caught.value.argument == "format"


def test_fsspec_opens_urls(table, tmp_path):
    trace = iosched.Trace.from_arrow(table, "mine")
    trace.write(tmp_path / "t.csv")
    assert len(iosched.read_trace(f"file://{tmp_path}/t.csv")) == 3


def test_a_pickled_trace_gives_the_same_runs(samples):
    trace = iosched.read_trace(samples / "pgbench.blktrace.0.zst", partial=True)
    again = pickle.loads(pickle.dumps(trace))
    assert again == trace
    first, second = (iosched.simulate(each, "sata-7200", "cfq").requests.to_dict() for each in (trace, again))
    assert first == second
    assert pickle.loads(pickle.dumps(iosched.Workload.from_trace(trace))).name == trace.name


def test_a_table_of_100_000_rows_gives_an_equal_trace():
    count = 100_000
    frame = pd.DataFrame(
        {
            "arrival_ns": np.arange(count) * 1000,
            "op": np.where(np.arange(count) % 3 == 0, "write", "read"),
            "sector": (np.arange(count) * 7919) % 1_000_000,
            "nr_sectors": 8,
        }
    )
    trace = iosched.Trace.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    assert len(trace) == count
    back = trace.to_arrow().to_pandas()
    assert (back.sector == frame.sector).all()
    assert (back.op.astype(str) == frame.op).all()


def changed(table: pa.Table, column: str, values) -> pa.Table:
    return table.set_column(table.column_names.index(column), column, pa.array(values))


def test_rows_of_length_zero_are_errors_unless_dropped():
    count = 1000
    frame = pl.DataFrame(
        {
            "time_us": range(count),
            "op": ["read"] * count,
            "offset_bytes": [n * 4096 for n in range(count)],
            "length_bytes": [4096, 0] * (count // 2),
        }
    )
    with pytest.raises(
        iosched.TraceError, match="mine: row 1, column length_bytes: found 0, expected a length above 0"
    ):
        iosched.Trace.from_arrow(frame, "mine")
    text = "mine: 500 of the 1000 rows were dropped; the first of them: row 1, column length_bytes: found 0"
    with pytest.warns(iosched.IoschedWarning, match=text) as caught:
        trace = iosched.Trace.from_arrow(frame, "mine", on_error="drop")
    assert caught[0].filename == __file__
    assert len(trace) == 500
    with pytest.raises(iosched.TraceError, match="none of the 500 rows is an I/O"):
        iosched.Trace.from_arrow(frame.filter(pl.col("length_bytes") == 0), on_error="drop")
    with pytest.raises(iosched.UsageError, match='"raise" or "drop"') as error:
        iosched.Trace.from_arrow(frame, on_error="ignore")
    assert error.value.argument == "on_error"


@pytest.mark.parametrize(
    ("column", "values", "text"),
    [
        ("time_us", [0, None, 300], "row 1, column time_us: found nothing, expected a time, a number of us"),
        ("time_us", [0.0, float("nan"), 300.0], "row 1, column time_us: found nothing"),
        ("time_us", [0.0, float("inf"), 300.0], "row 1, column time_us: found inf"),
        ("time_us", [-1, 0, 300], "row 0, column time_us: found -1"),
        ("time_us", [False, True, True], "column time_us: found values of type Boolean"),
        ("time_us", ["2024-01-01", "2024-01-02", "2024-01-03"], 'row 0, column time_us: found "2024-01-01"'),
        ("time_us", [0, 1, 1 << 62], "row 2, column time_us: found 4611686018427387904"),
        ("op", ["read", "raed", "R"], 'row 1, column op: found "raed", expected an operation'),
        ("op", ["read", None, "R"], "row 1, column op: found nothing"),
        ("op", [0, 1, 0], "row 0, column op: found 0"),
        ("offset_bytes", [0, 8192, -512], "row 2, column offset_bytes: found -512, expected a number of bytes"),
        ("offset_bytes", [0.0, 0.5, 512.0], "row 1, column offset_bytes: found 0.5"),
        ("offset_bytes", [0, (1 << 63) - 512, 0], "row 1: found .* expected an I/O that ends below 128 PiB"),
        ("length_bytes", [4096.0, 512.5, 1024.0], "row 1, column length_bytes: found 512.5"),
        ("length_bytes", [4096, 1 << 50, 1024], "row 1: found .*length_bytes 1125899906842624.*expected an I/O"),
        ("pid", [7, None, 7], "row 1, column pid: found nothing, expected the number of a process"),
        ("pid", [True, False, True], "column pid: found values of type Boolean"),
        ("pid", [7, 1 << 32, 7], "row 1, column pid: found 4294967296"),
        ("sync", [1, 2, 0], "row 1, column sync: found 2, expected 0 or 1"),
        ("latency_ns", [1, -1, 2], "row 1, column latency_ns: found -1"),
        ("latency_ns", [[1], [2], [3]], "column latency_ns: found values of type List"),
    ],
)
def test_errors_say_where_a_wrong_value_is(table, column, values, text):
    with pytest.raises(iosched.TraceError, match=f"^mine: {text}") as caught:
        iosched.Trace.from_arrow(changed(table, column, values), "mine")
    assert caught.value.argument == "table"
    assert ", byte " not in str(caught.value)


def test_whole_floats_count_as_integers(table):
    expected = iosched.Trace.from_arrow(table)
    for column in ["time_us", "offset_bytes", "length_bytes", "pid", "latency_ns"]:
        floats = [None if value is None else float(value) for value in table[column].to_pylist()]
        assert iosched.Trace.from_arrow(changed(table, column, floats)) == expected
    # NaN is a missing value, as in pandas.
    assert iosched.Trace.from_arrow(changed(table, "latency_ns", [1000.0, float("nan"), 2000.0])) == expected


def test_float_times_are_rounded_to_ns(table):
    seconds = table.rename_columns(["time_s", *table.column_names[1:]])
    trace = iosched.Trace.from_arrow(changed(seconds, "time_s", [0.0, 0.1 + 0.2, 1.1 * 3]))
    assert trace.to_arrow().to_dict()["arrival_ns"] == [0, 300_000_000, 3_300_000_000]


@pytest.mark.parametrize("name", ["time", "time_us", "arrival_ns"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_datetimes_use_the_unit_of_their_type(table, name, unit, zone):
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    # In Berlin, an hour repeats when summer time ends. The second start is before 1970.
    for begin in [1_729_987_200, -10]:
        moments = pa.array([begin * scale, (begin + 1800) * scale, (begin + 5400) * scale], pa.timestamp(unit, zone))
        changed_table = table.set_column(0, name, moments)
        for frame in [changed_table, pl.DataFrame(changed_table), changed_table.to_pandas()]:
            arrivals = iosched.Trace.from_arrow(frame).to_arrow().to_dict()["arrival_ns"]
            assert arrivals == [0, 1_800 * 10**9, 5_400 * 10**9]


def test_timedeltas_use_the_unit_of_their_type(table):
    frame = table.to_pandas()
    frame["time"] = pd.to_timedelta([-5, 0, 10], unit="ms")
    frame["latency"] = pd.to_timedelta([1, None, 2], unit="us")
    rows = iosched.Trace.from_arrow(frame.drop(columns=["time_us", "latency_ns"])).to_arrow().to_dict()
    assert rows["arrival_ns"] == [0, 5_000_000, 15_000_000]
    assert rows["latency_ns"] == [1000, None, 2000]
    frame = frame.drop(columns=["time_us", "latency_ns"])
    with pytest.raises(iosched.TraceError, match="row 1, column latency: found -"):
        iosched.Trace.from_arrow(frame.assign(latency=pd.to_timedelta([1, -1, 2], unit="us")))
    with pytest.raises(
        iosched.TraceError, match="column time has type Int64, which has no unit; rename the column to time_ns"
    ):
        iosched.Trace.from_arrow(table.set_column(0, "time", table["time_us"]))
    with pytest.raises(iosched.TraceError, match="row 1, column time: found nothing"):
        iosched.Trace.from_arrow(frame.assign(time=pd.to_timedelta([0, None, 10], unit="ms")))


def test_a_datetime_index_counts_as_a_column():
    index = pd.date_range("2024-03-31", periods=3, freq="h", tz="Europe/Berlin", name="time")
    frame = pd.DataFrame({"op": "read", "sector": [0, 8, 16], "nr_sectors": 8}, index=index)
    assert iosched.Trace.from_arrow(frame).info()["span_ns"] == 2 * 3600 * 10**9


def test_unsorted_rows_are_sorted_with_a_warning(table):
    order = [2, 0, 1]
    with pytest.warns(iosched.IoschedWarning, match=r"mine: .* 2 of 3 rows have an earlier time .*row 1\)"):
        trace = iosched.Trace.from_arrow(table.take(order), "mine")
    assert trace.to_arrow().to_dict()["arrival_ns"] == [0, 150_000, 300_000]
    assert trace.to_arrow().to_dict()["sector"] == [8, 16, 0]


def test_processes_without_pids_differ_by_name(table):
    names = ["a process of a long name, 1", "a process of a long name, 2", "a process of a long name, 1"]
    trace = iosched.Trace.from_arrow(changed(table.drop_columns(["pid"]), "process", names))
    assert trace.info()["processes"] == [(1, names[0], 2), (2, names[1], 1)]
    again = pickle.loads(pickle.dumps(trace))
    assert again == trace


def test_a_misspelt_column_gives_a_warning(table):
    names = ["Pid" if name == "pid" else "proces" if name == "process" else name for name in table.column_names]
    with pytest.warns(iosched.IoschedWarning) as caught:
        iosched.Trace.from_arrow(table.rename_columns(names).append_column("note", pa.array(["x", "y", "z"])))
    messages = sorted(str(warning.message) for warning in caught)
    assert messages == [
        'table: column "Pid" is unknown and was ignored; did you mean pid?',
        'table: column "proces" is unknown and was ignored; did you mean process?',
    ]


def test_flags_are_equal_after_a_round_trip_through_a_table(samples):
    table = pa.table({"time_ns": [0, 1], "op": ["W", "F"], "sector": [0, 0], "nr_sectors": [8, 0], "flags": ["FB", ""]})
    trace = iosched.Trace.from_arrow(table)
    assert iosched.Trace.from_arrow(trace.to_arrow()) == trace
    assert trace.to_arrow().to_dict()["flags"] == ["FB", ""]


@pytest.mark.parametrize(
    ("kind", "cast"),
    [
        (
            "dictionary",
            lambda t: changed(t, "op", t["op"].combine_chunks()).set_column(1, "op", t["op"].dictionary_encode()),
        ),
        ("large text", lambda t: t.set_column(1, "op", t["op"].cast(pa.large_string()))),
        ("view", lambda t: t.set_column(1, "op", t["op"].cast(pa.string_view()))),
        ("small numbers", lambda t: t.set_column(4, "pid", t["pid"].cast(pa.int8()))),
        ("decimals", lambda t: t.set_column(2, "offset_bytes", t["offset_bytes"].cast(pa.decimal128(30, 2)))),
        ("chunks", lambda t: pa.concat_tables([t.slice(0, 1), t.slice(1)])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_can_have_other_arrow_types(table, kind, cast):
    assert iosched.Trace.from_arrow(cast(table)) == iosched.Trace.from_arrow(table)


def test_skipped_records_of_a_file_give_a_warning(tmp_path):
    path = tmp_path / "zero.csv"
    path.write_text("time_us,op,offset_bytes,length_bytes\n1,R,0,4096\n2,R,0,0\n3,W,0,4096\n")
    text = (
        r"iosched skipped 1 of the 3 records \(33.3 %\), because they are not I/O; "
        r"the first of these records is .*line 3"
    )
    for read in [iosched.read_trace, iosched.Workload]:
        with pytest.warns(iosched.IoschedWarning, match=text):
            read(path)
    with pytest.warns(iosched.IoschedWarning):
        comparison = iosched.compare(path, "nvme", "none", runs=1)
    assert "because they are not I/O" in " ".join(comparison.doubts)


def test_parquet_files_are_checked_like_tables(table, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(changed(table, "length_bytes", [4096, 0, 512]), path)
    with pytest.raises(iosched.TraceError, match="row 1, column length_bytes"):
        iosched.read_trace(path)
    with pytest.warns(iosched.IoschedWarning, match="1 of the 3 rows were dropped"):
        assert len(iosched.read_trace(path, partial=True)) == 2
    with pytest.raises(iosched.UsageError, match="Parquet file contains the names") as caught:
        iosched.read_trace(path, columns="time_s,op,sector,nr_sectors")
    assert caught.value.argument == "columns"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1 << 62),
            st.sampled_from(OPS),
            st.integers(0, 1 << 40),
            st.integers(0, 1 << 16),
            st.integers(0, (1 << 32) - 1),
            st.text(max_size=20),
            st.one_of(st.none(), st.integers(0, 1 << 62)),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_any_values_are_a_trace_or_an_error(rows):
    times, ops, sectors, lengths, pids, names, latencies = zip(*rows, strict=True)
    table = pa.table(
        {
            "arrival_ns": pa.array(sorted(times), pa.uint64()),
            "op": ops,
            "sector": pa.array(sectors, pa.uint64()),
            "nr_sectors": pa.array(lengths, pa.uint32()),
            "pid": pa.array(pids, pa.uint32()),
            "process": names,
            "latency_ns": pa.array(latencies, pa.uint64()),
        }
    )
    try:
        trace = iosched.Trace.from_arrow(table)
    except iosched.WorkloadError:
        return
    assert len(trace) == len(rows)
    assert pickle.loads(pickle.dumps(trace)) == trace


def test_column_names_can_map_numbers_to_operations(table):
    ops = pa.array([1, 0, 1])
    expected = ["read", "write", "read"]
    for name in ["op=1:read", "op=0:write/1:read"]:
        for values in [ops, ops.cast(pa.float64()), pa.array([True, False, True]), pa.array(["1", "0", "1"])]:
            trace = iosched.Trace.from_arrow(table.set_column(1, name, values))
            assert trace.to_arrow().to_dict()["op"] == expected
    with pytest.raises(iosched.TraceError, match=r"row 1, column op=1:read: found 2, expected an operation \(1, 0\)"):
        iosched.Trace.from_arrow(table.set_column(1, "op=1:read", pa.array([1, 2, 1])))
    with pytest.raises(iosched.TraceError, match="is not of the form VALUE:MEANING"):
        iosched.Trace.from_arrow(table.set_column(1, "op=1:look", ops))


def test_arrival_time_is_completion_time_minus_latency(table):
    frame = table.drop_columns(["time_us", "latency_ns"]).to_pandas()
    ends = pd.to_datetime(["2024-03-31 00:00:01", "2024-03-31 00:00:02", "2024-03-31 00:00:03"])
    expected = [0, 1_200_000_000, 2_100_000_000]
    for name, times in [
        ("completed", ends),
        ("end", ends - ends[0]),
        ("end_s", [1, 2, 3]),
        ("completed_ms", [1e3, 2e3, 3e3]),
    ]:
        for latency in [{"latency_ms": [500, 300, 400]}, {"latency": pd.to_timedelta([500, 300, 400], unit="ms")}]:
            rows = iosched.Trace.from_arrow(frame.assign(**{name: times}, **latency)).to_arrow().to_dict()
            assert rows["arrival_ns"] == expected, name
            assert rows["latency_ns"] == [500_000_000, 300_000_000, 400_000_000]
    with pytest.raises(
        iosched.TraceError,
        match="the column completed_ns gives the time of the completion, but not of the submission; add a column with",
    ):
        iosched.Trace.from_arrow(frame.assign(completed=ends))


def test_ionice_gives_processes_a_priority(table, tmp_path):
    trace = iosched.Trace.from_arrow(table, ionice=["a=idle", "8=best-effort:2"])
    assert trace.to_arrow().to_dict()["ioprio"] == ["idle", "be/2", "idle"]
    assert pickle.loads(pickle.dumps(trace)) == trace
    path = tmp_path / "trace.csv"
    iosched.Trace.from_arrow(table).write(path)
    assert iosched.read_trace(path, ionice=["a=idle", "*=none:4"]).to_arrow().to_dict()["ioprio"] == [
        "idle",
        "none/4",
        "idle",
    ]
    with pytest.raises(iosched.UsageError, match="PROCESS=CLASS") as caught:
        iosched.read_trace(path, ionice=["a"])
    assert caught.value.argument == "ionice"


def test_workload_accepts_ionice_and_time_unit(tmp_path):
    path = tmp_path / "trace.ascii"
    path.write_text("3.381531 0 194945240 128 0\n6.592533 0 75143136 8 1\n")
    options = {"time_unit": "ms", "ionice": ["*=idle"]}
    workload = iosched.Workload(path, **options)
    assert workload == pickle.loads(pickle.dumps(workload))
    assert workload != iosched.Workload(path, time_unit="us")
    run = {"device": "sata-7200", "scheduler": ["none", "bfq"], "runs": 1}
    metrics = [iosched.compare(each, **run).metrics for each in (workload, iosched.read_trace(path, **options))]
    assert metrics[0].to_dict() == metrics[1].to_dict()
    with pytest.raises(iosched.UsageError, match="PROCESS=CLASS") as caught:
        iosched.Workload(path, ionice=["a"])
    assert caught.value.argument == "ionice"
    with pytest.raises(iosched.UsageError, match="write a unit of time: ns, us, ms or s"):
        iosched.Workload(path, time_unit="min")


def test_time_unit_is_the_unit_of_plain_times(tmp_path):
    path = tmp_path / "trace.ascii"
    path.write_text("3.381531 0 194945240 128 0\n6.592533 0 75143136 8 1\n")
    rows = iosched.read_trace(path, time_unit="ms").to_arrow().to_dict()
    assert rows["arrival_ns"] == [0, 3_211_002]
    with pytest.raises(iosched.UsageError, match="write a unit of time: ns, us, ms or s"):
        iosched.read_trace(path, time_unit="min")


def test_decimals_are_exact(table):
    times = [Decimal(1_700_000_000_123_456_789 + n) for n in range(3)]
    sectors = [Decimal(2**45 + n) for n in range(3)]
    decimals = table.drop_columns(["time_us", "offset_bytes", "pid", "process"])
    decimals = decimals.append_column("time_ns", pa.array(times, pa.decimal128(30, 3)))
    decimals = decimals.append_column("sector", pa.array(sectors, pa.decimal256(40, 0)))
    rows = iosched.Trace.from_arrow(decimals).to_arrow().to_dict()
    assert rows["arrival_ns"] == [0, 1, 2]
    assert rows["sector"] == [2**45, 2**45 + 1, 2**45 + 2]
    seconds = [Decimal("1700000000.123456789"), Decimal("1700000000.123456790"), Decimal("1700000001")]
    decimals = decimals.drop_columns(["time_ns"]).append_column("time_s", pa.array(seconds))
    assert iosched.Trace.from_arrow(decimals).to_arrow().to_dict()["arrival_ns"] == [0, 1, 876_543_211]
    half = changed(decimals, "sector", [Decimal("0.5")] * 3)
    with pytest.raises(iosched.TraceError, match=r"row 0, column sector: found 0\.5"):
        iosched.Trace.from_arrow(half)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string_view()])
def test_columns_of_bytes_are_read_as_text(table, kind):
    names = [name.encode() for name in ["a", "b", "a"]]
    frame = changed(table, "process", names).set_column(1, "op", pa.array([b"read", b"write", b"R"], pa.binary()))
    frame = frame.set_column(frame.column_names.index("process"), "process", pa.array(names, pa.binary()).cast(kind))
    trace = iosched.Trace.from_arrow(frame)
    assert trace.to_arrow().to_dict()["process"] == ["a", "b", "a"]
    with pytest.raises(iosched.TraceError, match='row 0, column op: found "frob"'):
        iosched.Trace.from_arrow(frame.set_column(1, "op", pa.array([b"frob"] * 3)))


def test_run_end_encoded_columns_are_read(table):
    pids = pa.RunEndEncodedArray.from_arrays([2, 3], [7, 8])
    frame = table.set_column(table.column_names.index("pid"), "pid", pids)
    assert iosched.Trace.from_arrow(frame).to_arrow().to_dict()["pid"] == [7, 7, 8]


def test_several_names_of_a_process_give_a_warning(table):
    with pytest.warns(
        iosched.IoschedWarning,
        match=r'1 of the 2 processes have several names, .* first such process is pid 7 \("a", "c"\)',
    ):
        trace = iosched.Trace.from_arrow(changed(table, "process", ["a", "b", "c"]))
    assert trace.to_arrow().to_dict()["process"] == ["c", "b", "c"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (pd.Series([1, 2]), "found Series that cannot be read as an Arrow table"),
        (pd.DataFrame({"sector": [1 + 2j]}), "column sector with type complex128"),
        (pd.DataFrame({"sector": [1, "2"]}, dtype=object), "found DataFrame .*: Could not convert '2'.*column sector"),
        (pd.DataFrame([[1, 2]], columns=["sector", "sector"]), "Duplicate column names"),
    ],
)
def test_errors_of_arrow_become_trace_errors(source, text):
    with pytest.raises(iosched.TraceError, match=text) as error:
        iosched.Trace.from_arrow(source)
    assert error.value.argument == "table"
    assert error.value.__cause__ is not None


def test_a_resolution_is_at_least_one_nanosecond(table):
    with pytest.raises(iosched.UsageError, match="resolution_ns must be at least 1 ns") as wrong:
        iosched.Trace.from_arrow(table, resolution_ns=0)
    assert wrong.value.argument == "resolution_ns"
