#!/usr/bin/env python3
"""Compares the real executor of iosched with fio on the same devices.

    bench/executor.py [fast] [slow] [ioprio] [replay] [--rounds N] [--seconds S]
                      [--executor PATH] [--json FILE]

  fast    fio jobs on a loop device over an image in memory
  slow    fio jobs on a disk that executes one command at a time, in 2 ms each
  ioprio  a best effort reader and an idle reader on the slow disk, under each of four schedulers
  replay  lateness of replayed I/Os. fio does not take part

For fast and slow, fio and the executor run each job in turn, in several rounds. The last two
columns show how far the executor is from fio. `median` compares the medians of all rounds. `best`
compares the best rounds, which other load on the machine disturbs least.

Needs root, fio and losetup. The slow disk needs nbdkit, nbdfuse and fusermount3. Build the executor
first:

    cargo build --profile dist -p iosched-kernel --example execute

Compare only values of the same run.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from live import Missing, have, running

DISK_MIB = 512
WHAT = ("fast", "slow", "ioprio", "replay")

# Jobs of the fast disk and of the slow disk: name, and options of fio.
FAST = {
    "psync 4k randread depth 1": "rw=randread bs=4k ioengine=psync",
    "io_uring 4k randread depth 1": "rw=randread bs=4k ioengine=io_uring",
    "io_uring 4k randread depth 32": "rw=randread bs=4k ioengine=io_uring iodepth=32",
    "libaio 4k randread depth 32": "rw=randread bs=4k ioengine=libaio iodepth=32",
    "psync 128k read": "rw=read bs=128k ioengine=psync",
    "io_uring 4k 70/30 depth 8": "rw=randrw rwmixread=70 bs=4k ioengine=io_uring iodepth=8",
    "psync 4k write, fsync every 8": "rw=randwrite bs=4k ioengine=psync fsync=8",
    "io_uring 4k, 2,000 a second": "rw=randread bs=4k ioengine=io_uring iodepth=4 rate_iops=2000",
}
SLOW = {
    "psync 4k randread depth 1": "rw=randread bs=4k ioengine=psync",
    "io_uring 4k randread depth 8": "rw=randread bs=4k ioengine=io_uring iodepth=8",
}


def job_file(scratch, jobs, device, seconds, ramp_s=1):
    """Writes a job file. Options of a job are separated by spaces. Returns the path."""
    path = os.path.join(scratch, "job.fio")
    with open(path, "w") as file:
        file.write(f"[global]\nfilename={device}\ndirect=1\nnorandommap\ntime_based\nruntime={seconds}\nramp_time={ramp_s}\n")
        for name, options in jobs.items():
            file.write(f"[{name}]\n" + "\n".join(options.split()) + "\n")
    return path


def of_fio(jobs):
    """Returns the IOPS and the p99 of each job in fio's JSON."""
    figures = []
    for job in jobs:
        ios = job["read"]["total_ios"] + job["write"]["total_ios"]
        kind = max((job["read"], job["write"]), key=lambda kind: kind["total_ios"])
        # If a job starves, the runtime of its reads or writes is not the runtime of the job.
        seconds = job["job_runtime"] / 1000
        figures.append({"IOPS": ios / seconds if seconds else 0.0, "p99": kind["clat_ns"]["percentile"].get("99.000000", 0) / 1e3})
    return figures


def quantile_us(histogram, q):
    """Returns a quantile of a histogram of the executor, us.

    The buckets are pairs: the distance from the previous bucket, and the count.
    """
    rank, seen, bucket = max(1, -int(-q * histogram["count"] // 1)), 0, 0
    pairs = histogram["buckets"]
    for distance, count in zip(pairs[::2], pairs[1::2]):
        bucket += distance
        seen += count
        if seen >= rank:
            break
    octave = bucket >> 6
    first, width = (bucket, 1) if octave == 0 else ((64 + (bucket & 63)) << (octave - 1), 1 << (octave - 1))
    return (first + (width - 1) // 2) / 1e3


def of_ours(result):
    figures = []
    for job in result["jobs"]:
        ios = job["read"]["ios"] + job["write"]["ios"]
        kind = max((job["read"], job["write"]), key=lambda kind: kind["ios"])
        seconds = (job["ended_ns"] - job["counted_from_ns"]) / 1e9
        p99 = quantile_us(kind["completion"], 0.99) if kind["ios"] else 0.0
        figures.append({"IOPS": ios / seconds if seconds else 0.0, "p99": p99})
    return figures


class Machine:
    def __init__(self, scratch, options):
        self.scratch, self.options = scratch, options

    def fio(self, path):
        done = subprocess.run(["fio", "--output-format=json", path], capture_output=True, text=True, check=True)
        return of_fio(json.loads(done.stdout[done.stdout.index("{"):])["jobs"])

    def ours(self, path, device):
        command = [self.options.executor, path, device, "--destroy-data", device]
        return of_ours(self.execute(command))

    def execute(self, command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def loop(self, image, scheduler):
        made = ["losetup", "--find", "--show", "--direct-io=on", image]
        device = subprocess.run(made, capture_output=True, text=True, check=True).stdout.strip()
        try:
            with open(f"/sys/block/{os.path.basename(device)}/queue/scheduler", "w") as file:
                file.write(scheduler)
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)

    @contextlib.contextmanager
    def fast(self, scheduler="none"):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as image:
            block = os.urandom(1 << 20)
            for _ in range(DISK_MIB):
                image.write(block)
            image.flush()
            with self.loop(image.name, scheduler) as device:
                yield device

    @contextlib.contextmanager
    def slow(self, scheduler="none"):
        have("nbdkit", "nbdfuse", "fusermount3")
        socket = os.path.join(self.scratch, "slow.sock")
        server = ["nbdkit", "-f", "-U", socket, "--filter=noparallel", "--filter=delay", "memory", f"{DISK_MIB}M",
                  "rdelay=2ms", "wdelay=2ms", "serialize=all-requests"]
        with running(server, lambda: os.path.exists(socket)), tempfile.TemporaryDirectory(dir=self.scratch) as at:
            file = os.path.join(at, "nbd")
            with running(["nbdfuse", at, f"nbd+unix:///?socket={socket}"], lambda: os.path.exists(file)):
                with self.loop(file, scheduler) as device:
                    yield device
                subprocess.run(["fusermount3", "-u", at], capture_output=True)
        os.unlink(socket)


def compare(machine, title, device, cells, table):
    """Runs each job with fio and with the executor in turn, and prints the differences."""
    print(f"\n{title}\n{'':34} {'':>4} {'fio':>20} {'iosched':>20}    median     best")
    for name, job in cells.items():
        path = job_file(machine.scratch, {"j": job}, device, machine.options.seconds)
        rounds = {"fio": [], "iosched": []}
        for _ in range(machine.options.rounds):
            rounds["fio"].append(machine.fio(path)[0])
            rounds["iosched"].append(machine.ours(path, device)[0])
        for figure, unit in (("IOPS", "/s"), ("p99", "µs")):
            values = {who: [one[figure] for one in ones] for who, ones in rounds.items()}
            theirs, own = statistics.median(values["fio"]), statistics.median(values["iosched"])
            best = max if figure == "IOPS" else min
            apart = [100 * (own / theirs - 1) if theirs else 0.0, 100 * (best(values["iosched"]) / best(values["fio"]) - 1)]
            shown = [f"{statistics.median(v):,.0f} ({min(v):,.0f}-{max(v):,.0f})" for v in (values["fio"], values["iosched"])]
            label = name if figure == "IOPS" else "  p99"
            print(f"{label:34} {unit:>4} {shown[0]:>20} {shown[1]:>20}  {apart[0]:+6.1f} % {apart[1]:+6.1f} %", flush=True)
            table.append({"disk": title, "job": name, "figure": figure, "unit": unit, **values})


def bench_fast(machine, table):
    with machine.fast() as device:
        compare(machine, "loop device over an image in memory, scheduler none", device, FAST, table)


def bench_slow(machine, table):
    with machine.slow() as device:
        compare(machine, "slow disk: one command at a time, 2 ms each, scheduler none", device, SLOW, table)


def bench_ioprio(machine, table):
    """Runs a best effort and an idle reader on the slow disk, once under each scheduler."""
    readers = {name: f"rw=randread bs=4k ioengine=io_uring iodepth=8 numjobs=1 prioclass={number}" for name, number in
               (("best effort", 2), ("idle", 3))}
    print(f"\nslow disk, depth 8: IOPS of a best effort reader / an idle reader\n{'':14} {'fio':>15} {'iosched':>15}")
    for scheduler in ("none", "mq-deadline", "kyber", "bfq"):
        with machine.slow(scheduler) as device:
            # No ramp: if a job starves, fio ends its ramp only at the end of the other job.
            path = job_file(machine.scratch, readers, device, max(machine.options.seconds, 5), ramp_s=0)
            found = {"fio": machine.fio(path), "iosched": machine.ours(path, device)}
            shown = [" / ".join(f"{job['IOPS']:.0f}" for job in jobs) for jobs in found.values()]
            print(f"{scheduler:14} {shown[0]:>15} {shown[1]:>15}", flush=True)
            table.append({"disk": "slow", "job": f"ioprio under {scheduler}", **found})


def bench_replay(machine, table):
    """Replays 4 KiB reads of four processes, 1,000 per second each, and prints their lateness."""
    path = os.path.join(machine.scratch, "trace.csv")
    with open(path, "w") as file:
        # Format of the MSR Cambridge traces: time, host, disk, operation, offset, bytes, latency.
        # Times are in units of 100 ns.
        for number in range(4000 * machine.options.seconds):
            print(f"{128166372000000000 + number * 2500},h{number % 4},0,Read,{number * 4096 * 37 % (DISK_MIB << 20)},4096,1000", file=file)
    print("\nreplay of 4,000 reads per second: lateness of the submissions, µs")
    with machine.fast() as device:
        for mode in ([], ["--closed"]):
            result = machine.execute([machine.options.executor, path, device, *mode])
            late = result["lateness"]
            figures = {f"p{q}": quantile_us(late, q / 100) for q in (50, 99)} | {"max": late["max_ns"] / 1e3}
            name = "closed" if mode else "open"
            print(f"{name:8} " + "  ".join(f"{key} {value:,.1f}" for key, value in figures.items()), flush=True)
            table.append({"disk": "fast", "job": f"replay, {name}", **figures})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=f"benchmarks: {', '.join(WHAT)} [default: all]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--executor", default="target/dist/examples/execute")
    parser.add_argument("--json", help="file for all values of all rounds")
    options = parser.parse_args()
    unknown = set(options.what) - set(WHAT)
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}; available: {', '.join(WHAT)}")
    if shutil.which(options.executor) is None:
        parser.error(f"{options.executor} was not found: --help shows how to build the executor")
    have("fio", "losetup")
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(scratch, options)
        benches = {"fast": bench_fast, "slow": bench_slow, "ioprio": bench_ioprio, "replay": bench_replay}
        for name in options.what or WHAT:
            try:
                benches[name](machine, table)
            except Missing as program:
                print(f"\n{name}: left out, because {program} was not found", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
