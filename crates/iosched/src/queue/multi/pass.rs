//! Path of a bio through the controllers.
//!
//! A process whose bio must wait gets [`Submit::Full`], as if the queue were full.
//! [`RequestQueue::take_woken`](crate::RequestQueue::take_woken) later returns the process, and the
//! process submits the bio again. The bio then continues at the controller where it waited. A held
//! bio belongs to the queue: the queue's worker submits it later.
//!
//! Flushes and writes that are flush sequences bypass the controllers. In the single-queue layer,
//! all bios bypass them.

use super::controlled::{Controlled, HeldAt, Place, Write};
use crate::context::{CgroupId, ContextId, IoPriority};
use crate::controllers::{BioId, BioState, ControlledDevice, Controller, Controllers, Site, Target, WriteError};
use crate::decision::{ControlledEvent, Decision};
use crate::issued::Part;
use crate::layer::MultiQueueRules;
use crate::queue::{RequestQueue, Submit};
use crate::request::{Bio, MergeSide, Request, RequestId};
use crate::time::Time;

impl RequestQueue {
    /// Returns the controllers with the present time. Creates them at the first use.
    #[inline]
    pub(in crate::queue) fn controlled(&mut self) -> &mut Controlled {
        if self.controlled.is_none() {
            self.begin_controlled();
        }
        let controlled = self.controlled.as_mut().unwrap_or_else(|| unreachable!("they were made"));
        controlled.controllers.site.now = self.env.now;
        controlled
    }

    #[cold]
    fn begin_controlled(&mut self) {
        let controllers = self.new_controllers();
        let context = self.env.contexts.create(0, IoPriority::default(), CgroupId::ROOT);
        self.controlled = Some(Box::new(Controlled::new(controllers, context)));
    }

    /// Creates controllers in their initial state.
    fn new_controllers(&self) -> Controllers {
        let mut site = Site::new(self.env.now, self.env.hz);
        site.log.record(self.env.log.is_on());
        for parent in self.env.cgroups.parents() {
            site.groups.create(parent);
        }
        let device = ControlledDevice {
            rotational: self.env.rotational,
            write_cache: self.write_cache,
            depth: self.device.depth,
            nr_requests: self.attributes.nr_requests,
            throttles_writeback: self.throttles_writeback,
            kernel: self.env.kernel,
        };
        let mut controllers = Controllers::of_linux(site, device);
        controllers.elevator_changed(self.registered.name);
        controllers
    }

    /// Reads a controller's file. Returns `None` if no controller has it.
    /// Does not create the queue's controllers.
    pub(in crate::queue) fn read_controlled(&mut self, file: &str, cgroup: CgroupId) -> Option<String> {
        match self.controlled {
            Some(_) => self.controlled().read(file, cgroup),
            None => self.new_controllers().read(file, cgroup),
        }
    }

    /// Returns whether `context` has no waiting bio in the controllers.
    pub(super) fn is_uncontrolled(&self, context: ContextId) -> bool {
        let of = self.controlled.as_ref().and_then(|controlled| controlled.contexts.get(context.index()));
        of.is_none_or(|of| of.waiting.is_none())
    }

    /// Submits a bio to a queue with controllers. If a part of an I/O is held, the following parts
    /// are held behind it.
    pub(in crate::queue) fn submit_controlled(&mut self, rules: &MultiQueueRules, bio: &Bio, part: Part) -> Submit {
        let (now, ioprio, cgroup) = (self.env.now, self.env.bio_ioprio, self.env.contexts.get(bio.context).cgroup);
        let controlled = self.controlled();
        let (bio_id, place) = match controlled.waiting(bio.context).take() {
            Some((bio_id, Place::Passed(at))) => (bio_id, self.resume_controlled(bio_id, at)),
            Some((bio_id, place @ Place::Controller(_))) => (bio_id, Some(place)),
            Some((bio_id, Place::Tag)) => (bio_id, None),
            None if controlled.is_shut() => {
                if !controlled.shut_out.contains(&bio.context) {
                    controlled.shut_out.push(bio.context);
                }
                return Submit::Full;
            }
            None => {
                let state = BioState::of_part(now, bio, cgroup, ioprio, part);
                let bio_id = controlled.controllers.site.begin(state);
                if let Some(held) = controlled.hold(bio_id, bio.context, part) {
                    self.env.contexts.get_mut(bio.context).bios += 1;
                    if let HeldAt::At(at) = held {
                        self.note_throttled(bio_id, at);
                    }
                    return Submit::Held;
                }
                controlled.inside += 1;
                self.env.bio_ioprio = controlled.controllers.site.bios[bio_id].ioprio;
                if self.next.is_none() && self.merge_controlled(rules, bio, bio_id) {
                    return Submit::Merged;
                }
                (bio_id, self.throttle_controlled(bio_id))
            }
        };
        if place.is_some() {
            *self.controlled().waiting(bio.context) = place.map(|place| (bio_id, place));
            return Submit::Full;
        }
        self.env.bio_ioprio = self.controlled().controllers.site.bios[bio_id].ioprio;
        let Some(id) = self.allocate(bio) else {
            *self.controlled().waiting(bio.context) = Some((bio_id, Place::Tag));
            return Submit::Full;
        };
        self.found_controlled(id, bio_id);
        self.place(rules, bio.context, id)
    }

    /// Asks the controllers whether a bio may get a request. Returns the place if the bio waits.
    #[inline(always)]
    fn throttle_controlled(&mut self, bio_id: BioId) -> Option<Place> {
        let at = self.controlled().controllers.throttle(bio_id)?;
        self.note_throttled(bio_id, at);
        Some(Place::Controller(at))
    }

    /// Continues a bio that waited at the controller `at`. Returns the place if it waits again.
    fn resume_controlled(&mut self, bio_id: BioId, at: usize) -> Option<Place> {
        self.note_goes_on(bio_id, at);
        let at = self.controlled().controllers.resumed(bio_id, at)?;
        self.note_throttled(bio_id, at);
        Some(Place::Controller(at))
    }

    #[cold]
    fn note_throttled(&mut self, bio_id: BioId, at: usize) {
        if self.env.log.is_on() {
            let controllers = &self.controlled().controllers;
            let BioState { cookie, context, cgroup, .. } = controllers.site.bios[bio_id];
            let (controller, pid) = (controllers.name(at), self.env.contexts.get(context).pid);
            self.note_controlled(ControlledEvent::Wait { controller, cookie, pid, cgroup });
        }
    }

    fn note_goes_on(&mut self, bio_id: BioId, at: usize) {
        if self.env.log.is_on() {
            let controllers = &self.controlled().controllers;
            let (controller, waited_ns) = (controllers.name(at), controllers.waited_ns(bio_id));
            let cookie = controllers.site.bios[bio_id].cookie;
            self.note_controlled(ControlledEvent::GoOn { controller, cookie, waited_ns });
        }
    }

    /// Reports the events of the controllers, and then `event`.
    fn note_controlled(&mut self, event: impl Into<Option<ControlledEvent>>) {
        let on = self.env.log.is_on();
        let log = &mut self.controlled().controllers.site.log;
        let events: Vec<ControlledEvent> = log.take().filter_map(|(_, event)| event.decision()).collect();
        log.record(on);
        for event in events.into_iter().chain(event.into()) {
            self.env.note(|| Decision::Controlled(event));
        }
    }

    /// Records that the request `id` begins with `bio_id`.
    #[inline(always)]
    fn found_controlled(&mut self, id: RequestId, bio_id: BioId) {
        let controlled = self.controlled();
        controlled.controllers.issued(bio_id);
        controlled.bios(id).founder = Some(bio_id);
    }

    /// Merges a bio into a request, if one fits.
    #[inline(always)]
    fn merge_controlled(&mut self, rules: &MultiQueueRules, bio: &Bio, bio_id: BioId) -> bool {
        let Some((into, side)) = self.find_merge(rules, bio) else { return false };
        self.join_controlled(bio, bio_id, into, side);
        true
    }

    /// Merges a bio into the request `into`.
    #[inline(never)]
    fn join_controlled(&mut self, bio: &Bio, bio_id: BioId, into: RequestId, side: MergeSide) {
        let Request { sector, nr_sectors, .. } = self.env.requests[into];
        let controlled = self.controlled();
        let bios = controlled.bios(into);
        if let Some(&first) = bios.all().first() {
            bios.add(bio_id, side);
            let target = Target { sector, end: sector + u64::from(nr_sectors), first };
            controlled.controllers.merged(bio_id, &target);
        } else {
            // The request is older than the controllers.
            controlled.abandon(bio_id);
        }
        self.join(bio, into, side);
    }

    /// Merges the bios of `absorbed` into `survivor`.
    pub(in crate::queue) fn absorb_controlled(&mut self, survivor: RequestId, absorbed: RequestId) {
        let controlled = self.controlled();
        let bios = std::mem::take(controlled.bios(absorbed));
        let Some(founder) = bios.founder else { return };
        controlled.controllers.absorbed(founder);
        controlled.bios(survivor).absorb(bios);
        self.attend();
    }

    /// Reports to the controllers that the device takes `id`.
    #[inline]
    pub(in crate::queue) fn start_controlled(&mut self, id: RequestId) {
        let controlled = self.controlled();
        if let Some(founder) = controlled.founder(id) {
            controlled.controllers.started(founder);
        }
    }

    /// Reports to the controllers that the device has finished `id`.
    pub(in crate::queue) fn complete_controlled(&mut self, id: RequestId) {
        let nr_sectors = self.env.requests[id].nr_sectors;
        let controlled = self.controlled();
        let Controlled { controllers, bios, inside, .. } = controlled;
        let Some(bios) = bios.get_mut(id.index()) else { return };
        let Some(founder) = bios.founder else { return };
        let all = bios.all();
        *inside -= all.len();
        controllers.completed(founder, all, nr_sectors.into());
        bios.clear();
        self.attend();
    }

    /// Returns the time of the controllers' next timer.
    pub(in crate::queue) fn next_controlled_timer(&self) -> Option<Time> {
        self.controlled.as_ref()?.controllers.next_timer()
    }

    /// Handles due timers of controllers.
    pub(in crate::queue) fn timer_controlled(&mut self) {
        self.controlled().controllers.timer();
        self.go_on_after_timer();
    }

    /// Handles an interrupt of the processor's clock for controllers, if there are any.
    pub(in crate::queue) fn clock_interrupt_controlled(&mut self) {
        if let Some(controlled) = &mut self.controlled {
            controlled.controllers.clock_interrupt();
            self.go_on_after_timer();
        }
    }

    /// Continues the bios that timers of controllers have released.
    fn go_on_after_timer(&mut self) {
        let controlled = self.controlled();
        let released = controlled.controllers.released();
        controlled.worker.queue.extend(released.iter().map(|&(bio_id, _)| bio_id));
        for (bio_id, at) in released {
            self.note_goes_on(bio_id, at);
        }
        self.run_worker(false);
        self.attend();
    }

    /// Returns whether the wait of any context at a controller has ended.
    #[inline]
    pub(in crate::queue) fn has_controlled_woken(&self) -> bool {
        self.controlled.as_ref().is_some_and(|controlled| !controlled.woken.is_empty())
    }

    /// Returns a context whose wait has ended: at a controller, or for a pending write to a file.
    #[inline]
    pub(in crate::queue) fn take_controlled_woken(&mut self) -> Option<ContextId> {
        self.controlled.as_mut()?.woken.pop_front()
    }

    /// Returns whether `context` is the worker. If it is the worker, lets it continue with its new
    /// tag.
    pub(in crate::queue) fn is_worker(&mut self, context: ContextId) -> bool {
        if self.controlled().worker.context != context {
            return false;
        }
        self.run_worker(true);
        true
    }

    /// Continues all bios that can continue, and executes waiting writes.
    #[inline(always)]
    fn attend(&mut self) {
        let log_on = self.env.log.is_on();
        let controlled = self.controlled();
        let site = &controlled.controllers.site;
        if log_on || site.log.is_on() || site.anyone_goes_on() || controlled.is_shut() {
            self.attend_all();
        }
    }

    #[inline(never)]
    fn attend_all(&mut self) {
        if self.env.log.is_on() || self.controlled().controllers.site.log.is_on() {
            self.note_controlled(None);
        }
        while self.controlled().collect_woken() || self.controlled().write_if_empty() {
            self.run_worker(false);
        }
    }

    /// Submits released bios until one must wait. `has_tag` tells whether the worker's waiting bio
    /// has got a tag.
    fn run_worker(&mut self, mut has_tag: bool) {
        let rules = self.allocation.rules();
        loop {
            let controlled = self.controlled();
            let (bio_id, place) = match controlled.worker.waits.take() {
                Some((bio_id, Place::Passed(at))) => (bio_id, self.resume_controlled(bio_id, at)),
                Some((bio_id, Place::Tag)) if std::mem::take(&mut has_tag) => (bio_id, None),
                waits @ Some((_, Place::Tag | Place::Controller(_))) => {
                    controlled.worker.waits = waits;
                    return;
                }
                None if controlled.is_shut() => return,
                None => {
                    let Some(bio_id) = controlled.worker.queue.pop_front() else { return };
                    controlled.inside += 1;
                    let waiting_bio = &controlled.controllers.site.bios[bio_id];
                    let (ioprio, bio) = (waiting_bio.ioprio, waiting_bio.bio());
                    if let Some((rest, at)) = controlled.follow(bio_id, bio.context) {
                        self.note_throttled(rest, at);
                    }
                    self.env.bio_ioprio = ioprio;
                    let merges = self.next.is_none();
                    if rules.filter(|_| merges).is_some_and(|rules| self.merge_controlled(&rules, &bio, bio_id)) {
                        self.held_no_more(bio.context);
                        continue;
                    }
                    (bio_id, self.throttle_controlled(bio_id))
                }
            };
            if let Some(place) = place {
                self.controlled().worker.waits = Some((bio_id, place));
                return;
            }
            if !self.send_on(rules.as_ref(), bio_id) {
                self.controlled().worker.waits = Some((bio_id, Place::Tag));
                return;
            }
        }
    }

    /// Turns a bio of the worker into a request. Returns `false` if it must wait for a tag.
    fn send_on(&mut self, rules: Option<&MultiQueueRules>, bio_id: BioId) -> bool {
        let worker = self.controlled().worker.context;
        let BioState { ioprio, cgroup, context, .. } = self.controlled().controllers.site.bios[bio_id];
        let bio = self.controlled().controllers.site.bios[bio_id].bio();
        let Some(id) = self.allocate_as(worker, &bio) else { return false };
        let request = &mut self.env.requests[id];
        (request.ioprio, request.cgroup) = (ioprio, cgroup);
        self.found_controlled(id, bio_id);
        if self.next.is_some() {
            self.held.push_back(self.env.requests.list_nodes(), id);
        } else if let Some(rules) = rules {
            self.note_insert(id);
            self.insert_multi(rules, id);
        } else {
            self.give_to_elevator(id);
            self.insert(id);
        }
        self.held_no_more(context);
        self.env.run_queue();
        true
    }

    /// Allocates a request for `bio`, if a tag is free. Otherwise `context` waits for a tag.
    pub(in crate::queue) fn allocate_tagged_as(&mut self, context: ContextId, bio: &Bio) -> Option<RequestId> {
        let (worker_bio, nr_requests) = (Bio { context, ..*bio }, self.attributes.nr_requests);
        let multi = self.allocation.multi_mut()?;
        match multi.allocate(&self.env, self.elevator.as_mut(), nr_requests, &worker_bio) {
            Ok(grant) => Some(self.found_tagged(bio, grant)),
            Err(limit) => {
                multi.wait(&self.env, &worker_bio, limit, false);
                None
            }
        }
    }

    /// Reduces the number of held bios of `context` by one: the bio became a request or a part of
    /// one.
    fn held_no_more(&mut self, context: ContextId) {
        self.env.contexts.get_mut(context).bios -= 1;
        let held = self.controlled().held(context);
        held.bios -= 1;
        if held.bios == 0 && std::mem::take(&mut held.exits) {
            self.exit_elevator(context);
        }
    }

    /// Returns whether bios of an exiting context are held. The exit is then reported to the
    /// elevator after these bios.
    pub(in crate::queue) fn exits_later(&mut self, context: ContextId) -> bool {
        let Some(controlled) = &mut self.controlled else { return false };
        let held = controlled.held(context);
        held.exits = held.bios > 0;
        held.exits
    }

    // ---- changes

    /// Adds a controller.
    pub(in crate::queue) fn add_to_controlled(&mut self, make: impl FnOnce(&mut Site) -> Box<dyn Controller>) {
        let controllers = &mut self.controlled().controllers;
        let controller = make(&mut controllers.site);
        controllers.add(controller);
    }

    /// Writes a controller's file. Returns `None` if no controller has it. A write that needs an
    /// empty queue waits until the queue is empty.
    pub(in crate::queue) fn write_controlled(
        &mut self,
        file: &str,
        cgroup: CgroupId,
        text: &str,
    ) -> Option<Result<(), WriteError>> {
        let controlled = self.controlled();
        controlled.controllers.of_file(file)?;
        if controlled.is_shut() || (controlled.inside > 0 && controlled.controllers.drains(file)) {
            let (file, text) = (file.to_owned(), text.to_owned());
            controlled.writes.push_back(Write { file, cgroup, text });
            return Some(Ok(()));
        }
        let result = controlled.controllers.write(file, cgroup, text);
        self.attend();
        result
    }

    /// Handles the creation or removal of a cgroup.
    pub(in crate::queue) fn cgroup_controlled(&mut self, cgroup: CgroupId, parent: Option<CgroupId>) {
        if self.controlled.is_some() {
            let controllers = &mut self.controlled().controllers;
            match parent {
                Some(parent) => controllers.create_group(parent),
                None => {
                    controllers.remove_group(cgroup);
                    self.attend();
                }
            }
        }
    }

    /// Handles a woken context that submits nothing: other bios can use its tag and its place.
    pub(in crate::queue) fn decline_controlled(&mut self, context: ContextId) {
        let granted = self.allocation.multi().is_some_and(|multi| multi.is_granted(context));
        let Some(controlled) = &mut self.controlled else { return };
        match controlled.waiting(context) {
            Some((_, Place::Passed(_))) => self.leave_controlled(context),
            Some((_, Place::Tag)) if granted => self.leave_controlled(context),
            _ => {}
        }
    }

    /// Removes the context from all waits.
    pub(in crate::queue) fn leave_controlled(&mut self, context: ContextId) {
        if self.controlled.is_none() {
            return;
        }
        let controlled = self.controlled();
        controlled.shut_out.retain(|&other| other != context);
        controlled.woken.retain(|&other| other != context);
        match controlled.waiting(context).take() {
            Some((bio_id, Place::Controller(at))) => controlled.left.push((bio_id, at)),
            Some((bio_id, Place::Passed(at))) => controlled.go_away(bio_id, at),
            Some((bio_id, Place::Tag)) => controlled.abandon(bio_id),
            None => {}
        }
        self.attend();
    }

    /// Handles the change to an elevator of the single-queue layer: ends all waits at controllers
    /// and for pending writes to files.
    pub(in crate::queue) fn pass_controlled_by(&mut self) {
        let Some(controlled) = &mut self.controlled else { return };
        let waiting = (0..controlled.contexts.len() as u32).map(ContextId);
        let waiting: Vec<ContextId> = waiting.filter(|&context| controlled.waiting(context).is_some()).collect();
        for context in waiting {
            let waits_for_tag = matches!(self.controlled().waiting(context), Some((_, Place::Tag)));
            self.leave_controlled(context);
            // A context that waits for a tag tries again in any case.
            if !waits_for_tag {
                self.controlled().woken.push_back(context);
            }
        }
        self.controlled().let_in();
    }

    /// Tells the controllers the name of the new elevator.
    pub(in crate::queue) fn tell_controlled(&mut self, elevator: &str) {
        if self.controlled.is_some() {
            self.controlled().controllers.elevator_changed(elevator);
        }
    }
}
