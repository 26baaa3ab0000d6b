//! Detection of the format of a file.

use std::fs;

use super::{fed, info, table, through};
use crate::common::{has_program, sh};
use crate::list::Sandbox;

const ROWS: &str = "0,R,80,8,7\n1000000,W,160,16,7\n2000000,r,240,8,8\n";

pub(super) fn columns_in_the_heading(place: &Sandbox) {
    let answer = info(place, "x.csv", format!("time_ns,op,sector,nr_sectors,pid\n{ROWS}"));
    answer.code(0).says(&["csv: 3 requests, 2 reads, 2 processes"]).never(&["warning", "alibaba"]);
    let tsv = "op\tsize_bytes\toffset_bytes\ttime_us\tnonsense\nREAD\t4096\t0\t1700000000000000\tx\n\
               write\t512\t4096\t1700000000000500\ty\n";
    info(place, "x.tsv", tsv).code(0).says(&["csv: 2 requests, 1 reads", "0.000500 s recorded"]).never(&["warning"]);
    info(place, "x.txt", "time_s;op;sector;nr_sectors\n1.5;R;8;8\n2.5;W;8;8\n")
        .code(0)
        .says(&["2 requests", "1.00 s recorded"]);
}

pub(super) fn unknown_heading(place: &Sandbox) {
    // The rows have the format of Alibaba's traces, but the heading shows another format.
    let answer = info(place, "x.csv", format!("when,what,where,how_much,who\n{ROWS}").to_uppercase());
    answer.refused(2, &["it is a table of 5 columns separated by commas, and their meaning is unknown", "--columns"]);
    info(place, "ali.csv", format!("device_id,opcode,offset,length,timestamp\n{}", "1,R,0,512,5\n".repeat(9)))
        .code(0)
        .says(&["alibaba: 9 requests"]);
}

pub(super) fn unknown_format(place: &Sandbox) {
    let answer = info(place, "x.csv", "some,thing,else\n1,2,3\n");
    answer.refused(2, &["x.csv: this is not a trace in a known format", "--columns", "--input-format"]);
    assert_eq!(answer.err.trim_end().lines().count(), 1, "{}", answer.err);
    let answer = place.iosched(&["trace", "info", "x.csv", "--verbose"]);
    answer.refused(2, &["x.csv: this is not a trace in a known format", "--columns", "--input-format", "\ntried:\n"]);
    let all = [
        "fio-v2",
        "fio-v3",
        "csv",
        "msr",
        "alibaba",
        "tencent",
        "spc",
        "fiu",
        "blkreplay",
        "blkparse",
        "tracepoints",
        "mqsim",
    ];
    for format in all {
        answer.says(&[&format!("\n  {format}: line 1: found \"some,thing,else\", expected ")]);
    }
    answer.says(&["\n  blktrace: ", "\n  vscsi: "]);
    info(place, "blank.csv", "\n\n   \n").refused(2, &["not a trace in a known format"]);
    info(place, "empty.csv", "").refused(2, &["empty (0 bytes)"]);
}

pub(super) fn columns(place: &Sandbox) {
    for (delimiter, name) in [(",", "a"), ("\t", "b"), (";", "c"), ("|", "d"), ("   ", "e"), (", ", "f")] {
        let rows = ["0.000,read,0,4096,x", "0.250,WRITE,4096,8192,y", "0.500,RS,0,512,z"];
        let text = rows.map(|row| row.replace(',', delimiter) + "\n").concat();
        place.file(name, text);
        let args = ["trace", "info", "--columns", "time_s,op,offset_bytes,length_bytes,-", name];
        place.iosched(&args).code(0).says(&["csv: 3 requests, 2 reads", "0.50 s recorded"]).never(&["warning"]);
    }
    // A heading with other words does not count as a bad line.
    place.file("headed", "when,what,where,how_much\n5,R,0,8\n6,W,8,8\n");
    let args = ["trace", "info", "--columns", "time_ms,op,sector,nr_sectors", "headed"];
    place.iosched(&args).code(0).says(&["2 requests", "times exact to 1,000,000 ns"]).never(&["warning"]);
}

pub(super) fn errors_in_tables(place: &Sandbox) {
    let heading = "time_s,op,sector,nr_sectors\n";
    info(place, "t.csv", format!("{heading}0.5,R,8,8\n0.6,R,x9,8\n"))
        .refused(2, &["line 3", "found \"x9\", expected a number of sectors of 512 bytes in column 3, sector"]);
    info(place, "few.csv", format!("{heading}0.5,R,8\n0.6,R,8,8\n"))
        .refused(2, &["line 2", "expected 4 columns (time_s,op,sector,nr_sectors), but the line has 3 fields"]);
    info(place, "flush.csv", format!("{heading}0.5,F,8,8\n0.6,R,8,8\n"))
        .refused(2, &["line 2", "expected a flush of length 0"]);
    let lacks = "(arrival_ns, time_ns, time_us, time_ms or time_s; or completed_ns, _us, _ms or _s) is missing; \
     unknown columns: time";
    info(place, "lacks.csv", "time,op,sector,nr_sectors\n0.5,R,8,8\n").refused(2, &[lacks, "--columns"]);
    place.file("plain", "0.5 R 8 8\n0.6 9 R 8\n");
    let answer = place.iosched(&["trace", "info", "plain", "--columns", "time_s,op,sector,nr_sectors"]);
    answer.refused(2, &["line 2", "found \"9\", expected an operation (R, W,", " in column 2, op"]);
}

pub(super) fn wrong_columns(place: &Sandbox) {
    place.file("x", "1,R,0,8\n");
    for (names, parts) in [
        (
            "time,op,sector,nr_sectors",
            &["there is no column \"time\"", "time_ns", "offset_bytes", "- to skip a column"][..],
        ),
        ("op,sector,nr_sectors", &["completed_ns, _us, _ms or _s) is missing"]),
        ("time_ns,op,sector", &["nr_sectors, length_bytes, length_kib or length_mib is missing"]),
        ("time_ns,time_us,op,sector,nr_sectors", &["columns time_ns and time_us have the same meaning"]),
        ("", &["there is no column \"\""]),
    ] {
        place.iosched(&["trace", "info", "--columns", names, "x"]).refused(2, parts);
    }
    // The number of names is smaller or larger than the number of columns in the table.
    for names in ["time_ns,op,sector,nr_sectors,pid", "time_ns,op,-,sector,nr_sectors,-"] {
        place.iosched(&["trace", "info", "--columns", names, "x"]).refused(1, &["x: line 1"]);
    }
}

pub(super) fn forced_format(place: &Sandbox) {
    place.file("x", "1,R,0,512,5\n2,W,0,512,6\n");
    place.iosched(&["trace", "info", "x"]).code(0).says(&["alibaba: 2 requests"]);
    let answer = place.iosched(&["trace", "info", "--input-format", "msr", "x"]);
    answer.refused(1, &["x: line 1", "timestamp,host,disk,Read or Write"]);
    let answer = place.iosched(&["trace", "info", "--input-format", "alibubu", "x"]);
    answer.refused(2, &["alibubu", "alibaba", "blkparse"]);
    let both = ["trace", "info", "--input-format", "csv", "--columns", "time_s,op,sector,nr_sectors", "x"];
    place.iosched(&both).refused(2, &["cannot be used with"]);
}

pub(super) fn commands_accept_columns(place: &Sandbox) {
    let rows: String = (0..200).map(|n| format!("{n} R {} 8\n", n * 8)).collect();
    place.file("x.toml", rows);
    let names = ["--columns", "time_us,op,sector,nr_sectors"];
    place.iosched(&[&["trace", "convert", "x.toml", "x.csv"], &names[..]].concat()).code(0);
    assert_eq!(place.read("x.csv").lines().count(), 201);
    let args = ["compare", "--workload", "x.toml", "-s", "noop", "-n", "1", "-d", "sata-ssd"];
    place.iosched(&[&args[..], &names[..]].concat()).code(0).says(&["200 requests"]);
    assert!(place.read("state/last.jsonl").contains("--columns time_us,op,sector,nr_sectors"));
    let args = ["tune", "--workload", "x.toml", "-s", "noop", "-g", "throughput", "-d", "sata-ssd", "--budget", "30"];
    place.iosched(&[&args[..], &names[..]].concat()).says(&["200 requests"]);
}

pub(super) fn time_unit(place: &Sandbox) {
    let rows: String = (0..200).map(|n| format!("{n}.25 0 {} 8 1\n", n * 80)).collect();
    place.file("x.ascii", rows);
    place.iosched(&["trace", "info", "x.ascii"]).refused(2, &["--time-unit ms"]);
    place.iosched(&["trace", "info", "x.ascii", "--time-unit", "ms"]).code(0).says(&["mqsim: 200", "0.20 s recorded"]);
    let args = ["compare", "--workload", "x.ascii", "-s", "noop", "-n", "1", "-d", "sata-ssd", "--time-unit", "ms"];
    place.iosched(&args).code(0).says(&["200 requests"]);
    assert!(place.read("state/last.jsonl").contains("--time-unit ms"));
    place
        .iosched(&["trace", "info", "x.ascii", "--time-unit", "min"])
        .refused(2, &["write a unit of time: ns, us, ms or s"]);
    place.file("x.csv", table(3));
    let answer = place.iosched(&["trace", "info", "x.csv", "--time-unit", "ms"]);
    answer.refused(2, &["x.csv: times in the format csv have a fixed unit"]);
    place.file("x.fio", "[a]\nsize=1m\n");
    let args = ["compare", "--workload", "x.fio", "-s", "noop", "-n", "1", "--time-unit", "ms"];
    place.iosched(&args).refused(2, &["--time-unit is only for traces"]);
}

pub(super) fn partial_for_a_job(place: &Sandbox) {
    place.file("x.fio", "[a]\nsize=1m\n");
    for given in [&["--partial"][..], &[]] {
        let answer = place.iosched(&[&["compare", "--workload", "x.fio", "-s", "noop", "-n", "1"], given].concat());
        if given.is_empty() {
            answer.code(0);
        } else {
            answer.refused(2, &["--partial is only for traces"]);
        }
    }
}

pub(super) fn many_bad_lines(place: &Sandbox) {
    let good = table(98).split_once('\n').unwrap().1.to_owned();
    let heading = table(0);
    let text = format!("{heading}{good}what\nis\nthis\n");
    place.file("x.csv", text);
    let parts = ["3 of the 102 lines (2.9 %)", "x.csv: line 100", "found \"what\"", "--input-format", "--partial"];
    place.iosched(&["trace", "info", "x.csv"]).refused(2, &parts);
    place.iosched(&["trace", "info", "--partial", "x.csv"]).refused(2, &parts);
    place.iosched(&["trace", "info", "--input-format", "csv", "x.csv"]).refused(2, &parts);
    let answer = place.iosched(&["trace", "info", "--input-format", "csv", "--partial", "x.csv"]);
    answer.code(0).says(&["98 requests", "3 of the 102 lines"]);
    place.iosched(&["trace", "convert", "x.csv", "out.msr"]).refused(2, &parts);
    assert!(!place.path("out.msr").exists());
    // All text formats behave in the same way.
    for format in ["fio-v2", "fio-v3", "msr", "spc", "fiu", "alibaba", "tencent", "blkreplay", "mqsim"] {
        place.file("good.csv", heading.clone() + &good);
        place.iosched(&["trace", "convert", "--overwrite", "good.csv", "y", "--format", format]).code(0);
        let text = place.read("y") + "what\nis\nthis\n";
        info(place, "y", text).refused(2, &["3 of the 1", "found \"what\", expected", "--input-format"]);
    }
}

pub(super) fn one_bad_line(place: &Sandbox) {
    let mut text = table(1_000);
    text.insert_str(table(500).len(), "nonsense\n");
    let answer = info(place, "x.csv", text);
    answer.code(0).says(&[
        "1,000 requests",
        "1 of the 1,002 lines (less than 0.1 %)",
        "x.csv: line 502",
        "\"nonsense\"",
    ]);
}

pub(super) fn crlf_and_byte_order_marks(place: &Sandbox) {
    let text = table(300);
    let plain = info(place, "x.csv", &text).code(0).out.clone();
    let crlf = text.replace('\n', "\r\n");
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    for (name, content) in
        [("crlf", crlf.as_bytes()), ("mark", &marked), ("both", &[b"\xef\xbb\xbf", crlf.as_bytes()].concat())]
    {
        fs::create_dir(place.path(name)).unwrap();
        place.file(&format!("{name}/x.csv"), content);
        let answer = place.iosched(&["trace", "info", &format!("{name}/x.csv")]);
        assert_eq!(answer.code(0).out, plain, "{name}");
    }
    info(place, "x.msr", "\u{feff}1,web,0,Read,0,512,9\r\n2,web,0,Write,512,512,\r\n")
        .code(0)
        .says(&["msr: 2 requests"]);
}

pub(super) fn utf_16_and_zero_bytes(place: &Sandbox) {
    let wide: Vec<u8> = table(3).encode_utf16().flat_map(u16::to_le_bytes).collect();
    info(place, "x.csv", [b"\xff\xfe", &wide[..]].concat()).refused(2, &["UTF-16", "iconv"]);
    // Zero bytes after a crash.
    info(place, "lost.csv", vec![0; 5_000]).refused(2, &["zero bytes"]);
    let text = table(300);
    let tail = [text.as_bytes(), &[0; 4_096]].concat();
    info(place, "tail.csv", tail).refused(1, &["tail.csv: line 302", "ends inside a line"]);
}

pub(super) fn unsupported_compression(place: &Sandbox) {
    info(place, "x.csv.xz", b"\xfd7zXZ\0\0\x04rest").refused(2, &["xz", "decompress it with"]);
    info(place, "x.csv.bz2", b"BZh91AY&SY....").refused(2, &["bzip2", "decompress it with"]);
    info(place, "x.zip", b"PK\x03\x04....").refused(2, &["zip", "unpack it first"]);
}

pub(super) fn wrong_file_names(place: &Sandbox) {
    if !has_program("gzip") {
        return;
    }
    let text = table(50);
    info(place, "x.csv.gz", &text).code(0).says(&["csv: 50 requests"]);
    info(place, "x.msr", &text).code(0).says(&["csv: 50 requests"]);
    let packed = through("gzip", &["-c"], text.as_bytes());
    info(place, "x.csv", packed).code(0).says(&["csv: 50 requests"]);
    info(place, "y.blktrace.0", &text).code(0).says(&["csv: 50 requests"]);
}

pub(super) fn concatenated_compressed_files(place: &Sandbox) {
    if !has_program("gzip") || !has_program("zstd") {
        return;
    }
    let text = table(400);
    let (first, second) = text.split_at(5_000);
    for (program, name) in [("gzip", "x.gz"), ("zstd", "x.zst")] {
        let both = [first, second].map(|part| through(program, &["-c"], part.as_bytes())).concat();
        info(place, name, both).code(0).says(&["400 requests"]).never(&["warning"]);
    }
}

pub(super) fn directory(place: &Sandbox) {
    place.iosched(&["trace", "info", "."]).refused(2, &["this is a directory; name a file in it"]);
    place.file("a.blktrace.0", "");
    place.file("b.msr", "");
    place.iosched(&["trace", "info", "."]).refused(2, &["such as a.blktrace or b.msr"]);
    place.iosched(&["compare", "--workload", "."]).refused(2, &["is a directory"]);
}

pub(super) fn standard_input(place: &Sandbox) {
    let text = table(200);
    fed(place, &["trace", "info", "-"], text.as_bytes()).code(0).says(&["standard input", "200 requests"]);
    fed(place, &["trace", "convert", "-", "x.blktrace.0"], text.as_bytes()).code(0);
    let events = fs::read(place.path("x.blktrace.0")).unwrap();
    // These commands read the input twice: first the requests, then the events or the used sectors.
    fed(place, &["trace", "info", "-"], &events).code(0).says(&["Q2C", "blktrace: 200 requests"]);
    fed(place, &["trace", "remap", "--capacity", "1GiB", "-", "y.csv"], &events).code(0);
    assert_eq!(place.read("y.csv").lines().count(), 201);
    let args = ["compare", "--workload", "-", "-s", "noop", "-n", "1", "-d", "sata-ssd"];
    fed(place, &args, text.as_bytes()).code(0).says(&["standard input", "200 requests"]);
    fed(place, &["trace", "info", "-"], b"").refused(2, &["standard input: the trace is empty"]);
    fed(place, &["trace", "info", "-"], &text.as_bytes()[..3_000]).refused(1, &["standard input: line"]);
}

pub(super) fn pipe(place: &Sandbox) {
    place.file("x.csv", table(200));
    let pipe = place.path("pipe");
    sh("mkfifo \"$1\"", &[&pipe]);
    let source = place.path("x.csv");
    let (from, to) = (source.clone(), pipe.clone());
    let writer = std::thread::spawn(move || fs::write(to, fs::read(from).unwrap()).unwrap());
    place.iosched(&["trace", "remap", "--capacity", "1GiB", "pipe", "y.csv"]).code(0);
    writer.join().unwrap();
    assert_eq!(place.read("y.csv").lines().count(), 201);
}

pub(super) fn missing_file(place: &Sandbox) {
    let parts = ["no.csv: there is no such file", "no.csv.0", "no.csv.blktrace.0", "no.csv.gz"];
    place.iosched(&["trace", "info", "no.csv"]).refused(2, &parts);
}
