//! Files that people write, as text: profiles of machines, tasks, jobs. What is no file is told as what it is.

use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Opens a file, or a pipe, to be read from its beginning to its end.
///
/// # Errors
/// It cannot be opened, or is a directory, a device or a socket: those do not end, or not before everything on them
/// was read.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let file_type = std::fs::metadata(path)?.file_type();
    match what_else(file_type) {
        Some((kind, what)) => Err(io::Error::new(kind, format!("is {what}, not a file"))),
        None => File::open(path),
    }
}

/// What it is, if it is nothing that ends.
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

/// The text in a file.
///
/// # Errors
/// As [`open_plain`]; or it is no UTF-8, and then the line is told.
pub fn read_plain(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_plain(path)?.read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count() + 1;
        io::Error::new(ErrorKind::InvalidData, format!("line {line}: is not UTF-8 text"))
    })
}
