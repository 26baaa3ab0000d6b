//! The data of `GO` and `INFO`: which export, and which facts about it.

use super::super::wire::{self, Reader};

/// What a client asks for with `GO` or `INFO`.
#[derive(Clone, Copy, Debug)]
pub(super) struct InfoRequest<'a> {
    pub(super) name: &'a str,
    /// `INFO_*`, two bytes each.
    facts: &'a [u8],
}

impl<'a> InfoRequest<'a> {
    /// # Errors
    /// The kind of reply and what it says to a person.
    pub(super) fn read(data: &'a [u8]) -> Result<Self, (u32, &'static str)> {
        let mut reader = Reader(data);
        let malformed = (wire::REP_ERR_INVALID, "the lengths in this option do not match");
        let name_bytes = reader.u32().ok_or(malformed)? as usize;
        let name = reader.bytes(name_bytes).ok_or(malformed)?;
        let count = usize::from(reader.u16().ok_or(malformed)?);
        if reader.0.len() != 2 * count {
            return Err(malformed);
        }
        if name_bytes > wire::STRING_BYTES_MAX {
            return Err((wire::REP_ERR_TOO_BIG, "an export name has at most 4096 bytes"));
        }
        let name = str::from_utf8(name).map_err(|_| (wire::REP_ERR_INVALID, "an export name must be UTF-8"))?;
        Ok(Self { name, facts: reader.0 })
    }

    /// Whether a fact, `INFO_*`, is asked for.
    pub(super) fn for_fact(&self, fact: u16) -> bool {
        self.facts.chunks_exact(2).any(|bytes| bytes == fact.to_be_bytes())
    }
}
