#!/usr/bin/env python3
"""Compares buffered fio jobs on a real device with the predictions of iosched.

    bench/buffered.py [JOB...] [--delay MS] [--scheduler NAME] [--rounds N]
                      [--iosched PATH] [--machine FILE] [--json FILE]

The script runs each job with fio, and predicts the same job with `iosched compare`. Then it
compares the bytes written to the device, the number of flushes, and the rate of each job. The goals
are a difference of at most 10 % for bytes and flushes, and of at most 20 % for rates.

The real device is slow, and its speed is known. nbdkit serves a disk in memory that executes one
command at a time, each in --delay. A loop device with direct I/O shows this disk as a block device.
Each round of a job has a new disk with a new ext4 file system.

Before each round, the script measures the latencies of the device with direct I/O. The predicted
device has these latencies. The predicted machine has the kernel version, memory, dirty limits and
readahead of the real machine.

The script sets vm.dirty_* for the runs, and restores the old values at the end.

Needs root, fio, nbdkit, nbdfuse, fusermount3, losetup and mkfs.ext4. Build iosched first:

    cargo build --release -p iosched-cli
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
# Values of vm.* for the runs.
VM = {"dirty_bytes": 64 * MIB, "dirty_background_bytes": 32 * MIB, "dirty_expire_centisecs": 500, "dirty_writeback_centisecs": 100}
READ_AHEAD_KB = 128
# Largest command, KiB. The layers below would split a larger command in two. The device would count
# one command, which takes twice as long.
MAX_SECTORS_KB = 512
# Goals: largest difference of each metric, per cent.
GOALS = {"written": 10, "flushes": 10, "rate": 20}

TIMED = "ioengine=psync time_based runtime=15"
# Jobs by name. A job is a list of sections: name, and options separated by spaces.
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
    """Returns the bytes written, the flushes and the bytes read of a block device so far."""
    with open(f"/sys/block/{os.path.basename(device)}/stat") as file:
        fields = [int(field) for field in file.read().split()]
    return {"written": fields[6] * 512, "flushes": fields[15], "read": fields[2] * 512}


@contextlib.contextmanager
def limits():
    """Sets the limits of dirty memory. Restores the old limits at the end of the block."""
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
            # Only a ratio or its number of bytes is in use. The other value is 0.
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
    """Returns the median latency of direct commands, one at a time, ns.

    With `sync`, returns the median latency of the syncs.
    """
    out = run("fio", "--name=m", f"--filename={device}", "--direct=1", "--ioengine=psync", f"--rw={rw}", f"--bs={bs}",
              "--runtime=2", "--time_based", "--output-format=json", *([sync] if sync else []))
    job = json.loads(out[out.index("{"):])["jobs"][0]
    latencies = job["sync"]["lat_ns"] if sync else job["write" if "write" in rw else "read"]["clat_ns"]
    return latencies["percentile"]["50.000000"]


def profile(device, scratch):
    """Measures the device, and writes a profile of it for the prediction. Returns the path."""
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
    """Writes the machine file for the prediction: --machine with values of this machine.

    Returns the path.
    """
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
    """Returns the IOPS of each job in fio's JSON."""
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
            # Write the new files to the medium, so that no transaction of the file system is open.
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
    """Returns the setting of the device: its scheduler, and wbt if wbt is on."""
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
    """Yields each metric: its name, its kind, the measured value and the predicted value."""
    for name in ("written", "flushes"):
        yield name, name, theirs[name], ours[name]
    for job, rate in theirs["rate"].items():
        yield f"rate of {job}", "rate", rate, ours["rate"].get(job, 0.0)


def shown(kind, value):
    return f"{value / MIB:,.1f} MiB" if kind == "written" else f"{value:,.0f}" if kind == "flushes" else f"{value:,.1f}/s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help="numbers of jobs, from 1 [default: all]")
    parser.add_argument("--delay", type=int, default=10, help="time that the device takes for a command, ms")
    parser.add_argument("--scheduler", default="mq-deadline")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--iosched", default="target/release/iosched")
    parser.add_argument("--machine", default="crates/lab/machines/linux-6.12.toml", help="machine file with the values that the script does not measure")
    parser.add_argument("--json", help="file for all values of all rounds")
    options = parser.parse_args()
    chosen = [int(number) - 1 for number in options.jobs] or range(len(JOBS))
    try:
        have("fio", "losetup", "nbdkit", "nbdfuse", "fusermount3", "mkfs.ext4", options.iosched)
    except Missing as program:
        sys.exit(f"{program} was not found: see --help")
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
                # Each round has a new disk, so that unfinished I/O cannot disturb the next round.
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
                verdict = "met" if good else "missed"
                print(f"   {label:37} {shown(kind, theirs):>14} {shown(kind, ours):>14}  {ratio:6.2f}   {verdict}", flush=True)
    print(", ".join(f"{kind}: {good} of {of} within {GOALS[kind]} %" for kind, (good, of) in kept.items()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
