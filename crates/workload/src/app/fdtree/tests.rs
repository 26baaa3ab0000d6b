use proptest::prelude::*;

use super::tree::Tree;
use crate::app::tests::{calls, drive};
use crate::app::{Call, Node, Source, Spec};

fn calls_of(command: &str) -> Vec<Call> {
    calls(command, 1_000).0.into_iter().map(|timed| timed.call).collect()
}

fn count(calls: &[Call], like: impl Fn(&Call) -> bool) -> usize {
    calls.iter().filter(|call| like(call)).count()
}

#[test]
fn trees_have_the_published_sizes() {
    for (fan_out, levels, directories) in [(20, 3, 8_421), (3, 10, 88_573), (17, 2, 307), (2, 10, 2_047)] {
        assert_eq!(Tree::new(fan_out, levels, u64::MAX).unwrap().count(), directories);
    }
}

proptest! {
    #[test]
    fn every_directory_is_the_child_of_its_parent(fan_out in 1u64..6, levels in 0u64..6) {
        let tree = Tree::new(fan_out, levels, u64::MAX).unwrap();
        let mut children = vec![0; tree.count() as usize];
        for number in 0..tree.count() {
            let directory = tree.directory(number);
            prop_assert_eq!(directory.parent.is_none(), number == 0);
            if let Some(parent) = directory.parent {
                let above = tree.directory(parent);
                prop_assert_eq!(above.height, directory.height + 1);
                prop_assert_eq!(tree.child(parent, above.height, directory.place), number);
                prop_assert_eq!(children[parent as usize], directory.place, "children are in order");
                children[parent as usize] += 1;
            }
        }
        for number in 0..tree.count() {
            prop_assert_eq!(children[number as usize], tree.children(tree.directory(number).height));
        }
    }

    #[test]
    fn every_file_and_directory_is_created_and_removed_once(fan_out in 1u64..4, levels in 0u64..4, files in 1u64..4) {
        let calls = calls_of(&format!("fdtree -d {fan_out} -l {levels} -f {files} -s 1"));
        let directories = Tree::new(fan_out, levels, u64::MAX).unwrap().count();
        let files = directories * files;
        // The test driver rejects calls that create or remove a node twice, or that use a missing
        // directory.
        prop_assert_eq!(count(&calls, |call| matches!(call, Call::MakeDirectory { .. })) as u64, directories);
        prop_assert_eq!(count(&calls, |call| matches!(call, Call::RemoveDirectory { .. })) as u64, directories);
        prop_assert_eq!(count(&calls, |call| matches!(call, Call::Open { .. })) as u64, files);
        prop_assert_eq!(count(&calls, |call| matches!(call, Call::Unlink { .. })) as u64, files);
    }
}

#[test]
fn phases_run_in_order_and_walk_the_tree_recursively() {
    let calls = calls_of("fdtree -d 2 -l 2 -f 1 -s 3");
    let numbers = |like: fn(&Call) -> Option<Node>| -> Vec<u32> {
        calls.iter().filter_map(like).map(|node| node.0 - Node::new(0).0).collect()
    };
    // The tree is 0 [1 [2 3] 4 [5 6]]. Files have the numbers from 7.
    let created = |call: &Call| if let Call::MakeDirectory { node, .. } = *call { Some(node) } else { None };
    let written = |call: &Call| if let Call::Write { node, .. } = *call { Some(node) } else { None };
    let unlinked = |call: &Call| if let Call::Unlink { node } = *call { Some(node) } else { None };
    let removed = |call: &Call| if let Call::RemoveDirectory { node } = *call { Some(node) } else { None };
    assert_eq!(numbers(created), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(numbers(written), [7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(numbers(unlinked), [7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(numbers(removed), [2, 3, 5, 6, 1, 4, 0]);
    let at = |like: fn(&Call) -> bool| calls.iter().position(like).unwrap();
    let last = |like: fn(&Call) -> bool| calls.iter().rposition(like).unwrap();
    assert!(last(|call| matches!(call, Call::MakeDirectory { .. })) < at(|call| matches!(call, Call::Open { .. })));
    assert!(last(|call| matches!(call, Call::Close { .. })) < at(|call| matches!(call, Call::Unlink { .. })));
    assert!(last(|call| matches!(call, Call::Unlink { .. })) < at(|call| matches!(call, Call::RemoveDirectory { .. })));
}

#[test]
fn one_process_per_file_writes_blocks_of_4_kib() {
    let calls = calls_of("fdtree -d 1 -l 1 -f 2 -s 1000");
    let first = calls.iter().position(|call| matches!(call, Call::Open { .. })).unwrap();
    let node = Node::new(2);
    assert_eq!(calls[first - 1], Call::Spawn);
    assert_eq!(calls[first + 1], Call::Write { node, offset: 0, bytes: 4_096, calls: 1_000, source: Source::Zero });
    assert_eq!(calls[first + 2..first + 4], [Call::Close { node }, Call::Spawn]);
}

#[test]
fn simulation_starts_as_many_processes_as_the_script() {
    let calls = calls_of("fdtree -d 3 -l 2 -f 5 -s 1");
    // There are 1 + 3 + 9 directories, each with a mkdir. fdtree enters 3 of them to create more
    // directories, with three processes each.
    let mut expected = 13 + 3 * 3;
    // fdtree enters 12 directories, and each file needs a dd.
    expected += 12 + 13 * 5;
    // fdtree enters 12 directories again. Each of them and the top directory need an rm.
    expected += 12 + 13;
    // fdtree enters 3 directories. Each of them and the top directory need an rmdir for their
    // contents, and another rmdir removes the top directory.
    expected += 3 + 3 + 1 + 1;
    assert_eq!(count(&calls, |call| *call == Call::Spawn), expected);
}

#[test]
fn times_are_whole_seconds_and_rates_are_rounded_down() {
    let seconds = |seed: u64| -> Vec<f64> {
        let mut app = Spec::parse("fdtree -d 2 -l 1 -f 2 -s 1").unwrap().start(seed, 1 << 30);
        // A file takes 0.4 s, so six files take 2.4 s.
        drive(app.as_mut(), |timed| if matches!(timed.call, Call::Write { .. }) { 400_000_000 } else { 0 });
        let figures = app.report().figures;
        let [create_s, files_per_s, kib_per_s] = [2, 3, 4].map(|figure: usize| figures[figure].value);
        assert_eq!((&*figures[2].unit, &*figures[3].unit, &*figures[4].unit), ("s", "files/s", "KiB/s"));
        assert_eq!((files_per_s, kib_per_s), ((6.0 / create_s).floor(), (24.0 / create_s).floor()));
        assert_eq!(figures[0].value, 1.0, "a time of 0 counts as one second");
        assert_eq!(figures[1].value, 3.0);
        vec![create_s]
    };
    let all: Vec<f64> = (0..100).flat_map(seconds).collect();
    let three = all.iter().filter(|&&seconds| seconds == 3.0).count();
    assert!(all.iter().all(|&seconds| seconds == 2.0 || seconds == 3.0));
    assert!((25..55).contains(&three), "{three} of 100");
}

#[test]
fn too_large_trees_and_invalid_options_are_refused() {
    let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
    for (text, part) in [
        ("fdtree -d 10 -l 30", "-l: more than 100000000 directories and files"),
        ("fdtree -l 1001 -d 1", "-l: `1001` is not a whole number from 0 to 1000"),
        ("fdtree -f 0", "-f: `0` is not a whole number from 1"),
        ("fdtree -d", "-d: has no value; write -d N"),
    ] {
        assert!(error(text).contains(part), "{}", error(text));
    }
}
