//! Rows of plain numbers. A few rows stay in memory. Many rows are stored in a file without a name,
//! and each reader has only a small piece of this file in memory. Memory use therefore does not
//! grow with the number of rows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;

/// Environment variable that limits the memory of all rows of this process together, MiB.
pub const VARIABLE: &str = "IOSCHED_ROWS_MIB";
/// Default of this limit, MiB.
pub const MEMORY_MIB: u64 = 128;
/// Size of one write to a file, and of one increase of the used memory, bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Largest number of bytes that a reader has in memory.
const WINDOW_BYTES: usize = 64 << 10;
/// Number of rows in a reader's first read. Each further read is twice as long, up to the limit.
const FIRST_ROWS: usize = 8;
/// The directory for files if `TMPDIR` is not set. This is not `/tmp`, which is often in memory.
const DIRECTORY: &str = "/var/tmp";

/// Memory that rows may use.
struct Budget {
    limit_bytes: u64,
    held_bytes: AtomicU64,
}

impl Budget {
    /// Returns the common budget of all rows of this process.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Budget> = OnceLock::new();
        SHARED.get_or_init(|| {
            let given = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
            Self::new(given.unwrap_or(MEMORY_MIB).saturating_mul(1 << 20))
        })
    }

    const fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, held_bytes: AtomicU64::new(0) }
    }
}

/// A part of a budget. Dropping it gives the part back.
struct Room {
    budget: &'static Budget,
    bytes: u64,
}

impl Room {
    /// Adds `bytes` bytes to the part. Returns false if the budget is used up.
    fn grow(&mut self, bytes: u64) -> bool {
        let more =
            |held_bytes: u64| held_bytes.checked_add(bytes).filter(|&held_bytes| held_bytes <= self.budget.limit_bytes);
        let taken = self.budget.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if taken {
            self.bytes += bytes;
        }
        taken
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn directory() -> PathBuf {
    let directory = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from);
    if directory.is_dir() { directory } else { std::env::temp_dir() }
}

/// Counter that gives temporary files different names.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Creates a file without a name, so that no other process can find it.
fn nameless() -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(directory(), flags, Mode::RUSR | Mode::WUSR) {
        return Ok(file.into());
    }
    // The previous call failed because the file system has no files without a name, or because no
    // file can be created here. Creating a file with a name shows which reason applies.
    let name = format!(".iosched-rows-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = directory().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Adds the file and a remedy to an error.
fn explained(error: &io::Error) -> io::Error {
    let directory = directory().display().to_string();
    let remedy = format!("set TMPDIR to another directory, or {VARIABLE} to more MiB of memory");
    io::Error::new(error.kind(), format!("the temporary file in {directory}: {error}; {remedy}"))
}

/// Rows that do not change after they are written.
pub struct Rows<T> {
    storage: Storage<T>,
    failure: OnceLock<io::Error>,
}

enum Storage<T> {
    Memory { rows: Vec<T>, _room: Room },
    File { file: File, count: usize },
}

impl<T> From<Storage<T>> for Rows<T> {
    fn from(storage: Storage<T>) -> Self {
        Self { storage, failure: OnceLock::new() }
    }
}

impl<T: Pod> Rows<T> {
    /// Creates `count` rows of zeros. [`write_at`](Self::write_at) then changes them.
    ///
    /// # Errors
    /// If the rows need a file, and the file cannot be created.
    pub fn zeroed(count: usize) -> io::Result<Self> {
        Self::zeroed_within(Budget::shared(), count)
    }

    fn zeroed_within(budget: &'static Budget, count: usize) -> io::Result<Self> {
        let mut room = Room { budget, bytes: 0 };
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        if room.grow(bytes) {
            return Ok(Storage::Memory { rows: vec![T::zeroed(); count], _room: room }.into());
        }
        let file = nameless().and_then(|file| file.set_len(bytes).map(|()| file));
        Ok(Storage::File { file: file.map_err(|error| explained(&error))?, count }.into())
    }

    /// Collects all rows of `rows`.
    ///
    /// # Errors
    /// If the rows need a file, and the file cannot be created or is full.
    pub fn collect(rows: impl IntoIterator<Item = T>) -> io::Result<Self> {
        let mut filling = Filling::default();
        rows.into_iter().try_for_each(|row| filling.push(row))?;
        filling.finish()
    }

    /// Writes rows, starting at row number `first`.
    ///
    /// # Errors
    /// If the file is full or fails.
    ///
    /// # Panics
    /// If rows with these numbers do not exist.
    pub fn write_at(&mut self, first: usize, rows: &[T]) -> io::Result<()> {
        match &mut self.storage {
            Storage::Memory { rows: all, .. } => all[first..first + rows.len()].copy_from_slice(rows),
            Storage::File { file, count } => {
                assert!(first + rows.len() <= *count, "the rows exist");
                let place = (first * size_of::<T>()) as u64;
                file.write_all_at(bytemuck::cast_slice(rows), place).map_err(|error| explained(&error))?;
            }
        }
        Ok(())
    }

    /// Returns a reader of these rows, in order.
    ///
    /// # Panics
    /// If rows with these numbers do not exist.
    #[must_use]
    pub fn cursor(&self, range: Range<usize>) -> Cursor<'_, T> {
        let Range { start, end } = range;
        assert!(start <= end && end <= self.len(), "the rows exist");
        let (window, first) = match &self.storage {
            Storage::Memory { rows, .. } => (Window::Whole(&rows[..end]), 0),
            Storage::File { .. } => (Window::Piece(Vec::new()), start),
        };
        let most = WINDOW_BYTES / size_of::<T>().max(1);
        Cursor { rows: self, next: start, end, window, first, most }
    }
}

impl<T> Rows<T> {
    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.storage {
            Storage::Memory { rows, .. } => rows.len(),
            Storage::File { count, .. } => *count,
        }
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first error of a reader. If a reader cannot read a row, it ends at this row as
    /// if there were no more rows. Check this error before you use the rows that you read.
    #[must_use]
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.get()
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Storage::Memory { rows: Vec::new(), _room: Room { budget: Budget::shared(), bytes: 0 } }.into()
    }
}

impl<T> std::fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.len())
    }
}

/// A reader of rows, in order.
pub struct Cursor<'a, T> {
    rows: &'a Rows<T>,
    /// Number of the next row. `end` is the number after the last row.
    next: usize,
    end: usize,
    window: Window<'a, T>,
    /// Number of the window's first row.
    first: usize,
    /// Largest number of rows in a piece.
    most: usize,
}

/// Rows that are in memory.
enum Window<'a, T> {
    /// All rows up to the end.
    Whole(&'a [T]),
    /// Some rows of the file.
    Piece(Vec<T>),
}

impl<T> Window<'_, T> {
    #[inline]
    fn rows(&self) -> &[T] {
        match self {
            Self::Whole(rows) => rows,
            Self::Piece(rows) => rows,
        }
    }
}

impl<T: Pod> Cursor<'_, T> {
    /// Returns the same reader with at most `bytes` bytes in memory, but at least one row.
    #[must_use]
    pub fn with_window(self, bytes: usize) -> Self {
        Self { most: (bytes / size_of::<T>().max(1)).clamp(1, self.most), ..self }
    }

    /// Returns the next row without advancing.
    #[inline]
    pub fn peek(&mut self) -> Option<T> {
        if self.next - self.first >= self.window.rows().len() && !self.read() {
            return None;
        }
        self.window.rows().get(self.next - self.first).copied()
    }

    /// Reads the next piece of the file. Returns whether the piece has a row.
    #[cold]
    fn read(&mut self) -> bool {
        let (Storage::File { file, .. }, Window::Piece(rows)) = (&self.rows.storage, &mut self.window) else {
            return false;
        };
        let count = (2 * rows.len()).clamp(FIRST_ROWS.min(self.most), self.most).min(self.end - self.next);
        rows.resize(count, T::zeroed());
        self.first = self.next;
        let place = (self.next * size_of::<T>()) as u64;
        if let Err(error) = file.read_exact_at(bytemuck::cast_slice_mut(rows), place) {
            let _ = self.rows.failure.set(explained(&error));
            self.end = self.next;
        }
        if self.next == self.end {
            *rows = Vec::new();
        }
        !rows.is_empty()
    }
}

impl<T: Pod> Iterator for Cursor<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let row = self.peek()?;
        self.next += 1;
        Some(row)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl<T: Pod> ExactSizeIterator for Cursor<'_, T> {}

/// Rows that are created one after the other.
pub struct Filling<T> {
    rows: Vec<T>,
    room: Room,
    /// If the memory is used up: the file with the earlier rows, and their number.
    file: Option<(File, usize)>,
}

impl<T> Default for Filling<T> {
    fn default() -> Self {
        Self::within(Budget::shared())
    }
}

impl<T> Filling<T> {
    const fn within(budget: &'static Budget) -> Self {
        Self { rows: Vec::new(), room: Room { budget, bytes: 0 }, file: None }
    }
}

impl<T: Pod> Filling<T> {
    /// Adds a row at the end.
    ///
    /// # Errors
    /// If the rows need a file, and the file cannot be created or is full.
    #[inline]
    pub fn push(&mut self, row: T) -> io::Result<()> {
        self.rows.push(row);
        let bytes = self.rows.len() * size_of::<T>();
        let limit = if self.file.is_some() { CHUNK_BYTES as u64 } else { self.room.bytes };
        if bytes as u64 > limit { self.make_room() } else { Ok(()) }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() + self.file.as_ref().map_or(0, |(_, rows)| *rows)
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cold]
    fn make_room(&mut self) -> io::Result<()> {
        if self.file.is_none() && self.room.grow(CHUNK_BYTES as u64) {
            return Ok(());
        }
        self.spill().map_err(|error| explained(&error))
    }

    fn spill(&mut self) -> io::Result<()> {
        let (file, written) = match &mut self.file {
            Some(taken) => taken,
            none => none.insert((nameless()?, 0)),
        };
        file.write_all(bytemuck::cast_slice(&self.rows))?;
        *written += self.rows.len();
        self.rows.clear();
        self.rows.shrink_to(CHUNK_BYTES / size_of::<T>().max(1));
        self.room = Room { budget: self.room.budget, bytes: 0 };
        Ok(())
    }

    /// Returns all rows.
    ///
    /// # Errors
    /// The errors of [`Self::push`].
    pub fn finish(mut self) -> io::Result<Rows<T>> {
        if self.file.is_some() {
            self.spill().map_err(|error| explained(&error))?;
        }
        let storage = match self.file {
            Some((file, count)) => Storage::File { file, count },
            None => {
                self.rows.shrink_to_fit();
                Storage::Memory { rows: self.rows, _room: self.room }
            }
        };
        Ok(storage.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn temporary_file_is_nameless_and_private() {
        let next = NUMBER.load(Ordering::Relaxed);
        let taken = (next..next + 64).map(|n| directory().join(format!(".iosched-rows-{}-{n}", std::process::id())));
        let taken: Vec<_> = taken.filter(|path| File::create_new(path).is_ok()).collect();
        let file = nameless();
        taken.iter().for_each(|path| fs::remove_file(path).unwrap());
        let about = file.unwrap().metadata().unwrap();
        assert_eq!((about.nlink(), about.mode() & 0o777), (0, 0o600));
    }

    fn budget(limit_bytes: u64) -> &'static Budget {
        Box::leak(Budget::new(limit_bytes).into())
    }

    fn filled(budget: &'static Budget, count: u64) -> Rows<u64> {
        let mut filling = Filling::within(budget);
        (0..count).for_each(|row| filling.push(row * 7).unwrap());
        assert_eq!(filling.len() as u64, count);
        filling.finish().unwrap()
    }

    fn is_in_file<T>(rows: &Rows<T>) -> bool {
        matches!(rows.storage, Storage::File { .. })
    }

    #[test]
    fn rows_are_the_same_in_memory_and_in_a_nameless_file() {
        for (count, limit_bytes) in [(0, 0), (1, 0), (1000, 1 << 20), (300_000, 4096), (131_072, 0)] {
            let rows = filled(budget(limit_bytes), count);
            assert_eq!(is_in_file(&rows), count > 0 && limit_bytes < count * 8, "{count}");
            if let Storage::File { file, .. } = &rows.storage {
                assert_eq!(file.metadata().unwrap().nlink(), 0);
            }
            assert!(rows.cursor(0..rows.len()).eq((0..count).map(|row| row * 7)));
            assert!(rows.failure().is_none());
            let mut narrow = rows.cursor(rows.len() / 3..rows.len()).with_window(1);
            assert_eq!((narrow.len() as u64, narrow.peek()), (count - count / 3, narrow.clone_next()));
        }
    }

    #[test]
    fn rows_are_written_in_any_order_in_memory_and_in_a_file() {
        for limit_bytes in [0, 1 << 20] {
            let mut rows = Rows::zeroed_within(budget(limit_bytes), 1000).unwrap();
            assert_eq!(is_in_file(&rows), limit_bytes == 0);
            rows.write_at(500, &[5u64, 6]).unwrap();
            rows.write_at(10, &[1]).unwrap();
            let found: Vec<u64> = rows.cursor(0..1000).filter(|&row| row > 0).collect();
            assert_eq!(found, [1, 5, 6]);
        }
    }

    #[test]
    fn all_rows_together_stay_within_the_budget() {
        let limit = budget(3 << 20);
        let held = || limit.held_bytes.load(Ordering::Relaxed);
        let first = filled(limit, 200_000);
        let second = filled(limit, 200_000);
        let third = Rows::<u64>::zeroed_within(limit, 200_000).unwrap();
        assert!(!is_in_file(&first) && is_in_file(&second) && is_in_file(&third));
        assert_eq!(held(), 2 << 20);
        drop((first, second, third));
        assert_eq!(held(), 0);
    }

    #[test]
    fn a_reader_has_a_small_piece_of_the_file_in_memory() {
        let rows = filled(budget(0), 100_000);
        let mut cursor = rows.cursor(0..100_000);
        let mut most = 0;
        while cursor.next().is_some() {
            let Window::Piece(piece) = &cursor.window else { panic!("the rows are in a file") };
            most = most.max(piece.capacity() * 8);
        }
        assert!((WINDOW_BYTES / 2..=WINDOW_BYTES).contains(&most), "{most}");
        assert!(matches!(cursor.window, Window::Piece(piece) if piece.capacity() == 0));
    }

    #[test]
    fn reader_ends_at_an_error_and_reports_it() {
        let rows = filled(budget(0), 100_000);
        let Storage::File { file, .. } = &rows.storage else { panic!("the rows are in a file") };
        file.set_len(800).unwrap();
        assert!(rows.cursor(0..100_000).count() <= 100);
        let error = rows.failure().unwrap().to_string();
        assert!(error.contains("temporary file") && error.contains("TMPDIR"), "{error}");
    }

    impl Cursor<'_, u64> {
        fn clone_next(&self) -> Option<u64> {
            self.rows.cursor(self.next..self.end).next()
        }
    }
}
