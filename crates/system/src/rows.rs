//! Rows of plain numbers, however many: in memory as long as they are few, else in a file without a name, of which the
//! kernel keeps in memory what is looked at.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::Pod;
use memmap2::MmapMut;
use rustix::fs::FallocateFlags;

/// Says how many MiB of rows of one kind stay in memory.
pub const VARIABLE: &str = "IOSCHED_ROWS_MIB";
/// If nothing says so.
const MEMORY_MIB: u64 = 1024;
/// Rows on their way to the file, bytes.
const CHUNK_BYTES: usize = 1 << 20;
/// Where files go if nothing says so: what may be a part of memory, as /tmp often is, is no place for them.
const DIRECTORY: &str = "/var/tmp";

fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let said = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
        said.unwrap_or(MEMORY_MIB).saturating_mul(1 << 20)
    })
}

/// A file that nobody else can find.
fn nameless() -> io::Result<File> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let directory = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from);
    let directory = if directory.is_dir() { directory } else { std::env::temp_dir() };
    let name = format!(".iosched-rows-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = directory.join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Rows that stay as they are.
pub struct Rows<T> {
    kept: Kept<T>,
}

enum Kept<T> {
    Memory(Vec<T>),
    File(MmapMut, PhantomData<T>),
}

impl<T: Pod> Rows<T> {
    /// So many rows of zeroes, to be filled. Where there is no room for a file, they are in memory.
    #[must_use]
    pub fn zeroed(count: usize) -> Self {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let file = (bytes > memory_bytes()).then(|| {
            let file = nameless()?;
            // Room is taken now: what is missing later is a signal and no error.
            rustix::fs::fallocate(file.as_fd(), FallocateFlags::empty(), 0, bytes)?;
            mapped(&file)
        });
        match file {
            Some(Ok(map)) => Self { kept: Kept::File(map, PhantomData) },
            _ => Self { kept: Kept::Memory(vec![T::zeroed(); count]) },
        }
    }

    /// All rows that `rows` gives.
    ///
    /// # Errors
    /// There are too many for memory, and no room for a file.
    pub fn collect(rows: impl IntoIterator<Item = T>) -> io::Result<Self> {
        let mut filling = Filling::default();
        rows.into_iter().try_for_each(|row| filling.push(row))?;
        filling.finish()
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { kept: Kept::Memory(Vec::new()) }
    }
}

impl<T: Pod> Clone for Rows<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.len());
        copy.copy_from_slice(self);
        copy
    }
}

impl<T: Pod> Deref for Rows<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.kept {
            Kept::Memory(rows) => rows,
            Kept::File(map, _) => bytemuck::cast_slice(map),
        }
    }
}

impl<T: Pod> DerefMut for Rows<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.kept {
            Kept::Memory(rows) => rows,
            Kept::File(map, _) => bytemuck::cast_slice_mut(map),
        }
    }
}

impl<T: Pod + std::fmt::Debug> std::fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn mapped(file: &File) -> io::Result<MmapMut> {
    // SAFETY: the file has no name and only this process has it open, so that nobody shortens it or writes to it while
    // it is mapped.
    unsafe { MmapMut::map_mut(file) }
}

/// Rows that come one after the other.
pub struct Filling<T> {
    rows: Vec<T>,
    /// Where earlier rows are, once there are many.
    file: Option<(File, usize)>,
    memory_bytes: u64,
}

impl<T> Default for Filling<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), file: None, memory_bytes: memory_bytes() }
    }
}

impl<T: Pod> Filling<T> {
    /// One more.
    ///
    /// # Errors
    /// There are too many for memory, and no room for a file.
    #[inline]
    pub fn push(&mut self, row: T) -> io::Result<()> {
        self.rows.push(row);
        let bytes = self.rows.len() * size_of::<T>();
        let full = if self.file.is_some() { bytes >= CHUNK_BYTES } else { bytes as u64 > self.memory_bytes };
        if full { self.spill() } else { Ok(()) }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() + self.file.as_ref().map_or(0, |(_, rows)| *rows)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        let (file, written) = match &mut self.file {
            Some(own) => own,
            none => none.insert((nameless()?, 0)),
        };
        file.write_all(bytemuck::cast_slice(&self.rows))?;
        *written += self.rows.len();
        self.rows.clear();
        self.rows.shrink_to(CHUNK_BYTES / size_of::<T>().max(1));
        Ok(())
    }

    /// All of them.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(mut self) -> io::Result<Rows<T>> {
        if self.file.is_some() && !self.rows.is_empty() {
            self.spill()?;
        }
        match &self.file {
            Some((file, _)) => Ok(Rows { kept: Kept::File(mapped(file)?, PhantomData) }),
            None => {
                self.rows.shrink_to_fit();
                Ok(Rows { kept: Kept::Memory(self.rows) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_same_in_memory_and_in_a_file_and_nothing_is_left_of_them() {
        for (count, memory_bytes) in [(0, 0), (1, 0), (1000, 1 << 20), (300_000, 4096), (131_072, 0)] {
            let mut filling = Filling::<u64> { memory_bytes, ..Filling::default() };
            (0..count).for_each(|row| filling.push(row * 7).unwrap());
            assert_eq!(filling.len(), count as usize);
            let mut rows = filling.finish().unwrap();
            assert_eq!(matches!(rows.kept, Kept::File(..)), count > 0 && memory_bytes < count * 8, "{count}");
            assert!(rows.iter().copied().eq((0..count).map(|row| row * 7)));
            assert_eq!(&*rows.clone(), &*rows);
            rows.iter_mut().for_each(|row| *row += 1);
            assert_eq!(rows.first().copied(), (count > 0).then_some(1));
        }
        assert_eq!(left(), [""; 0]);
    }

    /// What there is of this process's rows: files by name, open files, mappings.
    fn left() -> Vec<String> {
        let ours = format!(".iosched-rows-{}-", std::process::id());
        let files = fs::read_dir(DIRECTORY).unwrap().filter_map(Result::ok).map(|entry| entry.path());
        let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let mapped = fs::read_to_string("/proc/self/maps").unwrap();
        let there = files.chain(open).map(|path| path.display().to_string());
        there.chain(mapped.lines().map(String::from)).filter(|text| text.contains(&ours)).collect()
    }
}
