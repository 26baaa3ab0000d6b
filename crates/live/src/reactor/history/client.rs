//! An NBD client of a history: what it sends, and what it makes of what comes, to the byte.

use std::collections::BTreeMap;

use iosched_check::Random;

use super::witness::{Ask, Witness};
use crate::disk::Action;
use crate::nbd::wire::{self, OptionHeader, Reader, RequestHeader};

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Greeting,
    Options,
    Transmission,
}

/// A request that is not answered.
struct PendingRequest {
    ask: Ask,
    data: Vec<u8>,
    /// Which of the data has come.
    came: Vec<bool>,
    error: Option<u32>,
}

pub(super) struct Client {
    stage: Stage,
    export: &'static str,
    read_only: bool,
    structured: bool,
    input: Vec<u8>,
    pending: BTreeMap<u64, PendingRequest>,
    cookies: u64,
    /// It may be closed before it is answered, for what it has done.
    pub(super) misbehaves: bool,
    /// It asks for nothing more.
    pub(super) leaving: bool,
}

impl Client {
    pub(super) fn new(export: &'static str, read_only: bool, structured: bool) -> Self {
        Self {
            stage: Stage::Greeting,
            export,
            read_only,
            structured,
            input: Vec::new(),
            pending: BTreeMap::new(),
            cookies: 0,
            misbehaves: false,
            leaving: false,
        }
    }

    pub(super) fn waits(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn may_ask(&self) -> bool {
        self.stage == Stage::Transmission && !self.leaving
    }

    /// The bytes of its next request.
    pub(super) fn ask(&mut self, random: &mut Random, witness: &mut Witness) -> Vec<u8> {
        let ask = witness.ask(random, self.read_only);
        // Names of requests are the client's; some do not count.
        self.cookies = self.cookies.wrapping_mul(3).wrapping_add(1 + random.below(5));
        while self.pending.contains_key(&self.cookies) {
            self.cookies += 1;
        }
        let command = match ask.action {
            Action::Read => wire::CMD_READ,
            Action::Write => wire::CMD_WRITE,
            Action::Flush => wire::CMD_FLUSH,
            Action::Trim => wire::CMD_TRIM,
            Action::WriteZeroes => wire::CMD_WRITE_ZEROES,
        };
        let df = self.structured && ask.action == Action::Read && random.chance(30);
        let flags = [
            (witness.tells_fua(&ask), wire::CMD_FLAG_FUA),
            (ask.no_hole, wire::CMD_FLAG_NO_HOLE),
            (df, wire::CMD_FLAG_DF),
        ];
        let flags = flags.iter().filter(|(is, _)| *is).fold(0, |all, (_, flag)| all | flag);
        let (magic, cookie, offset) = (wire::REQUEST_MAGIC, self.cookies, ask.offset);
        let header = RequestHeader { magic, flags, command, cookie, offset, length: ask.length.into() };
        let mut bytes = header.to_bytes().to_vec();
        if ask.action == Action::Write {
            bytes.extend(ask.data());
        }
        let length = if ask.is_read() { ask.length as usize } else { 0 };
        let new = PendingRequest { ask, data: vec![0; length], came: vec![false; length], error: None };
        self.pending.insert(self.cookies, new);
        bytes
    }

    /// The bytes by which it says that it goes.
    pub(super) fn say_good_bye(&mut self) -> Vec<u8> {
        self.leaving = true;
        let (magic, command) = (wire::REQUEST_MAGIC, wire::CMD_DISC);
        RequestHeader { magic, flags: 0, command, cookie: 0, offset: 0, length: 0 }.to_bytes().to_vec()
    }

    /// The server has ended the connection: what it has asked for is not answered any more.
    pub(super) fn end(&mut self, witness: &mut Witness) {
        if !self.pending.is_empty() && !self.misbehaves && !witness.ending && !witness.has_faults() {
            let ask = self.pending.values().next().map(|first| first.ask.clone());
            witness.is_wrong(|| format!("a connection was closed, and this was not answered: {ask:?}"));
        }
        self.give_up(witness);
    }

    /// It waits for no answer any more.
    pub(super) fn give_up(&mut self, witness: &mut Witness) {
        for request in std::mem::take(&mut self.pending).into_values() {
            witness.lost(&request.ask);
        }
    }

    /// Bytes have come. What it sends in turn.
    pub(super) fn hear(&mut self, bytes: &[u8], witness: &mut Witness) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let (mut said, mut left) = (Vec::new(), &input[..]);
        loop {
            let mut reader = Reader(left);
            let heard = match self.stage {
                Stage::Greeting => self.greeting(&mut reader, &mut said),
                Stage::Options => self.option_reply(&mut reader),
                Stage::Transmission => self.reply(&mut reader, witness),
            };
            match heard {
                Some(Ok(())) => left = reader.0,
                Some(Err(what)) => {
                    witness.is_wrong(|| format!("the server says what no client can expect: {what}"));
                    return said;
                }
                None => break,
            }
        }
        self.input = if left.len() == input.len() { input } else { left.to_vec() };
        said
    }

    fn greeting(&mut self, reader: &mut Reader<'_>, said: &mut Vec<u8>) -> Option<Result<(), String>> {
        if reader.bytes(wire::GREETING_BYTES)? != wire::greeting() {
            return Some(Err("another greeting".to_owned()));
        }
        said.extend((wire::FLAG_C_FIXED_NEWSTYLE | wire::FLAG_C_NO_ZEROES).to_be_bytes());
        let mut option = |option, data: &[u8]| {
            let length = data.len() as u32;
            OptionHeader { magic: wire::OPTION_MAGIC, option, length }.write(said);
            said.extend_from_slice(data);
        };
        if self.structured {
            option(wire::OPT_STRUCTURED_REPLY, &[]);
        }
        let mut data = (self.export.len() as u32).to_be_bytes().to_vec();
        data.extend(self.export.as_bytes());
        data.extend([0, 0]);
        option(wire::OPT_GO, &data);
        self.stage = Stage::Options;
        Some(Ok(()))
    }

    fn option_reply(&mut self, reader: &mut Reader<'_>) -> Option<Result<(), String>> {
        let (magic, option, kind, length) = (reader.u64()?, reader.u32()?, reader.u32()?, reader.u32()?);
        reader.bytes(length as usize)?;
        if magic != wire::OPTION_REPLY_MAGIC {
            return Some(Err(format!("magic {magic:#x} in the handshake")));
        }
        if kind & wire::REP_FLAG_ERROR != 0 {
            // There is no such export any more, or the server is about to end.
            (self.leaving, self.misbehaves) = (true, true);
        } else if option == wire::OPT_GO && kind == wire::REP_ACK {
            self.stage = Stage::Transmission;
        }
        Some(Ok(()))
    }

    fn reply(&mut self, reader: &mut Reader<'_>, witness: &mut Witness) -> Option<Result<(), String>> {
        match (reader.u32()?, self.structured) {
            (wire::SIMPLE_REPLY_MAGIC, structured) => {
                let (error, cookie) = (reader.u32()?, reader.u64()?);
                let Some(request) = self.pending.get(&cookie) else {
                    return Some(Err(format!(
                        "a reply to request {cookie}, which was never sent or was already answered"
                    )));
                };
                if structured && request.ask.is_read() {
                    return Some(Err(
                        "a simple reply to a read, although structured replies were negotiated".to_owned()
                    ));
                }
                let length = if error == 0 { request.data.len() } else { 0 };
                let data = reader.bytes(length)?;
                let result = if error == 0 { Ok(data) } else { Err(error) };
                if let Some(request) = self.pending.remove(&cookie) {
                    witness.answer(&request.ask, result);
                }
                Some(Ok(()))
            }
            (wire::STRUCTURED_REPLY_MAGIC, true) => self.chunk(reader, witness),
            (magic, _) => Some(Err(format!("magic {magic:#x}"))),
        }
    }

    fn chunk(&mut self, reader: &mut Reader<'_>, witness: &mut Witness) -> Option<Result<(), String>> {
        let (flags, kind, cookie, length) = (reader.u16()?, reader.u16()?, reader.u64()?, reader.u32()?);
        let payload = reader.bytes(length as usize)?;
        let Some(request) = self.pending.get_mut(&cookie) else {
            return Some(Err(format!("a reply to request {cookie}, which was never sent or was already answered")));
        };
        if let Err(what) = request.take(kind, payload) {
            return Some(Err(what));
        }
        if flags & wire::REPLY_FLAG_DONE == 0 {
            return Some(Ok(()));
        }
        let Some(PendingRequest { ask, data, came, error }) = self.pending.remove(&cookie) else { return Some(Ok(())) };
        match error {
            Some(error) => witness.answer(&ask, Err(error)),
            None if came.iter().all(|&came| came) => witness.answer(&ask, Ok(&data)),
            None => return Some(Err(format!("the reply to {ask:?} is incomplete"))),
        }
        Some(Ok(()))
    }
}

impl PendingRequest {
    fn take(&mut self, kind: u16, payload: &[u8]) -> Result<(), String> {
        let mut reader = Reader(payload);
        let short = || "a chunk that is too short".to_owned();
        match kind {
            wire::REPLY_TYPE_NONE => Ok(()),
            wire::REPLY_TYPE_ERROR => {
                self.error = Some(reader.u32().ok_or_else(short)?);
                Ok(())
            }
            wire::REPLY_TYPE_OFFSET_DATA => {
                let offset = reader.u64().ok_or_else(short)?;
                let from = offset.checked_sub(self.ask.offset).map(|from| from as usize);
                let place = from.map(|from| from..from + reader.0.len());
                let room = place.clone().and_then(|place| self.data.get_mut(place));
                let (Some(room), Some(place)) = (room, place) else { return Err("data beyond the read".to_owned()) };
                room.copy_from_slice(reader.0);
                if self.came[place.clone()].contains(&true) {
                    return Err("data twice".to_owned());
                }
                self.came[place].fill(true);
                Ok(())
            }
            kind => Err(format!("a chunk of type {kind}")),
        }
    }
}
