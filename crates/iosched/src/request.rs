//! Requests, the bios they are made of, and the one arena they live in.

use std::fmt;
use std::ops::{Index, IndexMut};

use crate::collections::{Id, Kind, ListLinks, NIL, NUMBERS_END, RbLinks, RbNode};
use crate::context::{CgroupId, ContextId, IoPriority};
use crate::time::Time;

/// A position on a device, in units of 512 bytes.
pub type Sector = u64;

/// Bytes in a sector.
pub const SECTOR_BYTES: u64 = 512;

/// What a bio or request does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// Transfer from the device.
    Read,
    /// Transfer to the device.
    Write,
    /// The sectors' contents are no longer needed (TRIM).
    Discard,
    /// The sectors are to read as zeroes.
    WriteZeroes,
    /// Empty the device's volatile write cache; carries no data and no sectors.
    Flush,
}

impl Op {
    /// Everything but a read goes in the write direction.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Whether somebody waits for it: reads, and what is flagged sync.
    #[inline]
    #[must_use]
    pub const fn is_sync(self, flags: Flags) -> bool {
        !self.is_write() || flags.contains(Flags::SYNC)
    }

    /// Whether elevators see it: a flush passes them by.
    #[must_use]
    pub const fn has_data(self) -> bool {
        !matches!(self, Self::Flush)
    }

    /// The letter the field's tools print.
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
    /// Hints and promises that come with a bio.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Flags: u8 {
        /// Somebody waits for it (O_DIRECT, fsync). Reads are sync with or without it.
        const SYNC = 1;
        /// More of the same kind will follow from this process, so waiting for it can pay (O_DIRECT writes).
        const IDLE = 1 << 1;
        /// Metadata: a priority hint.
        const PRIO = 1 << 2;
        /// On stable storage when it completes.
        const FUA = 1 << 3;
        /// What completed before it was submitted is on stable storage before it is written.
        const PREFLUSH = 1 << 4;
        /// Nobody waits for it yet: readahead, and of writes, writing back that nothing presses.
        const AHEAD = 1 << 5;
        /// The process holds an exclusive resource of its file system, so others wait while it does: the CFQ of old
        /// lifted its priority.
        const FS_EXCL = 1 << 6;
        /// Memory that is written to a swap device, or comes back from there.
        const SWAP = 1 << 7;
    }
}

/// One submission: what a file system or a client asks of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bio {
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector; ignored for [`Op::Flush`].
    pub sector: Sector,
    /// Sectors, at least 1; 0 for [`Op::Flush`].
    pub nr_sectors: u32,
    /// Whose.
    pub context: ContextId,
    /// The host's name for it, given back at completion.
    pub cookie: u64,
}

/// A bio that a queue does not take: see
/// [`RequestQueue::check_bio`](crate::RequestQueue::check_bio).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BioError {
    /// A bio with data has no sectors.
    #[error("a bio with data needs at least one sector")]
    NoSectors,
    /// Its last sector has no number.
    #[error("a bio of {nr_sectors} sectors at sector {sector} extends beyond sector 2^64")]
    BeyondEnd {
        /// Its first sector.
        sector: Sector,
        /// Its length.
        nr_sectors: u32,
    },
    /// The device cannot move that much at once.
    #[error("a bio of {nr_sectors} sectors is too long: the device accepts at most {most} at once; split the bio")]
    TooLong {
        /// Its length.
        nr_sectors: u32,
        /// The device's limit.
        most: u32,
    },
    /// The queue never made its context.
    #[error("the queue has no io context {}", .0.index())]
    UnknownContext(ContextId),
    /// Its process has exited.
    #[error("the process of io context {} has exited", .0.index())]
    Exited(ContextId),
}

impl Bio {
    /// The sector behind the last.
    #[must_use]
    pub const fn end(&self) -> Sector {
        self.sector + self.nr_sectors as u64
    }

    /// Whether somebody waits for it: reads, and writes flagged sync.
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }
}

/// A request in a queue's arena. Valid from submission until its completion has been reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub(crate) u32);

impl RequestId {
    /// A small number, dense from 0 and used again after completion: good as a tag or a table index.
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

/// On which side a bio joined a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeSide {
    /// Behind its last sector.
    Back,
    /// Before its first.
    Front,
}

/// Where a request is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestStage {
    /// Its slot is free.
    Free,
    /// Waits while elevators are switched, or for its flush.
    Held,
    /// In the elevator.
    Queued,
    /// On the dispatch list: released by the elevator, not yet taken by the device.
    Released,
    /// In the device.
    Started,
}

/// The tag of a request that has none.
pub(crate) const NO_TAG: u32 = u32::MAX;

/// A request's place in its chain of the merge hash.
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

/// One request: neighbouring bios of one direction, served as one.
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
    /// Its tag; [`NO_TAG`] if it needs none.
    pub(crate) tag: u32,
    pub(crate) hw_queue: u16,
    pub(crate) ioprio: IoPriority,
    pub(crate) allocated: Time,
    /// The elevator's own: when the request is due, say. Of a request that was never inserted it means nothing.
    pub deadline: Time,
    /// The elevator's own word.
    pub(crate) elevator: u32,
    /// Its place in the hash of those that bios may join.
    pub(crate) chain: ChainLinks,
}

/// A request is one line of a processor's cache: more makes every step of its life dearer.
const _: () = assert!(size_of::<Request>() == 64);

/// The bios of a request: the one that founded it, and those that joined it before and behind that one. Apart from the
/// request, since nobody asks for them between its allocation and its completion.
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
    /// First sector.
    #[must_use]
    pub const fn sector(&self) -> Sector {
        self.sector
    }

    /// Length in sectors.
    #[must_use]
    pub const fn nr_sectors(&self) -> u32 {
        self.nr_sectors
    }

    /// The sector behind the last.
    #[must_use]
    pub const fn end(&self) -> Sector {
        self.sector + self.nr_sectors as u64
    }

    /// On which side `bio` goes on from it, if any.
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

    /// What to do.
    #[must_use]
    pub const fn op(&self) -> Op {
        self.op
    }

    /// Flags of the bio that founded it. What a device must honour is in [`Request::needs_fua`].
    #[must_use]
    pub const fn flags(&self) -> Flags {
        self.flags
    }

    /// Whether its submitter wants it on stable storage when it completes. A device that cannot do that itself may
    /// ignore it: the queue has it followed by a flush.
    #[must_use]
    pub const fn needs_fua(&self) -> bool {
        self.flags.contains(Flags::FUA)
    }

    /// Whether somebody waits for it.
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        self.op.is_sync(self.flags)
    }

    /// Whose bio founded it.
    #[must_use]
    pub const fn context(&self) -> ContextId {
        self.context
    }

    /// The cgroup its founder was in when it submitted that bio.
    #[must_use]
    pub const fn cgroup(&self) -> CgroupId {
        self.cgroup
    }

    /// The ioprio its founder had when it submitted that bio.
    #[must_use]
    pub const fn ioprio(&self) -> IoPriority {
        self.ioprio
    }

    /// Its tag, unless tags are without limit or those of the single-queue layer, which has none.
    #[must_use]
    pub fn tag(&self) -> Option<u32> {
        (self.tag != NO_TAG).then_some(self.tag)
    }

    /// The hardware queue it goes to; 0 if there is only one.
    #[must_use]
    pub const fn hw_queue(&self) -> u16 {
        self.hw_queue
    }

    /// When it was allocated; of merged requests, the oldest.
    #[must_use]
    pub const fn allocated(&self) -> Time {
        self.allocated
    }
}

/// A bio beyond the one that founded its request.
#[derive(Clone, Copy, Debug)]
struct MergedBio {
    cookie: u64,
    submitted: Time,
    context: ContextId,
    next: u32,
}

/// A bio that is done, as [`RequestQueue::complete`](crate::RequestQueue::complete) reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BioDone {
    /// The host's name for it.
    pub cookie: u64,
    /// Whose it was.
    pub context: ContextId,
    /// When it was submitted.
    pub submitted: Time,
}

/// A request's place in a tree by sector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortNode {
    pub(crate) sector: Sector,
    /// What makes it more urgent than position: sync before async, hinted before not.
    pub(crate) urgency: u8,
    links: RbLinks,
}

/// The arena of all requests of one queue. A slot is used again only after its request has completed.
#[derive(Clone, Debug)]
pub struct Requests {
    slots: Vec<Request>,
    /// Apart from the requests, so that a descent of a tree touches little memory.
    sort: Vec<SortNode>,
    /// Places in lists, apart for the same reason.
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

/// Lists by age.
#[derive(Debug)]
pub(crate) enum Fifo {}
/// Trees by sector.
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
    /// Requests alive now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no request is alive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Most requests alive at once so far: the arena's size in slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Readies the place of `id` for a tree.
    #[inline]
    pub(crate) fn prepare_sort(&mut self, id: RequestId) -> Sector {
        let request = &self.slots[id.index()];
        let hinted = u8::from(request.flags.contains(Flags::PRIO));
        let node = &mut self.sort[id.index()];
        node.sector = request.sector;
        node.urgency = u8::from(request.is_sync()) << 1 | hinted;
        request.sector
    }

    /// All places in lists.
    #[inline]
    pub(crate) fn list_nodes(&mut self) -> &mut [ListLinks] {
        &mut self.lists
    }

    /// The place of `id` in the list it is in.
    pub(crate) fn list_links(&self, id: RequestId) -> ListLinks {
        self.lists[id.index()]
    }

    /// All places by sector, for trees.
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

    /// Changes every request alive.
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
        // Field by field: a whole new request would be made elsewhere and copied.
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

    /// `bio` becomes the last of `id`.
    pub(crate) fn append_bio(&mut self, now: Time, id: RequestId, bio: &Bio) {
        self.append(id, MergedBio { cookie: bio.cookie, submitted: now, context: bio.context, next: NIL });
        self[id].nr_sectors += bio.nr_sectors;
    }

    /// `bio` becomes the first of `id`.
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

    /// All bios of `absorbed` go behind those of `survivor`. `absorbed` keeps nothing but its slot.
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

    /// The bios of a chain, which is no more, go behind those of `id`.
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

    /// The host's name for the bio that founded `id`.
    #[inline]
    #[must_use]
    pub fn cookie(&self, id: RequestId) -> u64 {
        self.bios_of[id.index()].cookie
    }

    /// The cookies of the bios of `id`, in sector order.
    pub(crate) fn bios(&self, id: RequestId) -> impl Iterator<Item = u64> + '_ {
        let bios = &self.bios_of[id.index()];
        self.chain(bios.before).chain(std::iter::once(bios.cookie)).chain(self.chain(bios.after))
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = u64> + '_ {
        let bio = |slot: u32| self.bios.get(slot as usize);
        std::iter::successors(bio(first), move |merged| bio(merged.next)).map(|merged| merged.cookie)
    }

    /// Hands every bio of `id` to `done`, in sector order, and forgets all but the founding one.
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
