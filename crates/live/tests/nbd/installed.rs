//! Tests with installed clients: handshake, requests and errors.

use std::process::Command;
use std::sync::Mutex;

use iosched_nbd::{Offer, TlsMode};
use iosched_testing::machine::{available, output};

use super::server::{Served, Server};

pub(crate) const SIZE: usize = 8 << 20;

pub(crate) fn offers() -> [Offer; 2] {
    let (mut db, mut backup) = (Offer::new("db", SIZE as u64), Offer::new("backup", SIZE as u64));
    db.description = "the database's disk".into();
    (backup.read_only, backup.rotational) = (true, true);
    [db, backup]
}

fn serve(offers: impl Into<std::sync::Arc<[Offer]>>) -> Server {
    let memory = Mutex::new(vec![0; SIZE]);
    Server::start(Served { offers: offers.into(), tls: TlsMode::Off, config: None, memory })
}

/// Path of Debian's Python. Debian's libnbd works only with this Python. Another Python may come
/// first in PATH.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

#[track_caller]
pub(crate) fn has_libnbd() -> bool {
    let has_module = Command::new(PYTHON).args(["-c", "import nbd"]).output();
    let is_there = has_module.is_ok_and(|output| output.status.success());
    available(is_there, "Python's module nbd (package python3-libnbd)")
}

/// Runs a client and returns its output. Replaces `SOCKET` and `DIR` in its arguments. Returns
/// `None` if the client is not installed.
#[track_caller]
pub(crate) fn client(server: &Server, program: &str, args: &[&str]) -> Option<String> {
    let (socket, folder) = (server.socket().display().to_string(), server.folder().display().to_string());
    let fill = |arg: &&str| arg.replace("SOCKET", &socket).replace("DIR", &folder);
    output(Command::new(program).args(args.iter().map(fill)))
}

#[test]
fn nbdinfo_shows_an_export() {
    let server = serve(offers());
    let Some(out) = client(&server, "nbdinfo", &["--json", "nbd+unix:///backup?socket=SOCKET"]) else { return };
    let expected = [
        "\"protocol\": \"newstyle-fixed\"",
        "\"TLS\": false",
        "\"structured\": true",
        "\"export-name\": \"backup\"",
        "\"export-size\": 8388608",
        "\"is_read_only\": true",
        "\"is_rotational\": true",
        "\"can_cache\": true",
        "\"can_df\": true",
        "\"can_flush\": true",
        "\"can_fua\": true",
        "\"can_multi_conn\": true",
        "\"can_trim\": false",
        "\"can_zero\": false",
        "\"block_size_minimum\": 1",
        "\"block_size_preferred\": 4096",
        "\"block_size_maximum\": 33554432",
    ];
    for fact in expected {
        assert!(out.contains(fact), "{fact} is not in {out}");
    }
}

#[test]
fn nbdinfo_lists_exports() {
    let server = serve(offers());
    let Some(out) = client(&server, "nbdinfo", &["--list", "nbd+unix:///?socket=SOCKET"]) else { return };
    for fact in ["export=\"db\"", "export=\"backup\"", "description: the database's disk", "can_zero: true"] {
        assert!(out.contains(fact), "{fact} is not in {out}");
    }
}

#[test]
fn libnbd_sends_every_request() {
    const SCRIPT: &str = r#"
import errno, nbd

def fails(expected, call, *args):
    try:
        call(*args)
    except nbd.Error as error:
        assert error.errnum == expected, (error, expected)
        return
    raise AssertionError("succeeded")

for structured in (True, False):
    h = nbd.NBD()
    h.set_strict_mode(0)
    h.set_request_structured_replies(structured)
    h.set_export_name("db")
    h.connect_unix("SOCKET")
    assert h.get_structured_replies_negotiated() == structured
    data = bytes(range(256)) * 16
    h.pwrite(data, 1000)
    assert h.pread(4096, 1000) == data
    h.pwrite(data[:77], 1 << 20, nbd.CMD_FLAG_FUA)
    assert h.pread(77, 1 << 20) == data[:77]
    h.flush()
    h.trim(100, 1000)
    assert h.pread(101, 1000) == bytes(100) + data[100:101]
    h.zero(1000, 2000, nbd.CMD_FLAG_NO_HOLE)
    assert h.pread(1000, 2000) == bytes(1000)
    h.pwrite(data, 1000)
    fails(errno.EINVAL, h.pread, 512, 8 << 20)
    fails(errno.EINVAL, h.pread, 512, 512, nbd.CMD_FLAG_FAST_ZERO)
    fails(errno.ENOSPC, h.pwrite, data, (8 << 20) - 1)
    fails(errno.ENOSPC, h.zero, 512, 8 << 20)
    fails(errno.ENOTSUP, h.zero, 512, 0, nbd.CMD_FLAG_FAST_ZERO)
    h.cache(512, 0)
    fails(errno.EINVAL, h.cache, 512, 8 << 20)
    # The connection continues after each refusal.
    assert h.pread(4096, 1000) == data
    if structured:
        assert h.pread(4096, 1000, nbd.CMD_FLAG_DF) == data
    h.shutdown()

h = nbd.NBD()
h.set_strict_mode(0)
h.set_export_name("backup")
h.connect_unix("SOCKET")
fails(errno.EPERM, h.pwrite, data, 0)
fails(errno.EPERM, h.zero, 512, 0)
fails(errno.EPERM, h.trim, 512, 0)
assert h.pread(4096, 1000) == data
h.shutdown()

h = nbd.NBD()
h.set_opt_mode(True)
h.set_full_info(True)
h.connect_unix("SOCKET")
h.set_export_name("nothing")
fails(errno.ENOENT, h.opt_info)
fails(errno.ENOENT, h.opt_go)
h.set_export_name("db")
h.opt_info()
assert h.get_canonical_export_name() == "db"
assert h.get_export_description() == "the database's disk"
h.set_export_name("backup")
h.opt_go()
assert h.is_read_only()
h.shutdown()

h = nbd.NBD()
h.set_opt_mode(True)
h.connect_unix("SOCKET")
h.opt_abort()

print("all done")
"#;
    if !has_libnbd() {
        return;
    }
    let server = serve(offers());
    assert_eq!(client(&server, PYTHON, &["-c", SCRIPT]).as_deref(), Some("all done\n"));
}

#[test]
fn nbdcopy_copies_to_the_disk_and_back() {
    let server = serve([Offer::new("disk", SIZE as u64)]);
    let data: Vec<u8> = (0..SIZE).map(|at| (at / 512 * 7 + at) as u8).collect();
    std::fs::write(server.folder().join("in"), &data).unwrap();
    let uri = "nbd+unix:///?socket=SOCKET";
    let Some(_) = client(&server, "nbdcopy", &["--connections=4", "--flush", "DIR/in", uri]) else { return };
    assert!(*server.served.memory.lock().unwrap() == data);
    client(&server, "nbdcopy", &["--connections=4", uri, "DIR/out"]);
    assert!(std::fs::read(server.folder().join("out")).unwrap() == data);
}

#[test]
fn qemu_writes_and_verifies() {
    let server = serve(offers());
    let commands = "write -P 0x5a 1000 70000; read -P 0x5a 1000 70000; write -z 4096 4096; read -P 0 4096 4096; \
                    write -f -P 1 0 512; discard 0 512; flush; aio_write -P 7 1M 2M; aio_read -P 7 1M 2M; aio_flush";
    let mut args = vec!["-f", "raw", "nbd+unix:///db?socket=SOCKET"];
    for command in commands.split("; ") {
        args.extend(["-c", command]);
    }
    let Some(out) = client(&server, "qemu-io", &args) else { return };
    assert!(!out.contains("failed") && !out.contains("rror"), "{out}");
    std::fs::write(server.folder().join("in"), vec![3; SIZE]).unwrap();
    let uri = "nbd+unix:///db?socket=SOCKET";
    client(&server, "qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "DIR/in", uri]);
    client(&server, "qemu-img", &["compare", "-f", "raw", "-F", "raw", "DIR/in", uri]);
}

#[test]
fn fio_verifies_what_it_wrote() {
    let server = serve([Offer::new("disk", SIZE as u64)]);
    let args =
        ["--name=v", "--ioengine=nbd", "--uri=nbd+unix:///?socket=SOCKET", "--rw=randwrite", "--bsrange=512-64k"];
    let more = ["--size=8m", "--iodepth=16", "--verify=crc32c", "--do_verify=1", "--aux-path=DIR", "--output=DIR/fio"];
    // Some builds of fio do not have the NBD engine.
    let engines = Command::new("fio").arg("--enghelp").output();
    let has_engine =
        engines.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().any(|line| line.trim() == "nbd"));
    if !available(has_engine, "fio's engine nbd") {
        return;
    }
    client(&server, "fio", &[&args[..], &more[..]].concat());
}
