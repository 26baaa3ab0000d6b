//! The lists of disks, as `iosched ls` prints them.

use std::fmt::Write as _;

use iosched_attributes::{DiskSummary, KernelDisk};
use iosched_kernel::block::{DeviceCard, Mount, Swap};

use super::grid::{Look, left, right, size};

/// Largest number of cgroup files that are listed for a disk.
const NAMED_MAX: usize = 4;

/// Returns a line about the cgroups that have settings for the disks.
pub fn of_cgroups(disks: &[KernelDisk]) -> String {
    let set = disks.iter().filter(|disk| !disk.cgroups.is_empty());
    let row = |disk: &KernelDisk| {
        let names: Vec<_> = disk.cgroups.keys().map(String::as_str).collect();
        let more = names.len().saturating_sub(NAMED_MAX);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more; to see all, run iosched get {}", disk.card.name)
        };
        let named = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        format!("set for {}: {named}{more}\n", disk.card.name)
    };
    set.filter(|disk| disk.card.size_bytes > 0).map(row).collect()
}

/// Returns a line with the named served disks.
pub fn live(names: &[String]) -> String {
    let named: Vec<_> = names.iter().map(|name| format!("live:{name}")).collect();
    if named.is_empty() { String::new() } else { format!("served disks: {}\n", named.join(", ")) }
}

const UNKNOWN: &str = "-";

fn text<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), text)
}

fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Returns the table of the kernel's disks. Without `all`, counts disks without a medium instead of
/// listing them.
pub fn kernels(disks: &[KernelDisk], all: bool, look: Look) -> String {
    let (shown, empty): (Vec<_>, Vec<_>) =
        disks.iter().map(|disk| &disk.card).partition(|disk| all || disk.size_bytes > 0);
    let rows = shown.into_iter().map(|disk| {
        vec![
            disk.name.clone(),
            size(disk.size_bytes),
            text(disk.scheduler.clone(), |name| name),
            yes_or_no(disk.is_rotational),
            text(disk.driver_depth, |depth| depth.to_string()),
            disk.made_of.clone(),
            used(disk),
        ]
    });
    let mut shown = table(rows.collect(), look);
    if !empty.is_empty() {
        let _ = writeln!(shown, "{} without a medium or file; to see them, add --all", empty.len());
    }
    shown
}

/// Returns the mount points and swaps of a disk, each with its partition, such as
/// `/boot (sda1), swap (sda2)`.
fn used(disk: &DeviceCard) -> String {
    let part = |device: &str| if device == disk.name { String::new() } else { format!(" ({device})") };
    let mounts = disk.usage.mounts.iter().map(|Mount { device, at }| format!("{}{}", at.display(), part(device)));
    let swaps = disk.usage.swaps.iter().map(|Swap { device }| format!("swap{}", part(device)));
    mounts.chain(swaps).collect::<Vec<_>>().join(", ")
}

/// Returns the table of disks that do not belong to the kernel.
pub fn served(disks: &[DiskSummary], look: Look) -> String {
    table(disks.iter().map(row).collect(), look)
}

/// Returns the row of a disk that does not belong to the kernel.
fn row(disk: &DiskSummary) -> Vec<String> {
    vec![
        disk.name.clone(),
        text(disk.size_bytes, size),
        text(disk.scheduler.clone(), |name| name),
        text(disk.is_rotational, yes_or_no),
        text(disk.driver_depth, |depth| depth.to_string()),
    ]
}

/// Heads of the columns, and whether their cells are numbers.
const COLUMNS: [(&str, bool); 7] = [
    ("name", false),
    ("size", true),
    ("scheduler", false),
    ("rotational", false),
    ("depth", true),
    ("made of", false),
    ("mounted on", false),
];

/// Columns with file names. If the table is wider than the terminal, they appear below their row.
const NAMES: std::ops::Range<usize> = 5..COLUMNS.len();

/// Formats rows of equal length below their heads.
fn table(rows: Vec<Vec<String>>, look: Look) -> String {
    let columns = rows.first().map_or(COLUMNS.len(), Vec::len);
    let heads = COLUMNS[..columns].iter().map(|(head, _)| (*head).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    let width: usize = widths.iter().map(|width| width + 2).sum();
    let is_narrow = look.width.is_some_and(|terminal| width > terminal + 2);
    let shown = if is_narrow { columns.min(NAMES.start) } else { columns };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells =
            row[..shown].iter().zip(&widths).zip(COLUMNS).map(|((cell, width), (_, is_number))| {
                if is_number { right(cell, *width) } else { left(cell, *width) }
            });
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        let below = COLUMNS.iter().zip(row).skip(shown).filter(|(_, cell)| number > 0 && !cell.is_empty());
        for ((head, _), cell) in below {
            let _ = writeln!(text, "{}", look.wrap(&format!("    {head}: {cell}"), "      "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_terminal_shows_long_columns_below_the_disk() {
        let row =
            ["sda", "931.5 GiB", "mq-deadline", "yes", "32", "SATA", "/boot (sda1), /srv/a-long-mount-point (sda2)"];
        let rows = vec![row.map(str::to_owned).to_vec()];
        let look = Look { width: None, colours: false, details: false };
        assert!(table(rows.clone(), look).ends_with("SATA     /boot (sda1), /srv/a-long-mount-point (sda2)\n"));
        let narrow = table(rows, Look { width: Some(80), ..look });
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(
            narrow.ends_with("32\n    made of: SATA\n    mounted on: /boot (sda1), /srv/a-long-mount-point (sda2)\n")
        );
    }
}
