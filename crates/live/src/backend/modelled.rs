//! A modelled disk in real time. The profile of a real device determines when commands complete.
//! The data is in memory.

use std::io;
use std::ops::Range;

use iosched::Time;
use iosched_disk::{AnyDevice, Device, Profile};
use iosched_system::Segment;

use super::contract::{Backend, BackendCard, Completion, Extent};
use super::memory::Bytes;
use crate::Errno;
use crate::disk::Command;
use crate::ring::Submissions;

/// A command in the model. Its data is copied when the command completes.
struct UnderWay {
    command: Command,
    segments: Vec<Segment>,
}

/// A back end with the speed of a real device.
pub struct Modelled {
    card: BackendCard,
    device: AnyDevice,
    bytes: Bytes,
    /// Commands by identifier.
    under_way: Vec<UnderWay>,
}

impl Modelled {
    /// Creates the device of `profile`. Its size is the profile's size or `capacity_bytes`,
    /// whichever is smaller.
    /// `seed` determines the random decisions.
    ///
    /// # Errors
    /// The address space has not enough room for the data.
    pub fn new(profile: &Profile, capacity_bytes: Option<u64>, seed: u64) -> io::Result<Self> {
        let card = card(profile, capacity_bytes);
        let bytes = Bytes::new(card.capacity_bytes())?;
        Ok(Self { card, device: profile.device(seed), bytes, under_way: Vec::new() })
    }

    fn complete(&mut self, id: u32) -> Result<(), Errno> {
        let UnderWay { command, segments } = self.under_way.get_mut(id as usize).ok_or(Errno::EIO)?;
        let result = self.bytes.execute(command, segments);
        segments.clear();
        result
    }
}

/// Returns the properties of the device of `profile`. The size is the profile's size or
/// `capacity_bytes`, whichever is smaller.
pub(crate) fn card(profile: &Profile, capacity_bytes: Option<u64>) -> BackendCard {
    let device = profile.card();
    let bytes = capacity_bytes.unwrap_or(u64::MAX);
    BackendCard {
        about: format!("modelled {}", profile.name()),
        depth_max: device.depth,
        device: iosched_disk::Card {
            capacity_sectors: device.capacity_sectors.min(bytes / iosched::SECTOR_BYTES),
            hw_queues: 1,
            ..device.clone()
        },
        block_bytes: 512,
        trim_zeroes: true,
        // The models need as much time for zeroes as for data.
        fast_zeroes: false,
    }
}

/// Converts a command to a command of a modelled device.
pub(crate) fn device_command(command: &Command) -> iosched_disk::Command {
    let &Command { id: tag, op, offset, length, fua, .. } = command;
    let (sector, nr_sectors) = (offset / iosched::SECTOR_BYTES, (length / iosched::SECTOR_BYTES) as u32);
    iosched_disk::Command { tag, op, sector, nr_sectors, fua }
}

impl Backend for Modelled {
    fn card(&self) -> &BackendCard {
        &self.card
    }

    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        _ring: &mut Submissions<'_>,
        _done: &mut Vec<Completion>,
    ) {
        while self.under_way.len() <= command.id as usize {
            self.under_way.push(UnderWay { command: *command, segments: Vec::new() });
        }
        let slot = &mut self.under_way[command.id as usize];
        slot.command = *command;
        slot.segments.append(segments);
        self.device.submit(now, device_command(command));
    }

    fn extent(&self, bytes: Range<u64>) -> Extent {
        self.bytes.extent(bytes)
    }

    fn next_event(&self) -> Option<Time> {
        self.device.next_event()
    }

    /// Processes the events that are due. The device gets each event at the event's own time, even
    /// if the caller is late.
    fn advance(&mut self, now: Time, _ring: &mut Submissions<'_>, done: &mut Vec<Completion>) {
        while let Some(at) = self.device.next_event().filter(|&at| at <= now) {
            while let Some(id) = self.device.advance(at) {
                let result = self.complete(id);
                done.push((id, result));
            }
        }
    }
}
