//! Task files for tests of several crates.

/// A process that looks up data, and a backup that always has 64 writes in flight.
pub const LOOKUPS_AND_BACKUP: &str = r#"
name = "lookups beside a backup"
end_ns = 1_500_000_000
[[tasks]]
pid = 1
name = "lookup"
pattern = "random"
range = [0, 400_000_000]
think_ns = [0, 2000000]
[[tasks]]
pid = 2
name = "backup"
op = "write"
pattern = "random"
range = [800_000_000, 1_200_000_000]
iodepth = 64
"#;

/// A sequential reader, a random reader and an async writer, which compete.
pub const THREE_TASKS: &str = r#"
name = "three"

[[tasks]]
pid = 1
pattern = "seq"
nr_sectors = 64
total = 60

[[tasks]]
pid = 2
pattern = "random"
range = [1000000, 90000000]
total = 40

[[tasks]]
pid = 3
op = "write"
sync = false
pattern = "random"
range = [200000000, 290000000]
iodepth = 4
total = 50
"#;
