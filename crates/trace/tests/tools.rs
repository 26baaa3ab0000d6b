//! Tests of the tables of tools and archives: completion times, names with blanks, numbers for
//! operations.

use crate::common::*;
use iosched::Op;
use iosched_trace::{Columns, Format, Gap, ReadOptions, TimeUnit, TraceReader, TraceRequest, summarize};

fn read_with(columns: &str, data: &[u8]) -> Vec<TraceRequest> {
    let options = ReadOptions { columns: Some(Columns::parse(columns).unwrap()), ..ReadOptions::default() };
    let reader = strictly(data, &options).unwrap();
    reader.map(Result::unwrap).collect()
}

fn arrivals(requests: &[TraceRequest]) -> Vec<(u64, Option<u64>)> {
    requests.iter().map(|request| (request.arrival.as_ns(), request.latency_ns)).collect()
}

#[test]
fn biosnoop_arrival_is_completion_minus_latency() {
    let text = b"TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\r\n\
        0.000000    C2 Compiler    4242    sdb       R 323946136  16384     7.50\r\n\
        0.008500    kworker/u8:1 [x] 7   nvme0n1   W 8          4096      8.50\r\n\
        0.020000    mysqld         4242    sdb       R 16         16384     4.00\r\n";
    let mut reader = open(text).unwrap();
    let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(
        arrivals(&requests),
        [(0, Some(7_500_000)), (7_500_000, Some(8_500_000)), (23_500_000, Some(4_000_000))]
    );
    assert_eq!((reader.format(), reader.resolution_ns()), (Format::Csv, 10_000));
    assert_eq!(requests[1].op, Op::Write);
    assert_eq!(reader.device_text(requests[1].device.unwrap()), "nvme0n1");
    assert_eq!(reader.process_names()[&7].to_text(), "kworker/u8:1 [x]");
}

#[test]
fn biosnoop_queue_time_is_part_of_latency() {
    let text = b"TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n\
        0.010 a 1 sda R 8 4096 1.500 2.500\n0.020 a 1 sda R 16 4096 0.000 2.000\n";
    let (requests, warnings) = read(text);
    assert_eq!(arrivals(&requests), [(0, Some(4_000_000)), (12_000_000, Some(2_000_000))]);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn iosnoop_with_times_is_recognised_by_its_heading() {
    let text = b"Tracing block I/O. Ctrl-C to end.\n\
        STARTs         ENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
        5982800.302061 5982800.302679 supervise    1809   W    202,1    17039600     4096       0.62\n\
        5982800.302423 5982800.302842 my daemon    1809   RM   202,1    17039608     4096       0.42\n";
    let (requests, warnings) = read(text);
    assert_eq!(arrivals(&requests), [(0, Some(620_000)), (362_000, Some(420_000))]);
    assert_eq!((requests[0].sector, requests[1].op, requests[1].nr_sectors), (17_039_600, Op::Read, 8));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn systor_17_is_recognised_by_its_heading() {
    let text = b"Timestamp,Response,IOType,LUN,Offset,Size\n1455592811.054253578,0.008407658,W,3,4096,4096\n\
        1455592811.054828167,0.015105479,R,2,8192,65536\n";
    let (requests, warnings) = read(text);
    assert_eq!(arrivals(&requests), [(0, Some(8_407_658)), (574_589, Some(15_105_479))]);
    assert_eq!((requests[1].op, requests[1].sector, requests[1].nr_sectors), (Op::Read, 16, 128));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn rounded_latencies_do_not_put_two_requests_in_flight() {
    // Only one request is in flight at a time, but latencies are rounded to 10 us.
    let text = "TIME(s)     COMM   PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
                0.008633    mysqld 42     sda     R 8          4096      8.63\n\
                0.017038    mysqld 42     sda     R 16         4096      8.41\n\
                0.025444    mysqld 42     sda     R 24         4096      8.41\n\
                0.033851    mysqld 42     sda     R 32         4096      8.41\n";
    let summary = summarize(&mut open(text.as_bytes()).unwrap()).unwrap();
    let json = serde_json::to_value(&summary).unwrap();
    let most: Vec<_> = json["over_time"].as_array().unwrap().iter().map(|bin| &bin["depth_max"]).collect();
    assert!(most.iter().all(|most| **most == 1), "{json}");
}

#[test]
fn fio_latency_log_with_offsets_is_recognised() {
    for text in [
        &b"20, 8634305, 1, 4096, 3300663296, 0x0000\n30, 8411835, 0, 8192, 4096, 0x0000\n"[..],
        &b"20, 8634305, 1, 4096, 3300663296\n30, 8411835, 0, 8192, 4096\n"[..],
    ] {
        let (requests, warnings) = read(text);
        assert_eq!(arrivals(&requests), [(0, Some(8_634_305)), (10_222_470, Some(8_411_835))]);
        assert_eq!((requests[0].op, requests[1].op, requests[1].nr_sectors), (Op::Write, Op::Read, 16));
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[test]
fn columns_option_maps_words_to_operations() {
    for columns in ["time_ms,-,sector,nr_sectors,op=1:read", "time_ms,-,sector,nr_sectors,op=0:write/1:read"] {
        let requests = read_with(columns, b"3.5 0 8 16 0\n6.5 0 24 8 1\n");
        assert_eq!((requests[0].op, requests[1].op), (Op::Write, Op::Read));
        assert_eq!(requests[1].arrival.as_ns(), 3_000_000);
    }
    let requests = read_with("end_us,latency_us,op=in:read/out:write,offset_kib,length_mib", b"100,50,out,4,1\n");
    assert_eq!((requests[0].op, requests[0].sector, requests[0].nr_sectors), (Op::Write, 8, 2_048));
}

#[test]
fn column_errors_name_the_cause() {
    let problem = |columns: &str| Columns::parse(columns).unwrap_err().to_string();
    assert!(problem("end_s,op,sector,nr_sectors").contains(
        "the column end_s gives the time of the completion, but not of the submission; add a column with the latency"
    ));
    assert!(problem("time_s,op=1,sector,nr_sectors").contains("op=0:write/1:read"));
    assert!(problem("time_s,op=1:read/1:write,sector,nr_sectors").contains("exactly once"));
    assert!(
        problem("time_s,pid=1:read,op,sector,nr_sectors")
            .contains("you can give the meaning of values only for the column op")
    );
    assert!(problem("time_s,time_ms,op,sector,nr_sectors,latency_s").contains("have the same meaning"));
}

#[test]
fn unknown_words_for_operations_are_bad_lines() {
    let columns = Columns::parse("time_ms,op=1:read,sector,nr_sectors").unwrap();
    let options = ReadOptions { columns: Some(columns), ..ReadOptions::default() };
    let mut reader = TraceReader::from_reader(&b"1,1,8,8\n2,7,8,8\n"[..], "input", &options).unwrap();
    let read = reader.by_ref().filter(Result::is_ok).count();
    assert_eq!(read, 1);
    let warning = reader.warnings().kept()[0].to_string();
    assert!(warning.contains("an operation (1, 0) in column 2, op=1:read"), "{warning}");
}

#[test]
fn unknown_format_errors_name_the_likely_cause() {
    let cause = |text: &[u8]| open(text).err().unwrap().to_string();
    for (text, expected) in [
        ("/dev/sda read 4096 4096\n/dev/sda write 8192 512\n", "the first line `fio version 2 iolog` is missing"),
        ("10 /dev/sda read 4096 4096\n", "the first line `fio version 3 iolog` is missing"),
        ("3.38 0 194945240 128 0\n6.59 0 75143136 8 1\n", "--columns time_ms,device,sector,nr_sectors,op=1:read"),
        ("TIME(ms)     DISK    COMM    PID    LAT(ms)\n611 nvme0n1 bash 4179 10\n", "has no sectors"),
        ("1 2 3 4 5 6\n2 3 4 5 6 7\n", "it is a table of 6 columns separated by blanks"),
        ("time,op,lba,size\n1.5,R,8,4096\n2.5,W,8,4096\n", "perhaps --columns time_s,op,sector,length_bytes"),
        ("timestamp_us,pid,rw,offset,bytes\n1,2,w,8,4096\n2,3,r,8,4096\n", "time_us,pid,op,offset_bytes,length_bytes"),
        (
            "ts_ms;type;lba;nr_sectors;pid\n1;r;8;8;1\n",
            "name its columns with --columns, perhaps time_ms,op,sector,nr_sec",
        ),
        ("     usecs               : count     distribution\n  0 -> 1 : 0 | |\n", "it is a histogram of biolatency"),
        ("12:00 pread64(5, \"\\0\", 8192, 0) = 8192\n12:00 fsync(5) = 0\n", "system calls, as strace prints it"),
        ("0.001234567 D R 8 16\n0.001334567 C R 8 16\n", "it looks like output of blkparse -f"),
        ("8,0 3 0.001234567 Q RS 8 16 x\n8,0 3 0.001234568 D RS 8 16 x\n", "it looks like output of blkparse -f"),
        (" r  b   swpd   free   buff  cache   si   so    bi    bo\n 1  0 0 1 2 3 0 0 1 20\n", "table of vmstat"),
        ("at,where,what,much\n1,4096,x,512\n2,8192,y,512\n", "it is a table of 4 columns separated by commas"),
        (
            "0,5,512,W,0.5\n0,5,512,W\n0,5,512\n0,5,512\n0,5\n",
            "some of its lines are records of spc, but line 2 is not",
        ),
        ("<!DOCTYPE html>\n<html>\n", "it is a page or document"),
        (
            "1;usr;0;Read;4096;512;41\n2;usr;0;Write;8192;512;42\n",
            "it looks like msr with semicolons in place of commas; convert it with tr ';' ','",
        ),
        ("1,28E+17,R,8,9\n1,28E+17,W,8,9\n", "a spreadsheet has rounded its numbers"),
        ("mysqld(42): W   /srv/a\nmysqld(42): RO   /srv/b\n", "it is the output of fatrace"),
        (
            "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 16 sdb 1 2 3 4 5 6 7 8 9 10 11\n",
            "it has the counters of /proc/diskstats",
        ),
        ("3;fio-3.33;t;0;0;4194304;69905\n", "it is a result of fio, not a trace"),
        ("t: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=libaio, iodepth=16\n", "it is a result of fio"),
        ("usr sys idl wai stl| read  writ| recv  send\n  1   1  90   8   0| 480k 2400k|   0     0\n", "dstat"),
        ("       total merged sectors      ms  total merged sectors\nsda 1 2 3 4 5 6 7 8 9 0\n", "vmstat -d"),
        ("PID    COMM   D MAJ MIN DISK  I/O  Kbytes  AVGms\n14501  cksum  R 202 1 xvda1 361 28832 3.39\n", "biotop"),
        ("TIME     COMM  PID  T BYTES OFF_KB LAT(ms) FILENAME\n06:35:01 cron 1 R 1249 0 16.05 a\n", "ext4slower"),
        ("   ALL   MIN   AVG   MAX   N\nQ2Q 0.000001000 0.001 0.1 1000\n", "it is the output of btt"),
        ("[OVERALL], RunTime(ms), 10110\n[READ], Operations, 501\n", "it is the result of YCSB"),
        ("Smart Log for NVME device:nvme0n1 namespace-id:ffffffff\ntemperature : 38 C\n", "the health of a disk"),
        ("{\"jobs\": []}\n", "it is JSON"),
        ("1, 40, 0, 4096\n2, 41, 0, 4096\n", "it is a log of fio without offsets"),
        (
            "  bash 812 [001] 205791.412006: sched:sched_switch: prev_comm=bash\n",
            "iosched found no readable block events at its beginning",
        ),
        (
            "Linux 5.4.0 (x)  01/01/2021  _x86_64_ (2 CPU)\n\nDevice  tps  kB_read/s  kB_wrtn/s  kB_read  kB_wrtn\n\
             sda 12.00 100.00 50.00 100000 50000\n",
            "iostat without -x",
        ),
        ("device r/s w/s kr/s kw/s ms/r ms/w qlen %b\nada0 12 30 512.0 1200.0 4 12 2 35\n", "FreeBSD or Solaris"),
    ] {
        let message = cause(text.as_bytes());
        assert!(message.lines().next().unwrap().contains(expected), "{expected}: {message}");
    }
}

#[test]
fn unknown_format_errors_name_a_remedy() {
    let record = |name: &str, i: u64| match name {
        "biosnoop" => format!("{}.5  C2 Compiler  42  sda  R  {}  4096  3.25", i, i * 8),
        "msr" => format!("{},usr,0,Read,{},4096,41", 128_166_372_003_061_629 + i, i * 4_096),
        "fiu" => format!("{} 697 postgres {} 8 R 8 0 bd5f7c", i * 5_000, i * 8),
        "alibaba" => format!("419,R,{},4096,{}", i * 4_096, 1_577_808_000_000_000_000 + i),
        "tencent" => format!("{}.{i:03},{},8,0,1063", 1_538_323_200 + i, i * 8),
        "tencent whole" => format!("{},{},8,0,1063", 1_538_323_200 + i, i * 8),
        "tencent with letters" => format!("{},{},8,R,1063", 1_538_323_200 + i, i * 8),
        "systor" => format!("1455592811.{i:09},0.0084,W,3,{},4096", i * 4_096),
        "iosnoop" => format!("5982800.{i:06} 5982801.{i:06} my job 42 R 202,1 {} 4096 0.62", i * 8),
        other => panic!("{other}"),
    };
    let lines = |name: &str| (0..8).map(|i| record(name, i) + "\n").collect::<String>();
    let heading = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
    let marked = |mark: &dyn Fn(usize) -> String, text: &str| {
        text.lines().enumerate().map(|(at, line)| format!("{}{line}\n", mark(at))).collect::<String>()
    };
    for (text, expected) in [
        (format!("db:~# biosnoop\n{heading}{}", lines("biosnoop")), "from line 2 on, it looks like csv"),
        (format!("# biosnoop\nab\ncd\n{heading}{}", lines("biosnoop")), "remove lines 1 to 3, for example with tail"),
        (format!("ts pid process lba size rw major minor md5\n{}", lines("fiu")), "from line 2 on, it looks like fiu"),
        (
            marked(&|_| "> ".to_owned(), &lines("msr")),
            "msr with quotation marks (>) before each line; remove these marks with sed",
        ),
        (marked(&|at| format!("{}:", at + 1), &lines("msr")), "msr with line numbers"),
        (lines("fiu").replace(' ', ","), "fiu with commas in place of blanks; convert it with tr ',' ' '"),
        (lines("msr").replace(',', " "), "msr with blanks in place of commas"),
        (lines("tencent whole").replace(',', "\t"), "tencent with tabs in place of commas"),
        (lines("alibaba"), "alibaba, but with times in another form; if the times are in ns, add --time-unit ns"),
        (lines("tencent"), "tencent, but with times in another form; if the times are in s, add --time-unit s"),
        (lines("tencent with letters"), "it looks like spc, but its lengths are below 512 bytes"),
        (
            lines("biosnoop"),
            "the table of biosnoop without its heading; name the columns: --columns completed_s,process",
        ),
        (lines("systor"), "the table of Systor '17 without its heading"),
        (lines("iosnoop"), "the table of iosnoop -ts without its heading"),
        ("COMM PID TYPE DEV BLOCK BYTES LATms\nx 4 R 8,0 8 4096 1\n".to_owned(), "iosnoop without times"),
        (
            marked(&|_| String::new(), &lines("msr")).replace(',', "\",\"").replace('\n', "\"\n\"") + "\"",
            "msr with fields in quotes; remove the quotes with tr -d",
        ),
        (
            format!("{heading}{}", lines("biosnoop")).replace(' ', "\u{a0} "),
            "csv with the blanks of a web page (no-break spaces); convert these blanks with sed",
        ),
        (
            (1..9).map(|i| format!("{},{}.5,R,{},4096\n", i % 3, i, i * 7_919 % 97 * 40_960)).collect(),
            "their meaning is unknown; name the columns, perhaps --columns -,time_s,op,offset_bytes,length_bytes",
        ),
        (
            (1..9).map(|i| format!("{i}.5,{},4096\n", i * 4_096)).collect(),
            "a table of 3 columns separated by commas. A trace needs a time, an operation, a start and a length",
        ),
        ("[global]\nbs=4k\n[a]\nrw=read\n".to_owned(), "a job file of fio"),
        ("PERFILE2 and more\n".to_owned(), "print its events with perf script"),
        ("{\n \"fio version\" : \"fio-3.28\",\n \"jobs\" : []\n}\n".to_owned(), "a result of fio"),
        ("@usecs:\n[256, 512)   2 |@@   |\n[512, 1K)   10 |@@@@ |\n".to_owned(), "it is a histogram"),
        ("[    1.234567] sda: a\n[   12.345678] sdb: b\n".to_owned(), "the log of the kernel"),
        (
            "Device r/s w/s rkB/s aqu-sz %util\nsda 1.00 x 2.00 0.10 5.00\n".to_owned(),
            "a table of rates from iostat or sar. However, \"x\" in line 2 is not a number",
        ),
        (
            "Device r/s w/s rkB/s aqu-sz %util\nsda 1.00 2.00\n".to_owned(),
            "However, line 2 has 3 values, but the heading has 6",
        ),
        ("fio version 1 iolog\nrw, 0, 4096, 512\n".to_owned(), "it is version 1 of fio's I/O log"),
        ("{\"time_us\": 1, \"op\": \"R\"}\n".to_owned(), "convert its objects to a table"),
        (
            "r/s rkB/s r_await rareq-sz Device\n12 480.0k 9.00 40.0k sda\n".to_owned(),
            "a part of a table of iostat -h or sar -h",
        ),
    ] {
        let message = open(text.as_bytes()).err().unwrap_or_else(|| panic!("read: {text}")).to_string();
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn suggested_columns_read_the_file() {
    let text = "0.5 C2 Compiler 42 sda R 8 4096 3.25\n1.5 x 43 sda W 16 4096 3.25\n";
    let message = open(text.as_bytes()).err().unwrap().to_string();
    let columns = message.split("--columns ").nth(1).unwrap();
    assert_eq!(
        arrivals(&read_with(columns, text.as_bytes())),
        [(0, Some(3_250_000)), (1_000_000_000, Some(3_250_000))]
    );
}

#[test]
fn headings_with_units_are_read() {
    let essence = |text: &str| {
        let (requests, _) = read(text.as_bytes());
        requests.iter().map(|r| (r.arrival.as_ns(), r.op, r.sector, r.nr_sectors, r.latency_ns)).collect::<Vec<_>>()
    };
    let expected = [(0, Op::Read, 8, 8, Some(100_000)), (2_500_000, Op::Write, 16, 16, Some(200_000))];
    for text in [
        "Time (ms),Op,Offset (bytes),Size (bytes),Latency (us)\n0,Read,4096,4096,100\n2.5,Write,8192,\"8,192\",200\n",
        "time [s];operation;offset [KiB];length [KiB];latency (ms)\n0;R;4;4;0,1\n0,0025;W;8;8;0,2\n",
        "Timestamp_us\tR/W\tSector\tSectors\tlat_ns\n0\tr\t8\t8\t100000\n2500\tw\t16\t16\t200000\n",
    ] {
        assert_eq!(essence(text), expected, "{text}");
    }
}

#[test]
fn errors_of_unknown_operations_suggest_columns() {
    let text = "time_us,op,sector,nr_sectors\n0,1,8,8\n5,0,8,8\n";
    let error = strictly(text.as_bytes(), &ReadOptions::default()).unwrap().find_map(Result::err).unwrap();
    let expected = "give numbers their meaning, such as --columns time_us,op=1:read,sector,nr_sectors";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(read_with("time_us,op=1:read,sector,nr_sectors", text.as_bytes()).len(), 2);
    let text = b"time_us,op,sector,nr_sectors\n0,In,8,8\n5,Out,8,8\n";
    let error = strictly(text, &ReadOptions::default()).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("--columns time_us,op=In:read/OTHER:write,sector,nr_sectors"), "{error}");
    for (read_word, write_word) in [("Reads", "Writes"), ("rd", "wr"), ("pread64", "PWRITE64")] {
        let text = format!("time_us,op,sector,nr_sectors\n0,{read_word},8,8\n5,{write_word},8,8\n");
        let ops: Vec<Op> = read(text.as_bytes()).0.iter().map(|request| request.op).collect();
        assert_eq!(ops, [Op::Read, Op::Write]);
    }
}

#[test]
fn clock_times_are_parsed_and_may_cross_midnight() {
    let of = |rows: &[&str]| {
        let rows: String = rows.iter().map(|time| format!("\"{time}\",R,8,8\n")).collect();
        let (requests, warnings) = read(format!("time_s,op,sector,nr_sectors\n{rows}").as_bytes());
        assert!(warnings.is_empty(), "{warnings:?}");
        requests.iter().map(|request| request.arrival.as_ns() / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(of(&["10:00:01.5", "10:00:02.750"]), [0, 1_250]);
    assert_eq!(of(&["23:59:59,9", "00:00:00,1", "00:00:01,0"]), [0, 200, 1_100]);
    assert_eq!(of(&["2026-02-28 23:59:59.5", "2026-03-01T00:00:00Z"]), [0, 500]);
    let error = strictly(b"time_s,op,sector,nr_sectors\n10:00,R,8,8\n", &ReadOptions::default()).unwrap();
    let error = error.into_iter().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("a clock time such as 23:59:59.5 or 2026-11-20T23:59:59.5"), "{error}");
}

#[test]
fn values_may_have_units_exponents_or_hexadecimal_digits() {
    let expected = [(0, Op::Read, 2_048, 8, Some(294_000)), (2_250_000_000, Op::Write, 4_096, 256, None)];
    for text in [
        "time_s,op,offset_bytes,length_bytes,latency_ms\n1.5s,R,1M,4K,294us\n3.75s,W,2 MiB,128KB,\n",
        "time_s,op,offset_bytes,length_bytes,latency_ms\n1.5e+00,R,1.048576e+06,4096.0,2.94e-01\n\
         3.75e+00,W,2097152.0,1.31072E+05,NaN\n",
        "time_ms,op,sector,nr_sectors,latency_us\n1500,R,0x800,0x8,294\n3750,W,0x1000,0x100,-\n",
        // A repeated heading, a row that ends with a comma, and a row without its last column.
        "time_ms,op,sector,nr_sectors,latency_us\n1500,R,2048,8,294,\n\
         time_ms,op,sector,nr_sectors,latency_us\n3750,W,4096,256\n",
        // Completions instead of latencies.
        "start_ms,end_ms,op,offset_mib,length_kib\n1500,1500.294,R,1,4\n3750,,W,2,128\n",
        "time_ms;op;offset_bytes;length_bytes;latency_us\n1.500,0;R;1.048.576;4096;294\n3.750,0;W;2.097.152;131072;\n",
    ] {
        let (requests, warnings) = read(text.as_bytes());
        let found: Vec<_> =
            requests.iter().map(|r| (r.arrival.as_ns(), r.op, r.sector, r.nr_sectors, r.latency_ns)).collect();
        assert_eq!(found, expected, "{text}");
        assert!(warnings.is_empty(), "{text}: {warnings:?}");
    }
    // A last line without a newline is truncated.
    let cut = b"time_ms,op,sector,nr_sectors,latency_us\n0,R,8,16,5\n1,R,8,1";
    assert!(strictly(cut, &ReadOptions::default()).unwrap().any(|request| request.is_err()));
    let rounded = "time_ms,op,offset_bytes,length_bytes\n0,R,1.28E+11,4096\n1,R,1.28E+11,4096\n";
    let error = strictly(rounded.as_bytes(), &ReadOptions::default()).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains("a spreadsheet has rounded this number"), "{error}");
}

#[test]
fn unix_times_in_another_unit_get_a_warning() {
    let text = |times: &dyn Fn(u64) -> u64| -> String {
        (0..60).map(|i| format!("419,R,{i}000,4096,{}\n", times(i))).collect()
    };
    let doubts = |times: &dyn Fn(u64) -> u64| doubts_of(&text(times), &ReadOptions::default());
    assert!(
        doubts(&|i| 1_577_808_000 + i / 20)
            .contains("the unit of the times is s, not us; in this case, add --time-unit s")
    );
    assert!(doubts(&|i| 1_577_808_000_000 + i * 5).contains("ms, not us; in this case, add --time-unit ms"));
    assert_eq!(doubts(&|i| 1_577_808_000_000_000 + i * 5_003), "");
    assert_eq!(doubts(&|i| i * 5_003), "", "these times begin at 0");
}

#[test]
fn numbers_of_spreadsheets_and_web_pages_are_parsed() {
    let heading = "time_s;op;offset_bytes;length_bytes\r\n";
    for text in [
        format!("{heading}1,5;R;1 024 000;4 096\r\n3,75;W;0;512\r\n"),
        format!("sep=;\r\n{heading}1,500;R;1,024,000;4,096\r\n3,750;W;0;512\r\n"),
        format!("{heading}1.5;R;1\u{a0}024\u{a0}000;4\u{a0}096\r\n3.75;W;0;512\r\n"),
        "time_ms,op,offset_bytes,length_bytes\n\"1,500\",R,\"1,024,000\",\"4,096\"\n\"3,750.0\",W,0,512\n".to_owned(),
        "time_s\top\toffset_bytes\tlength_bytes\n1,5\tR\t1'024'000\t4'096\n3,75\tW\t0\t512\n".to_owned(),
        "| time_s | op | offset_bytes | length_bytes |\n|---|:--:|---:|---:|\n| 1.5 | R | 1,024,000 | 4,096 |\n\
         | 3.75 | W | 0 | 512 |\n"
            .to_owned(),
        "+--------+----+--------------+--------------+\n| time_s | op | offset_bytes | length_bytes |\n\
         +--------+----+--------------+--------------+\n| 1.5 | R | 1024000 | 4096 |\n| 3.75 | W | 0 | 512 |\n\
         +--------+----+--------------+--------------+\n"
            .to_owned(),
    ] {
        let mut reader = open(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let read: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        let places: Vec<_> = read.iter().map(|r| (r.arrival.as_ns(), r.op, r.sector, r.nr_sectors)).collect();
        assert_eq!(places, [(0, Op::Read, 2_000, 8), (2_250_000_000, Op::Write, 0, 1)], "{text}");
        assert!(reader.warnings().kept().is_empty(), "{text}: {:?}", reader.warnings().kept());
    }
}

#[test]
fn ambiguous_comma_is_an_error() {
    for (text, found) in [
        ("time_ms\top\tsector\tnr_sectors\n1,234\tR\t8\t8\n", "1,234"),
        ("time_s;op;offset_bytes;length_bytes\n1;R;4096,5;512\n", "4096,5"),
        ("time_s;op;offset_bytes;length_bytes\n1.23,5;R;4096;512\n", "1.23,5"),
    ] {
        let problem = open(text.as_bytes()).unwrap().find_map(Result::err).unwrap().to_string();
        assert!(problem.contains(&format!("found {found:?}")), "{problem}");
    }
}

#[test]
fn issues_become_requests_if_submissions_are_missing() {
    let text = b"259,2 0 3 0.001 4020 D R 200 + 16 [java]\n259,2 2 6 0.002 661 D WS 400 + 16 [C2 Compiler]\n\
        259,2 3 7 0.004 0 C WS 400 + 16 [0]\n259,2 1 8 0.005 0 C R 200 + 16 [0]\n";
    let (requests, warnings) = read(text);
    assert_eq!(arrivals(&requests), [(1_000_000, Some(4_000_000)), (2_000_000, Some(2_000_000))]);
    assert_eq!((requests[0].pid, requests[1].op), (4020, Op::Write));
    assert!(warnings.is_empty(), "{warnings:?}");
    let mut reader = open(text).unwrap();
    assert_eq!(reader.by_ref().count(), 2);
    let completeness = reader.completeness();
    assert!(matches!(completeness.gaps(), [Gap::NoSubmissions { issued: 2 }]), "{completeness:?}");
}

#[test]
fn insertions_take_precedence_over_issues() {
    let text = b"8,0 0 1 0.001 7 I R 200 + 16 [a]\n8,0 0 2 0.002 7 D R 200 + 16 [a]\n8,0 0 3 0.003 7 D W 800 + 8 [a]\n\
        8,0 0 4 0.004 0 C R 200 + 16 [0]\n8,0 0 5 0.006 0 C W 800 + 8 [0]\n";
    let (requests, _) = read(text);
    assert_eq!(arrivals(&requests), [(1_000_000, Some(3_000_000)), (3_000_000, Some(3_000_000))]);
}

fn with_unit(unit: TimeUnit) -> ReadOptions {
    ReadOptions { time_unit: Some(unit), ..ReadOptions::default() }
}

#[test]
fn time_unit_option_replaces_the_default_of_the_format() {
    for (text, format, unit, arrival_ns, resolution_ns) in [
        ("4 0 79 8 0\n7 0 18 8 1\n", Format::Mqsim, TimeUnit::Ms, 3_000_000, 1_000_000),
        ("4 0 79 8 0\n7 0 18 8 1\n", Format::Mqsim, TimeUnit::Us, 3_000, 1_000),
        ("3.381531 0 194945240 128 0\n6.592533 0 75143136 8 1\n", Format::Mqsim, TimeUnit::Ms, 3_211_002, 1),
        ("419,R,8792,4096,15\n419,R,8792,4096,16\n", Format::Alibaba, TimeUnit::S, 1_000_000_000, 1_000_000_000),
        ("1538323200,8,8,0,1\n1538323207,8,8,0,1\n", Format::Tencent, TimeUnit::Ms, 7_000_000, 1_000_000),
        ("10 697 a 45 8 R 8 0\n12 697 a 45 8 R 8 0\n", Format::Fiu, TimeUnit::Us, 2_000, 1_000),
        ("fio version 3 iolog\n0 a read 0 512\n5 a read 0 512\n", Format::FioV3, TimeUnit::Ms, 5_000_000, 1_000_000),
        (
            "fio version 2 iolog\na read 0 512\na wait 5\na read 0 512\n",
            Format::FioV2,
            TimeUnit::Ms,
            5_000_000,
            1_000_000,
        ),
    ] {
        for format_given in [None, Some(format)] {
            let options = ReadOptions { format: format_given, ..with_unit(unit) };
            let mut reader = strictly(text.as_bytes(), &options).unwrap();
            let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
            assert_eq!((reader.format(), reader.resolution_ns()), (format, resolution_ns), "{text}");
            assert_eq!(requests[1].arrival.since(requests[0].arrival), arrival_ns, "{text}");
        }
    }
}

#[test]
fn time_unit_option_is_an_error_if_the_format_fixes_the_unit() {
    for format in Format::ALL.into_iter().filter(|format| !format.has_bare_times()) {
        let error = strictly(b"8", &ReadOptions { format: Some(format), ..with_unit(TimeUnit::Ms) }).err().unwrap();
        let expected =
            format!("input: times in the format {format} have a fixed unit; --time-unit is only for formats");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

fn doubts_of(text: &str, options: &ReadOptions) -> String {
    let summary = iosched_trace::summarize(&mut strictly(text.as_bytes(), options).unwrap()).unwrap();
    summary.oddities.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn warnings_also_apply_with_the_time_unit_option() {
    let text: String = (0..400).map(|at| format!("{} 0 {} 8 1\n", at * 4, at * 100)).collect();
    let doubts = |options: &ReadOptions| doubts_of(&text, options);
    let in_bytes: String = (0..400u64).map(|at| format!("{} 0 {} 4096 1\n", at * 4, at * 700_000_000)).collect();
    assert!(doubts_of(&in_bytes, &with_unit(TimeUnit::Ms)).contains("Offsets may be in bytes, not sectors"));
    assert!(
        doubts(&ReadOptions::default()).contains("the unit of the times may be ms, not ns; if so, add --time-unit ms")
    );
    assert_eq!(
        doubts(&with_unit(TimeUnit::Ms)),
        "the recorded times are exact only to 1 ms; a replay spreads the arrivals at random within this time, and \
         keeps the order of the trace"
    );
}
