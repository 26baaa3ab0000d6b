//! Properties of layouts.

use super::*;

/// 500 GB.
const DISK_SECTORS: u64 = 976_773_168;

fn fs(kind: FsKind) -> FileSystem {
    FileSystem::new(&FsConfig::new(kind), DISK_SECTORS, 1).unwrap()
}

#[test]
fn a_fresh_file_system_is_sound() {
    for kind in [FsKind::Ext3, FsKind::Ext4] {
        for sectors in [40_000, 300_000, 2_000_000, 9_000_000] {
            let mut config = FsConfig::new(kind);
            config.journal_mib = Some(4);
            FileSystem::new(&config, sectors, 1).unwrap().check();
        }
    }
}

#[test]
fn many_small_files_lie_one_behind_the_other_with_ext4() {
    let (mut fs, mut effects) = (fs(FsKind::Ext4), Effects::default());
    let mut blocks = Vec::new();
    for _ in 0..20 {
        let directory = fs.make_directory(fs.root(), 10, &mut effects).unwrap();
        for _ in 0..100 {
            let file = fs.create(directory, 10, &mut effects).unwrap();
            fs.set_size(file, 4096);
            fs.allocate(file, 0, 1, &mut effects).unwrap();
            blocks.push(fs.map(file, 0).unwrap().block);
        }
    }
    let jumps = blocks.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(jumps <= 2000 / 512, "{jumps} jumps");
}
