use crate::app::tests::{TimedCall, calls};
use crate::app::{Advice, Call, Node, OpenFlags, Source, Spec};

const TMP1: Node = Node::new(0);
const TMP2: Node = Node::new(1);

fn calls_of(command: &str) -> Vec<Call> {
    calls(command, 1_000).0.into_iter().map(|timed| timed.call).collect()
}

const fn open(node: Node, flags: OpenFlags) -> Call {
    Call::Open { parent: Node::root(0), node, name_bytes: 4, flags }
}

const OUTPUT: OpenFlags =
    OpenFlags { create: true, truncate: true, direct: false, sync: false, data_only: false, advice: Advice::Normal };
const INPUT: OpenFlags = OpenFlags { create: false, truncate: false, ..OUTPUT };

const fn zeroes(node: Node, offset: u64, bytes: u64, calls: u64) -> Call {
    Call::Write { node, offset, bytes, calls, source: Source::Zero }
}

const fn close(node: Node) -> Call {
    Call::Close { node }
}

#[test]
fn writes_zeroes_block_by_block() {
    let expected = [open(TMP1, OUTPUT), zeroes(TMP1, 0, 512, 2_000_000), close(TMP1)];
    assert_eq!(calls_of("dd if=/dev/zero of=tmp1 bs=512 count=2000000"), expected);
}

#[test]
fn numbers_have_suffixes_and_products() {
    for (text, bytes) in
        [("7c", 7), ("3w", 6), ("2b", 1_024), ("4k", 4_096), ("1kB", 1_000), ("1M", 1 << 20), ("2MB", 2_000_000)]
    {
        assert_eq!(calls_of(&format!("dd if=/dev/zero of=tmp1 bs={text} count=2x3"))[1], zeroes(TMP1, 0, bytes, 6));
    }
}

#[test]
fn flags_and_conversions_mean_the_same_as_in_dd() {
    let flags = |text: &str| match calls_of(&format!("dd if=/dev/zero of=tmp1 count=1 {text}"))[0] {
        Call::Open { flags, .. } => flags,
        other => panic!("{other:?}"),
    };
    assert_eq!(flags("oflag=direct"), OpenFlags { direct: true, ..OUTPUT });
    assert_eq!(flags("oflag=direct,sync"), OpenFlags { direct: true, sync: true, ..OUTPUT });
    assert_eq!(flags("oflag=dsync"), OpenFlags { sync: true, data_only: true, ..OUTPUT });
    assert_eq!(flags("conv=notrunc"), OpenFlags { truncate: false, ..OUTPUT });
    let ends = |text: &str| calls_of(&format!("dd if=/dev/zero of=tmp1 count=1 {text}"))[2..].to_vec();
    assert_eq!(ends("conv=fsync"), [Call::Fsync { node: TMP1 }, close(TMP1)]);
    assert_eq!(ends("conv=notrunc,fdatasync"), [Call::Fdatasync { node: TMP1 }, close(TMP1)]);
}

#[test]
fn dd_copies_the_file_of_an_earlier_dd_to_its_end() {
    let calls = calls_of("dd if=/dev/zero of=tmp1 bs=1000 count=3; dd if=tmp1 of=tmp2 bs=2k");
    let (read, write) = (
        |offset, bytes| Call::Read { node: TMP1, offset, bytes, calls: 1 },
        |offset, bytes| Call::Write { node: TMP2, offset, bytes, calls: 1, source: Source::Buffer },
    );
    let copy = [
        open(TMP1, INPUT),
        open(TMP2, OUTPUT),
        read(0, 2_048),
        write(0, 2_048),
        read(2_048, 952),
        write(2_048, 952),
        close(TMP1),
        close(TMP2),
    ];
    assert_eq!(calls[3..], copy);
}

#[test]
fn skip_and_seek_leave_blocks_out() {
    let calls = calls_of("dd if=tmp1 of=tmp2 bs=1k count=2 skip=3 seek=5");
    assert!(calls.contains(&Call::Read { node: TMP1, offset: 4_096, bytes: 1_024, calls: 1 }));
    assert!(calls.contains(&Call::Write { node: TMP2, offset: 6_144, bytes: 1_024, calls: 1, source: Source::Buffer }));
    let app = Spec::parse("dd if=tmp1 of=/dev/null bs=1k count=2 skip=3").unwrap().start(1, 1 << 30);
    assert_eq!(app.existing()[0].bytes, Some(5 << 10));
}

#[test]
fn whole_blocks_are_read_before_the_rest() {
    let calls = calls_of("dd if=/dev/zero of=tmp1 bs=1000 count=1 && dd if=tmp1 of=/dev/null bs=300")
        .into_iter()
        .filter(|call| matches!(call, Call::Read { .. }));
    let read = |offset, bytes, calls| Call::Read { node: TMP1, offset, bytes, calls };
    assert!(calls.eq([read(0, 300, 3), read(900, 100, 1)]));
}

#[test]
fn parallel_jobs_have_separate_files_and_next_command_waits() {
    let (timed_calls, app) = calls("dd jobs=3 if=/dev/zero of=f count=2; dd if=f.2 of=/dev/null", 1_000);
    assert_eq!(app.tasks().len(), 4);
    let at =
        |timed_calls: &[TimedCall], task| timed_calls.iter().find(|timed| timed.task == task).map(|timed| timed.at_ns);
    assert_eq!([0, 1, 2, 3].map(|task| at(&timed_calls, task)), [Some(0), Some(0), Some(0), Some(3_000)]);
    let mut files: Vec<Node> = timed_calls
        .iter()
        .filter_map(|timed| if let Call::Write { node, .. } = timed.call { Some(node) } else { None })
        .collect();
    files.sort();
    assert_eq!(files, [0, 1, 2].map(Node::new));
    let read = Call::Read { node: Node::new(2), offset: 0, bytes: 512, calls: 2 };
    assert!(timed_calls.iter().any(|timed| timed.task == 3 && timed.call == read));
}

#[test]
fn dd_reports_seconds_and_decimal_megabytes() {
    let app = calls("dd if=/dev/zero of=tmp1 bs=1MB count=5", 500_000_000).1;
    let figures: Vec<_> =
        app.report().figures.into_iter().map(|figure| (figure.name, figure.unit, figure.value)).collect();
    assert_eq!(figures, [("write".to_owned(), "s".into(), 1.0), ("write".to_owned(), "MB/s".into(), 5.0)]);
}

#[test]
fn report_lists_processes_in_the_order_they_end() {
    let spec = Spec::parse("dd jobs=3 if=/dev/zero of=f bs=1M count=10").unwrap();
    let mut app = spec.start(1, 1 << 30);
    crate::app::tests::drive(app.as_mut(), |timed| match timed.call {
        Call::Write { node, .. } => [3, 1, 2][(node.0 - Node::new(0).0) as usize] * 1_000_000_000,
        _ => 0,
    });
    let report = app.report();
    assert_eq!((&*report.series[0].unit, &report.series[0].values[..]), ("s", &[1.0, 2.0, 3.0][..]));
    let seconds = report.figures.iter().filter(|figure| figure.unit == "s").map(|figure| figure.value);
    assert!(seconds.eq([3.0, 1.0, 3.0]));
}

#[test]
fn repeat_runs_the_whole_command_again() {
    let all = calls_of("dd if=tmp1 of=/dev/null count=4 repeat=3");
    assert_eq!(all.len(), 9);
    assert_eq!(all[..3], all[6..]);
}

#[test]
fn too_many_processes_or_commands_are_refused() {
    let command = "dd jobs=10000 if=/dev/zero of=x count=1";
    let error = Spec::parse(&[command; 11].join(" ; ")).map(|_| ()).unwrap_err().to_string();
    assert!(error.ends_with("jobs: too many processes; give at most 100000 processes in total"), "{error}");
    let error = Spec::parse(&["dd if=/dev/zero of=x count=1"; 101].join(";")).map(|_| ()).unwrap_err().to_string();
    assert!(error.ends_with("too many commands; give at most 100 commands"), "{error}");
}

#[test]
fn impossible_dd_is_refused() {
    let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
    for (text, part) in [
        ("dd if=/dev/zero of=x", "count: the input has no end; write count=BLOCKS"),
        ("dd if=x of=/dev/null", "count: no earlier command has written x"),
        ("dd if=/dev/zero of=/dev/null count=1", "this command neither reads nor writes a file"),
        ("dd if=/dev/tty of=x count=1", "if: /dev/tty is not a file, a disk or /dev/zero"),
        ("dd of=x count=1", "if: is missing"),
        ("dd if=x count=1", "of: is missing"),
        ("dd if=x of=y count=1 count=2", "count: is given twice"),
        ("dd if=x of=y count=0", "the number of blocks is 0"),
        ("dd if=x of=y bs=0 count=1", "the size of a block is 0"),
        ("dd if=x of=y count=1z", "`1z` is not a number"),
        ("dd if=x of=y count=99999999999999999999", "is not a number"),
        ("dd if=x of=y bs=1G count=1G", "more than 1 PiB"),
        ("dd if=x of=y count=1 oflag=direct bs=100", "bs: direct I/O of 100 bytes; write a multiple of 512"),
        (
            "dd if=/dev/zero of=x bs=100 count=1; dd if=x of=/dev/null iflag=direct",
            "direct I/O is not possible for a file of 100 bytes",
        ),
        ("dd if=x of=y count=1 oflag=frob", "`frob` is not a known value; use direct, dsync, sync, append"),
        (
            "dd if=x of=y count=1 ibs=3k obs=2k",
            "obs: neither of the block sizes 3072 and 2048 is a multiple of the other; write two sizes",
        ),
        ("dd if=x of=y count=1 obs=0", "obs: the size of a block is 0"),
        ("dd if=x of=x count=1", "add conv=notrunc"),
        ("dd if=/dev/zero of=x count=4; dd if=/dev/zero of=x count=1 seek=2", "add conv=notrunc"),
        ("dd if=/dev/zero of=x count=4; dd if=x of=/dev/null skip=4", "skip: x ends before"),
        ("dd if=/dev/zero of=x count=4; sync", "after a dd command, only another dd command is allowed"),
        ("dd if=/dev/zero of=x count=4;", "after a dd command, only another dd command is allowed"),
        ("dd if=/dev/zero of=x count=4 jobs=0", "jobs: `0` is not a whole number from 1 to 10000"),
        ("dd if count=4", "if: has no value; write if=FILE"),
    ] {
        assert!(error(text).contains(part), "{}", error(text));
    }
}

#[test]
fn dd_of_a_device_ends_at_the_end_of_the_disk() {
    let bytes = |text: &str| {
        let is_moved = |call: &Call| match call {
            Call::Read { bytes, calls, .. } | Call::Write { bytes, calls, .. } => Some(bytes * calls),
            _ => None,
        };
        calls_of(text).iter().filter_map(is_moved).sum::<u64>()
    };
    // The disk of these tests has 1 GiB.
    assert_eq!(bytes("dd if=/dev/sda of=/dev/null bs=1M"), 1 << 30);
    assert_eq!(bytes("dd if=/dev/nvme0n1 of=/dev/null bs=3M iflag=direct"), 1 << 30);
    assert_eq!(bytes("dd if=/dev/sda1 of=/dev/null bs=1M count=64 skip=1000"), 24 << 20);
    assert_eq!(bytes("dd if=/dev/zero of=/dev/sdb bs=4M oflag=direct"), 1 << 30);
    assert_eq!(bytes("dd if=/dev/zero of=/dev/mapper/vg-lv bs=1M count=10 conv=fsync"), 10 << 20);
    assert_eq!(bytes("dd if=/dev/sda of=image bs=1M count=8 conv=noerror,sync"), 16 << 20);
}

#[test]
fn block_sizes_of_input_and_output_may_differ() {
    let moved = |text: &str| -> Vec<(bool, u64, u64, u64)> {
        let of = |call: Call| match call {
            Call::Read { offset, bytes, calls, .. } => Some((true, offset, bytes, calls)),
            Call::Write { offset, bytes, calls, .. } => Some((false, offset, bytes, calls)),
            _ => None,
        };
        calls_of(text).into_iter().filter_map(of).collect()
    };
    let gathered = [(true, 0, 1_024, 4), (false, 0, 4_096, 1), (true, 4_096, 1_024, 1), (false, 4_096, 1_024, 1)];
    assert_eq!(moved("dd if=a of=b ibs=1k obs=4k count=5"), gathered);
    let split = [(true, 0, 4_096, 1), (false, 0, 1_024, 4), (true, 4_096, 512, 1), (false, 4_096, 512, 1)];
    assert_eq!(moved("dd if=a of=b ibs=4k obs=1k count=4608 iflag=count_bytes"), split);
    assert_eq!(moved("dd if=/dev/zero of=b obs=4k count=8"), [(false, 0, 4_096, 1)]);
    assert_eq!(moved("dd if=a of=/dev/null bs=1M ibs=512 count=2"), [(true, 0, 1 << 20, 2)], "bs sets both");
}

#[test]
fn flag_or_suffix_makes_a_number_count_bytes() {
    let first = |text: &str| calls_of(text)[1];
    for text in ["bs=1MiB count=3MB", "bs=1M count=3000000 iflag=fullblock,count_bytes", "bs=1M count=3000000B"] {
        let write = first(&format!("dd if=/dev/zero of=b {text}"));
        assert_eq!(write, zeroes(TMP1, 0, 1 << 20, 2), "{text}");
    }
    let read = Call::Read { node: TMP1, offset: 4_096, bytes: 1_024, calls: 1 };
    for text in ["skip=4", "skip=4096 iflag=skip_bytes", "skip=4KiB iflag=skip_bytes", "skip=4KiB", "skip=4096B"] {
        assert_eq!(first(&format!("dd if=a of=/dev/null bs=1k count=1 {text}")), read, "{text}");
    }
}

#[test]
fn flag_lists_combine_and_append_writes_at_the_end() {
    let all = calls_of("dd if=/dev/zero of=tmp1 count=2 conv=fsync conv=notrunc iflag=nonblock,noatime");
    assert!(all.contains(&Call::Fsync { node: TMP1 }), "{all:?}");
    let all = calls_of("dd if=/dev/zero of=tmp1 count=2; dd if=/dev/zero of=tmp1 count=1 oflag=append conv=notrunc");
    assert!(all.contains(&zeroes(TMP1, 1_024, 512, 1)), "{all:?}");
}

#[test]
fn random_input_is_simulated_as_zeroes_with_a_note() {
    let random = calls_of("dd if=/dev/urandom of=tmp1 bs=1M count=2");
    assert_eq!(random, calls_of("dd if=/dev/zero of=tmp1 bs=1M count=2"));
    let notes = |text: &str| Spec::parse(text).unwrap().start(1, 1 << 30).outcome(0).notes.len();
    let count = "of=x bs=1M count=1";
    assert_eq!((notes(&format!("dd if=/dev/random {count}")), notes(&format!("dd if=/dev/zero {count}"))), (1, 0));
}

#[test]
fn invalid_inputs_and_outputs_are_refused() {
    let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
    let terminal = error("dd if=/dev/tty of=x bs=1M count=1");
    assert!(terminal.contains("if: /dev/tty is not a file, a disk or /dev/zero, /dev/urandom"), "{terminal}");
    assert!(error("dd if=/dev/sda of=/dev/sdb bs=1M").contains("of: /dev/sdb is a second device"));
    assert!(error("dd if=/dev/zero of=x bs=1M").contains("count: the input has no end"));
}
