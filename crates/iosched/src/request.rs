//! Requests, their bios, and the arena that stores both.

use std::fmt;
use std::ops::{Index, IndexMut};

use crate::collections::{Id, Kind, ListLinks, NIL, NUMBERS_END, RbLinks, RbNode};
use crate::context::{CgroupId, ContextId, IoPriority};
use crate::time::Time;

/// Position on a device, in units of 512 bytes.
pub type Sector = u64;

/// Size of a sector, bytes.
pub const SECTOR_BYTES: u64 = 512;

/// Operation of a bio or request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// Read from the device.
    Read,
    /// Write to the device.
    Write,
    /// Discard: the contents of the sectors are no longer needed (TRIM).
    Discard,
    /// Write zeroes: the sectors must read as zeroes.
    WriteZeroes,
    /// Flush of the device's volatile write cache; without data and sectors.
    Flush,
}

impl Op {
    /// Returns whether the operation counts as a write: all except reads.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Returns whether a process waits for the operation: reads, and operations with the flag SYNC.
    #[inline]
    #[must_use]
    pub const fn is_sync(self, flags: Flags) -> bool {
        !self.is_write() || flags.contains(Flags::SYNC)
    }

    /// Returns whether elevators handle the operation. Flushes bypass elevators.
    #[must_use]
    pub const fn has_data(self) -> bool {
        !matches!(self, Self::Flush)
    }

    /// Returns the letter that usual tools print for the operation.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Discard => 'D',
            Self::WriteZeroes => 'Z',
            Self::Flush => 'F',
        }
    }
}

bitflags::bitflags! {
    /// Flags of a bio: hints and guarantees.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Flags: u8 {
        /// A process waits for the operation (O_DIRECT, fsync). Reads are sync with or without this
        /// flag.
        const SYNC = 1;
        /// The process will submit more of the same kind, so idling for it can be worthwhile
        /// (O_DIRECT writes).
        const IDLE = 1 << 1;
        /// Metadata: a priority hint.
        const PRIO = 1 << 2;
        /// The data is on stable storage when the bio completes.
        const FUA = 1 << 3;
        /// The device flushes its cache before this write. All writes that completed before the
        /// submission are then on stable storage.
        const PREFLUSH = 1 << 4;
        /// No process waits for the operation yet. Examples: readahead, background writeback.
        const AHEAD = 1 << 5;
        /// The process holds an exclusive resource of its file system, so other processes wait. CFQ
        /// of old kernels raised the priority of the process.
        const FS_EXCL = 1 << 6;
        /// Memory that is written to or read from a swap device.
        const SWAP = 1 << 7;
    }
}

/// One submission to the queue, from a file system or a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bio {
    /// Operation of the bio.
    pub op: Op,
    /// Flags of the bio.
    pub flags: Flags,
    /// First sector; ignored for [`Op::Flush`].
    pub sector: Sector,
    /// Length in sectors, at least 1; 0 for [`Op::Flush`].
    pub nr_sectors: u32,
    /// Io context of the process that submits the bio.
    pub context: ContextId,
    /// Host's name for the bio, returned at completion.
    pub cookie: u64,
}

/// Reason why a queue refuses a bio: see
/// [`RequestQueue::check_bio`](crate::RequestQueue::check_bio).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BioError {
    /// A bio with data has no sectors.
    #[error("a bio with data needs at least one sector")]
    NoSectors,
    /// The last sector is beyond the range of sector numbers.
    #[error("a bio of {nr_sectors} sectors at sector {sector} extends beyond sector 2^64")]
    BeyondEnd {
        /// First sector of the bio.
        sector: Sector,
        /// Length of the bio in sectors.
        nr_sectors: u32,
    },
    /// The bio is longer than the device accepts.
    #[error("a bio of {nr_sectors} sectors is too long: the device accepts at most {most} at once; split the bio")]
    TooLong {
        /// Length of the bio in sectors.
        nr_sectors: u32,
        /// Longest bio that the device accepts, in sectors.
        most: u32,
    },
    /// The queue never created the context of the bio.
    #[error("the queue has no io context {}", .0.index())]
    UnknownContext(ContextId),
    /// The process of the context has exited.
    #[error("the process of io context {} has exited", .0.index())]
    Exited(ContextId),
}

impl Bio {
    /// Returns the sector after the last.
    #[must_use]
    pub const fn end(&self) -> Sector {
        self.sector + self.nr_sectors as u64
    }

    /// Returns whether a process waits for the bio: reads, and writes with the flag SYNC.
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }
}

/// Id of a request in a queue's arena, valid from
/// submission until the completion has been reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(crate) u32);

impl RequestId {
    /// Returns a small number, which a later request reuses after the completion. Numbers are dense
    /// from 0. A number can serve as a tag or as an index of a table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rq{}", self.0)
    }
}

/// Side on which a bio joined a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeSide {
    /// After the last sector.
    Back,
    /// Before the first sector.
    Front,
}

/// Stage in the life of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestStage {
    /// The slot is free.
    Free,
    /// The request waits for a switch of elevators, or for its flush.
    Held,
    /// The request is in the elevator.
    Queued,
    /// The request is on the dispatch list: the elevator released
    /// it, and the device has not taken it yet.
    Released,
    /// The request is in the device.
    Started,
}

/// Tag value of a request without a tag.
pub(crate) const NO_TAG: u32 = u32::MAX;

/// Position of a request in its chain of the merge hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainLinks {
    pub(crate) next: u32,
    pub(crate) prev: u32,
}

impl Default for ChainLinks {
    fn default() -> Self {
        Self { next: NIL, prev: NIL }
    }
}

/// Request: one or more neighbouring bios of one direction, served together.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) sector: Sector,
    pub(crate) nr_sectors: u32,
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) stage: RequestStage,
    pub(crate) mergeable: bool,
    pub(crate) hashed: bool,
    pub(crate) in_elevator: bool,
    pub(crate) context: ContextId,
    pub(crate) cgroup: CgroupId,
    /// Tag of the request; [`NO_TAG`] if it needs none.
    pub(crate) tag: u32,
    pub(crate) hw_queue: u16,
    pub(crate) ioprio: IoPriority,
    pub(crate) allocated: Time,
    /// Time that the elevator may use, for example as the request's deadline. Undefined for a
    /// request that was never inserted.
    pub deadline: Time,
    /// Number that the elevator may use.
    pub(crate) elevator: u32,
    /// Position in the hash of requests that bios may join.
    pub(crate) chain: ChainLinks,
}

/// A request fills one cache line. A larger request would make every step of its life slower.
const _: () = assert!(size_of::<Request>() == 64);

/// Bios of a request: the first bio, and the bios that joined before and after it. They are stored
/// apart from the request, because they are not read between allocation and completion.
#[derive(Clone, Copy, Debug)]
struct Bios {
    cookie: u64,
    submitted: Time,
    before: u32,
    after: u32,
    last: u32,
}

impl Default for Bios {
    fn default() -> Self {
        Self { cookie: 0, submitted: Time::ZERO, before: NIL, after: NIL, last: NIL }
    }
}

impl Request {
    /// Returns the first sector.
    #[must_use]
    pub const fn sector(&self) -> Sector {
        self.sector
    }

    /// Returns the length in sectors.
    #[must_use]
    pub const fn nr_sectors(&self) -> u32 {
        self.nr_sectors
    }

    /// Returns the sector after the last.
    #[must_use]
    pub const fn end(&self) -> Sector {
        self.sector + self.nr_sectors as u64
    }

    /// Returns the side on which `bio` is adjacent to the request, if any.
    #[inline]
    pub(crate) fn adjacent(&self, bio: &Bio) -> Option<MergeSide> {
        if self.end() == bio.sector {
            Some(MergeSide::Back)
        } else if bio.end() == self.sector {
            Some(MergeSide::Front)
        } else {
            None
        }
    }

    /// Returns the operation.
    #[must_use]
    pub const fn op(&self) -> Op {
        self.op
    }

    /// Returns the flags of the first bio. A device must honour only [`Request::needs_fua`].
    #[must_use]
    pub const fn flags(&self) -> Flags {
        self.flags
    }

    /// Returns whether the data must be on stable storage at completion. A device without FUA may
    /// ignore this: the queue then sends a flush after the request.
    #[must_use]
    pub const fn needs_fua(&self) -> bool {
        self.flags.contains(Flags::FUA)
    }

    /// Returns whether a process waits for the request.
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }

    /// Returns the io context of the first bio.
    #[must_use]
    pub const fn context(&self) -> ContextId {
        self.context
    }

    /// Returns the cgroup of the first bio's process at submission.
    #[must_use]
    pub const fn cgroup(&self) -> CgroupId {
        self.cgroup
    }

    /// Returns the ioprio of the first bio's process at submission.
    #[must_use]
    pub const fn ioprio(&self) -> IoPriority {
        self.ioprio
    }

    /// Returns the tag. `None` if tags are unlimited, or in
    /// the single-queue layer, which has no tags.
    #[must_use]
    pub fn tag(&self) -> Option<u32> {
        (self.tag != NO_TAG).then_some(self.tag)
    }

    /// Returns the hardware queue of the request; 0 if there is only one.
    #[must_use]
    pub const fn hw_queue(&self) -> u16 {
        self.hw_queue
    }

    /// Returns when the request was allocated. For merged requests, the earliest time.
    #[must_use]
    pub const fn allocated(&self) -> Time {
        self.allocated
    }
}

/// Bio of a request other than the first bio.
#[derive(Clone, Copy, Debug)]
struct MergedBio {
    cookie: u64,
    submitted: Time,
    context: ContextId,
    next: u32,
}

/// Completed bio, as [`RequestQueue::complete`](crate::RequestQueue::complete) reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BioDone {
    /// Host's name for the bio.
    pub cookie: u64,
    /// Io context of the bio.
    pub context: ContextId,
    /// Time of submission.
    pub submitted: Time,
}

/// Position of a request in a tree by sector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortNode {
    pub(crate) sector: Sector,
    /// Urgency, which counts before the position: sync before async, PRIO before other requests.
    pub(crate) urgency: u8,
    links: RbLinks,
}

/// Arena of all requests of one queue. A slot is reused only after its request has completed.
#[derive(Clone, Debug)]
pub struct Requests {
    slots: Vec<Request>,
    /// Positions in trees. They are stored apart from the requests, so that a search in a tree
    /// reads little memory.
    sort: Vec<SortNode>,
    /// Positions in lists, stored apart for the same reason.
    lists: Vec<ListLinks>,
    bios_of: Vec<Bios>,
    free: Vec<u32>,
    bios: Vec<MergedBio>,
    bios_free: u32,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            sort: Vec::new(),
            lists: Vec::new(),
            bios_of: Vec::new(),
            free: Vec::new(),
            bios: Vec::new(),
            bios_free: NIL,
        }
    }
}

impl Index<RequestId> for Requests {
    type Output = Request;

    #[inline]
    fn index(&self, id: RequestId) -> &Request {
        &self.slots[id.index()]
    }
}

impl IndexMut<RequestId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: RequestId) -> &mut Request {
        &mut self.slots[id.index()]
    }
}

impl Id for RequestId {
    #[inline]
    fn new(number: u32) -> Self {
        Self(number)
    }

    #[inline]
    fn number(self) -> u32 {
        self.0
    }
}

/// Marker for lists by age.
#[derive(Debug)]
pub(crate) enum Fifo {}
/// Marker for trees by sector.
#[derive(Debug)]
pub(crate) enum BySector {}

impl Kind for Fifo {
    type Id = RequestId;
}

impl Kind for BySector {
    type Id = RequestId;
}

impl RbNode<BySector> for SortNode {
    #[inline]
    fn links(&self) -> &RbLinks {
        &self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut RbLinks {
        &mut self.links
    }
}

impl Requests {
    /// Returns the number of live requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether no request is alive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots: the largest number of requests that have ever been alive at the
    /// same time.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Returns the request `id` if the device has it.
    #[inline]
    pub(crate) fn started(&self, id: RequestId) -> Option<&Request> {
        self.slots.get(id.index()).filter(|request| request.stage == RequestStage::Started)
    }

    /// Returns the request `id` if it exists and is not complete.
    #[inline]
    pub(crate) fn live(&self, id: RequestId) -> Option<&Request> {
        self.slots.get(id.index()).filter(|request| request.stage != RequestStage::Free)
    }

    /// Prepares the node of `id` for a tree, and returns the sector.
    #[inline]
    pub(crate) fn prepare_sort(&mut self, id: RequestId) -> Sector {
        let request = &self.slots[id.index()];
        let hinted = u8::from(request.flags.contains(Flags::PRIO));
        let node = &mut self.sort[id.index()];
        node.sector = request.sector;
        node.urgency = u8::from(request.is_sync()) << 1 | hinted;
        request.sector
    }

    /// Returns the list positions of all requests.
    #[inline]
    pub(crate) fn list_nodes(&mut self) -> &mut [ListLinks] {
        &mut self.lists
    }

    /// Returns the position of `id` in its list.
    pub(crate) fn list_links(&self, id: RequestId) -> ListLinks {
        self.lists[id.index()]
    }

    /// Returns the tree nodes of all requests.
    #[inline]
    pub(crate) fn sort_nodes(&self) -> &[SortNode] {
        &self.sort
    }

    #[inline]
    pub(crate) fn sort_nodes_mut(&mut self) -> &mut [SortNode] {
        &mut self.sort
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.slots.iter().enumerate().filter(|(_, rq)| rq.stage != RequestStage::Free).map(|(i, _)| RequestId(i as u32))
    }

    /// Calls `change` for every live request.
    pub(crate) fn for_each_id(&mut self, mut change: impl FnMut(RequestId, &mut Request)) {
        for (request, number) in
            self.slots.iter_mut().zip(0..).filter(|(request, _)| request.stage != RequestStage::Free)
        {
            change(RequestId(number), request);
        }
    }

    #[inline]
    pub(crate) fn allocate(&mut self, now: Time, bio: &Bio) -> RequestId {
        let number = match self.free.pop() {
            Some(number) => number,
            None => self.grow(),
        };
        // The fields are assigned one by one: the compiler would build a whole new request on the
        // stack and copy it.
        let request = &mut self.slots[number as usize];
        request.sector = bio.sector;
        request.nr_sectors = bio.nr_sectors;
        request.op = bio.op;
        request.flags = bio.flags;
        request.stage = RequestStage::Held;
        request.mergeable = bio.op.has_data() && !bio.flags.intersects(Flags::FUA | Flags::PREFLUSH);
        request.in_elevator = false;
        request.context = bio.context;
        request.tag = NO_TAG;
        request.hw_queue = 0;
        request.allocated = now;
        let bios = &mut self.bios_of[number as usize];
        (bios.cookie, bios.submitted) = (bio.cookie, now);
        RequestId(number)
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        let number =
            u32::try_from(self.slots.len()).ok().filter(|&n| n < NUMBERS_END).expect("fewer than 2^30 requests");
        self.slots.push(Request {
            sector: 0,
            nr_sectors: 0,
            op: Op::Read,
            flags: Flags::empty(),
            stage: RequestStage::Free,
            mergeable: false,
            hashed: false,
            in_elevator: false,
            context: ContextId(0),
            cgroup: CgroupId::ROOT,
            tag: NO_TAG,
            hw_queue: 0,
            ioprio: IoPriority::default(),
            allocated: Time::ZERO,
            deadline: Time::ZERO,
            elevator: NIL,
            chain: ChainLinks::default(),
        });
        self.bios_of.push(Bios::default());
        self.sort.push(SortNode::default());
        self.lists.push(ListLinks::default());
        number
    }

    #[inline]
    pub(crate) fn release(&mut self, id: RequestId) {
        debug_assert_ne!(self[id].stage, RequestStage::Free);
        self[id].stage = RequestStage::Free;
        self.free.push(id.0);
    }

    fn allocate_bio(&mut self, bio: MergedBio) -> u32 {
        if self.bios_free == NIL {
            self.bios.push(bio);
            (self.bios.len() - 1) as u32
        } else {
            let slot = self.bios_free;
            self.bios_free = self.bios[slot as usize].next;
            self.bios[slot as usize] = bio;
            slot
        }
    }

    /// Adds `bio` at the end of `id`.
    pub(crate) fn append_bio(&mut self, now: Time, id: RequestId, bio: &Bio) {
        self.append(id, MergedBio { cookie: bio.cookie, submitted: now, context: bio.context, next: NIL });
        self[id].nr_sectors += bio.nr_sectors;
    }

    /// Adds `bio` at the front of `id`.
    pub(crate) fn prepend_bio(&mut self, now: Time, id: RequestId, bio: &Bio) {
        let next = self.bios_of[id.index()].before;
        let slot = self.allocate_bio(MergedBio { cookie: bio.cookie, submitted: now, context: bio.context, next });
        self.bios_of[id.index()].before = slot;
        let request = &mut self[id];
        request.sector = bio.sector;
        request.nr_sectors += bio.nr_sectors;
    }

    fn append(&mut self, id: RequestId, bio: MergedBio) {
        let slot = self.allocate_bio(bio);
        let bios = &mut self.bios_of[id.index()];
        match self.bios.get_mut(bios.last as usize) {
            None => bios.after = slot,
            Some(last) => last.next = slot,
        }
        bios.last = slot;
    }

    /// Moves all bios of `absorbed` to the end of `survivor`. `absorbed` keeps only its slot.
    pub(crate) fn append_request(&mut self, survivor: RequestId, absorbed: RequestId) {
        let Request { context, nr_sectors, allocated, .. } = self[absorbed];
        let Bios { cookie, submitted, before, after, .. } = self.bios_of[absorbed.index()];
        self.append_chain(survivor, before);
        self.append(survivor, MergedBio { cookie, submitted, context, next: NIL });
        self.append_chain(survivor, after);
        self.bios_of[absorbed.index()] = Bios::default();
        let request = &mut self[survivor];
        request.nr_sectors += nr_sectors;
        request.allocated = request.allocated.min(allocated);
    }

    /// Moves the bios of a chain to the end of `id`.
    fn append_chain(&mut self, id: RequestId, mut chain: u32) {
        while chain != NIL {
            let bio = self.bios[chain as usize];
            self.free_bio(chain);
            self.append(id, MergedBio { next: NIL, ..bio });
            chain = bio.next;
        }
    }

    fn free_bio(&mut self, slot: u32) {
        self.bios[slot as usize].next = self.bios_free;
        self.bios_free = slot;
    }

    /// Returns the host's name for the first bio of `id`.
    #[inline]
    #[must_use]
    pub fn cookie(&self, id: RequestId) -> u64 {
        self.bios_of[id.index()].cookie
    }

    /// Returns the cookies of the bios of `id`, in sector order.
    pub(crate) fn bios(&self, id: RequestId) -> impl Iterator<Item = u64> + '_ {
        let bios = &self.bios_of[id.index()];
        self.chain(bios.before).chain(std::iter::once(bios.cookie)).chain(self.chain(bios.after))
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = u64> + '_ {
        let bio = |slot: u32| self.bios.get(slot as usize);
        std::iter::successors(bio(first), move |merged| bio(merged.next)).map(|merged| merged.cookie)
    }

    /// Calls `done` for every bio of `id`, in sector order, and removes all but the first bio.
    #[inline]
    pub(crate) fn take_bios(&mut self, id: RequestId, mut done: impl FnMut(BioDone)) {
        let context = self[id].context;
        let Bios { cookie, submitted, before, after, .. } = self.bios_of[id.index()];
        if before == NIL && after == NIL {
            return done(BioDone { cookie, context, submitted });
        }
        self.bios_of[id.index()] = Bios::default();
        self.take_chain(before, &mut done);
        done(BioDone { cookie, context, submitted });
        self.take_chain(after, &mut done);
    }

    #[inline]
    fn take_chain(&mut self, mut chain: u32, done: &mut impl FnMut(BioDone)) {
        while chain != NIL {
            let MergedBio { cookie, submitted, context, next } = self.bios[chain as usize];
            self.free_bio(chain);
            done(BioDone { cookie, context, submitted });
            chain = next;
        }
    }
}
