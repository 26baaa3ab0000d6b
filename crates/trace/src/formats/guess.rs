//! A proposal for the columns of a table without a heading, from its values.
//!
//! The time is the first column whose numbers never decrease. The operation is the column with
//! words for operations. Two of the other columns of numbers are the start and the length. The
//! start has the larger numbers.

use iosched::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, SECTOR_BYTES};

use super::columns::{Columns, Delimiter, Fields, IGNORED, unquoted};
use super::csv::Csv;
use super::detect::unlike;
use super::row::op_of;
use crate::format::Format;
use crate::text::{decimal, number};

/// Minimum number of rows that shows the meaning of columns.
const ROWS_MIN: usize = 4;
/// Largest plausible length, bytes.
const LENGTH_MAX: u64 = 1 << 26;
/// Factor that turns times with decimals into whole numbers.
const DECIMALS: u64 = 1_000_000;
/// Usual number of requests per second of disks and SSDs. It decides the unit of times.
const RATE_USUAL: f64 = 1e3;
/// Units of times with their names in columns.
const UNITS: [(u64, &str); 4] = [(SECOND_NS, "s"), (MILLISECOND_NS, "ms"), (MICROSECOND_NS, "us"), (1, "ns")];
/// Seconds from 1970 to the years 2000 and 2050.
const YEARS_S: std::ops::Range<u64> = 946_684_800..2_524_608_000;

/// Returns the columns of `rows` in the form of `--columns`. Returns `None` if the values do not
/// show the meaning of the columns.
pub(super) fn columns(rows: &[&[u8]], delimiter: Delimiter) -> Option<String> {
    let plain = |field: Vec<u8>| match field.iter().filter(|b| **b == b',').count() {
        1 if delimiter != Delimiter::Byte(b',') => field.iter().map(|&b| if b == b',' { b'.' } else { b }).collect(),
        _ => field,
    };
    let split =
        |row: &&[u8]| Fields::new(row, delimiter).map(|field| Some(plain(unquoted(field)?.into_owned()))).collect();
    let table: Vec<Vec<Vec<u8>>> = rows.iter().map(split).collect::<Option<_>>()?;
    let width = table.first().filter(|_| table.len() >= ROWS_MIN)?.len();
    let column = |at: usize| table.iter().filter_map(move |row| row.get(at)).map(Vec::as_slice);
    let mut names = vec![IGNORED.to_owned(); width];
    let integers = |at: usize| column(at).map(number).collect::<Option<Vec<u64>>>();
    let times = |at: usize| {
        let scale = if column(at).any(|field| field.contains(&b'.')) { DECIMALS } else { 1 };
        let times: Vec<u64> = column(at).map(|field| decimal(field, scale)).collect::<Option<_>>()?;
        (times.is_sorted() && times.first() < times.last()).then_some((times, scale))
    };
    let is_op = |at: usize| column(at).all(|field| op_of(field).is_some());
    let is_digit = |at: usize| column(at).all(|field| matches!(field, b"0" | b"1"));
    let (time, (values, scale)) = (0..width).find_map(|at| Some((at, times(at)?)))?;
    let op = (0..width).find(|&at| is_op(at)).or_else(|| (0..width).rev().find(|&at| is_digit(at)))?;
    names[time] = format!("time_{}", unit(&values, scale)?);
    names[op] = if is_op(op) { "op" } else { "op=1:read" }.to_owned();
    // Of the other columns of numbers, the one with the largest number is the start. The length is
    // a column with sizes of requests.
    let mut others: Vec<(usize, Vec<u64>)> =
        (0..width).filter(|&at| at != time && at != op).filter_map(|at| Some((at, integers(at)?))).collect();
    others.sort_by_key(|(_, values)| std::cmp::Reverse(values.iter().max().copied()));
    let (start, starts) = others.first()?;
    let is_length = |values: &[u64]| values.iter().all(|value| (1..=LENGTH_MAX).contains(value));
    let in_bytes = |values: &[u64]| values.iter().all(|value| value.is_multiple_of(SECTOR_BYTES));
    // Numbers of devices are also small, but they are not multiples of a sector.
    let lengths = || others.iter().skip(1).filter(|(_, values)| is_length(values));
    let (length, lengths) = lengths().find(|(_, values)| in_bytes(values)).or_else(|| lengths().next())?;
    names[*length] = if in_bytes(lengths) { "length_bytes" } else { "nr_sectors" }.to_owned();
    names[*start] = if in_bytes(lengths) && in_bytes(starts) { "offset_bytes" } else { "sector" }.to_owned();
    let is_name = |at: usize| column(at).all(|field| field.first().is_some_and(u8::is_ascii_alphabetic));
    if let Some(process) = (0..width).find(|&at| names[at] == IGNORED && is_name(at)) {
        names[process] = "process".to_owned();
    }
    let names = names.join(",");
    let reads = unlike(Format::Csv, &rows.join(&b'\n'), Csv::of(Columns::parse(&names).ok()?)).is_none();
    reads.then_some(names)
}

/// Returns the unit of times that were multiplied by `scale` (above 1 if they have decimals). If
/// the first time is between 2000 and 2050 in one unit, returns this unit. Otherwise returns s for
/// times with decimals, and for whole numbers the unit with the most usual rate of requests.
fn unit(times: &[u64], scale: u64) -> Option<&'static str> {
    let (first, last) = (times.first()? / scale, *times.last()?);
    let of_epoch = UNITS.into_iter().find(|(unit_ns, _)| YEARS_S.contains(&(first / (SECOND_NS / unit_ns))));
    let span = (last - times[0]) as f64 / scale as f64;
    let distance = |unit_ns: u64| {
        let rate = times.len() as f64 / (span * unit_ns as f64 / SECOND_NS as f64);
        (rate / RATE_USUAL).ln().abs()
    };
    let usual = || UNITS.into_iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    let found = of_epoch.or_else(|| if scale > 1 { Some(UNITS[0]) } else { usual() });
    found.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_guessed_from_values() {
        let of = |row: &dyn Fn(u64) -> String, delimiter: Delimiter| {
            let rows: Vec<String> = (1..40).map(row).collect();
            columns(&rows.iter().map(String::as_bytes).collect::<Vec<_>>(), delimiter).unwrap_or_default()
        };
        let op = |at: u64| if at.is_multiple_of(3) { "W" } else { "R" };
        let place = |at: u64| at * 7_919 % 97 * 1_234_568;
        let commas = Delimiter::Byte(b',');
        let k5 = |at: u64| format!("{},0.{:03},{},{},4096", at % 3, at * 11, op(at), place(at) * 4_096);
        assert_eq!(of(&k5, commas), "-,time_s,op,offset_bytes,length_bytes");
        let sectors =
            |at: u64| format!("{}\t{}\t{}\t{}", 1_600_000_000_000 + at * 5, place(at), at % 4 * 8 + 8, op(at));
        assert_eq!(of(&sectors, Delimiter::Byte(b'\t')), "time_ms,sector,nr_sectors,op");
        let digits = |at: u64| format!("{};{};{};{}", at * 900, at % 2, place(at) + 8, 4_096 << (at % 3));
        assert_eq!(of(&digits, Delimiter::Byte(b';')), "time_us,op=1:read,sector,length_bytes");
        let names = |at: u64| format!("{} worker 42 {} {} 8192", at * 1_000_003, op(at), place(at));
        assert_eq!(of(&names, Delimiter::Blanks), "time_ns,process,-,op,sector,length_bytes");
        let comma = |at: u64| format!("{at},5;{};{};4096", op(at), place(at) * 4_096);
        assert_eq!(of(&comma, Delimiter::Byte(b';')), "time_s,op,offset_bytes,length_bytes");
        for none in ["1,2,3,4", "a,b,c,d", "0.5,R,x,8"] {
            assert_eq!(of(&|_| none.to_owned(), commas), "", "{none}");
        }
    }
}
