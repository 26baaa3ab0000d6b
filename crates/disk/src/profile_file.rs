//! Reads the file of a profile. If it is not a text file, the error names the kind of the file.

use crate::profile::ProfileError;

/// Returns the text of a file. Refuses device files, because a read could be endless or take very
/// long.
#[expect(clippy::disallowed_methods, reason = "profiles are read before a run")]
pub(crate) fn read(path: &str) -> Result<String, ProfileError> {
    use std::os::unix::fs::FileTypeExt;
    let unreadable = |source| ProfileError::Unreadable { file: path.to_owned(), source };
    let what = |what| ProfileError::NotText { file: path.to_owned(), what };
    let kind = std::fs::metadata(path).map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(what("a directory"));
    }
    if kind.is_block_device() {
        return Err(what("a block device"));
    }
    if kind.is_char_device() || kind.is_socket() {
        return Err(what("no file"));
    }
    String::from_utf8(std::fs::read(path).map_err(unreadable)?).map_err(|_| what("not UTF-8 text"))
}
