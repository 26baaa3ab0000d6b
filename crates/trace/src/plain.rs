//! Text files that users write: profiles of machines, tasks, jobs. Directories and devices are
//! refused.

use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Opens a file or a pipe, to be read from beginning to end.
///
/// # Errors
/// If the file cannot be opened, or is a directory, a device or a socket. Reading a directory
/// fails, and a device or a socket may have no end.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let file_type = std::fs::metadata(path)?.file_type();
    match what_else(file_type) {
        Some((kind, what)) => Err(io::Error::new(kind, format!("is {what}, not a file"))),
        None => File::open(path),
    }
}

/// Returns the kind of a file that is neither a regular file nor a pipe.
fn what_else(file_type: FileType) -> Option<(ErrorKind, &'static str)> {
    if file_type.is_dir() {
        Some((ErrorKind::IsADirectory, "a directory"))
    } else if file_type.is_block_device() {
        Some((ErrorKind::InvalidInput, "a block device"))
    } else if file_type.is_char_device() {
        Some((ErrorKind::InvalidInput, "a character device"))
    } else if file_type.is_socket() {
        Some((ErrorKind::InvalidInput, "a socket"))
    } else {
        None
    }
}

/// Reads the text of a file.
///
/// # Errors
/// The errors of [`open_plain`], or the text is not UTF-8. For wrong text, the error contains the
/// number of the line.
pub fn read_plain(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_plain(path)?.read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count() + 1;
        io::Error::new(
            ErrorKind::InvalidData,
            format!("line {line}: this line is not UTF-8 text; correct the line, or give another file"),
        )
    })
}
