//! Tests of the binary reader: comparison with blkparse, record by record, and the requests of the
//! samples.

use crate::common::*;
use iosched::{Flags, Op, Time};
use iosched_trace::{
    Action, BlkEvent, DeviceName, EventReader, EventWriter, Format, Payload, ProcessName, ReadOptions, TraceReader,
    convert,
};

#[test]
fn records_print_like_the_stored_blkparse_output() {
    let text = String::from_utf8(unzstd(&samples().join("sqlite-insert.txt.zst"))).unwrap();
    let ours = lines_of(EventReader::open(samples().join("sqlite-insert.blktrace")).unwrap());
    assert_same_lines("sqlite-insert", &ours, &event_lines(&text));
    // The reader of blkparse's text returns the same events.
    let again = lines_of(EventReader::open(samples().join("sqlite-insert.txt.zst")).unwrap());
    assert_same_lines("sqlite-insert.txt", &again, &event_lines(&text));
}

#[test]
fn records_print_like_the_installed_blkparse() {
    let mut sources = vec![samples()];
    sources.extend(shared_folder("samples", "IOSCHED_SAMPLES"));
    for source in sources {
        let folder = Folder::new("blkparse");
        let bases = unpack(&source, &folder);
        assert!(!bases.is_empty());
        for base in bases {
            let Some(theirs) = blkparse(&folder.0, &base) else { return };
            let ours = lines_of(EventReader::open(folder.0.join(&base)).unwrap());
            println!("{base}: {} records compared", ours.len());
            assert_same_lines(&base, &ours, &theirs);
        }
    }
}

#[test]
fn notes_remaps_splits_and_errors_agree_with_blkparse() {
    let folder = Folder::new("remap");
    std::fs::write(folder.0.join("remap.blktrace.0"), corpus("blktrace/remap")).unwrap();
    let Some(mut theirs) = blkparse(&folder.0, "remap") else { return };
    // iosched writes no lines for passed-through commands.
    theirs.retain(|line| !line.contains("R 36 ("));
    let data = corpus("blktrace/remap");
    let mut events = EventReader::from_reader(std::io::Cursor::new(data), "remap", &partial()).unwrap();
    let mut ours = Vec::new();
    while let Some(event) = events.next() {
        let event = event.unwrap();
        let name = events.process_names().get(&event.pid).copied();
        ours.extend(event.to_blkparse_line(name));
    }
    assert_same_lines("remap", &ours, &theirs);
}

#[test]
fn written_blktrace_files_are_read_by_blkparse() {
    let source = samples().join("pgbench.blktrace");
    let folder = Folder::new("written");
    let path = folder.0.join("written.blktrace.0");
    let mut reader = TraceReader::open(&source).unwrap();
    let report = convert(&mut reader, std::fs::File::create(&path).unwrap(), Format::Blktrace).unwrap();
    assert_eq!((report.written, report.left_out, report.flags_lost, report.latencies_lost), (7_638, 0, 0, 0));

    let before: Vec<_> = TraceReader::open(&source).unwrap().map(Result::unwrap).collect();
    let mut again = TraceReader::open(&path).unwrap();
    let after: Vec<_> = again.by_ref().map(Result::unwrap).collect();
    assert_eq!(before, after);
    let of_submitters = |(pid, _): &(&u32, _)| before.iter().any(|request| request.pid == **pid);
    let names: Vec<_> = reader.process_names().iter().filter(of_submitters).collect();
    assert_eq!(names, again.process_names().iter().collect::<Vec<_>>());
    assert!(again.warnings().is_empty(), "{:?}", again.warnings().kept());

    let Some(theirs) = blkparse(&folder.0, "written") else { return };
    assert_same_lines("written", &lines_of(EventReader::open(&path).unwrap()), &theirs);
}

#[test]
fn blkparse_text_and_binary_give_the_same_requests() {
    let binary: Vec<_> = TraceReader::open(samples().join("sqlite-insert.blktrace")).unwrap().flatten().collect();
    let text: Vec<_> = TraceReader::open(samples().join("sqlite-insert.txt.zst")).unwrap().flatten().collect();
    assert_eq!(binary.len(), 4_791);
    assert_eq!(binary, text);
}

#[test]
fn every_request_of_the_samples_has_a_latency() {
    for (name, requests) in [("pgbench.blktrace", 7_638), ("sqlite-insert.blktrace.1.zst", 4_791)] {
        let read: Vec<_> = TraceReader::open(samples().join(name)).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(read.len(), requests);
        let without: Vec<_> = read.iter().filter(|request| request.latency_ns.is_none()).collect();
        assert!(without.is_empty(), "{} of {name} without latency, first {:?}", without.len(), without.first());
        assert!(read.is_sorted_by_key(|request| request.arrival));
    }
}

#[test]
fn flush_sequence_write_ends_with_its_last_completion() {
    let requests: Vec<_> = TraceReader::open(samples().join("sqlite-insert.blktrace")).unwrap().flatten().collect();
    let fua = requests.iter().rfind(|request| request.flags.contains(Flags::FUA)).unwrap();
    // Its events: Q 0.513224651, data C 0.513479339, last C 0.513656865.
    assert_eq!((fua.arrival.as_ns(), fua.latency_ns), (513_224_651, Some(513_656_865 - 513_224_651)));
    assert_eq!(fua.flags, Flags::FUA | Flags::PREFLUSH | Flags::SYNC | Flags::PRIO);
    let flush = requests.iter().find(|request| request.op == Op::Flush).unwrap();
    assert_eq!((flush.arrival.as_ns(), flush.latency_ns), (2_051_980, Some(2_164_609 - 2_051_980)));
    assert_eq!((flush.flags, flush.sector, flush.nr_sectors), (Flags::SYNC, 0, 0));
}

#[test]
fn both_byte_orders_give_the_same_requests() {
    let little = unzstd(&samples().join("sqlite-insert.blktrace.1.zst"));
    assert_eq!(read(&little), read(&big_endian(&little)));
    assert_ne!(little, big_endian(&little));
}

#[test]
fn submission_remapped_from_a_traced_device_counts_once() {
    let (dm, sda) = (253 << 20, 8 << 20);
    let (requests, warnings) = read(&corpus("blktrace/remap"));
    let seen: Vec<_> = requests.iter().map(|request| (request.device, request.op, request.latency_ns)).collect();
    assert_eq!(seen, [(Some(dm), Op::Write, Some(1_200)), (Some(sda), Op::Discard, Some(100))]);
    assert_eq!(warnings, ["input: byte 768: 15 records were lost during the recording"]);

    let options = ReadOptions { device: Some(sda), ..ReadOptions::default() };
    let (requests, _) = read_with(&corpus("blktrace/remap"), &options);
    // The request completed in two parts.
    assert_eq!(requests[0].latency_ns, Some(900));
    assert_eq!((requests.len(), requests[0].sector, requests[0].nr_sectors), (2, 2_148, 16));
    assert_eq!(DeviceName(sda | 1).to_string(), "8,1");
    assert_eq!(DeviceName::parse("253,0"), Some(DeviceName(dm)));
}

#[test]
fn events_have_their_payloads() {
    let data = corpus("blktrace/remap");
    let events: Vec<_> = EventReader::from_reader(std::io::Cursor::new(data), "input", &partial())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let payload = |action: Action| &events.iter().find(|event| event.action == action).unwrap().payload;
    assert_eq!(*payload(Action::NoteTimestamp), Payload::WallClock { seconds: 1_700_000_000, nanoseconds: 5 });
    assert_eq!(
        *payload(Action::Remap),
        Payload::Remap { from_device: 8 << 20 | 1, from_sector: 100, to_device: 8 << 20 }
    );
    assert_eq!(*payload(Action::Split), Payload::SplitAt(2_156));
    assert_eq!(*payload(Action::NoteMessage), Payload::Message("cfq77S dispatch".into()));
    assert!(events.iter().any(|event| event.action == Action::Complete && event.error == -5));
    assert!(events.iter().any(|event| matches!(&event.payload, Payload::Bytes(bytes) if bytes.len() == 16)));
}

#[test]
fn submission_to_a_partition_counts_once() {
    let lines = "8,0 0 1 0.000000000 7 A W 2148 + 8 <- (8,1) 100\n8,0 0 2 0.000000100 7 Q W 2148 + 8 [a]\n";
    assert_eq!(read(lines.as_bytes()).0.len(), 1);
}

#[test]
fn a_bio_through_layers_counts_once_at_the_top() {
    let lines = "253,0 0 1 0.000000000 7 Q W 100 + 8 [a]\n8,1 0 2 0.000000010 7 A W 50 + 8 <- (253,0) 100\n\
                 8,0 0 3 0.000000020 7 A W 2098 + 8 <- (8,1) 50\n\
                 8,0 0 4 0.000000030 7 Q W 2098 + 8 [a]\n\
                 8,0 0 5 0.000000040 7 Q W 3000 + 8 [a]\n";
    let (requests, _) = read(lines.as_bytes());
    let seen: Vec<_> = requests.iter().map(|request| (request.device, request.sector)).collect();
    assert_eq!(seen, [(Some(253 << 20), 100), (Some(8 << 20), 3_000)]);
}

#[test]
fn trace_opens_by_base_name_or_file_name() {
    let folder = Folder::new("names");
    for (cpu, name) in [(0, "t.blktrace.0"), (1, "t.blktrace.1")] {
        std::fs::write(folder.0.join(name), unzstd(&samples().join(format!("sqlite-insert.blktrace.{cpu}.zst"))))
            .unwrap();
    }
    // An empty file of an idle CPU.
    std::fs::write(folder.0.join("t.blktrace.2"), b"").unwrap();
    for name in ["t", "t.blktrace", "t.blktrace.0", "t.blktrace.1"] {
        let count = TraceReader::open(folder.0.join(name)).unwrap().filter(Result::is_ok).count();
        assert_eq!(count, 4_791, "{name}");
    }
    let one = [folder.0.join("t.blktrace.0")];
    let count = TraceReader::open_files(&one, &ReadOptions::default()).unwrap().filter(Result::is_ok).count();
    assert!(count < 4_791);
    let error = TraceReader::open(folder.0.join("u")).err().unwrap().to_string();
    assert!(error.contains("no such file"), "{error}");
    std::fs::write(folder.0.join("c.csv"), corpus("csv/ours")).unwrap();
    let several = [folder.0.join("t.blktrace.0"), folder.0.join("c.csv")];
    let error = TraceReader::open_files(&several, &ReadOptions::default()).err().unwrap().to_string();
    assert!(error.contains("only blktrace has several files"), "{error}");
}

#[test]
fn readers_in_memory_give_the_same_requests_as_files() {
    let files = ["sqlite-insert.blktrace.0.zst", "sqlite-insert.blktrace.1.zst"]
        .map(|name| (name.to_owned(), std::io::Cursor::new(std::fs::read(samples().join(name)).unwrap())));
    let reader = TraceReader::from_readers(files, &ReadOptions::default()).unwrap();
    let requests: Vec<_> = reader.map(Result::unwrap).collect();
    let on_disk: Vec<_> = TraceReader::open(samples().join("sqlite-insert")).unwrap().map(Result::unwrap).collect();
    assert_eq!(requests, on_disk);
}

#[test]
fn disordered_records_of_a_cpu_are_sorted() {
    let data = unzstd(&samples().join("sqlite-insert.blktrace.1.zst"));
    let mut shuffled = records(&data);
    shuffled[10..].chunks_mut(7).for_each(<[_]>::reverse);
    let mut reader = open(&shuffled.concat()).unwrap();
    let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(requests, read(&data).0);
}

/// Returns all events of a trace, without the fields that the writer determines.
fn events_of(mut reader: EventReader) -> Vec<BlkEvent> {
    let events: Vec<_> = reader.by_ref().map(|event| BlkEvent { sequence: 0, ..event.unwrap() }).collect();
    assert!(reader.warnings().is_empty(), "{:?}", reader.warnings().kept());
    events
}

#[test]
fn rewritten_events_are_unchanged_for_blkparse_and_btt() {
    let folder = Folder::new("events");
    for (name, source) in [("pgbench", samples().join("pgbench.blktrace")), ("sqlite", samples().join("sqlite-insert"))]
    {
        for files in [1, 2] {
            let base = format!("{name}-{files}");
            let create = |cpu| std::fs::File::create(folder.0.join(format!("{base}.blktrace.{cpu}"))).unwrap();
            let mut writer = EventWriter::per_cpu((0..files).map(create)).unwrap();
            for event in EventReader::open(&source).unwrap() {
                writer.write(&event.unwrap()).unwrap();
            }
            writer.finish().unwrap();
            let before = events_of(EventReader::open(&source).unwrap());
            let after = events_of(EventReader::open(folder.0.join(&base)).unwrap());
            // Simultaneous events of several CPUs have no order. The writer writes a name only
            // once.
            let sorted = |events: Vec<BlkEvent>| {
                let events = events.into_iter().filter(|event| !event.is_note());
                let mut events: Vec<_> = events.map(|event| if files == 1 { event.on_cpu(0) } else { event }).collect();
                events.sort_by_key(|event| (event.time, event.cpu, event.sector, event.action));
                events
            };
            assert!(sorted(before) == sorted(after), "{base}");
            let Some(theirs) = blkparse(&folder.0, &base) else { return };
            assert_same_lines(&base, &lines_of(EventReader::open(folder.0.join(&base)).unwrap()), &theirs);
        }
        let (Some(one), Some(two)) = (btt(&folder.0, &format!("{name}-1")), btt(&folder.0, &format!("{name}-2")))
        else {
            return;
        };
        let table = |text: &str| text.lines().take_while(|line| !line.starts_with("# Total")).count();
        assert_eq!(
            one.lines().take(table(&one)).collect::<Vec<_>>(),
            two.lines().take(table(&two)).collect::<Vec<_>>()
        );
    }
}

/// Returns the events of requests as a simulator reports them: submitted, merged at either end,
/// plugged, issued and split.
fn written_events() -> Vec<BlkEvent> {
    let (device, pid) = (8 << 20, 77);
    let event = |action: Action, time_ns: u64| BlkEvent::new(action, Time::from_ns(time_ns), device, pid);
    let write = |event: BlkEvent, sector, nr_sectors| event.with_extent(Op::Write, Flags::SYNC, sector, nr_sectors);
    vec![
        event(Action::Plug, 10),
        write(event(Action::Queue, 100), 1_008, 8),
        write(event(Action::GetRequest, 120), 1_008, 8),
        write(event(Action::Insert, 130), 1_008, 8),
        write(event(Action::Queue, 200), 1_016, 8),
        write(event(Action::BackMerge, 210), 1_016, 8),
        write(event(Action::Queue, 220), 1_000, 8),
        write(event(Action::FrontMerge, 230), 1_000, 8),
        write(event(Action::Queue, 240), 5_000, 64),
        write(event(Action::Split, 250), 5_000, 32).with_split(5_032),
        write(event(Action::GetRequest, 260), 5_000, 32),
        write(event(Action::Insert, 270), 5_000, 32),
        write(event(Action::GetRequest, 280), 5_032, 32),
        write(event(Action::Insert, 290), 5_032, 32),
        event(Action::Unplug, 300).with_count(3),
        event(Action::NoteMessage, 310).with_message("cfq77S dispatch"),
        write(event(Action::Issue, 400), 1_000, 24),
        write(event(Action::Issue, 410), 5_000, 32),
        write(event(Action::Requeue, 415), 5_000, 32),
        write(event(Action::Issue, 418), 5_000, 32),
        write(event(Action::Issue, 420), 5_032, 32),
        write(event(Action::Complete, 9_000), 1_000, 24),
        write(event(Action::Complete, 9_100), 5_000, 32),
        write(event(Action::Complete, 9_200), 5_032, 32).with_error(-5),
        event(Action::Queue, 10_000).with_extent(Op::Flush, Flags::SYNC, 0, 0),
        event(Action::UnplugTimer, 10_100).with_count(1),
    ]
}

#[test]
fn every_kind_of_event_round_trips() {
    let folder = Folder::new("kinds");
    let path = folder.0.join("kinds.blktrace.0");
    let mut writer = EventWriter::new(std::fs::File::create(&path).unwrap());
    writer.name_process(Time::ZERO, 77, ProcessName::new(b"writer")).unwrap();
    for event in written_events() {
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
    let events = events_of(EventReader::open(&path).unwrap());
    let first = written_events()[0].time;
    let expected: Vec<_> = written_events()
        .into_iter()
        .map(|event| BlkEvent { time: Time::from_ns(event.time.since(first)), ..event })
        .collect();
    assert_eq!(events[0].payload, Payload::Name(ProcessName::new(b"writer")));
    assert_eq!(events[1..], expected);
    let requests: Vec<_> = TraceReader::open(&path).unwrap().map(Result::unwrap).collect();
    let latencies: Vec<_> = requests.iter().map(|request| request.latency_ns).collect();
    assert_eq!(latencies, [Some(8_900), Some(8_800), Some(8_780), Some(8_960), None]);

    let Some(theirs) = blkparse(&folder.0, "kinds") else { return };
    assert_same_lines("kinds", &lines_of(EventReader::open(&path).unwrap()), &theirs);
    let Some(figures) = btt(&folder.0, "kinds") else { return };
    let row = |name: &str| {
        let line = figures.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {figures}"));
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!((row("Q2Q"), row("Q2M")), ("3".to_owned(), "2".to_owned()));
}

#[test]
fn long_message_is_truncated_at_a_character_boundary() {
    let mut file = Vec::new();
    let mut writer = EventWriter::new(&mut file);
    let text = "ü".repeat(100);
    writer.write(&BlkEvent::new(Action::NoteMessage, Time::ZERO, 8 << 20, 0).with_message(&text)).unwrap();
    writer.finish().unwrap();
    let event = EventReader::from_reader(std::io::Cursor::new(file), "message", &Default::default())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(event.payload, Payload::Message("ü".repeat(63).into()));
}
