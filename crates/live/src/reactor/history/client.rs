//! An NBD client of a history. It sends requests and checks every byte of the answers.

use std::collections::BTreeMap;

use iosched_check::Random;
use iosched_nbd::ReplyForm;
use iosched_nbd::client::{FLAGS, Messages, OptionReply, Payload, ReplyHeader};
use iosched_nbd::wire;

use super::witness::{Ask, Witness};
use crate::disk::Action;

/// Stage of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Greeting,
    Options,
    Transmission,
}

/// A request whose answer has not arrived completely.
struct PendingRequest {
    ask: Ask,
    data: Vec<u8>,
    /// Whether each byte of the data has arrived.
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
    /// Whether the server may close the connection before it answers, because the client violated
    /// the protocol.
    pub(super) misbehaves: bool,
    /// Whether the client sends no more requests.
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

    /// Returns the bytes of the next request.
    pub(super) fn ask(&mut self, random: &mut Random, witness: &mut Witness) -> Vec<u8> {
        let ask = witness.ask(random, self.read_only);
        // The client may choose any cookies. Some of these cookies are not in ascending order.
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
        let Messages(mut bytes) = Messages::default().request(command, flags, self.cookies, ask.offset, ask.length);
        if ask.action == Action::Write {
            bytes.extend(ask.data());
        }
        let length = if ask.is_read() { ask.length as usize } else { 0 };
        let new = PendingRequest { ask, data: vec![0; length], came: vec![false; length], error: None };
        self.pending.insert(self.cookies, new);
        bytes
    }

    /// Returns the bytes of a disconnect request.
    pub(super) fn say_good_bye(&mut self) -> Vec<u8> {
        self.leaving = true;
        Messages::default().request(wire::CMD_DISC, 0, 0, 0, 0).0
    }

    /// Handles the end of the connection by the server. Pending requests get no answers any more.
    pub(super) fn end(&mut self, witness: &mut Witness) {
        if !self.pending.is_empty() && !self.misbehaves && !witness.ending && !witness.has_faults() {
            let ask = self.pending.values().next().map(|first| first.ask.clone());
            witness.is_wrong(|| format!("a connection was closed before this request was answered: {ask:?}"));
        }
        self.give_up(witness);
    }

    /// Stops waiting for answers.
    pub(super) fn give_up(&mut self, witness: &mut Witness) {
        for request in std::mem::take(&mut self.pending).into_values() {
            witness.lost(&request.ask);
        }
    }

    /// Takes the bytes that have arrived. Returns the bytes that the client sends in response.
    pub(super) fn hear(&mut self, bytes: &[u8], witness: &mut Witness) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let (mut sent, mut left) = (Vec::new(), &input[..]);
        loop {
            let mut rest = left;
            let heard = match self.stage {
                Stage::Greeting => self.greeting(&mut rest, &mut sent),
                Stage::Options => self.option_reply(&mut rest),
                Stage::Transmission => self.reply(&mut rest, witness),
            };
            match heard {
                Ok(Some(())) => left = rest,
                Err(what) => {
                    witness.is_wrong(|| format!("the server sent a reply that breaks the protocol: {what}"));
                    return sent;
                }
                Ok(None) => break,
            }
        }
        self.input = if left.len() == input.len() { input } else { left.to_vec() };
        sent
    }

    fn greeting(&mut self, input: &mut &[u8], sent: &mut Vec<u8>) -> Result<Option<()>, String> {
        let Some((greeting, rest)) = input.split_first_chunk() else { return Ok(None) };
        *input = rest;
        if *greeting != wire::greeting() {
            return Err("another greeting".to_owned());
        }
        let mut messages = Messages::flags(FLAGS);
        if self.structured {
            messages = messages.option(wire::OPT_STRUCTURED_REPLY, &[]);
        }
        sent.extend(messages.go(self.export).0);
        self.stage = Stage::Options;
        Ok(Some(()))
    }

    fn option_reply(&mut self, input: &mut &[u8]) -> Result<Option<()>, String> {
        let Some(reply) = OptionReply::read(input).map_err(|error| error.to_string())? else { return Ok(None) };
        if reply.kind & wire::REP_FLAG_ERROR != 0 {
            // The export no longer exists, or the server is about to end.
            (self.leaving, self.misbehaves) = (true, true);
        } else if reply.option == wire::OPT_GO && reply.kind == wire::REP_ACK {
            self.stage = Stage::Transmission;
        }
        Ok(Some(()))
    }

    fn reply(&mut self, input: &mut &[u8], witness: &mut Witness) -> Result<Option<()>, String> {
        let form = if self.structured { ReplyForm::Structured } else { ReplyForm::Simple };
        let Some(header) = ReplyHeader::read(input, form).map_err(|error| error.to_string())? else { return Ok(None) };
        let unexpected = |cookie| format!("a reply to request {cookie}, which was never sent or was already answered");
        let chunk = match header {
            ReplyHeader::Chunk(chunk) => chunk,
            ReplyHeader::Simple { error, cookie } => {
                let request = self.pending.get(&cookie).ok_or_else(|| unexpected(cookie))?;
                if self.structured && request.ask.is_read() {
                    return Err("a simple reply to a read, although structured replies were negotiated".to_owned());
                }
                let length = if error == 0 { request.data.len() } else { 0 };
                let Some((data, rest)) = input.split_at_checked(length) else { return Ok(None) };
                *input = rest;
                let result = if error == 0 { Ok(data) } else { Err(error) };
                if let Some(request) = self.pending.remove(&cookie) {
                    witness.answer(&request.ask, result);
                }
                return Ok(Some(()));
            }
        };
        let Some((payload, rest)) = input.split_at_checked(chunk.length as usize) else { return Ok(None) };
        *input = rest;
        let request = self.pending.get_mut(&chunk.cookie).ok_or_else(|| unexpected(chunk.cookie))?;
        request.take(chunk.kind, payload)?;
        if !chunk.is_last() {
            return Ok(Some(()));
        }
        let Some(PendingRequest { ask, data, came, error }) = self.pending.remove(&chunk.cookie) else {
            return Ok(Some(()));
        };
        match error {
            Some(error) => witness.answer(&ask, Err(error)),
            None if came.iter().all(|&came| came) => witness.answer(&ask, Ok(&data)),
            None => return Err(format!("the reply to {ask:?} is incomplete")),
        }
        Ok(Some(()))
    }
}

impl PendingRequest {
    fn take(&mut self, kind: u16, payload: &[u8]) -> Result<(), String> {
        match Payload::read(kind, payload).map_err(|error| error.to_string())? {
            Payload::None => Ok(()),
            Payload::Error { error, .. } => {
                self.error = Some(error);
                Ok(())
            }
            Payload::Data { offset, data } => {
                let from = offset.checked_sub(self.ask.offset).map(|from| from as usize);
                let place = from.map(|from| from..from + data.len());
                let room = place.clone().and_then(|place| self.data.get_mut(place));
                let (Some(room), Some(place)) = (room, place) else { return Err("data beyond the read".to_owned()) };
                room.copy_from_slice(data);
                if self.came[place.clone()].contains(&true) {
                    return Err("data twice".to_owned());
                }
                self.came[place].fill(true);
                Ok(())
            }
            other => Err(format!("an unexpected chunk: {other:?}")),
        }
    }
}
