#!/usr/bin/env python3
"""Buffered jobs of fio on a real machine and as predicted: bytes written to the device, flushes, and rates.

    bench/buffered.py [JOB...] [--delay MS] [--scheduler NAME] [--iosched PATH] [--rounds N] [--json FILE]

As root, with fio, nbdkit, nbdfuse, losetup and mkfs.ext4. The device is slow and known: a disk in memory whose commands take
--delay each, one after another (nbdkit), behind a loop device past the page cache, with ext4 made anew for each job. What a
command takes is measured before each round, past the page cache, and is what the prediction's device is given; its machine has
this one's memory, limits and readahead. For the time of the runs vm.dirty_* are set, and put back after them.

Build first: cargo build --release -p iosched-cli. Goals: bytes and flushes within 10 %, rates within 20 %.
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

from live import Missing, have, running

DISK_MIB = 2048
MIB = 1 << 20
# What is set of memory for the runs.
VM = {"dirty_bytes": 64 * MIB, "dirty_background_bytes": 32 * MIB, "dirty_expire_centisecs": 500, "dirty_writeback_centisecs": 100}
READ_AHEAD_KB = 128
# A command that the layers below split would count once and take twice as long.
MAX_SECTORS_KB = 512
# Goals by figure, per cent.
GOALS = {"written": 10, "flushes": 10, "rate": 20}

TIMED = "ioengine=psync time_based runtime=15"
# Jobs by name, each a list of (section, options divided by spaces).
JOBS = {
    "sequential writer": [("w", "rw=write bs=128k size=512m ioengine=psync")],
    "sequential writer, end_fsync": [("w", "rw=write bs=64k size=256m ioengine=psync end_fsync=1")],
    "random writer": [("w", f"rw=randwrite bs=4k size=256m norandommap {TIMED}")],
    "random writer, fsync=1": [("w", f"rw=randwrite bs=4k size=128m fsync=1 {TIMED}")],
    "random overwriter, fsync=8": [("w", f"rw=randwrite bs=4k size=128m overwrite=1 fsync=8 {TIMED}")],
    "log writer, fdatasync=1": [("log", f"rw=write bs=8k size=64m fdatasync=1 {TIMED}")],
    "log writer beside a reader": [
        ("log", f"rw=write bs=8k size=64m fdatasync=1 {TIMED}"),
        ("reader", f"rw=randread bs=8k size=512m norandommap {TIMED}"),
    ],
    "as pgbench": [
        ("data", f"rw=randrw rwmixread=70 bs=8k size=256m overwrite=1 numjobs=2 norandommap {TIMED}"),
        ("wal", f"rw=write bs=8k size=64m overwrite=1 fdatasync=1 thinktime=5000 {TIMED}"),
    ],
    "steady writer of 2 MB/s": [("w", "rw=write bs=64k size=64m rate=2m ioengine=psync time_based runtime=25")],
    "writer, fsync=32, beside direct reads": [
        ("w", f"rw=write bs=64k size=1g fsync=32 {TIMED}"),
        ("direct", "rw=randread bs=4k size=256m direct=1 ioengine=libaio iodepth=4 norandommap time_based runtime=15"),
    ],
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout


def put(path, value):
    with open(path, "w") as file:
        file.write(str(value))


def stat(device):
    """Bytes written and flushes of a block device so far."""
    with open(f"/sys/block/{os.path.basename(device)}/stat") as file:
        fields = [int(field) for field in file.read().split()]
    return {"written": fields[6] * 512, "flushes": fields[15], "read": fields[2] * 512}


@contextlib.contextmanager
def limits():
    """Limits on what is dirty, for as long as the block lasts."""
    names = ["dirty_ratio", "dirty_background_ratio", *VM]
    before = {}
    for name in names:
        with open(f"/proc/sys/vm/{name}") as file:
            before[name] = int(file.read())
    try:
        for name, value in VM.items():
            put(f"/proc/sys/vm/{name}", value)
        yield
    finally:
        for name, value in before.items():
            # Of a ratio and its bytes the one that is not 0 counts.
            if value:
                put(f"/proc/sys/vm/{name}", value)


@contextlib.contextmanager
def disk(scratch, options):
    socket = os.path.join(scratch, "disk.sock")
    delay = f"{options.delay}ms"
    server = ["nbdkit", "-f", "-U", socket, "--filter=noparallel", "--filter=delay", "memory", f"{DISK_MIB}M",
              f"rdelay={delay}", f"wdelay={delay}", "serialize=all-requests"]
    with running(server, lambda: os.path.exists(socket)), tempfile.TemporaryDirectory(dir=scratch) as at:
        file = os.path.join(at, "nbd")
        with running(["nbdfuse", at, f"nbd+unix:///?socket={socket}"], lambda: os.path.exists(file)):
            device = run("losetup", "--find", "--show", "--direct-io=on", file).strip()
            try:
                queue = f"/sys/block/{os.path.basename(device)}/queue"
                put(f"{queue}/scheduler", options.scheduler)
                put(f"{queue}/max_sectors_kb", MAX_SECTORS_KB)
                put(f"{queue}/read_ahead_kb", READ_AHEAD_KB)
                yield device
            finally:
                run("losetup", "--detach", device)
                subprocess.run(["fusermount3", "-u", at], capture_output=True)
    os.unlink(socket)


def measured(device, rw, bs, sync=""):
    """Median latency of one direct command at a time, ns; with a sync, that of the sync."""
    out = run("fio", "--name=m", f"--filename={device}", "--direct=1", "--ioengine=psync", f"--rw={rw}", f"--bs={bs}",
              "--runtime=2", "--time_based", "--output-format=json", *([sync] if sync else []))
    job = json.loads(out[out.index("{"):])["jobs"][0]
    latencies = job["sync"]["lat_ns"] if sync else job["write" if "write" in rw else "read"]["clat_ns"]
    return latencies["percentile"]["50.000000"]


def profile(device, scratch):
    """The device as the prediction is given it."""
    read, write, long = measured(device, "randread", "4k"), measured(device, "randwrite", "4k"), measured(device, "write", "512k")
    flush = measured(device, "randwrite", "4k", "--fsync=1")
    per_byte = max(long - write, 0) / (512 * 1024 - 4096)
    rate = "" if per_byte == 0 else f"bytes_per_second = {int(min(1e9 / per_byte, 1e12))}\n"
    path = os.path.join(scratch, "disk.toml")
    put(path, f"""kind = "server"
about = "measured"
[server]
capacity_sectors = {DISK_MIB * 2048}
depth = 128
max_hw_sectors_kb = {MAX_SECTORS_KB}
write_cache = true
servers = 1
flush_ns = {int(flush)}
[server.read]
transit_ns = 0
service_ns = {int(read)}
{rate}[server.write]
transit_ns = 0
service_ns = {int(write)}
{rate}""")
    return path


def machine(scratch, options):
    """The machine as the prediction is given it: the one of today with this one's memory and limits."""
    with open("/proc/meminfo") as file:
        meminfo = {line.split(":")[0]: int(line.split()[1]) for line in file}
    with open(options.machine) as file:
        lines = file.read().splitlines()
    replaced = {
        "cache_mib": meminfo["MemAvailable"] // 1024,
        "kernel": '"' + ".".join(platform.release().split("-")[0].split(".")[:2]) + '"',
        "read_ahead_kb": READ_AHEAD_KB,
        "dirty_expire_ms": VM["dirty_expire_centisecs"] * 10,
        "dirty_writeback_ms": VM["dirty_writeback_centisecs"] * 10,
    }
    out = []
    for line in lines:
        key = line.split("=")[0].strip()
        out.append(f"{key} = {replaced[key]}" if key in replaced else line)
        if key == "[vm]":
            out += [f"{key} = {VM[key]}" for key in ("dirty_bytes", "dirty_background_bytes")]
    path = os.path.join(scratch, "machine.toml")
    put(path, "\n".join(out) + "\n")
    return path


def job_file(path, sections, directory=None):
    with open(path, "w") as file:
        if directory:
            file.write(f"[global]\ndirectory={directory}\n")
        for name, options in sections:
            file.write(f"[{name}]\n" + "\n".join(options.split()) + "\n")
    return path


def rates(jobs):
    """I/Os a second of each job of fio's JSON."""
    by_name = {}
    for job in jobs:
        ios = job["read"]["total_ios"] + job["write"]["total_ios"]
        seconds = max(job["read"]["runtime"], job["write"]["runtime"], 1) / 1000
        by_name.setdefault(job["jobname"], []).append(ios / seconds)
    return {name: statistics.mean(values) for name, values in by_name.items()}


def real(device, scratch, sections):
    run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device)
    with tempfile.TemporaryDirectory(dir=scratch) as at:
        run("mount", device, at)
        try:
            path = job_file(os.path.join(scratch, "real.fio"), sections, at)
            run("fio", "--create_only=1", path)
            # What laying out has changed is on the medium, and no transaction is open.
            run("sync")
            time.sleep(1)
            run("sync")
            before = stat(device)
            out = run("fio", "--output-format=json", path)
            after = stat(device)
        finally:
            run("umount", at)
    figures = {name: after[name] - before[name] for name in before}
    return {**figures, "rate": rates(json.loads(out[out.index("{"):])["jobs"])}


def setting(device, options):
    """The scheduler, and the kernel's writeback throttling, as they are."""
    with open(f"/sys/block/{os.path.basename(device)}/queue/wbt_lat_usec") as file:
        target_us = int(file.read())
    return f"{options.scheduler}:wbt_lat_usec={target_us}" if target_us > 0 else options.scheduler


def predicted(scratch, options, sections, device, own, scheduler):
    path = job_file(os.path.join(scratch, "predicted.fio"), sections)
    records = os.path.join(scratch, "records.jsonl")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(records)
    common = [options.iosched, "compare", "--workload", path, "--device", device, "--machine", own,
              "--scheduler", scheduler, "--runs", "1", "--records", records]
    jobs = json.loads(run(*common, "--output-format", "fio-json"))
    with open(records) as file:
        result = next(record for record in map(json.loads, file) if record["record"] == "run")["result"]
    figures = {"written": result["bytes_written"], "read": result["bytes_read"], "flushes": result["queue"]["flushes"]["ios"]}
    return {**figures, "rate": rates(jobs["jobs"])}


def rows(theirs, ours):
    """Figures by name: measured and predicted."""
    for name in ("written", "flushes"):
        yield name, name, theirs[name], ours[name]
    for job, rate in theirs["rate"].items():
        yield f"rate of {job}", "rate", rate, ours["rate"].get(job, 0.0)


def shown(kind, value):
    return f"{value / MIB:,.1f} MiB" if kind == "written" else f"{value:,.0f}" if kind == "flushes" else f"{value:,.1f}/s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help="numbers of jobs, from 1; all if none is given")
    parser.add_argument("--delay", type=int, default=10, help="what a command takes, ms")
    parser.add_argument("--scheduler", default="mq-deadline")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--iosched", default="target/release/iosched")
    parser.add_argument("--machine", default="crates/lab/machines/linux-6.12.toml", help="what the rest of the machine is")
    parser.add_argument("--json", help="every figure of every round, into this file")
    options = parser.parse_args()
    chosen = [int(number) - 1 for number in options.jobs] or range(len(JOBS))
    try:
        have("fio", "losetup", "nbdkit", "nbdfuse", "fusermount3", "mkfs.ext4", options.iosched)
    except Missing as program:
        sys.exit(f"{program} is not here")
    names = list(JOBS)
    table, kept = [], {kind: [0, 0] for kind in GOALS}
    with tempfile.TemporaryDirectory() as scratch, limits():
        own = machine(scratch, options)
        print(f"{'':40} {'measured':>14} {'predicted':>14}   ratio   goal")
        for number in chosen:
            name, sections = names[number], JOBS[names[number]]
            print(f"{number + 1}. {name}", flush=True)
            rounds = []
            for _ in range(options.rounds):
                # A disk of its own each: what a run leaves under way does not reach the next.
                with disk(scratch, options) as device:
                    modelled, scheduler = profile(device, scratch), setting(device, options)
                    rounds.append((real(device, scratch, sections), predicted(scratch, options, sections, modelled, own, scheduler)))
            table.append({"job": name, "rounds": rounds})
            found = [list(rows(*one)) for one in rounds]
            for figure in zip(*found):
                label, kind = figure[0][0], figure[0][1]
                theirs, ours = (statistics.median(row[at] for row in figure) for at in (2, 3))
                ratio = ours / theirs if theirs else (1.0 if ours == 0 else float("inf"))
                good = abs(ratio - 1) * 100 <= GOALS[kind]
                kept[kind][0] += good
                kept[kind][1] += 1
                verdict = "kept" if good else "missed"
                print(f"   {label:37} {shown(kind, theirs):>14} {shown(kind, ours):>14}  {ratio:6.2f}   {verdict}", flush=True)
    print(", ".join(f"{kind}: {good} of {of} within {GOALS[kind]} %" for kind, (good, of) in kept.items()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
