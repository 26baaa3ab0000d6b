"""Traces: read from anywhere, made of tables, written, and read again."""

import io
import pickle

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


def test_a_table_of_any_library_is_a_trace(table):
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
    info = trace.info()
    assert (info["requests"], info["reads"], info["bytes_written"], info["span_ns"]) == (3, 2, 512, 300_000)
    assert [name for _, name, _ in info["processes"]] == ["a", 'b, "c"']


@pytest.mark.parametrize(
    ("drop", "told"),
    [("time_us", "a time"), ("op", "op"), ("offset_bytes", "a start"), ("length_bytes", "a length")],
)
def test_a_column_that_is_missing_is_named(table, drop, told):
    with pytest.raises(iosched.TraceError, match=f"no column for {told}"):
        iosched.Trace.from_arrow(table.drop_columns([drop]))


def test_what_is_no_trace_is_told(table):
    with pytest.raises(iosched.TraceError):
        iosched.Trace.from_arrow(table.set_column(1, "op", pa.array(["?", "?", "?"])))
    with pytest.raises((TypeError, ValueError)):
        iosched.Trace.from_arrow({"a": [1]})
    with pytest.raises(iosched.WorkloadError):
        iosched.Trace.from_arrow(table.slice(0, 0))
    with pytest.raises(iosched.TraceError):
        iosched.read_trace(io.BytesIO(b"nothing of the kind\n" * 20))
    with pytest.raises(FileNotFoundError):
        iosched.read_trace("none.blktrace")
    with pytest.raises(iosched.UsageError, match="formats are"):
        iosched.read_trace("none.blktrace", format="sideways")


class Dripping(io.BytesIO):
    """A file that gives little at once."""

    def read(self, most=-1):
        return super().read(min(most, 7) if most >= 0 else 7)


class Broken(io.BytesIO):
    def read(self, most=-1):
        raise PermissionError("not yours")


def test_files_are_read_as_they_come(tmp_path):
    lines = ["time_us,op,offset_bytes,length_bytes", *(f"{i},read,{i * 4096},4096" for i in range(60_000))]
    content = "\n".join(lines).encode()
    assert len(content) > 1 << 20
    path = tmp_path / "long.csv"
    path.write_bytes(content)
    of_path = iosched.read_trace(path, name="mine")
    assert of_path.name == "mine"
    assert of_path == iosched.read_trace(io.BytesIO(content), name="mine")
    assert of_path == iosched.read_trace(Dripping(content), name="mine")
    with path.open("rb") as file:
        assert of_path == iosched.read_trace(file, name="mine")
        assert not file.closed


def test_what_cannot_be_read_says_so_itself(tmp_path):
    with pytest.raises(PermissionError, match="not yours"):
        iosched.read_trace(Broken())
    with pytest.raises(TypeError, match="binary mode: it gives str"):
        iosched.read_trace(io.StringIO("time_us,op"))


@pytest.mark.parametrize("ending", ["csv", "blktrace.0", "iolog", "spc", "parquet"])
def test_what_is_written_is_read_again(table, tmp_path, ending):
    trace = iosched.Trace.from_arrow(table, "mine")
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table(trace.to_arrow()), path)
    else:
        assert trace.write(path, format="blktrace" if ending.startswith("blktrace") else None) == 0
    again = iosched.read_trace(path).to_arrow().to_dict()
    own = trace.to_arrow().to_dict()
    assert (again["sector"], again["nr_sectors"]) == (own["sector"], own["nr_sectors"])
    with open(path, "rb") as file:
        if ending != "parquet":
            assert iosched.read_trace(file).to_arrow().to_dict() == again
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_urls_are_opened_by_fsspec(table, tmp_path):
    trace = iosched.Trace.from_arrow(table, "mine")
    trace.write(tmp_path / "t.csv")
    assert len(iosched.read_trace(f"file://{tmp_path}/t.csv")) == 3


def test_a_pickled_trace_gives_the_same_runs(samples):
    trace = iosched.read_trace(samples / "pgbench.blktrace.0.zst", partial=True)
    again = pickle.loads(pickle.dumps(trace))
    assert again == trace
    one, two = (iosched.simulate(own, "sata-7200", "cfq").requests.to_dict() for own in (trace, again))
    assert one == two
    assert pickle.loads(pickle.dumps(iosched.Workload.from_trace(trace))).name == trace.name


def test_a_million_rows_are_soon_read():
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
    assert 0 < len(trace) <= len(rows)
    assert pickle.loads(pickle.dumps(trace)) == trace
