//! Decompression of gzip (flate2) and Zstandard (ruzstd, through the adapter [`ZstdReader`]). The
//! first bytes of a file (its magic number) select the format.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Returns a reader of the decompressed data, and whether the data was compressed. Returns `reader`
/// unchanged if its first bytes do not show a compressed format.
///
/// # Errors
/// If the first bytes cannot be read.
pub(crate) fn plain(reader: Box<dyn Read + Send>) -> io::Result<(Box<dyn Read + Send>, bool)> {
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    let compression = loop {
        match reader.fill_buf() {
            Ok(head) => break Compression::of(head),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    Ok(match compression {
        None => (Box::new(reader), false),
        Some(Compression::Gzip) => (Box::new(Explained(flate2::bufread::MultiGzDecoder::new(reader))), true),
        Some(Compression::Zstd) => (Box::new(ZstdReader::new(reader)), true),
    })
}

/// Messages about damaged compressed data.
const ENDS_EARLY: &str = "the compressed data is truncated";
const DAMAGED: &str = "the compressed data is damaged";

/// A decompressor with readable error messages.
struct Explained<R>(R);

impl<R: Read> Read for Explained<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.0.read(target).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), ENDS_EARLY),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => io::Error::new(error.kind(), DAMAGED),
            _ => error,
        })
    }
}

/// Reads the text of a file of at most `bytes_max` bytes. Decompresses gzip and Zstandard. Use it
/// for text files other than traces.
///
/// # Errors
/// If the file cannot be read, is damaged, has more than `bytes_max` bytes, or is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = crate::open_plain(path)?;
    let (reader, _) = plain(Box::new(file))?;
    let mut text = String::new();
    reader.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the decompressed content is larger than {bytes_max} bytes"),
        ));
    }
    Ok(text)
}

/// Reads all frames of a Zstandard file, one after the other. If a frame is damaged or truncated,
/// returns all data that was decoded before, then the error.
pub(crate) struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
    error: Option<io::Error>,
    done: bool,
}

impl<R: BufRead> ZstdReader<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), in_frame: false, error: None, done: false }
    }

    /// Returns whether there is a frame to read. Skips frames without data.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, ENDS_EARLY));
                    }
                }
                Err(_) => return Err(self.problem()),
            }
        }
    }

    /// Returns the error of a failed decoder. If no data is left, the error is truncated data.
    /// Otherwise the error is damaged data.
    fn problem(&mut self) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => io::Error::new(io::ErrorKind::UnexpectedEof, ENDS_EARLY),
            Ok(_) => io::Error::new(io::ErrorKind::InvalidData, DAMAGED),
            Err(error) => error,
        }
    }

    fn check(&self) -> io::Result<()> {
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(found)) if stored != found => {
                let message = format!("{DAMAGED}: the checksum is {found:08x}, but should be {stored:08x}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            _ => Ok(()),
        }
    }

    /// Ends the frame with an additional empty block. Otherwise the decoder holds back the data of
    /// its window.
    fn end_frame(&mut self) {
        const LAST_BLOCK_EMPTY_AND_CHECKSUM: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
        let ended = self.decoder.decode_blocks(LAST_BLOCK_EMPTY_AND_CHECKSUM, BlockDecodingStrategy::All);
        if ended.is_err() {
            self.done = true;
        }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if target.is_empty() {
            return Ok(0);
        }
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(target);
            }
            if let Some(error) = self.error.take() {
                self.done = true;
                return Err(error);
            }
            if self.done {
                return Ok(0);
            }
            if !self.in_frame {
                match self.next_frame() {
                    Ok(true) => self.in_frame = true,
                    Ok(false) => self.done = true,
                    Err(error) => self.error = Some(error),
                }
            } else if self.decoder.is_finished() {
                self.in_frame = false;
                if let Err(error) = self.check() {
                    self.error = Some(error);
                }
            } else if self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1)).is_err() {
                self.error = Some(self.problem());
                if !self.decoder.is_finished() {
                    self.end_frame();
                }
            }
        }
    }
}
