//! Compression, told by magic: gzip through flate2, Zstandard through ruzstd (one adapter: [`ZstdReader`]).

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

/// `reader`, decompressed if its first bytes say that it is compressed; tells whether it was.
///
/// # Errors
/// The first bytes cannot be read.
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

/// What goes wrong with compressed data, in words.
const ENDS_EARLY: &str = "the compressed data is truncated";
const DAMAGED: &str = "the compressed data is damaged";

/// A decompressor whose errors are for people.
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

/// The text in a file of at most `bytes_max`, decompressed if it is compressed with gzip or Zstandard: for text that is
/// no trace of its own.
///
/// # Errors
/// It cannot be read, is damaged, is larger, or is no UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = crate::open_plain(path)?;
    let (reader, _) = plain(Box::new(file))?;
    let mut text = String::new();
    reader.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {bytes_max} bytes")));
    }
    Ok(text)
}

/// All frames of a Zstandard file, one after the other. When a frame is damaged or cut short, everything
/// decoded before is given out first, then the error.
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

    /// Whether there is a frame to read; skips those that hold no data.
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

    /// The decoder failed: at the end of what there is, or before it.
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
                let message = format!("{DAMAGED}: its checksum is {found:08x}, but should be {stored:08x}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            _ => Ok(()),
        }
    }

    /// Ends the frame with an empty block of our own, so that the decoder hands over what it holds back as
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
