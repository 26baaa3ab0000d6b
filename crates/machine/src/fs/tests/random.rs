//! Tests of layouts with random operations.

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    MakeDirectory { parent: u8, name_bytes: u8 },
    Create { parent: u8, name_bytes: u8, times: u8 },
    Unlink { file: u8 },
    RemoveDirectory { directory: u8 },
    Allocate { file: u8, page: u16, pages: u16 },
    Preallocate { file: u8, page: u16, pages: u16 },
    Convert { file: u8, page: u16, pages: u16 },
    Truncate { file: u8 },
    Open { file: u8 },
    Close { file: u8 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        1 => (any::<u8>(), 1_u8..=255).prop_map(|(parent, name_bytes)| Operation::MakeDirectory { parent, name_bytes }),
        3 => (any::<u8>(), 1_u8..=255, 1_u8..60)
            .prop_map(|(parent, name_bytes, times)| Operation::Create { parent, name_bytes, times }),
        1 => any::<u8>().prop_map(|file| Operation::Unlink { file }),
        1 => any::<u8>().prop_map(|directory| Operation::RemoveDirectory { directory }),
        6 => (any::<u8>(), 0_u16..6000, 1_u16..3000)
            .prop_map(|(file, page, pages)| Operation::Allocate { file, page, pages }),
        4 => (any::<u8>(), 0_u16..6000, 1_u16..4)
            .prop_map(|(file, page, pages)| Operation::Allocate { file, page, pages }),
        2 => (any::<u8>(), 0_u16..6000, 1_u16..3000)
            .prop_map(|(file, page, pages)| Operation::Preallocate { file, page, pages }),
        8 => (any::<u8>(), 0_u16..6000, prop_oneof![1_u16..3, 1_u16..500])
            .prop_map(|(file, page, pages)| Operation::Convert { file, page, pages }),
        1 => any::<u8>().prop_map(|file| Operation::Truncate { file }),
        2 => any::<u8>().prop_map(|file| Operation::Open { file }),
        1 => any::<u8>().prop_map(|file| Operation::Close { file }),
    ]
}

fn config() -> impl Strategy<Value = FsConfig> {
    (any::<bool>(), any::<bool>(), 0_u32..5, any::<bool>()).prop_map(|(ext4, dir_index, flex, preallocate_closed)| {
        let mut config = FsConfig::new(if ext4 { FsKind::Ext4 } else { FsKind::Ext3 });
        config.dir_index = dir_index;
        config.flex_groups = Some(1 << flex);
        config.preallocate_closed = preallocate_closed;
        config.journal_mib = Some(4);
        config
    })
}

/// Expected state of the files.
#[derive(Default)]
struct Model {
    directories: Vec<Ino>,
    files: Vec<Ino>,
    opened: BTreeMap<Ino, u32>,
    /// Block of each page.
    pages: BTreeMap<(Ino, u64), Block>,
    /// Pages with unwritten blocks.
    unwritten: BTreeSet<(Ino, u64)>,
}

fn pick(list: &[Ino], number: u8) -> Option<Ino> {
    (!list.is_empty()).then(|| list[number as usize % list.len()])
}

impl Model {
    fn forget(&mut self, file: Ino) {
        self.pages.retain(|(ino, _), _| *ino != file);
        self.unwritten.retain(|(ino, _)| *ino != file);
    }

    fn learn(&mut self, fs: &FileSystem, file: Ino, from: u64, end: u64) {
        let mut page = from;
        while page < end {
            let Some(mapped) = fs.map(file, page) else {
                page += 1;
                continue;
            };
            for step in 0..mapped.pages.min(end - page) {
                let block = self.pages.entry((file, page + step)).or_insert(mapped.block + step);
                assert_eq!(*block, mapped.block + step, "a page keeps its block");
            }
            page += mapped.pages;
        }
    }

    fn apply(&mut self, fs: &mut FileSystem, operation: &Operation, effects: &mut Effects) {
        let enough = |result: Result<Ino, FsError>| match result {
            Ok(ino) => Some(ino),
            Err(FsError::NoSpace | FsError::NoInodes) => None,
            Err(error) => panic!("{error}"),
        };
        match *operation {
            Operation::MakeDirectory { parent, name_bytes } => {
                let parent = pick(&self.directories, parent).unwrap();
                self.directories.extend(enough(fs.make_directory(parent, name_bytes, effects)));
            }
            Operation::Create { parent, name_bytes, times } => {
                let parent = pick(&self.directories, parent).unwrap();
                for _ in 0..times {
                    self.files.extend(enough(fs.create(parent, name_bytes, effects)));
                }
            }
            Operation::Unlink { file } => {
                let Some(file) = pick(&self.files, file) else { return };
                self.files.retain(|other| *other != file);
                self.opened.remove(&file);
                self.forget(file);
                assert_eq!(fs.remove_directory(file, effects), Err(FsError::NotDirectory));
                fs.unlink(file, effects).unwrap();
            }
            Operation::RemoveDirectory { directory } => {
                let directory = pick(&self.directories, directory).unwrap();
                let empty = fs.directory(directory).entries == 0;
                match fs.remove_directory(directory, effects) {
                    Ok(()) => {
                        assert!(empty);
                        self.directories.retain(|other| *other != directory);
                    }
                    Err(error) => assert!(error == FsError::IsRoot || error == FsError::NotEmpty && !empty),
                }
            }
            Operation::Allocate { file, page, pages } => {
                let Some(file) = pick(&self.files, file) else { return };
                let (page, end) = (u64::from(page), u64::from(page) + u64::from(pages));
                fs.set_size(file, fs.size(file).max(end * crate::PAGE_BYTES));
                let done = fs.allocate(file, page, end - page, effects);
                self.learn(fs, file, page, end);
                match done {
                    Ok(()) => assert!((page..end).all(|page| self.pages.contains_key(&(file, page)))),
                    Err(error) => assert_eq!(error, FsError::NoSpace),
                }
            }
            Operation::Preallocate { file, page, pages } => {
                let Some(file) = pick(&self.files, file) else { return };
                let (page, end) = (u64::from(page), u64::from(page) + u64::from(pages));
                fs.set_size(file, fs.size(file).max(end * crate::PAGE_BYTES));
                let holes: Vec<u64> = (page..end).filter(|page| fs.map(file, *page).is_none()).collect();
                let _ = fs.allocate_unwritten(file, page, end - page, effects);
                self.learn(fs, file, page, end);
                if fs.config().is_ext4() {
                    let new = holes.into_iter().filter(|page| fs.map(file, *page).is_some());
                    self.unwritten.extend(new.map(|page| (file, page)));
                }
            }
            Operation::Convert { file, page, pages } => {
                let Some(file) = pick(&self.files, file) else { return };
                let (page, end) = (u64::from(page), u64::from(page) + u64::from(pages));
                let changes = fs.has_unwritten(file, page, end - page);
                assert_eq!(changes, self.unwritten.range((file, page)..(file, end)).next().is_some());
                fs.convert(file, page, end - page, effects);
                self.unwritten.retain(|(of, at)| *of != file || !(page..end).contains(at));
                assert!(!fs.has_unwritten(file, page, end - page));
                if fs.free_blocks() == 0 {
                    // If the device had no room for a larger tree, more pages count as written.
                    self.unwritten.retain(|(of, page)| *of != file || fs.has_unwritten(file, *page, 1));
                }
            }
            Operation::Truncate { file } => {
                let Some(file) = pick(&self.files, file) else { return };
                self.forget(file);
                fs.truncate(file, effects);
                assert_eq!((fs.size(file), fs.extents(file)), (0, 0));
            }
            Operation::Open { file } => {
                let Some(file) = pick(&self.files, file) else { return };
                *self.opened.entry(file).or_default() += 1;
                fs.open(file);
            }
            Operation::Close { file } => {
                let Some(file) = pick(&self.files, file) else { return };
                if let Some(times) = self.opened.get_mut(&file).filter(|times| **times > 0) {
                    *times -= 1;
                    fs.close(file);
                }
            }
        }
    }
}

/// Checks that the changed blocks include the bitmaps and descriptors of all groups in which blocks
/// were allocated or freed.
fn check_effects(fs: &FileSystem, before: &[u32], preallocated: bool, effects: &Effects) {
    let mut dirties = effects.dirties.clone();
    dirties.sort_unstable();
    assert!(dirties.windows(2).all(|pair| pair[0] != pair[1]), "each once");
    assert!(effects.forgets.iter().all(|block| !effects.dirties.contains(block)));
    assert!(effects.forgets.iter().all(|block| *block > 0));
    if preallocated {
        return;
    }
    for (group, free) in before.iter().enumerate() {
        if fs.groups.list[group].free_blocks != *free {
            assert!(effects.dirties.contains(&fs.geometry.block_bitmap(group as u32)));
            assert!(effects.dirties.contains(&fs.geometry.descriptor(group as u32)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn blocks_have_one_owner_and_are_freed_on_removal(
        config in config(),
        sectors in 100_000_u64..900_000,
        seed in any::<u64>(),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let mut fs = FileSystem::new(&config, sectors, seed).unwrap();
        let (blocks, inodes) = (fs.free_blocks(), fs.free_inodes());
        let root_bytes = fs.size(fs.root());
        let mut model = Model { directories: vec![fs.root()], ..Model::default() };
        let mut effects = Effects::default();
        for operation in &operations {
            let before: Vec<u32> = fs.groups.list.iter().map(|group| group.free_blocks).collect();
            let kept = fs.preallocated;
            effects.clear();
            model.apply(&mut fs, operation, &mut effects);
            check_effects(&fs, &before, kept > 0 || fs.preallocated > 0, &effects);
        }
        fs.check();
        for ((file, page), block) in &model.pages {
            let mapped = fs.map(*file, *page).map(|mapped| (mapped.block, mapped.unwritten));
            prop_assert_eq!(mapped, Some((*block, model.unwritten.contains(&(*file, *page)))));
        }
        for file in model.files {
            fs.unlink(file, &mut effects).unwrap();
        }
        for directory in model.directories.into_iter().skip(1).rev() {
            fs.remove_directory(directory, &mut effects).unwrap();
        }
        fs.discard_all_ahead();
        fs.check();
        prop_assert_eq!(fs.free_inodes(), inodes);
        // The root directory never shrinks. The tree that maps its blocks does not shrink either.
        let grown = (fs.size(fs.root()) - root_bytes) / crate::PAGE_BYTES;
        let tree = fs.inode(fs.root()).map.tree_blocks().len() as u64;
        prop_assert_eq!(blocks - fs.free_blocks(), grown + tree);
    }

    #[test]
    fn writing_all_pages_does_not_split_a_preallocated_file(
        order in Just((0_u64..3000).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let (config, mut effects) = (FsConfig::new(FsKind::Ext4), Effects::default());
        let mut fs = FileSystem::new(&config, 900_000, 1).unwrap();
        let file = fs.create(fs.root(), 10, &mut effects).unwrap();
        fs.allocate_unwritten(file, 0, 3000, &mut effects).unwrap();
        let pieces = fs.extents(file);
        for page in order {
            fs.convert(file, page, 1, &mut effects);
            fs.inode(file).map.check();
        }
        fs.check();
        prop_assert!(!fs.has_unwritten(file, 0, 3000));
        // Extents of different leaves stay separate.
        prop_assert!(fs.extents(file) <= pieces + fs.inode(file).map.tree_blocks().len());
    }

    #[test]
    fn reads_of_any_extent_need_at_most_two_tree_blocks(
        pages in prop::collection::vec(0_u32..40_000, 400..3000),
    ) {
        let mut config = FsConfig::new(FsKind::Ext4);
        config.journal_mib = Some(4);
        let (mut fs, mut effects) = (FileSystem::new(&config, 900_000, 1).unwrap(), Effects::default());
        let file = fs.create(fs.root(), 10, &mut effects).unwrap();
        for page in &pages {
            fs.allocate(file, u64::from(*page) * 2, 1, &mut effects).unwrap();
        }
        fs.check();
        for page in pages {
            effects.clear();
            fs.map_reads(file, u64::from(page) * 2, &mut effects);
            prop_assert!((1..=2).contains(&effects.reads.len()));
        }
    }
}
