//! fdtree's options.

use crate::WorkloadError;
use crate::app::command_line::Line;
use crate::app::fdtree::tree::Tree;
use crate::app::{About, AppOption};

/// Name and options of fdtree.
pub(in crate::app) const ABOUT: About = About {
    name: "fdtree",
    about: "creates a tree of directories with files, removes the tree, and prints the rate of each step",
    options: &[
        AppOption {
            name: "-d",
            value: Some("N"),
            about: "number of subdirectories in each directory above the last level; default 10",
        },
        AppOption { name: "-f", value: Some("N"), about: "number of files in each directory; default 10" },
        AppOption { name: "-s", value: Some("BLOCKS"), about: "size of a file in blocks of 4 KiB; default 10" },
        AppOption { name: "-l", value: Some("N"), about: "number of levels below the top; default 4" },
        AppOption {
            name: "-o",
            value: Some("DIR"),
            about: "no effect in iosched, because iosched creates the tree in the root of the file system",
        },
    ],
};

/// Largest total number of directories and files.
const NODES_MAX: u64 = 100_000_000;
/// Largest number of levels.
const LEVELS_MAX: u64 = 1_000;
/// Bytes of a block.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Parsed options of fdtree.
#[derive(Clone, Debug)]
pub(in crate::app) struct FdtreeOptions {
    pub(super) tree: Tree,
    /// Number of files in each directory.
    pub(super) files: u64,
    /// Number of blocks in each file.
    pub(super) blocks: u64,
}

impl FdtreeOptions {
    /// Returns the space that the files take, bytes.
    pub(in crate::app) fn file_bytes(&self) -> u64 {
        self.tree.count().saturating_mul(self.files).saturating_mul(self.blocks).saturating_mul(BLOCK_BYTES)
    }

    pub(in crate::app) fn parse(line: &Line<'_>) -> Result<Self, WorkloadError> {
        let (mut fan_out, mut files, mut blocks, mut levels) = (10, 10, 10, 4);
        for given in line.letters(ABOUT.options)? {
            match given.name {
                "-d" => fan_out = line.number(given, 1, NODES_MAX)?,
                "-f" => files = line.number(given, 1, NODES_MAX)?,
                "-s" => blocks = line.number(given, 1, 1 << 32)?,
                "-l" => levels = line.number(given, 0, LEVELS_MAX)?,
                // -o: the place of the tree does not matter.
                _ => {}
            }
        }
        let most = NODES_MAX / (1 + files);
        let Some(tree) = Tree::new(fan_out, levels, most) else {
            let problem = format!("more than {NODES_MAX} directories and files");
            return Err(line.error("-l", problem, "write fewer levels, directories or files"));
        };
        Ok(Self { tree, files, blocks })
    }
}
