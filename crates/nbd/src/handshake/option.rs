//! The data of options: `GO` and `INFO`, `LIST_META_CONTEXT` and `SET_META_CONTEXT`.

use crate::wire::{self, Reader};

/// Data of `GO` or `INFO`.
#[derive(Clone, Copy, Debug)]
pub(super) struct InfoRequest<'a> {
    pub(super) name: &'a str,
    /// `INFO_*`, two bytes each.
    facts: &'a [u8],
}

impl<'a> InfoRequest<'a> {
    /// # Errors
    /// Returns the kind of the error reply, and its message for people.
    pub(super) fn read(data: &'a [u8]) -> Result<Self, (u32, &'static str)> {
        let mut reader = Reader(data);
        let malformed = (wire::REP_ERR_INVALID, "the lengths in this option do not agree with the length of its data");
        let name_bytes = reader.u32().ok_or(malformed)? as usize;
        let name = reader.bytes(name_bytes).ok_or(malformed)?;
        let count = usize::from(reader.u16().ok_or(malformed)?);
        if reader.0.len() != 2 * count {
            return Err(malformed);
        }
        if name_bytes > wire::STRING_BYTES_MAX {
            return Err((wire::REP_ERR_TOO_BIG, "an export name can have at most 4096 bytes"));
        }
        let name = str::from_utf8(name).map_err(|_| (wire::REP_ERR_INVALID, "an export name must be UTF-8"))?;
        Ok(Self { name, facts: reader.0 })
    }

    /// Returns whether the client requests this fact, `INFO_*`.
    pub(super) fn for_fact(&self, fact: u16) -> bool {
        self.facts.chunks_exact(2).any(|bytes| bytes == fact.to_be_bytes())
    }
}

/// Identifier of [`wire::BASE_ALLOCATION`], the only metadata context.
pub(crate) const ALLOCATION_ID: u32 = 1;

/// Data of `LIST_META_CONTEXT` or `SET_META_CONTEXT`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContextsRequest<'a> {
    pub(super) name: &'a str,
    /// Whether the client sent no query.
    is_open: bool,
    /// Whether a query names the context `base:allocation`.
    names_allocation: bool,
    /// Whether a query is `base:`. It means all contexts whose names begin with `base:`.
    names_base: bool,
}

impl<'a> ContextsRequest<'a> {
    /// # Errors
    /// Returns the kind of the error reply, and its message for people.
    pub(super) fn read(data: &'a [u8]) -> Result<Self, (u32, &'static str)> {
        let mut reader = Reader(data);
        let malformed = (wire::REP_ERR_INVALID, "the lengths in this option do not agree with the length of its data");
        let mut string = || {
            let bytes = reader.u32()? as usize;
            reader.bytes(bytes)
        };
        let name = string().ok_or(malformed)?;
        if name.len() > wire::STRING_BYTES_MAX {
            return Err((wire::REP_ERR_TOO_BIG, "an export name can have at most 4096 bytes"));
        }
        let name = str::from_utf8(name).map_err(|_| (wire::REP_ERR_INVALID, "an export name must be UTF-8"))?;
        let count = reader.u32().ok_or(malformed)?;
        let mut request = Self { name, is_open: count == 0, names_allocation: false, names_base: false };
        for _ in 0..count {
            let bytes = reader.u32().ok_or(malformed)? as usize;
            let query = reader.bytes(bytes).ok_or(malformed)?;
            request.names_allocation |= query == wire::BASE_ALLOCATION.as_bytes();
            request.names_base |= query == b"base:";
        }
        if reader.0.is_empty() { Ok(request) } else { Err(malformed) }
    }

    /// Returns whether the list for the client contains `base:allocation`.
    pub(super) fn lists_allocation(&self) -> bool {
        self.is_open || self.names_base || self.names_allocation
    }

    /// Returns whether the client chooses `base:allocation`. A choice needs the whole name.
    pub(super) fn chooses_allocation(&self) -> bool {
        self.names_allocation
    }
}
