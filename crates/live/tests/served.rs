//! Tests of a served disk through its handle.

use std::sync::mpsc;

use iosched::{Elevator, Env, IoPriority, Op, Registered, RequestId, Setting, Time};
use iosched_live::disk::{Action, ClientId, Identity, Operation};
use iosched_live::reactor::{self, ServeOptions, Served};
use iosched_live::{Buffer, Errno, Handle};

fn served(backend: &str) -> Served {
    recorded(backend, None)
}

fn recorded(backend: &str, record: Option<std::path::PathBuf>) -> Served {
    let options = ServeOptions::new("test", backend.parse().unwrap(), Setting::defaults("cfq"));
    reactor::start(&ServeOptions { record, ..options }, None).unwrap()
}

fn client(handle: &Handle, name: &str) -> ClientId {
    let (ioprio, name) = (IoPriority::default(), name.to_owned());
    handle.connect(Identity { ioprio, ..Identity::new(name, 1) }).unwrap()
}

fn call(handle: &Handle, client: ClientId, operation: Operation) -> Result<Option<Buffer>, Errno> {
    let (answer, answered) = mpsc::channel();
    handle.submit(client, operation, Box::new(move |result| answer.send(result).unwrap()));
    answered.recv().unwrap()
}

fn operation(action: Action, offset: u64, length: u64) -> Operation {
    Operation::new(action, offset, length)
}

fn write(handle: &Handle, client: ClientId, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
    let mut data = handle.buffer(bytes.len());
    data.copy_from_slice(bytes);
    let write = Operation { data: Some(data), ..operation(Action::Write, offset, bytes.len() as u64) };
    call(handle, client, write).map(drop)
}

fn read(handle: &Handle, client: ClientId, offset: u64, length: u64) -> Result<Vec<u8>, Errno> {
    call(handle, client, operation(Action::Read, offset, length)).map(|data| data.unwrap().to_vec())
}

/// Checks the behaviour that all back ends have in common.
fn behaves_like_a_disk(backend: &str) {
    let served = served(backend);
    let handle = &served.handle;
    let client = client(handle, "tester");
    let bytes: Vec<u8> = (0..300_000_u32).map(|i| (i * 7 + i / 251) as u8).collect();
    write(handle, client, 1000, &bytes).unwrap();
    assert_eq!(read(handle, client, 1000, 300_000).unwrap(), bytes);
    assert_eq!(read(handle, client, 0, 1000).unwrap(), [0; 1000]);
    call(handle, client, operation(Action::WriteZeroes, 2001, 10_000)).unwrap();
    let mut zeroed = bytes.clone();
    zeroed[1001..11_001].fill(0);
    assert_eq!(read(handle, client, 1000, 300_000).unwrap(), zeroed);
    call(handle, client, operation(Action::Flush, 0, 0)).unwrap();
    call(handle, client, operation(Action::Trim, 0, 4096)).unwrap();
    let end = handle.capacity_bytes();
    assert_eq!(read(handle, client, end - 10, 10).unwrap(), [0; 10]);
    assert_eq!(read(handle, client, end - 10, 11), Err(Errno::EINVAL));
    assert_eq!(write(handle, client, end, &[1]), Err(Errno::ENOSPC));
    handle.stop();
    served.wait().flushed.unwrap();
}

#[test]
fn memory_back_end_behaves_like_a_disk() {
    behaves_like_a_disk("memory:8M");
}

#[test]
fn modelled_disk_behaves_like_a_disk() {
    behaves_like_a_disk("model:sata-ssd,size=8M");
}

#[test]
fn file_on_a_file_system_behaves_like_a_disk() {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(8 << 20).unwrap();
    behaves_like_a_disk(file.path().to_str().unwrap());
}

#[test]
fn file_in_tmpfs_behaves_like_a_disk() {
    let Ok(file) = tempfile::NamedTempFile::new_in("/dev/shm") else {
        println!("skipped: there is no /dev/shm");
        return;
    };
    file.as_file().set_len(8 << 20).unwrap();
    behaves_like_a_disk(file.path().to_str().unwrap());
}

#[test]
fn file_is_served_by_one_server_only() {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let path = file.path().to_str().unwrap();
    let first = served(path);
    let options = ServeOptions::new("again", path.parse().unwrap(), Setting::defaults("noop"));
    let Err(error) = reactor::start(&options, None) else { panic!("two servers use the same file") };
    assert!(error.to_string().contains("has locked this file"), "{error}");
    first.handle.stop();
    first.wait().flushed.unwrap();
}

#[test]
fn errors_reach_the_client_that_caused_them_and_no_other() {
    let served = served("fault:bad=65536+4096:memory:1M");
    let handle = &served.handle;
    let (lucky, unlucky) = (client(handle, "lucky"), client(handle, "unlucky"));
    handle.control(|disk, now| disk.switch(now, "noop").unwrap()).unwrap();
    // The reads are adjacent, and the disk takes only one command at a time. The reads therefore
    // become one request.
    handle.control(|disk, _| disk.set_depth(1)).unwrap();
    let (answer, answered) = mpsc::channel();
    for round in 0..100_u64 {
        for block in 0..24 {
            let client = if block == 4 { unlucky } else { lucky };
            let answer = answer.clone();
            let reply = move |result: Result<_, _>| answer.send((block, result.map(drop))).unwrap();
            handle.submit(client, operation(Action::Read, 49_152 + block * 4096, 4096), Box::new(reply));
        }
        for _ in 0..24 {
            let (block, result) = answered.recv().unwrap();
            assert_eq!(result, if block == 4 { Err(Errno::EIO) } else { Ok(()) }, "round {round}, block {block}");
        }
    }
    let merges = handle.control(|disk, now| disk.stat(now).reads.merges).unwrap();
    assert!(merges > 0, "some requests must have data of several clients");
    handle.stop();
    served.wait().flushed.unwrap();
}

#[test]
fn operations_after_the_end_get_an_error() {
    let served = served("memory:1M");
    let handle = served.handle.clone();
    let client = client(&handle, "late");
    handle.stop();
    served.wait().flushed.unwrap();
    assert_eq!(read(&handle, client, 0, 512), Err(Errno::ESHUTDOWN));
    assert!(handle.control(|_, _| ()).is_err());
}

#[test]
fn a_recorded_disk_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("live.blktrace.0");
    let served = recorded("memory:1M", Some(file.clone()));
    let client = client(&served.handle, "recorded");
    for block in 0..50 {
        write(&served.handle, client, block * 4096, &[1; 4096]).unwrap();
        read(&served.handle, client, block * 8192, 512).unwrap();
    }
    served.handle.stop();
    let ended = served.wait();
    let recorded = ended.recorded.unwrap();
    assert_eq!((ended.flushed, recorded.lost), (Ok(()), 0));
    recorded.result.unwrap();
    let bytes = std::fs::File::open(file).unwrap();
    let trace = iosched_trace::TraceReader::from_reader(bytes, "live.blktrace.0", &Default::default()).unwrap();
    let mut requests = trace.collect::<Result<Vec<_>, _>>().unwrap();
    // The last request is the disk's own flush at the end.
    assert_eq!(requests.pop().map(|request| request.op), Some(Op::Flush));
    assert_eq!(requests.len(), 100);
    for (number, request) in requests.iter().enumerate() {
        let block = number as u64 / 2;
        let expected = if number % 2 == 0 { (Op::Write, block * 8, 8) } else { (Op::Read, block * 16, 1) };
        assert_eq!((request.op, request.sector, request.nr_sectors), expected, "request {number}");
        assert!(request.latency_ns.is_some(), "request {number} completes");
    }
}

fn under(setting: &str) -> ServeOptions {
    ServeOptions::new("test", "memory:1M".parse().unwrap(), Setting::parse_of_kernel(setting).unwrap())
}

#[test]
fn the_first_request_is_served_under_the_setting() {
    let served = reactor::start(&under("cfq:slice_idle=0,max_sectors_kb=4"), None).unwrap();
    let client = client(&served.handle, "first");
    write(&served.handle, client, 0, &[7; 65_536]).unwrap();
    let (writes, slice_idle) =
        served.handle.control(|disk, now| (disk.stat(now).writes.ios, disk.queue().tunable("slice_idle"))).unwrap();
    assert_eq!((writes, slice_idle), (16, Ok(0)), "in requests of 4 KiB");
    served.handle.stop();
    served.wait().flushed.unwrap();
    let wrong = |setting: &str| reactor::open(&under(setting)).unwrap_err().to_string();
    assert!(wrong("present").starts_with("there is no scheduler \"present\"; available: "), "{}", wrong("present"));
    assert_eq!(
        wrong("noop:nr_requests=0"),
        "noop: nr_requests: 0 is out of range; it must be from 1 to 65536 requests"
    );
    assert!(
        wrong("noop:io_poll=0").contains("io_poll: a request queue has no such attribute"),
        "{}",
        wrong("noop:io_poll=0")
    );
    assert_eq!(wrong("noop:max_sectors_kb=1048576").split(':').next(), Some("noop"));
}

#[derive(Default)]
struct Newest(Vec<RequestId>);

impl Elevator for Newest {
    fn insert(&mut self, _: &mut Env, id: RequestId) {
        self.0.push(id);
    }

    fn dispatch(&mut self, _: &mut Env) -> Option<RequestId> {
        self.0.pop()
    }

    fn absorb(&mut self, _: &mut Env, _: RequestId, absorbed: RequestId) {
        self.0.retain(|&id| id != absorbed);
    }
}

#[test]
fn scheduler_from_the_setting_can_be_selected_again() {
    let newest = Registered::new("newest", &|_| Box::new(Newest::default()));
    let options = ServeOptions::new("test", "memory:1M".parse().unwrap(), Setting::from(newest));
    let mut disk = reactor::open(&options).unwrap().disk;
    assert!(disk.attribute("scheduler").unwrap().ends_with(" [newest]"));
    disk.switch(Time::BEGINNING, "cfq").unwrap();
    disk.switch(Time::BEGINNING, "newest").unwrap();
    assert!(disk.switch(Time::BEGINNING, "oldest").is_err());
}
