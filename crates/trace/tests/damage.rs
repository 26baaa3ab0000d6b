//! Tests with damaged and truncated files. The reader returns the readable data, with a warning
//! that contains the position of the damage. If the reader can read nothing, it returns an error.

use crate::common::*;
use iosched_trace::{TraceError, TraceReader};

#[test]
fn truncated_block_trace_gives_all_complete_records() {
    let data = unzstd(&samples().join("sqlite-insert.blktrace.1.zst"));
    let data = &data[..4_000];
    let ends: Vec<usize> = records(data)
        .iter()
        .scan(0, |end, record| {
            *end += record.len();
            Some(*end)
        })
        .collect();
    for length in 1..data.len() {
        let Ok(reader) = iosched_trace::EventReader::from_reader(
            std::io::Cursor::new(data[..length].to_vec()),
            "t.blktrace",
            &partial(),
        ) else {
            assert!(length < 4);
            continue;
        };
        let mut reader = reader;
        let items: Vec<_> = reader.by_ref().collect();
        let whole = ends.iter().filter(|&&end| end <= length).count();
        let read = items.iter().filter(|item| item.is_ok()).count();
        // The header of a record with truncated data can still be read.
        assert!((whole..=whole + 1).contains(&read), "{length}: {read} of {whole}");
        let at_end = ends.contains(&length);
        assert_eq!(reader.warnings().is_empty(), at_end, "{length}: {:?}", reader.warnings().kept());
        if read == 0 {
            assert!(matches!(items[..], [Err(TraceError::Unreadable { .. })]), "{length}: {items:?}");
        }
        for warning in reader.warnings().kept() {
            let last_end = ends.iter().rfind(|&&end| end <= length).copied().unwrap_or(0);
            assert_eq!(warning.place.offset_bytes, last_end as u64);
        }
    }
}

#[test]
fn reading_continues_after_damage() {
    let data = unzstd(&samples().join("sqlite-insert.blktrace.1.zst"));
    let whole = read(&data).0.len();
    let records = records(&data);
    let at = records[..500].iter().map(|record| record.len()).sum::<usize>();
    let mut damaged = data.clone();
    damaged[at..at + 1_000].fill(0xaa);
    let (requests, warnings) = read(&damaged);
    assert!(requests.len() > whole - 30, "{} of {whole}", requests.len());
    assert!(warnings[0].starts_with(&format!("input: byte {at}: ")), "{warnings:?}");
    assert!(warnings[0].ends_with("bytes that do not belong to any record"), "{warnings:?}");
    assert!(warnings[1].ends_with("records were lost during the recording"), "{warnings:?}");
}

#[test]
fn damaged_record_length_loses_no_other_request() {
    let (requests, warnings) = read(&corpus("blktrace/length"));
    let (undamaged, _) = read(&corpus("blktrace/little-endian"));
    assert_eq!(requests.len(), undamaged.len());
    assert!(warnings[0].contains("claims 65535 bytes of data, but no other record begins after"), "{warnings:?}");
}

#[test]
fn error_explains_partly_swapped_byte_order() {
    let data = unzstd(&samples().join("sqlite-insert.blktrace.1.zst"));
    let words = |data: &[u8]| data.chunks(4).flat_map(|word| word.iter().rev().copied()).collect::<Vec<u8>>();
    let magic = |record: &[u8]| [&words(&record[..4]), &record[4..]].concat();
    let of_magic = records(&data).iter().flat_map(|record| magic(record)).collect::<Vec<u8>>();
    let in_pairs = data.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect::<Vec<u8>>();
    for (changed, expected) in [
        (of_magic, "its magic number and its other fields have different byte orders"),
        (words(&data), "bytes were swapped in groups of 4"),
        (in_pairs, "were swapped in pairs, as dd conv=swab does"),
    ] {
        let error = TraceReader::from_reader(std::io::Cursor::new(changed), "t.blktrace.0", &partial()).err().unwrap();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn damaged_sequence_number_is_not_a_lost_record() {
    let data = unzstd(&samples().join("sqlite-insert.blktrace.1.zst"));
    let whole = read(&data).0.len();
    let records = records(&data);
    let at = records[..500].iter().map(|record| record.len()).sum::<usize>();
    let mut damaged = data.clone();
    damaged[at + 6] ^= 0x01;
    let (requests, warnings) = read(&damaged);
    assert_eq!(requests.len(), whole);
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.starts_with(&format!("input: byte {at}: the sequence number of a record is")), "{warning}");
    // If the whole record is missing, it counts as lost.
    let without = [&data[..at], &data[at + records[500].len()..]].concat();
    assert!(read(&without).1[0].ends_with("1 records were lost during the recording"));
}

#[test]
fn truncated_compressed_files_give_the_readable_requests() {
    let path = samples().join("pgbench.blktrace.1.zst");
    let zstd = std::fs::read(&path).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &unzstd(&path)).unwrap();
    let gzip = gzip.finish().unwrap();
    let whole = read(&zstd).0.len();
    for (name, data) in [("zstd", zstd), ("gzip", gzip)] {
        let half = &data[..data.len() / 2];
        let (requests, warnings) = read(half);
        assert!(requests.len() > whole / 4 && requests.len() < whole, "{name}: {} of {whole}", requests.len());
        assert!(
            warnings.iter().any(|warning| warning.contains("the rest of the file cannot be read")),
            "{name}: {warnings:?}"
        );
        assert!(warnings.iter().all(|warning| warning.contains("decompressed data")), "{name}: {warnings:?}");
        let mut flipped = data.clone();
        flipped[data.len() * 3 / 4] ^= 0x10;
        let mut reader = open(&flipped).unwrap();
        assert!(reader.by_ref().filter(Result::is_ok).count() > whole / 4, "{name}");
        assert!(!reader.warnings().is_empty(), "{name}");
    }
}

#[test]
fn file_without_readable_records_is_an_error() {
    let folder = Folder::new("nothing");
    let path = folder.0.join("x.blktrace.0");
    std::fs::write(&path, vec![0x55; 10_000]).unwrap();
    let items: Vec<_> = TraceReader::open(&path).unwrap().collect();
    let [Err(error)] = &items[..] else { panic!("{items:?}") };
    let error = error.to_string();
    assert!(
        error.contains("x.blktrace.0: byte 0: iosched skipped 10000 bytes that do not belong to any record"),
        "{error}"
    );
    assert!(error.ends_with("; the file has no readable record"), "{error}");

    let error = open(&[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff]).err().unwrap().to_string();
    assert!(error.contains("the rest of the file cannot be read"), "{error}");
    let error = TraceReader::open(&folder.0).err().unwrap();
    assert!(matches!(error, TraceError::Directory { .. }), "{error}");
}

#[test]
fn too_long_line_is_skipped() {
    let mut data = b"arrival_ns,op,sector,nr_sectors\n1,R,1,1\n".to_vec();
    data.extend(vec![b'x'; 10 << 20]);
    data.extend(b"\n2,W,1,1\nnonsense\n");
    let (requests, warnings) = read(&data);
    assert_eq!(requests.len(), 2);
    assert_eq!(warnings[0], "input: line 3, byte 40: a line has 10485761 bytes; it may have at most 65536");
    assert!(warnings[1].starts_with("input: line 5, byte 10485809: found \"nonsense\""), "{warnings:?}");
}

#[test]
fn stored_warnings_are_limited() {
    let mut data = b"arrival_ns,op,sector,nr_sectors\n1,R,1,1\n".to_vec();
    data.extend(b"bad\n".repeat(100_000));
    let mut reader = open(&data).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!((reader.warnings().kept().len(), reader.warnings().total()), (iosched_trace::WARNINGS_MAX, 100_000));
}

#[test]
fn arrivals_never_decrease() {
    let mut data = b"arrival_ns,op,sector,nr_sectors\n".to_vec();
    (0..20_000u64).rev().for_each(|at| data.extend(format!("{at},R,1,1\n").bytes()));
    let (requests, warnings) = read(&data);
    assert_eq!(requests.len(), 20_000);
    assert!(requests.is_sorted_by_key(|request| request.arrival));
    assert!(warnings[0].contains("only within a short window"), "{warnings:?}");
}
