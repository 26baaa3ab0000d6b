//! Tests of layouts against values of known file systems.

mod random;

use std::collections::BTreeSet;

use super::*;

/// Sectors of a disk of 500 GB.
const DISK_SECTORS: u64 = 976_773_168;
const GIB_PAGES: u64 = 262_144;

fn fs_of(config: &FsConfig) -> FileSystem {
    FileSystem::new(config, DISK_SECTORS, 1).unwrap()
}

fn fs(kind: FsKind) -> FileSystem {
    fs_of(&FsConfig::new(kind))
}

fn group(fs: &FileSystem, ino: Ino) -> u32 {
    fs.group_of_inode(fs.inode(ino).number)
}

/// Returns the number of pages whose next page is not in the next block.
fn jumps(fs: &FileSystem, ino: Ino) -> usize {
    let extents = &fs.inode(ino).map.extents;
    extents.windows(2).filter(|pair| pair[0].block_end() != pair[1].block).count()
}

/// Writes to a file as an application does: `pages` pages at a time.
fn write(fs: &mut FileSystem, ino: Ino, from: u64, pages: u64) {
    fs.set_size(ino, (from + pages) * crate::PAGE_BYTES);
    fs.allocate(ino, from, pages, &mut Effects::default()).unwrap();
}

#[test]
fn new_file_system_passes_its_checks() {
    for kind in [FsKind::Ext3, FsKind::Ext4] {
        for sectors in [40_000, 300_000, 2_000_000, 9_000_000] {
            let mut config = FsConfig::new(kind);
            config.journal_mib = Some(4);
            FileSystem::new(&config, sectors, 1).unwrap().check();
        }
    }
}

#[test]
fn superblock_copies_are_in_groups_of_powers_of_3_5_and_7() {
    let fs = fs(FsKind::Ext3);
    let kept = |group: u32| fs.geometry.used_at_birth(group).contains(&(0, 1 + 30 + 994));
    let with: Vec<u32> = (0..400).filter(|group| kept(*group)).collect();
    assert_eq!(with, [0, 1, 3, 5, 7, 9, 25, 27, 49, 81, 125, 243, 343]);
}

#[test]
fn ext4_packs_the_tables_of_sixteen_groups() {
    let (ext3, ext4) = (fs(FsKind::Ext3), fs(FsKind::Ext4));
    for number in 0..100 {
        let in_group = |block: Block| ext3.geometry.group_of(block) == number;
        assert!(in_group(ext3.geometry.block_bitmap(number)) && in_group(ext3.geometry.inode_bitmap(number)));
        assert_eq!(ext4.geometry.group_of(ext4.geometry.block_bitmap(number)), number / 16 * 16);
    }
    let tables = (0..16).map(|group| ext4.geometry.inode_block(group * ext4.geometry.inodes_per_group));
    let tables: Vec<Block> = tables.collect();
    let blocks = u64::from(ext4.geometry.inodes_per_group / 16);
    assert!(tables.windows(2).all(|pair| pair[1] == pair[0] + blocks), "{tables:?}");
}

#[test]
fn ext4_journal_is_128_mib_in_the_middle_of_the_disk() {
    let fs = fs(FsKind::Ext4);
    assert_eq!(fs.journal().iter().map(|run| run.blocks).sum::<u64>(), 32768);
    let (start, middle) = (fs.journal()[0].block, fs.geometry.blocks / 2);
    assert!(start.abs_diff(middle) < 16 * u64::from(GROUP_BLOCKS), "{start} is not near {middle}");
}

#[test]
fn ext4_stores_a_large_file_in_few_extents() {
    let mut fs = fs(FsKind::Ext4);
    let file = fs.create(fs.root(), 10, &mut Effects::default()).unwrap();
    fs.open(file);
    for chunk in 0..16 * GIB_PAGES / 1024 {
        write(&mut fs, file, chunk * 1024, 1024);
    }
    fs.close(file);
    // 10 of 128 groups begin with a superblock, and 8 more with tables.
    assert!(jumps(&fs, file) <= 18, "{} jumps", jumps(&fs, file));
    assert!((128..=160).contains(&fs.extents(file)), "{} extents", fs.extents(file));
    let mut effects = Effects::default();
    fs.map_reads(file, 8 * GIB_PAGES, &mut effects);
    assert_eq!(effects.reads.len(), 1, "one leaf maps all extents");
    fs.check();
}

#[test]
fn ext3_has_an_indirect_block_per_1024_pages_of_a_large_file() {
    let mut fs = fs(FsKind::Ext3);
    let free = fs.free_blocks();
    let file = fs.create(fs.root(), 10, &mut Effects::default()).unwrap();
    let pages = 4 * GIB_PAGES;
    for page in 0..pages {
        write(&mut fs, file, page, 1);
    }
    let leaves = (pages - 12).div_ceil(1024);
    assert_eq!(free - fs.free_blocks(), pages + leaves + 1);
    let groups = (pages / u64::from(GROUP_BLOCKS) + 2) as usize;
    assert!(jumps(&fs, file) <= leaves as usize + groups, "{} jumps", jumps(&fs, file));
    let mut effects = Effects::default();
    fs.map_reads(file, 100_000, &mut effects);
    assert_eq!(effects.reads.len(), 2);
    let leaf = effects.reads[1];
    let first = fs.map(file, 100_000 - (100_000 - 12) % 1024).unwrap();
    assert_eq!(leaf + 1, first.block, "an indirect block precedes the blocks that it maps");
    fs.check();
}

#[test]
fn ext4_stores_small_files_contiguously() {
    let (mut fs, mut effects) = (fs(FsKind::Ext4), Effects::default());
    let mut blocks = Vec::new();
    for _ in 0..20 {
        let directory = fs.make_directory(fs.root(), 10, &mut effects).unwrap();
        for _ in 0..100 {
            let file = fs.create(directory, 10, &mut effects).unwrap();
            write(&mut fs, file, 0, 1);
            blocks.push(fs.map(file, 0).unwrap().block);
        }
    }
    let jumps = blocks.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(jumps <= 2000 / 512, "{jumps} jumps");
}

#[test]
fn ext3_stores_small_files_in_the_group_of_their_directory() {
    let (mut fs, mut effects) = (fs(FsKind::Ext3), Effects::default());
    for _ in 0..20 {
        let directory = fs.make_directory(fs.root(), 10, &mut effects).unwrap();
        for _ in 0..100 {
            let file = fs.create(directory, 10, &mut effects).unwrap();
            write(&mut fs, file, 0, 1);
            assert_eq!(group(&fs, file), group(&fs, directory));
            assert_eq!(fs.geometry.group_of(fs.map(file, 0).unwrap().block), group(&fs, directory));
        }
    }
}

#[test]
fn only_top_level_directories_are_spread_over_groups() {
    for kind in [FsKind::Ext3, FsKind::Ext4] {
        let (mut fs, mut effects) = (fs(kind), Effects::default());
        let unit = |fs: &FileSystem, ino| group(fs, ino) / fs.groups.unit_groups;
        let top: Vec<Ino> = (0..20).map(|_| fs.make_directory(fs.root(), 10, &mut effects).unwrap()).collect();
        let units: BTreeSet<u32> = top.iter().map(|ino| unit(&fs, *ino)).collect();
        assert_eq!(units.len(), top.len(), "{kind:?}");
        for parent in top {
            let mut below = parent;
            for _ in 0..5 {
                below = fs.make_directory(below, 10, &mut effects).unwrap();
                for _ in 0..10 {
                    fs.create(below, 10, &mut effects).unwrap();
                }
                assert!(unit(&fs, below) - unit(&fs, parent) <= 5, "{kind:?}");
            }
        }
        fs.check();
    }
}

#[test]
fn ext3_spreads_many_directories_over_several_groups() {
    let (mut fs, mut effects) = (fs(FsKind::Ext3), Effects::default());
    let top = fs.make_directory(fs.root(), 10, &mut effects).unwrap();
    let below: Vec<Ino> = (0..300).map(|_| fs.make_directory(top, 10, &mut effects).unwrap()).collect();
    let groups: BTreeSet<u32> = below.iter().map(|directory| group(&fs, *directory)).collect();
    assert!(groups.len() > 1, "{groups:?}");
}

#[test]
fn first_inode_of_a_table_block_needs_no_read() {
    let mut fs = fs(FsKind::Ext4);
    let directory = fs.make_directory(fs.root(), 10, &mut Effects::default()).unwrap();
    let mut blocks = Vec::new();
    for _ in 0..64 {
        let mut effects = Effects::default();
        let file = fs.create(directory, 10, &mut effects).unwrap();
        let block = fs.inode_block(file);
        assert!(effects.dirties.contains(&block));
        let first = !blocks.contains(&block) && block != fs.inode_block(directory);
        assert_eq!(effects.reads.contains(&block), !first);
        blocks.push(block);
    }
    blocks.dedup();
    assert_eq!(blocks.len(), 5, "64 files and their directory");
}

#[test]
fn only_ext3_reads_unused_bitmaps() {
    for (kind, read) in [(FsKind::Ext3, true), (FsKind::Ext4, false)] {
        let (mut fs, mut effects) = (fs(kind), Effects::default());
        let file = fs.create(fs.root(), 10, &mut effects).unwrap();
        effects.clear();
        fs.set_size(file, 100 * 4096);
        fs.allocate(file, 0, 100, &mut effects).unwrap();
        let group = fs.geometry.group_of(fs.map(file, 0).unwrap().block);
        let bitmap = fs.geometry.block_bitmap(group);
        assert_eq!(effects.reads.contains(&bitmap), read, "{kind:?}");
        assert!(effects.dirties.contains(&bitmap) && effects.dirties.contains(&fs.geometry.descriptor(group)));
        effects.clear();
        fs.truncate(file, &mut effects);
        assert!(effects.reads.contains(&bitmap), "the bitmap was used before: {kind:?}");
    }
}

#[test]
fn create_and_unlink_dirty_the_expected_metadata_blocks() {
    let mut fs = fs(FsKind::Ext4);
    let directory = fs.make_directory(fs.root(), 10, &mut Effects::default()).unwrap();
    let mut effects = Effects::default();
    let file = fs.create(directory, 10, &mut effects).unwrap();
    let names = fs.inode(directory).map.extents[0].block;
    let bitmap = fs.geometry.inode_bitmap(group(&fs, file));
    let descriptor = fs.geometry.descriptor(group(&fs, file));
    let in_bitmaps: BTreeSet<Block> =
        [names, bitmap, descriptor, fs.inode_block(file), fs.inode_block(directory)].into_iter().collect();
    assert_eq!(effects.dirties.iter().copied().collect::<BTreeSet<_>>(), in_bitmaps);
    let mut removed = Effects::default();
    fs.unlink(file, &mut removed).unwrap();
    let with_superblock: BTreeSet<Block> = in_bitmaps.into_iter().chain([fs.superblock()]).collect();
    assert_eq!(removed.dirties.iter().copied().collect::<BTreeSet<_>>(), with_superblock);
}

#[test]
fn hashed_directory_lookup_reads_at_most_three_blocks() {
    let (mut indexed, mut list) = (FsConfig::new(FsKind::Ext3), FsConfig::new(FsKind::Ext3));
    (indexed.dir_index, list.dir_index) = (true, false);
    for (config, by_hash) in [(indexed, true), (list, false)] {
        let mut fs = fs_of(&config);
        let directory = fs.make_directory(fs.root(), 10, &mut Effects::default()).unwrap();
        let files: Vec<Ino> = (0..5000).map(|_| fs.create(directory, 12, &mut Effects::default()).unwrap()).collect();
        let pages = fs.directory(directory).pages;
        let expected = if by_hash { 30..=50 } else { 25..=25 };
        assert!(expected.contains(&pages), "{pages} pages of 5,000 names of 20 bytes");
        let reads = |number: usize| {
            let mut effects = Effects::default();
            fs.lookup(files[number], &mut effects);
            // The last read is the block of the inode. A long directory also needs an indirect
            // block.
            effects.reads.iter().collect::<BTreeSet<_>>().len() - 1
        };
        if by_hash {
            assert!((0..5000).all(|number| reads(number) <= 3));
        } else {
            assert!(reads(0) == 1 && reads(4999) >= 25);
        }
        fs.check();
    }
}

#[test]
fn interleaved_writers_get_long_runs_of_blocks() {
    for kind in [FsKind::Ext3, FsKind::Ext4] {
        let (mut fs, mut effects) = (fs(kind), Effects::default());
        let files: Vec<Ino> = (0..32).map(|_| fs.create(fs.root(), 10, &mut effects).unwrap()).collect();
        files.iter().for_each(|file| fs.open(*file));
        for page in 0..2560 {
            for file in &files {
                write(&mut fs, *file, page, 1);
            }
        }
        fs.check();
        let jumps: usize = files.iter().map(|file| jumps(&fs, *file) + 1).sum();
        assert!(2560 * 32 / jumps >= 100, "{kind:?}: {jumps} runs");
        files.iter().for_each(|file| fs.close(*file));
        assert!(fs.windows.is_empty());
        fs.check();
    }
}

#[test]
fn full_device_gives_no_space_and_stays_consistent() {
    for kind in [FsKind::Ext3, FsKind::Ext4] {
        let mut config = FsConfig::new(kind);
        config.journal_mib = Some(4);
        let (mut fs, mut effects) = (FileSystem::new(&config, 600_000, 1).unwrap(), Effects::default());
        let free = fs.free_blocks();
        let mut files = Vec::new();
        let error = loop {
            let file = fs.create(fs.root(), 10, &mut effects).unwrap();
            fs.open(file);
            files.push(file);
            fs.set_size(file, 3000 * 4096);
            if let Err(error) = fs.allocate(file, 0, 3000, &mut effects) {
                break error;
            }
        };
        assert_eq!(error, FsError::NoSpace);
        assert_eq!(fs.free_blocks(), 0, "{kind:?}");
        fs.check();
        files.iter().for_each(|file| fs.unlink(*file, &mut effects).unwrap());
        fs.check();
        assert_eq!(fs.free_blocks(), free, "{kind:?}");
    }
}

#[test]
fn group_of_a_directory_depends_on_the_seed() {
    let first = |seed| {
        let mut fs = FileSystem::new(&FsConfig::new(FsKind::Ext4), DISK_SECTORS, seed).unwrap();
        let directory = fs.make_directory(fs.root(), 10, &mut Effects::default()).unwrap();
        group(&fs, directory)
    };
    assert_eq!(first(1), first(1));
    assert!((2..10).any(|seed| first(seed) != first(1)));
}

#[test]
fn errors_name_the_wrong_file_system_option() {
    let parse = |text: &str| toml::from_str::<FsConfig>(text).unwrap();
    assert_eq!(parse("kind = 'ext4'"), FsConfig::new(FsKind::Ext4));
    assert!(toml::from_str::<FsConfig>("kind = 'ext4'\ninode_size = 128").is_err());
    for (text, message) in [
        ("inode_bytes = 100", "file system: inode_bytes is 100; it must be 128, 256, 512 or 1024"),
        ("bytes_per_inode = 1", "file system: bytes_per_inode is 1; it must be 4096 to 67108864"),
        ("journal_mib = 1", "file system: journal_mib is 1; it must be 4 to 400"),
        ("flex_groups = 3", "file system: flex_groups is 3; it must be a power of two up to 256"),
        ("commit_interval_s = 0", "file system: commit_interval_s is 0; it must be at least 1"),
    ] {
        let error = parse(&format!("kind = 'ext3'\n{text}")).validate().unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn devices_too_small_or_too_large_are_refused() {
    let make = |sectors| FileSystem::new(&FsConfig::new(FsKind::Ext4), sectors, 1).map(|_| ()).unwrap_err();
    assert_eq!(make(0), FsError::TooSmall { capacity_sectors: 0 });
    assert_eq!(make(1000), FsError::TooSmall { capacity_sectors: 1000 });
    assert_eq!(make(u64::MAX), FsError::TooLarge { capacity_sectors: u64::MAX });
}

#[test]
fn reserved_blocks_cannot_be_reserved_again() {
    let mut fs = fs(FsKind::Ext4);
    let free = fs.free_blocks();
    fs.reserve(free).unwrap();
    assert_eq!(fs.reserve(1), Err(FsError::NoSpace));
    fs.release(free);
    fs.reserve(1).unwrap();
}
