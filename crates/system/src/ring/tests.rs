use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};

use super::*;
use crate::buffer::Pool;
use crate::inbox::Inbox;
use crate::map::ZeroedMap;

const SECOND: Option<Duration> = Some(Duration::from_secs(1));

fn new() -> Ring<u32> {
    Ring::new(8, None).unwrap_or_else(|error| panic!("{error}"))
}

fn next(ring: &mut Ring<u32>) -> Completed<u32> {
    loop {
        if let Some(completed) = ring.take() {
            return completed;
        }
        ring.submit_and_wait(SECOND).unwrap();
    }
}

#[test]
fn completion_returns_the_memory_of_its_call() {
    let (mut ring, file) = (new(), tempfile::tempfile().unwrap());
    file.write_all_at(b"0123456789", 0).unwrap();
    let mut buffer = Pool::default().buffer(10);
    let segments = vec![buffer.lend(5, 5), buffer.lend(0, 5)];
    ring.push(file.as_fd(), Call::Read { segments, offset: 0 }, 7);
    let Completed { tag, result, memory } = next(&mut ring);
    assert_eq!((tag, result, ring.under_way()), (7, 10, 0));
    let Memory::Segments(segments) = memory else { panic!("other memory") };
    assert_eq!(segments.len(), 2);
    drop(segments);
    assert_eq!(&*buffer, b"5678901234");

    let shared = Arc::new(Arc::new(buffer));
    let write = Call::WriteShared { bytes: shared, place: 5..8, offset: 1, stable: true };
    ring.push(file.as_fd(), write, 8);
    assert_eq!(next(&mut ring).result, 3);
    let mut found = [0; 4];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(&found, b"0012");
}

#[test]
fn a_wait_ends_with_input_or_a_cancellation() {
    let (mut ring, (mut near, far)) = (new(), UnixStream::pair().unwrap());
    ring.push(far.as_fd(), Call::WaitReadable, 1);
    ring.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert!(ring.take().is_none(), "there is nothing to read");
    near.write_all(b"x").unwrap();
    let Completed { tag, result, .. } = next(&mut ring);
    assert!(tag == 1 && result > 0, "{tag}: {result}");
    (&far).read_exact(&mut [0]).unwrap();
    ring.push(far.as_fd(), Call::WaitReadable, 2);
    ring.cancel(2);
    ring.cancel(3);
    let Completed { tag, result, .. } = next(&mut ring);
    assert_eq!((tag, result, ring.under_way()), (2, -libc::ECANCELED, 0));
}

#[test]
fn past_completions_are_found_without_waiting() {
    let (mut ring, (mut near, far)) = (new(), UnixStream::pair().unwrap());
    ring.enter = |ring, completions, timeout| {
        assert_eq!((completions, timeout), (0, None), "the call must not wait");
        enter(ring, completions, timeout)
    };
    ring.push(far.as_fd(), Call::WaitReadable, 1);
    ring.look().unwrap();
    assert!(ring.take().is_none());
    near.write_all(b"x").unwrap();
    ring.look().unwrap();
    assert_eq!(ring.take().unwrap().tag, 1);
}

#[test]
fn call_is_limited_to_the_maximum_number_of_segments() {
    let (mut ring, file) = (new(), tempfile::tempfile().unwrap());
    let mut buffer = Pool::default().buffer(2000 * 512);
    buffer.fill(7);
    let segments = (0..2000).map(|number| buffer.lend(number * 512, 512)).collect();
    ring.push(file.as_fd(), Call::Write { segments, offset: 0, stable: false }, 0);
    assert_eq!(next(&mut ring).result as usize, call::VECTORS_MAX * 512);
}

#[test]
fn calls_beyond_the_queue_size_are_executed() {
    let (mut ring, file) = (new(), tempfile::tempfile().unwrap());
    let shared = Arc::new(Arc::new(Pool::default().buffer(512)));
    for number in 0..100 {
        let (bytes, offset) = (Arc::clone(&shared), u64::from(number) * 512);
        ring.push(file.as_fd(), Call::WriteShared { bytes, place: 0..512, offset, stable: false }, number);
    }
    let mut tags: Vec<_> = (0..100).map(|_| next(&mut ring).tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, (0..100).collect::<Vec<_>>());
    assert_eq!(file.metadata().unwrap().len(), 51_200);
}

#[test]
fn send_continues_after_the_bytes_already_sent() {
    let (mut ring, (ours, mut theirs)) = (new(), UnixStream::pair().unwrap());
    let mut data = Pool::default().buffer(4);
    data.copy_from_slice(b"data");
    let pieces = vec![Piece::Bytes(b"head".to_vec()), Piece::Data(data), Piece::Bytes(b"tail".to_vec())];
    ring.push(ours.as_fd(), Call::Send { pieces, sent: 6, all: true }, 0);
    let completed = next(&mut ring);
    assert_eq!(completed.result, 6);
    assert!(matches!(completed.memory, Memory::Pieces(pieces) if pieces.len() == 3));
    let mut found = [0; 6];
    theirs.read_exact(&mut found).unwrap();
    assert_eq!(&found, b"tatail");
}

#[test]
fn mapped_data_is_read_at_the_time_of_the_send() {
    let (mut ring, (ours, mut theirs)) = (new(), UnixStream::pair().unwrap());
    let mut map = ZeroedMap::new(8192).unwrap();
    let pool = Pool::default();
    let mut buffer = pool.buffer(4096).only_to_send();
    buffer.fill(b'.');
    let mut segments = [buffer.lend(10, 10), buffer.lend(30, 2), buffer.lend(0, 5), buffer.lend(5, 5)];
    let places = [0, 100, 200, 300];
    for (segment, place) in segments.iter_mut().zip(places) {
        let place = place..place + segment.len();
        assert!(segment.stands_for(|| map.view(place)));
    }
    drop(segments);
    // A part that is lent again gets new bytes.
    buffer.lend(5, 5).fill(b'-');
    buffer.narrow(2, 29);
    // The kernel reads the bytes from the map, at the time of the call.
    map.fill(b'a');
    map[100..].fill(b'b');
    map[200..].fill(b'c');
    let pieces = vec![Piece::Data(buffer), Piece::Bytes(b"tail".to_vec())];
    ring.push(ours.as_fd(), Call::Send { pieces, sent: 1, all: true }, 0);
    drop(map);
    let completed = next(&mut ring);
    assert_eq!(completed.result, 32);
    let mut found = [0; 32];
    theirs.read_exact(&mut found).unwrap();
    assert_eq!(found.escape_ascii().to_string(), "cc-----aaaaaaaaaa..........btail");
    // The next user of the buffer does not see these bytes.
    drop(completed);
    let mut other = pool.buffer(4096).only_to_send();
    assert_eq!(other[..5].escape_ascii().to_string(), ".....");
    drop(other);
    other = pool.buffer(4096);
    assert!(!other.lend(0, 4096).stands_for(|| unreachable!("the buffer is not only for sending")));
}

#[test]
fn each_sent_page_is_a_consistent_snapshot() {
    const BYTES: usize = 1 << 20;
    let (mut ring, (ours, mut theirs)) = (new(), UnixStream::pair().unwrap());
    let mut map = ZeroedMap::new(BYTES as u64 + 4096).unwrap();
    let mut buffer = Pool::default().buffer(BYTES).only_to_send();
    // The view begins within a page.
    assert!(buffer.lend(0, BYTES).stands_for(|| map.view(1000..1000 + BYTES)));
    let mut pieces = vec![Piece::Bytes(b"head".to_vec()), Piece::Data(buffer)];
    assert!(pieces.iter().any(Piece::may_change));
    let (mut found, mut sent, mut moment) = (Vec::new(), 0, 0);
    while sent < 4 + BYTES {
        moment += 1;
        map.fill(moment);
        ring.push(ours.as_fd(), Call::Send { pieces, sent, all: false }, 0);
        let completed = next(&mut ring);
        let Memory::Pieces(back) = completed.memory else { panic!("no pieces") };
        pieces = back;
        sent += completed.result as usize;
        let mut some = vec![0; completed.result as usize];
        theirs.read_exact(&mut some).unwrap();
        found.append(&mut some);
    }
    assert!(moment > 1, "the data must need more than one send");
    assert_eq!(&found[..4], b"head");
    let (first, pages) = found[4..].split_at(4096 - 1000);
    for page in std::iter::once(first).chain(pages.chunks(4096)) {
        assert!(page.iter().all(|&byte| byte == page[0]));
    }
}

#[test]
fn ring_accepts_connections_and_receives_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let (mut ring, listener) = (new(), UnixListener::bind(&path).unwrap());
    ring.push(listener.as_fd(), Call::Accept, 0);
    let mut client = UnixStream::connect(&path).unwrap();
    let Memory::Socket(socket) = next(&mut ring).memory else { panic!("no socket") };
    client.write_all(b"hello").unwrap();
    ring.push(socket.as_fd(), Call::Receive { bytes: vec![b'.'; 8], from: 1 }, 0);
    let completed = next(&mut ring);
    assert_eq!(completed.result, 5);
    assert!(matches!(completed.memory, Memory::Bytes(bytes) if bytes == b".hello.."));
}

#[test]
fn a_bell_ends_a_wait_each_time_it_is_rung() {
    let (mut ring, inbox) = (new(), Inbox::<()>::new().unwrap());
    ring.listen_to(Arc::clone(inbox.bell()));
    let mut completed = Vec::new();
    for _ in 0..3 {
        inbox.wake();
        ring.submit_and_wait(None).unwrap();
        assert_eq!(ring.completions(&mut completed), 1);
        assert!(completed.is_empty());
    }
    // The bell is silent now, so the wait ends with its timeout.
    ring.submit_and_wait(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(ring.completions(&mut completed), 0);
}

#[test]
fn dropped_ring_ends_pending_calls() {
    let (mut ring, (ours, mut theirs)) = (new(), UnixStream::pair().unwrap());
    let pool = Pool::default();
    let mut buffer = pool.buffer(4096);
    ring.push(ours.as_fd(), Call::ReceiveAll(buffer.lend(0, 4096)), 0);
    ring.listen_to(Arc::clone(Inbox::<()>::new().unwrap().bell()));
    ring.submit_and_wait(Some(Duration::ZERO)).unwrap();
    assert_eq!(ring.under_way(), 1);
    drop(ring);
    // The kernel has ended the call: no part is lent any more.
    buffer.fill(0);
    theirs.write_all(&[1; 4096]).unwrap();
    assert!(buffer.iter().all(|&byte| byte == 0));
}

#[test]
#[should_panic(expected = "nobody reads a buffer while a part of it is lent")]
fn memory_that_the_kernel_may_still_use_stays_lent() {
    let (mut ring, (ours, _theirs)) = (new(), UnixStream::pair().unwrap());
    let mut buffer = Pool::default().buffer(4096);
    ring.push(ours.as_fd(), Call::ReceiveAll(buffer.lend(0, 4096)), 0);
    ring.submit().unwrap();
    // Make the kernel unreachable from now on.
    ring.enter = |_, _, _| Err(io::Error::from_raw_os_error(libc::EBADF));
    drop(ring);
    buffer.fill(0);
}

#[test]
fn submit_gives_up_if_the_kernel_keeps_refusing() {
    for errno in [libc::EAGAIN, libc::EBUSY, libc::ENOMEM] {
        let (mut ring, file) = (new(), tempfile::tempfile().unwrap());
        ring.refusal_pause = Duration::ZERO;
        ring.enter = match errno {
            libc::EAGAIN => |_, _, _| Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            libc::EBUSY => |_, _, _| Err(io::Error::from_raw_os_error(libc::EBUSY)),
            _ => |_, _, _| Err(io::Error::from_raw_os_error(libc::ENOMEM)),
        };
        // Push more calls than the kernel's queue has room for. Pushing does not wait for the
        // kernel.
        (0..20).for_each(|number| ring.push(file.as_fd(), Call::Sync { data_only: true }, number));
        let waits = (0..).find_map(|waits| ring.submit_and_wait(None).err().map(|error| (waits, error)));
        let (waits, error) = waits.unwrap();
        assert_eq!(waits, REFUSALS_MAX);
        assert!(error.to_string().starts_with("io_uring: the kernel has accepted no request for 10 s: "), "{error}");
        assert!(ring.finish().is_err());

        // The kernel accepts calls again: all calls complete, and the count of refusals starts
        // again.
        ring.enter = enter;
        (0..20).for_each(|_| assert_eq!(next(&mut ring).result, 0));
        assert_eq!((ring.under_way(), ring.refusals), (0, 0));
    }
}
