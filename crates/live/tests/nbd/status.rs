//! Tests of block status for clients that skip holes, of caching requests, and of long requests.

use std::os::unix::fs::MetadataExt;

use super::disk::Disk;

const MIB: u64 = 1 << 20;

/// Creates a disk of 16 MiB. If its back end is a file, the file is sparse.
fn disk(backend: &str) -> Disk {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("disk.img")).unwrap();
    file.set_len(16 * MIB).unwrap();
    Disk::within(folder, backend, 64)
}

#[test]
fn written_ranges_are_data_and_the_rest_are_holes() {
    const SCRIPT: &str = r#"
def extents(count=16 << 20, offset=0, flags=0):
    told = []
    def note(context, at, entries, error):
        assert context == "base:allocation" and at == offset
        told.extend(zip(entries[::2], entries[1::2]))
    h.block_status(count, offset, note, flags)
    return told

assert h.can_meta_context("base:allocation")
assert extents() == [(16 << 20, 3)]
h.pwrite(b"x" * (1 << 20), 4 << 20)
h.pwrite(b"y" * (1 << 20), 5 << 20)
h.pwrite(b"z" * (1 << 16), 12 << 20)
M = 1 << 20
assert extents() == [(4 * M, 3), (2 * M, 0), (6 * M, 3), (1 << 16, 0), (4 * M - (1 << 16), 3)], extents()
assert extents(flags=nbd.CMD_FLAG_REQ_ONE) == [(4 * M, 3)]
assert extents(3 * M, 5 * M) == [(M, 0), (2 * M, 3)]
assert extents(512, 5 * M + 512, nbd.CMD_FLAG_REQ_ONE) == [(512, 0)]
h.trim(M, 5 * M)
h.zero(M // 2, 4 * M)
assert extents(4 * M, 4 * M) == [(M // 2, 3), (M // 2, 0), (3 * M, 3)], extents(4 * M, 4 * M)
# Trimmed bytes read as zeroes.
assert h.pread(M, 5 * M) == bytes(M)
for count, offset in ((0, 0), (512, 16 * M), (17 * M, 0)):
    try:
        extents(count, offset)
    except nbd.Error as error:
        assert error.errnum == errno.EINVAL
    else:
        raise AssertionError("succeeded")
h.cache(M, 0)
h.cache(16 * M, 0)
assert h.pread(4, 12 * M) == b"zzzz"
"#;
    for backend in ["memory:16M", "model:nvme,size=16M", "fault:seed=1:memory:16M", "DIR/disk.img"] {
        if !disk(backend).libnbd(SCRIPT) {
            return;
        }
    }
}

#[test]
fn clients_skip_holes() {
    // If the clients read the holes, they would need a long time and fill the test's directory.
    let disk = Disk::new("memory:64G", 64);
    if !disk.libnbd("h.pwrite(b'x' * 70000, 40 << 30)\nh.pwrite(b'y' * (1 << 20), 1 << 20)") {
        return;
    }
    let Some(map) = disk.client("nbdinfo", &["--map", "URI"]) else { return };
    let line = |line: &str| line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>().join(" ");
    let map: Vec<String> = map.lines().map(line).collect();
    let (data, end) = (40_u64 << 30, (64_u64 << 30) - (40 << 30) - 73_728);
    let expected = [
        "0 1048576 3".into(),
        "1048576 1048576 0".into(),
        format!("2097152 {} 3", data - 2 * MIB),
        format!("{data} 73728 0"),
        format!("{} {end} 3", data + 73_728),
    ];
    assert_eq!(map, expected);
    let before = disk.bytes_read();
    disk.client("nbdcopy", &["URI", "DIR/out"]);
    let read = disk.bytes_read() - before;
    assert!((MIB..4 * MIB).contains(&read), "{read} bytes");
    let out = std::fs::metadata(disk.path("out")).unwrap();
    assert_eq!(out.len(), 64 << 30);
    assert!(out.blocks() * 512 < 16 * MIB, "the copy is as sparse as the disk");
    let Some(map) = disk.client("qemu-img", &["map", "--output=json", "-f", "raw", "URI"]) else { return };
    assert!(map.contains(&format!("\"start\": {data}, \"length\": 73728,")), "{map}");
    assert_eq!(map.matches("\"zero\": true").count(), 3, "{map}");
    disk.client("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", "URI", "DIR/out.qcow2"]);
    assert!(disk.bytes_read() - before < 8 * MIB);
    disk.client("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", "URI", "DIR/out.qcow2"]);
}

#[test]
fn cache_requests_read_the_back_end_and_send_nothing() {
    let (small, large) = (Disk::new("memory:64M", 1), Disk::new("memory:64M", 256));
    for disk in [&small, &large] {
        let before = disk.bytes_read();
        // With little memory, the server reads the range in pieces.
        if !disk.libnbd("h.cache(3 << 20, 512)\nh.cache(4096, 8 << 20)\nassert h.pread(512, 0) == bytes(512)") {
            return;
        }
        assert_eq!(disk.bytes_read() - before, (3 << 20) + 4096 + 512);
    }
    let faulty = Disk::new("fault:bad=4096+512:memory:64M", 1);
    faulty.libnbd(
        "for length in (512, 3 << 20):\n    try:\n        h.cache(length, 4096)\n    except nbd.Error as error:\n        \
         assert error.errnum == errno.EIO\n    else:\n        raise AssertionError('succeeded')\nh.cache(512, 0)",
    );
}

#[test]
fn a_request_above_32_mib_fits_into_its_client_share() {
    let long = "data = bytes(range(256)) * (64 << 12)\nh.pwrite(data, 1 << 20)\n\
                assert h.pread(64 << 20, 1 << 20) == data\n";
    let script = format!("assert h.get_block_size(nbd.SIZE_MAXIMUM) == 128 << 20\n{long}");
    if !Disk::new("memory:256M", 256).libnbd(&script) {
        return;
    }
    let refused = "assert h.get_block_size(nbd.SIZE_MAXIMUM) == 32 << 20\ntry:\n    h.pread(33 << 20, 0)\n\
                   except nbd.Error as error:\n    assert error.errnum == errno.EINVAL\n\
                   else:\n    raise AssertionError('succeeded')";
    Disk::new("memory:256M", 64).libnbd(refused);
}

#[test]
fn installed_clients_see_the_documented_features() {
    const SCRIPT: &str = r#"
assert h.get_protocol() == "newstyle-fixed" and h.get_structured_replies_negotiated()
for can in (h.can_cache, h.can_df, h.can_fast_zero, h.can_flush, h.can_fua, h.can_multi_conn, h.can_trim, h.can_zero):
    assert can(), can
assert h.can_meta_context("base:allocation")
for context in ("base:other", "qemu:allocation-depth", "qemu:dirty-bitmap:b"):
    assert not h.can_meta_context(context), context
assert not h.is_read_only() and not h.is_rotational()
assert h.get_size() == 16 << 20
sizes = [h.get_block_size(size) for size in (nbd.SIZE_MINIMUM, nbd.SIZE_PREFERRED, nbd.SIZE_MAXIMUM)]
assert sizes == [1, 4096, 128 << 20], sizes
"#;
    let disk = Disk::new("memory:16M", 256);
    if !disk.libnbd(SCRIPT) {
        return;
    }
    let Some(info) = disk.client("nbdinfo", &["--json", "URI"]) else { return };
    for fact in ["\"can_fast_zero\": true", "\"base:allocation\"", "\"TLS\": false", "\"export-size\": 16777216"] {
        assert!(info.contains(fact), "{fact} is not in {info}");
    }
}

#[test]
fn offered_features_work_and_others_are_refused() {
    const SCRIPT: &str = r#"
def errno_of(call, *args):
    try:
        call(*args)
    except nbd.Error as error:
        return error.errnum

M = 1 << 20
FUA, FAST, NO_HOLE = nbd.CMD_FLAG_FUA, nbd.CMD_FLAG_FAST_ZERO, nbd.CMD_FLAG_NO_HOLE
assert (h.can_fast_zero(), h.is_rotational()) == (FAST_ZERO, ROTATIONAL), (h.can_fast_zero(), h.is_rotational())
h.pwrite(b"x" * M, M, FUA)
# A flush covers writes that were answered on another connection.
other = nbd.NBD()
other.set_strict_mode(0)
other.set_request_structured_replies(False)
other.connect_uri("URI")
assert other.can_multi_conn() and h.can_multi_conn()
other.flush()
# Without structured replies, a read has one reply, and block status is not available.
assert not other.can_df() and not other.get_structured_replies_negotiated()
assert not other.can_meta_context("base:allocation")
assert other.pread(M, M) == b"x" * M == h.pread(M, M, nbd.CMD_FLAG_DF)
assert errno_of(other.pread, 512, 0, nbd.CMD_FLAG_DF) == errno.EINVAL
h.zero(4096, M, FUA)
assert errno_of(h.zero, 4096, M + 8192, FAST) == (None if FAST_ZERO else errno.ENOTSUP)
assert errno_of(h.zero, 4096, M + 8192, FAST | NO_HOLE) == errno.ENOTSUP
h.zero(4096, M + 16384, NO_HOLE)
read = h.pread(M, M)
assert read[:4096] == bytes(4096) == read[16384:20480] and read[4096:8192] == b"x" * 4096
assert read[8192:12288] == (bytes(4096) if FAST_ZERO else b"x" * 4096)
h.trim(M // 2, M + M // 2, FUA)
h.cache(M, M)
assert read[:M // 2] == h.pread(M // 2, M)
assert errno_of(h.pread, 512, 16 * M) == errno.EINVAL and errno_of(h.pwrite, bytes(512), 16 * M) == errno.ENOSPC
assert errno_of(h.trim, 512, 16 * M) == errno.EINVAL and errno_of(h.zero, 512, 16 * M) == errno.ENOSPC
other.shutdown()
"#;
    // For each back end: whether it writes zeroes fast, and whether it is rotational.
    let backings = [
        ("memory:16M", "True", "False"),
        ("DIR/disk.img", "True", "False"),
        ("model:nvme,size=16M", "False", "False"),
        ("model:sata-7200,size=16M", "False", "True"),
        ("fault:cache=1M:memory:16M", "True", "False"),
    ];
    for (backend, fast_zero, rotational) in backings {
        // For a file, both properties depend on the file system. tmpfs can make holes and is not
        // rotational.
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::File::create(folder.path().join("disk.img")).unwrap().set_len(16 * MIB).unwrap();
        let script = format!("FAST_ZERO, ROTATIONAL = {fast_zero}, {rotational}\n{SCRIPT}");
        if !Disk::within(folder, backend, 64).libnbd(&script) {
            return;
        }
    }
}
