//! Readers of programs that print lines and tables.

use iosched_workload::app::{Better, Figure};

use super::figure;

/// Largest distance, in characters, between the end of a number and the end of its column's
/// heading.
const COLUMN_SLACK: usize = 4;

/// Returns the metrics of `IOzone`'s table. The table has a column per test, with headings of one
/// or two lines. A number and its heading end in the same column. Each line of numbers (a file size
/// and a record size) gives separate metrics.
pub(super) fn iozone(output: &str) -> Vec<Figure> {
    let lines: Vec<&str> = output.lines().collect();
    let Some(head) = lines.iter().position(|line| line.contains("reclen") && line.contains("write")) else {
        return Vec::new();
    };
    let unit = if output.contains("operations per second") { "1/s" } else { "KB/s" };
    let above = words(head.checked_sub(1).map_or("", |at| lines[at]));
    let columns: Vec<(String, usize)> = words(lines[head])
        .into_iter()
        .map(|(word, end)| match above.iter().find(|(_, other)| other.abs_diff(end) <= 1) {
            Some((first, _)) => (format!("{first} {word}"), end),
            None => (word.to_owned(), end),
        })
        .collect();
    let rows: Vec<Vec<(&str, usize)>> = lines[head + 1..]
        .iter()
        .map(|line| words(line))
        .take_while(|row| row.iter().all(is_number) && row.len() != 1)
        .collect();
    let rows: Vec<_> = rows.into_iter().filter(|row| row.len() > 2).collect();
    let mut figures = Vec::new();
    for row in &rows {
        let size = if rows.len() > 1 { format!(" {}x{}", row[0].0, row[1].0) } else { String::new() };
        for (number, end) in &row[2..] {
            let nearest = columns.iter().min_by_key(|(_, column)| column.abs_diff(*end));
            let column = nearest.filter(|(_, column)| column.abs_diff(*end) <= COLUMN_SLACK);
            if let (Some((name, _)), Ok(value)) = (column, number.parse::<f64>()) {
                figures.push(figure(&format!("{name}{size}"), unit, value, Better::Higher));
            }
        }
    }
    figures
}

fn is_number((word, _): &(&str, usize)) -> bool {
    word.parse::<f64>().is_ok()
}

/// Returns the words of a line, each with the position of its end.
fn words(line: &str) -> Vec<(&str, usize)> {
    line.split_whitespace().map(|word| (word, word.as_ptr().addr() - line.as_ptr().addr() + word.len())).collect()
}

/// Returns the metrics of `fs_mark`'s table: mean and smallest number of files per second of its
/// iterations.
pub(super) fn fs_mark(output: &str) -> Vec<Figure> {
    let mut lines = output.lines().skip_while(|line| !line.contains("Files/sec"));
    let Some(column) = lines.next().and_then(|head| head.split_whitespace().position(|word| word == "Files/sec"))
    else {
        return Vec::new();
    };
    let rates: Vec<f64> = lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|row| row.len() > column && row[0].parse::<u64>().is_ok())
        .filter_map(|row| row[column].parse().ok())
        .collect();
    if rates.is_empty() {
        return Vec::new();
    }
    let mut figures = vec![figure("files", "files/s", crate::stat::mean(&rates), Better::Higher)];
    if rates.len() > 1 {
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        figures.push(figure("files least", "files/s", least, Better::Higher));
    }
    figures
}

/// Returns the metrics of fdtree's output: lines such as "File creates per second = 95", and the
/// KiB per second in the lines after them.
pub(super) fn fdtree(output: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut before = String::new();
    for line in output.lines() {
        let Some((what, value)) = line.split_once('=') else { continue };
        let (Some(what), Ok(value)) = (what.trim().strip_suffix("per second"), value.trim().parse::<f64>()) else {
            continue;
        };
        if what.trim() == "KiB" {
            figures.push(figure(&before, "KiB/s", value, Better::Higher));
        } else {
            what.trim().clone_into(&mut before);
            figures.push(figure(&before, "1/s", value, Better::Higher));
        }
    }
    figures
}

/// Returns the rate in dd's last line: "1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s".
/// The rate is computed from bytes and time, because the printed rate is rounded.
pub(super) fn dd(errors: &str) -> Vec<Figure> {
    let rate = |line: &str| {
        let (bytes, rest) = line.split_once(" bytes ")?;
        let (_, time) = rest.split_once("copied, ")?;
        let (bytes, seconds) =
            (bytes.trim().parse::<f64>().ok()?, time.split_whitespace().next()?.parse::<f64>().ok()?);
        (seconds > 0.0).then_some(bytes / seconds / 1e6)
    };
    errors.lines().rev().find_map(rate).map(|rate| figure("rate", "MB/s", rate, Better::Higher)).into_iter().collect()
}

/// Returns pgbench's transactions per second and latencies.
pub(super) fn pgbench(output: &str) -> Vec<Figure> {
    let mut figures = Vec::new();
    for line in output.lines() {
        let Some((what, value)) = line.split_once(" = ") else { continue };
        let Some(Ok(value)) = value.split_whitespace().next().map(str::parse::<f64>) else { continue };
        match what.trim() {
            // Older versions print the rate with and without connection times.
            "tps" if !line.contains("including") => figures.push(figure("tps", "1/s", value, Better::Higher)),
            "latency average" => figures.push(figure("latency mean", "ms", value, Better::Lower)),
            "latency stddev" => figures.push(figure("latency deviation", "ms", value, Better::Lower)),
            _ => {}
        }
    }
    figures.sort_by_key(|figure| figure.name != "tps");
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(figures: &[Figure]) -> Vec<(&str, &str, f64)> {
        figures.iter().map(|figure| (figure.name.as_str(), figure.unit.as_ref(), figure.value)).collect()
    }

    #[test]
    fn iozone_columns_are_identified_by_position() {
        let output = "\
\tOutput is in kBytes/sec
                                                              random    random     bkwd    record    stride
              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread
           65536       4   191983   245119                     54321     12345

iozone test complete.
";
        let found = iozone(output);
        assert_eq!(
            shown(&found),
            [
                ("write", "KB/s", 191_983.0),
                ("rewrite", "KB/s", 245_119.0),
                ("random_read", "KB/s", 54_321.0),
                ("random_write", "KB/s", 12_345.0)
            ]
        );
    }

    #[test]
    fn metrics_of_several_iozone_lines_have_their_sizes() {
        let output = "
              kB  reclen    write  rewrite
              64       4   100000   200000
              64       8   110000   210000
";
        let names: Vec<String> = iozone(output).into_iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["write_64x4", "rewrite_64x4", "write_64x8", "rewrite_64x8"]);
    }

    #[test]
    fn fs_mark_has_the_mean_of_its_iterations() {
        let output = "\
FSUse%        Count         Size    Files/sec     App Overhead
    81           50         4096       1165.5              266
    81          100         4096       1530.5              248
";
        assert_eq!(shown(&fs_mark(output)), [("files", "files/s", 1348.0), ("files_least", "files/s", 1165.5)]);
    }

    #[test]
    fn fdtree_has_rates_of_each_part() {
        let output = "\
DIRECTORY CREATE TIME IN, OUT, TOTAL = 0, 25, 25
        Directory creates per second =  444
FILE CREATE TIME IN, OUT, TOTAL      = 25, 1187, 1162
        File creates per second      =  95
        KiB per second               =  3824
";
        let found = fdtree(output);
        assert_eq!(
            shown(&found),
            [("directory_creates", "1/s", 444.0), ("file_creates", "1/s", 95.0), ("file_creates", "KiB/s", 3824.0)]
        );
    }

    #[test]
    fn dd_output_of_coreutils_and_busybox_is_read() {
        let coreutils = "20+0 records in\n20+0 records out\n20971520 bytes (21 MB, 20 MiB) copied, 0.5 s, 42 MB/s\n";
        assert_eq!(shown(&dd(coreutils)), [("rate", "MB/s", 41.943_04)]);
        let busybox = "20+0 records in\n20+0 records out\n20971520 bytes (20.0MB) copied, 0.500000 seconds, 40.0MB/s\n";
        assert_eq!(shown(&dd(busybox)), [("rate", "MB/s", 41.943_04)]);
    }

    #[test]
    fn pgbench_output_of_old_and_new_versions_is_read() {
        let new = "latency average = 1.234 ms\nlatency stddev = 0.5 ms\ninitial connection time = 2.5 ms\ntps = 810.1 (without initial connection time)\n";
        assert_eq!(
            shown(&pgbench(new)),
            [("tps", "1/s", 810.1), ("latency_mean", "ms", 1.234), ("latency_deviation", "ms", 0.5)]
        );
        let old =
            "tps = 800.5 (including connections establishing)\ntps = 810.1 (excluding connections establishing)\n";
        assert_eq!(shown(&pgbench(old)), [("tps", "1/s", 810.1)]);
    }
}
