//! A virtqueue. It takes the heads of requests from the guest, and returns each head when the
//! request is complete.

use std::collections::VecDeque;
use std::fs::File;
use std::num::Wrapping;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use virtio_queue::{Queue as Rings, QueueOwnedT, QueueT};
use vm_memory::GuestAddress;

use crate::virtio::device::{F_EVENT_IDX, QUEUE_SIZE_MAX};
use crate::virtio::inflight::{self, Region};
use crate::virtio::memory::Memory;
use crate::virtio::{Addresses, Refusal};

/// Error: the guest has violated the rules for its rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BrokenRings;

pub(super) struct Queue {
    number: u16,
    rings: Rings,
    addresses: Option<Addresses>,
    /// Start position of the queue, if no earlier server has left state.
    base: u16,
    /// Index of the guest's notification file in the server.
    pub(super) kick: Option<u32>,
    /// File by which the server notifies the guest.
    pub(super) call: Option<File>,
    /// Whether the frontend has enabled the queue; `None` before the frontend has enabled or
    /// disabled it.
    pub(super) enabled: Option<bool>,
    pub(super) started: bool,
    /// Heads of requests that an earlier server has not completed.
    again: VecDeque<u16>,
    /// Number of requests that have begun.
    counter: u64,
    /// Number of requests that the queue has taken and not returned.
    pub(super) under_way: u32,
    /// Channel that gets the next position after all requests are returned.
    pub(super) stopping: Option<SyncSender<u16>>,
    /// Number of notifications since the queue last took a request.
    vain_rings: u32,
    /// Whether the guest must notify the server of new requests.
    armed: bool,
    /// Whether the server has returned requests without a notification.
    owes: bool,
}

impl Queue {
    pub(super) fn new(number: u16) -> Result<Self, Refusal> {
        let rings = Rings::new(QUEUE_SIZE_MAX).map_err(|_| Refusal::Size { size: QUEUE_SIZE_MAX.into() })?;
        Ok(Self {
            number,
            rings,
            addresses: None,
            base: 0,
            kick: None,
            call: None,
            enabled: None,
            started: false,
            again: VecDeque::new(),
            counter: 0,
            under_way: 0,
            stopping: None,
            vain_rings: 0,
            armed: true,
            owes: false,
        })
    }

    pub(super) fn set_size(&mut self, size: u32) -> Result<(), Refusal> {
        let set = u16::try_from(size).ok().map(|size| self.rings.try_set_size(size));
        if self.started || !matches!(set, Some(Ok(()))) {
            return Err(if self.started { Refusal::Running } else { Refusal::Size { size } });
        }
        Ok(())
    }

    pub(super) fn set_base(&mut self, base: u32) -> Result<(), Refusal> {
        if self.started {
            return Err(Refusal::Running);
        }
        self.base = u16::try_from(base).map_err(|_| Refusal::Base { base })?;
        Ok(())
    }

    pub(super) fn set_addresses(&mut self, addresses: Addresses) -> Result<(), Refusal> {
        if self.started && self.addresses != Some(addresses) {
            return Err(Refusal::Running);
        }
        self.addresses = Some(addresses);
        Ok(())
    }

    /// Returns whether the queue is stopped and has everything that it needs to start.
    pub(super) fn is_ready(&self) -> bool {
        !self.started && self.kick.is_some() && self.addresses.is_some()
    }

    /// Starts the queue at the frontend's position, or at the position where an earlier server
    /// ended.
    pub(super) fn start(&mut self, memory: &Memory, region: Option<&Region>, features: u64) -> Result<(), Refusal> {
        let Some(Addresses { descriptors, available, used }) = self.addresses else { return Ok(()) };
        let set = |user: u64| memory.guest_address(user).map(GuestAddress).ok_or(Refusal::Address { address: user });
        let (descriptors, available, used) = (set(descriptors)?, set(available)?, set(used)?);
        let set = self
            .rings
            .try_set_desc_table_address(descriptors)
            .and_then(|()| self.rings.try_set_avail_ring_address(available))
            .and_then(|()| self.rings.try_set_used_ring_address(used));
        set.map_err(|_| Refusal::Rings)?;
        self.rings.set_event_idx(features & F_EVENT_IDX != 0);
        self.rings.set_ready(true);
        if !self.rings.is_valid(&memory.guest) {
            return Err(Refusal::Rings);
        }
        let used = self.rings.used_idx(&memory.guest, Ordering::Acquire).map_err(|_| Refusal::Rings)?.0;
        self.rings.set_next_used(used);
        self.rings.set_next_avail(self.base);
        self.again.clear();
        self.counter = 0;
        if let Some(mut inflight) = region.and_then(|region| region.queue(self.number)) {
            let (again, counter) = inflight.take_over(used);
            self.rings.set_next_avail(used.wrapping_add(again.len() as u16));
            (self.again, self.counter) = (again.into(), counter);
        }
        self.started = true;
        // The guest may wait for an answer of the earlier server, so it gets a notification.
        self.owes = true;
        self.disarm(memory);
        Ok(())
    }

    /// Stops the queue. Returns the position of the next request.
    pub(super) fn stop(&mut self) -> u16 {
        self.started = false;
        self.base = self.rings.next_avail();
        self.base
    }

    /// Stops a queue with invalid rings. The queue starts again only after the frontend has set its
    /// addresses again.
    pub(super) fn fail(&mut self) {
        self.stop();
        self.addresses = None;
    }

    pub(super) fn next_available(&self) -> u16 {
        self.rings.next_avail()
    }

    pub(super) fn descriptors(&self) -> (u64, u16) {
        (self.rings.desc_table(), self.rings.size())
    }

    /// Takes the head of the next request.
    pub(super) fn take(&mut self, memory: &Memory, region: Option<&Region>) -> Result<Option<u16>, BrokenRings> {
        let head = match self.again.pop_front() {
            Some(head) => head,
            None => match self.rings.iter(&memory.guest).map_err(|_| BrokenRings)?.next() {
                Some(chain) => {
                    let head = chain.head_index();
                    if let Some(mut kept) = self.kept(region) {
                        kept.begin(head, self.counter);
                    }
                    self.counter = self.counter.wrapping_add(1);
                    head
                }
                None => return Ok(None),
            },
        };
        self.under_way += 1;
        self.vain_rings = 0;
        Ok(Some(head))
    }

    fn kept<'a>(&self, region: Option<&'a Region>) -> Option<inflight::Queue<'a>> {
        region.and_then(|region| region.queue(self.number))
    }

    /// Returns a request to the guest. `written` is the number of bytes that were written to the
    /// guest's memory.
    pub(super) fn put(&mut self, memory: &Memory, region: Option<&Region>, head: u16, written: u32) {
        let mut kept = self.kept(region);
        if let Some(kept) = &mut kept {
            kept.answer(head);
        }
        // Only the guest can cause an invalid head. No request of the guest waits for such an
        // answer.
        let _ = self.rings.add_used(&memory.guest, head, written);
        if let Some(kept) = &mut kept {
            kept.answered(head, self.rings.next_used());
        }
        self.owes = true;
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Counts a notification. Returns the number of notifications since the queue last took a
    /// request.
    pub(super) fn rung(&mut self) -> u32 {
        self.vain_rings = self.vain_rings.saturating_add(1);
        self.vain_rings
    }

    /// Returns whether there is a request to take.
    pub(super) fn has_arrived(&self, memory: &Memory) -> bool {
        let available = self.rings.avail_idx(&memory.guest, Ordering::Acquire);
        !self.again.is_empty() || available.is_ok_and(|index| index != Wrapping(self.rings.next_avail()))
    }

    /// Enables notifications. Returns whether there is a request already.
    pub(super) fn arm(&mut self, memory: &Memory) -> bool {
        if std::mem::replace(&mut self.armed, true) {
            return false;
        }
        self.rings.enable_notification(&memory.guest).unwrap_or(false)
    }

    /// Disables notifications.
    pub(super) fn disarm(&mut self, memory: &Memory) {
        if std::mem::replace(&mut self.armed, false) {
            // The guest may notify the server even if notifications are disabled.
            let _ = self.rings.disable_notification(&memory.guest);
        }
    }

    /// Notifies the guest of returned requests, if the guest wants notifications.
    pub(super) fn tell(&mut self, memory: &Memory) {
        if !std::mem::take(&mut self.owes) {
            return;
        }
        if let (Some(call), true) = (&self.call, self.rings.needs_notification(&memory.guest).unwrap_or(true)) {
            // If the write fails, the counter is full. A full counter also notifies the guest.
            let _ = rustix::io::write(call, &1_u64.to_ne_bytes());
        }
    }
}
