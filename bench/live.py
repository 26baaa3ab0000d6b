#!/usr/bin/env python3
"""Compares the speed of a served disk with other servers.

    bench/live.py [nbd] [large] [vhost] [fuse] [cost] [shield] [tenants] [isolation]
                  [--rounds N] [--seconds S] [--iosched PATH] [--beside PATH] [--json FILE]

  nbd        4 KiB I/Os over NBD, compared with nbdkit, qemu-nbd and nbd-server
  large      1 MiB I/Os over NBD, compared with the same servers
  vhost      4 KiB reads over vhost-user-blk, compared with NBD and qemu-storage-daemon
  fuse       reads of a mounted disk, compared with nbdfuse
  cost       CFQ, compared with noop
  shield     p99 of a reader beside 16 writers, compared with noop, nbdkit and qemu-nbd
  tenants    share of a tenant with one client beside a tenant with 16 clients
  isolation  effect of classes, levels and weights, compared with the kernel's bfq

All servers run in turn, in several rounds. Most tables have the median of each server, and the
ratio of iosched to the best other server.

Needs nbdinfo, nbdcopy, and fio with the engine nbd. If another server is not installed, the script
leaves the server out and prints its name. Run the script as root for fuse and isolation. First
build iosched and the driver of vhost:

    cargo build --profile dist --features full
    cargo build --profile dist -p iosched-live --example vhost_reads

Client and server share the machine, so compare only values of the same run.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

DISK_MIB = 512
MODEL_MIB = 4096
GOAL = {
    "nbd": "more IOPS than every other server, in every row",
    "large": "more IOPS than every other server, in every row",
    "vhost": "at least twice the IOPS of iosched over NBD, and more than qemu-storage-daemon",
    "fuse": "at least 1.5 times the IOPS of nbdfuse with nbdkit",
    "cost": "IOPS of cfq within 10 % of the IOPS of noop",
    "shield": "p99 of the reader at most a tenth of all others, total throughput within 15 % of noop",
    "tenants": "A with one client gets 48 to 52 % beside B with 16 clients",
    "isolation": "ratio of the two sides at least as large as with the kernel's bfq",
}


# Name of the second build of iosched in tables.
OTHER_BUILD = "other build"


class Missing(Exception):
    """Error: a program or a feature is not available."""


def have(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(program)


def until(ready, what):
    """Waits until `ready` returns true. Exits after 5 s."""
    for _ in range(500):
        if ready():
            return
        time.sleep(0.01)
    sys.exit(f"{what}: not ready after 5 s")


@contextlib.contextmanager
def running(command, ready):
    """Runs a command until the end of the block. First waits until `ready` returns true."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ready_or_gone():
        if process.poll() is not None:
            sys.exit(f"{' '.join(command)}: {process.stderr.read().decode()}")
        return ready()

    try:
        until(ready_or_gone, " ".join(command))
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def listening(at):
    def ready():
        return subprocess.run(["nbdinfo", "--list", at], capture_output=True).returncode == 0

    return ready


def uri(path, export=""):
    return f"nbd+unix:///{export}?socket={path}"


def full(path):
    """Writes a file of the disk's size with random data in every block. Returns the path."""
    with open(path, "wb") as file:
        block = os.urandom(1 << 20)
        for _ in range(DISK_MIB):
            file.write(block)
    return path


class Servers:
    """Servers of the same disk. Each is a context that yields an NBD URI or a vhost-user socket."""

    def __init__(self, iosched, scratch, beside=None):
        self.iosched, self.scratch, self.count = iosched, scratch, 0
        self.other_build = Servers(beside, tempfile.mkdtemp(dir=scratch)) if beside else None

    def socket(self):
        self.count += 1
        return os.path.join(self.scratch, f"{self.count}.sock")

    @contextlib.contextmanager
    def ours(self, backing, *options):
        path = self.socket()
        command = [self.iosched, "serve", backing, "--unix", path, *options]
        with running(command, listening(uri(path))):
            yield uri(path)

    @contextlib.contextmanager
    def vhost(self, backing, image=None):
        """Serves a disk over vhost-user-blk. Copies `image` to the disk, if it is given."""
        path, nbd = self.socket(), self.socket()
        command = [self.iosched, "vhost", backing, "--socket", path, "--nbd", nbd]
        with running(command, listening(uri(nbd))):
            if image:
                subprocess.run(["nbdcopy", image, uri(nbd)], check=True)
            yield path

    @contextlib.contextmanager
    def qemu_vhost(self, image, aio):
        have("qemu-storage-daemon")
        path = self.socket()
        blockdev = f"driver=file,node-name=disk,filename={image},aio={aio}"
        # qemu-storage-daemon has native asynchronous I/O only without the page cache.
        blockdev += ",cache.direct=on" if aio == "native" else ""
        export = f"type=vhost-user-blk,id=export,node-name=disk,addr.type=unix,addr.path={path},writable=on"
        with running(["qemu-storage-daemon", "--blockdev", blockdev, "--export", export], lambda: os.path.exists(path)):
            yield path

    @contextlib.contextmanager
    def nbdkit(self, *plugin):
        have("nbdkit")
        path = self.socket()
        with running(["nbdkit", "-f", "-U", path, *plugin], listening(uri(path))):
            yield uri(path)

    @contextlib.contextmanager
    def qemu(self, image):
        have("qemu-nbd")
        path = self.socket()
        command = ["qemu-nbd", "-t", "-e", "32", "-f", "raw", "-k", path, image]
        # On tmpfs, qemu-nbd has neither direct I/O nor native asynchronous I/O.
        if not image.startswith("/dev/shm"):
            command[1:1] = ["--cache=none", "--aio=native"]
        with running(command, listening(uri(path))):
            yield uri(path)

    @contextlib.contextmanager
    def nbd_server(self, image):
        have("nbd-server")
        path, config = self.socket(), os.path.join(self.scratch, "nbd-server.conf")
        with open(config, "w") as file:
            file.write(f"[generic]\nunixsock = {path}\nallowlist = true\n[disk]\nexportname = {image}\n")
        pid = os.path.join(self.scratch, "nbd-server.pid")
        # In the foreground, nbd-server ends with its first client.
        subprocess.run(["nbd-server", "-C", config, "-p", pid], check=True)
        try:
            until(listening(uri(path, "disk")), "nbd-server")
            yield uri(path, "disk")
        finally:
            with open(pid) as file:
                os.kill(int(file.read()), signal.SIGTERM)


def fio(jobs, seconds, *options, cgroup=None):
    """Runs fio, in `cgroup` if it is given. Returns the results of its jobs."""
    have("fio")
    command = ["fio", "--output-format=json", "--time_based", f"--runtime={seconds}", "--norandommap", *options]
    for name, job in jobs:
        command += [f"--name={name}", *job]

    def enter():
        with open(os.path.join(cgroup, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    result = subprocess.run(command, capture_output=True, text=True, preexec_fn=enter if cgroup else None)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: {result.stderr}{result.stdout}")
    return json.loads(result.stdout[result.stdout.index("{"):])["jobs"]


def nbd_job(at, rw, size, depth, mib=DISK_MIB):
    return ["--ioengine=nbd", f"--uri={at}", f"--rw={rw}", f"--bs={size}", f"--iodepth={depth}", f"--size={mib}M"]


def iops(jobs):
    return sum(job["read"]["iops"] + job["write"]["iops"] for job in jobs)


def bytes_per_s(jobs):
    return sum(job["read"]["bw_bytes"] + job["write"]["bw_bytes"] for job in jobs)


def connections(at, rw, size, depth, count, seconds):
    jobs = [(f"c{number}", nbd_job(at, rw, size, max(1, depth // count))) for number in range(count)]
    return iops(fio(jobs, seconds))


def rounds(count, contenders, measure):
    """Measures every contender in turn, `count` times. Returns the values of each contender."""
    found = {name: [] for name in contenders}
    for _ in range(count):
        for name, contender in contenders.items():
            try:
                with contender() as at:
                    found[name].append(measure(at))
            except Missing as missing:
                found[name] = None
                print(f"  {name}: left out, not available: {missing}", file=sys.stderr)
        contenders = {name: contender for name, contender in contenders.items() if found[name] is not None}
    return {name: values for name, values in found.items() if values}


class Table:
    """A table of measurements, with the ratio of iosched to the best other server."""

    def __init__(self, title, goal):
        self.rows, self.title = [], title
        print(f"\n{title}   goal: {goal}")

    def row(self, case, unit, found, ours="iosched"):
        middle = {name: statistics.median(values) for name, values in found.items()}
        others = {name: value for name, value in middle.items() if name not in (ours, OTHER_BUILD)}
        best = max(others, key=others.get) if others else None
        ratio = middle[ours] / others[best] if best else float("nan")
        figures = "  ".join(f"{name} {value:,.0f} ({min(found[name]):,.0f} to {max(found[name]):,.0f})"
                            for name, value in middle.items())
        if OTHER_BUILD in middle:
            figures += f"   {middle[ours] / middle[OTHER_BUILD]:.2f} times the {OTHER_BUILD}"
        print(f"  {case:34} {unit:6} {figures}   {ratio:.2f} times {best}", flush=True)
        self.rows.append({"case": case, "unit": unit, "found": found, "ratio": ratio})


def bench_nbd(servers, options, sizes):
    table = Table("NBD over a unix socket, cfq in the path", GOAL["large" if sizes == "1m" else "nbd"])
    image = full(tempfile.mktemp(dir="/dev/shm", suffix=".img"))
    copy = full(tempfile.mktemp(dir="/dev/shm", suffix=".img"))
    kits = {
        "memory": {
            "iosched": lambda: filled(servers.ours(f"memory:{DISK_MIB}M"), image),
            "nbdkit": lambda: filled(servers.nbdkit("memory", f"{DISK_MIB}M"), image),
        },
        "file": {
            "iosched": lambda: servers.ours(copy),
            "nbdkit": lambda: servers.nbdkit("file", copy),
            "qemu-nbd": lambda: servers.qemu(copy),
            "nbd-server": lambda: servers.nbd_server(copy),
        },
    }
    if other := servers.other_build:
        kits["memory"][OTHER_BUILD] = lambda: filled(other.ours(f"memory:{DISK_MIB}M"), image)
        kits["file"][OTHER_BUILD] = lambda: other.ours(copy)
    shapes = [(1, 1), (32, 1), (128, 1), (128, 4)] if sizes == "4k" else [(16, 1)]
    try:
        for backing, kit in kits.items():
            for rw in ("randread", "randwrite") if sizes == "4k" else ("read", "write"):
                for depth, count in shapes:
                    found = rounds(options.rounds, kit,
                                   lambda at: connections(at, rw, sizes, depth, count, options.seconds))
                    table.row(f"{backing} {rw} {sizes} depth {depth} x {count}", "IOPS", found)
    finally:
        os.unlink(image)
        os.unlink(copy)
    return table


@contextlib.contextmanager
def filled(server, image):
    with server as at:
        subprocess.run(["nbdcopy", image, at], check=True)
        yield at


def bench_vhost(servers, options):
    """Measures 4 KiB random reads by the user-space driver vhost_reads, and by fio over NBD."""
    driver = os.path.join(os.path.dirname(options.iosched), "examples", "vhost_reads")
    if shutil.which(driver) is None:
        sys.exit(f"{driver} was not found; run: cargo build --profile dist -p iosched-live --example vhost_reads")
    table = Table("vhost-user-blk, cfq in the path: 4 KiB random reads", GOAL["vhost"])

    def measure(at, depth, polls):
        if at.startswith("nbd"):
            return connections(at, "randread", "4k", depth, 1, options.seconds)
        command = [driver, at, str(depth), str(options.seconds), *["poll"] * polls]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    image = full(tempfile.mktemp(dir="/dev/shm", suffix=".img"))
    kits = {
        "memory": {
            "iosched": lambda: servers.vhost(f"memory:{DISK_MIB}M", image),
            "our NBD": lambda: filled(servers.ours(f"memory:{DISK_MIB}M"), image),
        },
        "file": {
            "iosched": lambda: servers.vhost(image),
            "our NBD": lambda: servers.ours(image),
            **{f"qemu-storage-daemon, {aio}": lambda aio=aio: servers.qemu_vhost(image, aio)
               for aio in ("threads", "native", "io_uring")},
        },
    }
    if other := servers.other_build:
        kits["memory"][OTHER_BUILD] = lambda: other.vhost(f"memory:{DISK_MIB}M", image)
        kits["file"][OTHER_BUILD] = lambda: other.vhost(image)
    try:
        for backing, kit in kits.items():
            for depth in (1, 32):
                for polls in (False, True):
                    found = rounds(options.rounds, kit, lambda at: measure(at, depth, polls))
                    case = f"{backing} depth {depth}, the driver {'polls' if polls else 'sleeps'}"
                    for others in (["our NBD"], [name for name in found if name.startswith("qemu")]):
                        if others:
                            names = ["iosched", *others, *([OTHER_BUILD] if servers.other_build else [])]
                            table.row(case, "IOPS", {name: found[name] for name in names})
    finally:
        os.unlink(image)
    return table


def bench_cost(servers, options):
    table = Table("Cost of scheduling: memory, 4 KiB random reads", GOAL["cost"])
    kit = {"iosched": lambda: servers.ours(f"memory:{DISK_MIB}M"),
           "noop": lambda: servers.ours(f"memory:{DISK_MIB}M", *NOOP)}
    for depth, count in [(1, 1), (32, 1), (128, 4)]:
        found = rounds(options.rounds, kit,
                       lambda at: connections(at, "randread", "4k", depth, count, options.seconds))
        table.row(f"depth {depth} x {count}", "IOPS", found)
    return table


# By default, CFQ idles for readers with think time, and fills the queue of the device.
# `--for shared` switches idling off, and limits the queue depth to 8.
SHARED = ["--for", "shared"]
NOOP = ["--scheduler", "noop"]


def bench_shield(servers, options):
    """Measures the p99 of a reader beside 16 greedy writers, and the throughput of all clients."""
    tables = []
    for model in ("sata-ssd", "sata-7200"):
        table = Table(f"A reader beside 16 greedy writers, modelled {model}", GOAL["shield"])
        disk = f"model:{model},size={MODEL_MIB}M"

        @contextlib.contextmanager
        def over_a_mount(serve):
            """Runs another server on the file of a mounted disk, which has the scheduler noop."""
            with mounted(servers, disk, *NOOP) as file, serve(file) as at:
                yield at

        kit = {
            "iosched": lambda: servers.ours(disk, *SHARED),
            "iosched, cfq as it comes": lambda: servers.ours(disk),
            "noop": lambda: servers.ours(disk, *NOOP),
            "nbdkit": lambda: over_a_mount(lambda file: servers.nbdkit("file", file)),
            "qemu-nbd": lambda: over_a_mount(servers.qemu),
        }

        def measure(at):
            writers = [(f"w{number}", nbd_job(at, "randwrite", "64k", 16, MODEL_MIB)) for number in range(16)]
            reader = ("reader", nbd_job(at, "randread", "4k", 1, MODEL_MIB))
            jobs = fio([reader, *writers], options.seconds * 6)
            p99_ms = jobs[0]["read"]["clat_ns"]["percentile"]["99.000000"] / 1e6
            return p99_ms, bytes_per_s(jobs) / 1e6

        found = rounds(options.rounds, kit, measure)
        middle = {name: [statistics.median(column) for column in zip(*values)] for name, values in found.items()}
        for name, (p99_ms, together) in middle.items():
            print(f"  {name:26} p99 {p99_ms:9.2f} ms, {p99_ms / middle['noop'][0]:.3f} times noop   "
                  f"all clients {together:7.1f} MB/s, {together / middle['noop'][1]:.2f} times noop", flush=True)
        table.rows.append({"model": model, "found": found})
        tables.append(table)
    return tables


def bench_tenants(servers, options):
    """Measures the share of tenant A (1 client) beside tenant B (16 clients), at equal weights."""
    tables = []
    for model in ("sata-ssd", "sata-7200"):
        table = Table(f"Tenants, modelled {model}, 64 KiB random reads at depth 4", GOAL["tenants"])
        exports = ["--export", "a,weight=500", "--export", "b,weight=500"]

        def share(at):
            a, b = at.replace("///", "///a"), at.replace("///", "///b")
            jobs = [("a", nbd_job(a, "randread", "64k", 4, MODEL_MIB))]
            jobs += [(f"b{number}", nbd_job(b, "randread", "64k", 4, MODEL_MIB)) for number in range(16)]
            done = fio(jobs, options.seconds * 3)
            return bytes_per_s(done[:1]) / bytes_per_s(done) * 100

        kit = {name: lambda options=options: servers.ours(f"model:{model},size={MODEL_MIB}M", *options, *exports)
               for name, options in (("for shared", SHARED), ("cfq", []), ("noop", NOOP))}
        found = rounds(options.rounds, kit, share)
        for name, shares in found.items():
            print(f"  {name:28} A has {statistics.median(shares):.1f} % ({min(shares):.1f} to {max(shares):.1f})",
                  flush=True)
        table.rows.append({"model": model, "found": found})
        tables.append(table)
    return tables


@contextlib.contextmanager
def slow_disk(servers):
    """Yields the file of a disk that executes one command at a time, in 2 ms each."""
    have("nbdfuse", "nbdkit")
    plugin = ["--filter=noparallel", "--filter=delay", "memory", f"{DISK_MIB}M", "rdelay=2ms", "wdelay=2ms",
              "serialize=all-requests"]
    with servers.nbdkit(*plugin) as served, tempfile.TemporaryDirectory(dir=servers.scratch) as at:
        file = os.path.join(at, "nbd")
        with running(["nbdfuse", at, served], lambda: os.path.exists(file)):
            yield file
        subprocess.run(["fusermount3", "-u", at], capture_output=True)


class Bfq:
    """The kernel's bfq on a loop device. Cgroups of version 1 (blkio) have the weights."""

    CGROUPS = "/sys/fs/cgroup/blkio"

    @contextlib.contextmanager
    def serve(self, servers):
        have("losetup")
        with slow_disk(servers) as file:
            loop = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", file], check=True,
                                  capture_output=True, text=True).stdout.strip()
            try:
                with open(f"/sys/block/{os.path.basename(loop)}/queue/scheduler", "w") as scheduler:
                    scheduler.write("bfq")
                yield loop
            finally:
                subprocess.run(["losetup", "--detach", loop])

    @contextlib.contextmanager
    def group(self, name, weight):
        path = os.path.join(self.CGROUPS, f"iosched-bench-{name}")
        try:
            os.makedirs(path, exist_ok=True)
            with open(os.path.join(path, "blkio.bfq.weight"), "w") as file:
                file.write(str(weight))
        except OSError as error:
            raise Missing(f"blkio.bfq.weight: {error}") from error
        try:
            yield path
        finally:
            os.rmdir(path)


ISOLATION = [
    # Name, favoured side, other side. A side has a class, a level and a weight.
    ("be beside idle", ("be", 4, None), ("idle", None, None)),
    ("be 0 beside be 7", ("be", 0, None), ("be", 7, None)),
    ("rt beside be", ("rt", 4, None), ("be", 4, None)),
    ("weight 1000 beside 100", ("be", 4, 1000), ("be", 4, 100)),
]
CLASSES = {"rt": 1, "be": 2, "idle": 3}


def bench_isolation(servers, options):
    table = Table("Isolation on a disk of 2 ms a request: 4 KiB reads, two of each side at depth 8", GOAL["isolation"])
    seconds = options.seconds * 3

    def ratio(jobs):
        favoured, other = iops(jobs[:2]), iops(jobs[2:])
        return favoured / max(other, 1 / seconds), favoured, other

    def ours(sides):
        names = ["a", "b"]
        exports = []
        for name, (io_class, level, weight) in zip(names, sides):
            fields = [f"class={io_class}"] + [f"level={level}"] * (level is not None)
            fields += [f"weight={weight}"] * (weight is not None)
            exports += ["--export", ",".join([name, *fields])]
        with slow_disk(servers) as file, servers.ours(file, "--depth", "1", *exports) as at:
            jobs = [(f"{name}{number}", nbd_job(at.replace("///", f"///{name}"), "randread", "4k", 8))
                    for name in names for number in range(2)]
            return ratio(fio(jobs, seconds))

    def kernel(sides):
        bfq = Bfq()
        with contextlib.ExitStack() as stack:
            loop = stack.enter_context(bfq.serve(servers))
            run = []
            for name, (io_class, level, weight) in zip("ab", sides):
                cgroup = None if weight is None else stack.enter_context(bfq.group(name, weight))
                fields = [f"--prioclass={CLASSES[io_class]}"] + [f"--prio={level}"] * (level is not None)
                job = ["--ioengine=libaio", "--direct=1", f"--filename={loop}", "--rw=randread", "--bs=4k",
                       "--iodepth=8", f"--size={DISK_MIB}M", *fields]
                run.append(([(f"{name}{number}", job) for number in range(2)], cgroup))
            with concurrent.futures.ThreadPoolExecutor() as both:
                done = both.map(lambda side: fio(side[0], seconds, cgroup=side[1]), run)
                return ratio([job for jobs in done for job in jobs])

    for case, *sides in ISOLATION:
        found = {"iosched": [], "bfq": []}
        for _ in range(options.rounds):
            for name, measure in (("iosched", ours), ("bfq", kernel)):
                try:
                    found[name].append(measure(sides))
                except Missing as missing:
                    print(f"  {name}: left out, not available: {missing}", file=sys.stderr)
        middle = {name: [statistics.median(column) for column in zip(*values)] for name, values in found.items() if values}
        figures = "   ".join(f"{name} {favoured:6.1f} : {other:6.1f} IOPS, {times:8.1f} times"
                             for name, (times, favoured, other) in middle.items())
        print(f"  {case:24} {figures}", flush=True)
        table.rows.append({"case": case, "found": found})
    return table


@contextlib.contextmanager
def mounted(servers, backing, *options):
    """Mounts a disk of iosched. Yields the file of the disk."""
    with tempfile.TemporaryDirectory(dir=servers.scratch) as at:
        file = os.path.join(at, "disk")
        with running([servers.iosched, "mount", backing, at, "--name", "disk", *options], lambda: os.path.exists(file)):
            yield file


def bench_fuse(servers, options):
    table = Table("FUSE: direct reads of the disk as a file", GOAL["fuse"])

    @contextlib.contextmanager
    def nbdfuse():
        have("nbdfuse", "nbdkit")
        with servers.nbdkit("memory", f"{DISK_MIB}M") as served, tempfile.TemporaryDirectory(dir=servers.scratch) as at:
            file = os.path.join(at, "nbd")
            with running(["nbdfuse", at, served], lambda: os.path.exists(file)):
                yield file
            subprocess.run(["fusermount3", "-u", at], capture_output=True)

    for size, depth in (("4k", 1), ("4k", 32), ("1m", 4)):
        def measure(file):
            job = ["--ioengine=libaio", "--direct=1", f"--filename={file}", "--rw=randread", f"--bs={size}",
                   f"--iodepth={depth}", f"--size={DISK_MIB}M", "--allow_file_create=0"]
            return iops(fio([("r", job)], options.seconds))

        table.row(f"randread {size} depth {depth}", "IOPS",
                  rounds(options.rounds, {"iosched": lambda: mounted(servers, f"memory:{DISK_MIB}M"), "nbdfuse": nbdfuse}, measure))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=f"benchmarks: {', '.join(GOAL)} [default: all]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--iosched", default="target/dist/iosched")
    parser.add_argument("--beside", metavar="PATH", help="another build of iosched, for nbd, large and vhost")
    parser.add_argument("--json", help="file for all values of all rounds")
    options = parser.parse_args()
    unknown = set(options.what) - set(GOAL)
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}; available: {', '.join(GOAL)}")
    if options.beside and shutil.which(options.beside) is None:
        parser.error(f"{options.beside} was not found: build it, or leave --beside out")
    if shutil.which(options.iosched) is None:
        parser.error(f"{options.iosched} was not found: build it (see --help), or give --iosched PATH")
    all_tables = []
    with tempfile.TemporaryDirectory() as scratch:
        servers = Servers(options.iosched, scratch, options.beside)
        benches = {
            "nbd": lambda: bench_nbd(servers, options, "4k"),
            "large": lambda: bench_nbd(servers, options, "1m"),
            "vhost": lambda: bench_vhost(servers, options),
            "fuse": lambda: bench_fuse(servers, options),
            "cost": lambda: bench_cost(servers, options),
            "shield": lambda: bench_shield(servers, options),
            "tenants": lambda: bench_tenants(servers, options),
            "isolation": lambda: bench_isolation(servers, options),
        }
        for name in options.what or GOAL:
            found = benches[name]()
            all_tables += found if isinstance(found, list) else [found]
    if options.json:
        with open(options.json, "w") as file:
            json.dump([{"title": table.title, "rows": table.rows} for table in all_tables], file, indent=1)


if __name__ == "__main__":
    main()
