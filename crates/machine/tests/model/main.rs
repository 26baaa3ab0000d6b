//! Tests of properties that hold for all sequences of calls and all orders of completion. No
//! written data is lost, data is durable when a call guarantees it, all limits hold, and every call
//! returns. The same seed gives the same run.

mod executor;
mod model;

use iosched_machine::description::Machine;
use iosched_machine::model::DiskConfig;
use iosched_workload::app::{Call, Existing, Node, OpenFlags, Source};
use proptest::prelude::*;

use executor::{Executor, Queue};

/// Number of files of each task, without directories.
const OWN: u32 = 4;
/// Number of directories of each task.
const DIRECTORIES: u32 = 2;
/// Number of files to which all tasks write. These files exist before the run.
const SHARED: u32 = 2;
const PAGES: u64 = 48;

#[derive(Clone, Debug)]
enum Action {
    Open { file: u32, truncate: bool, direct: bool, sync: bool, data_only: bool },
    Close { file: u32 },
    Unlink { file: u32 },
    Read { file: u32, page: u64, bytes: u64, calls: u64 },
    Write { file: u32, page: u64, into: u64, bytes: u64, calls: u64 },
    Fsync { file: u32, data_only: bool },
    Directory { number: u32 },
    Sync,
}

fn action() -> impl Strategy<Value = Action> {
    let file = 0..OWN + SHARED;
    let bytes = prop_oneof![Just(512u64), Just(4096), Just(8192), 1u64..70_000];
    prop_oneof![
        4 => (file.clone(), any::<[bool; 4]>()).prop_map(|(file, [truncate, direct, sync, data_only])| Action::Open {
            file, truncate, direct, sync: sync && !truncate, data_only
        }),
        2 => file.clone().prop_map(|file| Action::Close { file }),
        2 => file.clone().prop_map(|file| Action::Unlink { file }),
        4 => (file.clone(), 0..PAGES, bytes.clone(), 1u64..6)
            .prop_map(|(file, page, bytes, calls)| Action::Read { file, page, bytes, calls }),
        12 => (file.clone(), 0..PAGES, 0u64..4096, bytes, 1u64..9)
            .prop_map(|(file, page, into, bytes, calls)| Action::Write { file, page, into, bytes, calls }),
        3 => (file, any::<bool>()).prop_map(|(file, data_only)| Action::Fsync { file, data_only }),
        2 => (0..DIRECTORIES).prop_map(|number| Action::Directory { number }),
        1 => Just(Action::Sync),
    ]
}

/// Returns calls that an application could make.
fn calls(task: u32, disks: u32, actions: &[Action]) -> Vec<Call> {
    let node = |file: u32| match file {
        OWN.. => Node::new(file - OWN),
        _ => Node::new(SHARED + task * (OWN + DIRECTORIES) + file),
    };
    let root = |number: u32| Node::root(number % disks);
    let mut open: [Option<OpenFlags>; (OWN + SHARED) as usize] = Default::default();
    let mut created = [false; OWN as usize];
    let mut directories = [false; DIRECTORIES as usize];
    let mut calls = Vec::new();
    for action in actions {
        match *action {
            Action::Open { file, truncate, direct, sync, data_only } => {
                let is_private = file < OWN;
                let (create, direct) = (is_private, direct && is_private);
                let truncate = truncate && is_private;
                let flags = OpenFlags { create, truncate, direct, sync, data_only, ..OpenFlags::default() };
                calls.push(Call::Open { parent: root(file), node: node(file), name_bytes: 9, flags });
                open[file as usize] = Some(flags);
                if is_private {
                    created[file as usize] = true;
                }
            }
            Action::Close { file } if open[file as usize].take().is_some() => {
                calls.push(Call::Close { node: node(file) })
            }
            Action::Unlink { file } if file < OWN && created[file as usize] => {
                if open[file as usize].take().is_some() {
                    calls.push(Call::Close { node: node(file) });
                }
                calls.push(Call::Unlink { node: node(file) });
                created[file as usize] = false;
            }
            Action::Read { file, page, bytes, calls: count } => {
                let Some(flags) = open[file as usize] else { continue };
                let bytes = if flags.direct { bytes.next_multiple_of(512) } else { bytes };
                calls.push(Call::Read { node: node(file), offset: page * 4096, bytes, calls: count });
            }
            Action::Write { file, page, into, bytes, calls: count } => {
                let Some(flags) = open[file as usize] else { continue };
                let align = |bytes: u64| if flags.direct { bytes.next_multiple_of(512) } else { bytes };
                let (offset, bytes) = (page * 4096 + align(into), align(bytes));
                let source = if into % 2 == 0 { Source::Zero } else { Source::Buffer };
                calls.push(Call::Write { node: node(file), offset, bytes, calls: count, source });
            }
            Action::Fsync { file, data_only } if open[file as usize].is_some() => calls.push(match data_only {
                true => Call::Fdatasync { node: node(file) },
                false => Call::Fsync { node: node(file) },
            }),
            Action::Directory { number } => {
                let node = node(OWN - 1).0 + 1 + number;
                let there = &mut directories[number as usize];
                calls.push(match *there {
                    true => Call::RemoveDirectory { node: Node(node) },
                    false => Call::MakeDirectory { parent: root(number), node: Node(node), name_bytes: 5 },
                });
                *there = !*there;
            }
            Action::Sync => calls.push(Call::Sync),
            _ => {}
        }
    }
    calls.push(Call::Sync);
    calls
}

#[derive(Clone, Debug)]
struct Scenario {
    machine: Machine,
    disk: DiskConfig,
    disks: u32,
    queue: Queue,
    actions: Vec<Vec<Action>>,
    seed: u64,
}

fn machine(kernel: &str, kind: &str, barrier: bool, cache_mib: u64, ratios: (u32, u32), expire_ms: u64) -> Machine {
    let (background, hard) = ratios;
    toml::from_str(&format!(
        "about = 'small'\nkernel = '{kernel}'\nhz = 1000\ncache_mib = {cache_mib}\nread_ahead_kb = 128\n\
         [cpu]\nsyscall_ns = 300\npage_ns = 400\ncopy_bytes_per_s = 3000000000\ncached_copy_bytes_per_s = 4000000000\n\
         cache_bytes = 1048576\nzero_bytes_per_s = 5000000000\nmetadata_ns = 10000\nspawn_ns = 900000\nsubmit_ns = 3000\n\
         [vm]\ndirty_background_ratio = {background}\ndirty_ratio = {hard}\ndirty_expire_ms = {expire_ms}\n\
         dirty_writeback_ms = 1000\n[file_system]\nkind = '{kind}'\nbarrier = {barrier}\njournal_mib = 4\n"
    ))
    .unwrap()
}

prop_compose! {
    fn scenario()(
        kernel in prop_oneof![Just("2.6.16"), Just("2.6.30"), Just("2.6.34"), Just("3.10"), Just("4.19"), Just("6.12")],
        ext4 in any::<bool>(),
        barrier in any::<bool>(),
        cache_mib in 2u64..9,
        background in 2u32..15,
        hard in 15u32..40,
        expire_ms in prop_oneof![Just(100u64), Just(30_000)],
        disks in 1u32..3,
        max_sectors in prop_oneof![Just(8u32), Just(128), Just(1024)],
        depth in prop_oneof![1usize..5, 5usize..130],
        slowest_ns in prop_oneof![Just(1_000u64), Just(1_000_000), Just(30_000_000)],
        volatile in any::<bool>(),
        actions in prop::collection::vec(prop::collection::vec(action(), 1..40), 1..5),
        seed in any::<u64>(),
    ) -> Scenario {
        let kind = if ext4 { "ext4" } else { "ext3" };
        Scenario {
            machine: machine(kernel, kind, barrier, cache_mib, (background, hard), expire_ms),
            disk: DiskConfig { capacity_sectors: 1 << 19, max_sectors, read_ahead_kb: 128 },
            disks,
            queue: Queue { depth, slowest_ns, volatile },
            actions,
            seed,
        }
    }
}

impl Scenario {
    fn executor(&self) -> Executor {
        let existing: Vec<_> = (0..SHARED)
            .map(|number| Existing {
                node: Node::new(number),
                parent: Node::root(0),
                name_bytes: 6,
                bytes: Some(u64::from(number) * 100_000),
            })
            .collect();
        let calls = (0..).zip(&self.actions).map(|(task, actions)| calls(task, self.disks, actions)).collect();
        Executor::new(&self.machine, self.disk, self.disks as usize, self.queue, &existing, calls, self.seed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The [executor](executor::Executor) makes every check after every event.
    #[test]
    fn writes_are_not_lost_and_synced_data_is_durable(scenario in scenario()) {
        let mut executor = scenario.executor();
        executor.run();
        executor.check_all_written();
        executor.run_until_clean();
        executor.check_all_written();
    }

    #[test]
    fn equal_seeds_give_equal_runs(scenario in scenario()) {
        let run = || {
            let mut executor = scenario.executor();
            executor.run();
            std::mem::take(&mut executor.log)
        };
        prop_assert_eq!(run(), run());
    }
}
