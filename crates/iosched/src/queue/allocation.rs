//! Allocation of requests in both layers, behind one interface.
//!
//! Insertion and merging are specific to each layer: [`super::single`], [`super::multi`].

use super::config::DeviceQueues;
use super::multi::MultiQueue;
use super::single::Limits;
use crate::context::ContextId;
use crate::elevator::Elevator;
use crate::env::Env;
use crate::layer::{Layer, MultiQueueRules};
use crate::request::{NO_TAG, Request, RequestId, RequestStage};
use crate::time::Time;

/// State of the queue for the layer of its elevator.
pub(super) enum Allocation {
    /// Legacy request queue: a limit for each kind of request.
    Single(Limits),
    /// blk-mq: tags.
    Multi(MultiQueue),
}

impl Allocation {
    pub(super) fn new(layer: Layer, device: DeviceQueues, nr_requests: u32) -> Self {
        match layer {
            Layer::SingleQueue => Self::Single(Limits::default()),
            Layer::MultiQueue(rules) => Self::Multi(MultiQueue::new(rules, device, nr_requests)),
        }
    }

    #[inline]
    pub(super) fn multi(&self) -> Option<&MultiQueue> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => Some(multi),
        }
    }

    #[inline]
    pub(super) fn multi_mut(&mut self) -> Option<&mut MultiQueue> {
        match self {
            Self::Single(_) => None,
            Self::Multi(multi) => Some(multi),
        }
    }

    /// Returns the rules of the multi-queue layer.
    #[inline]
    pub(super) fn rules(&self) -> Option<MultiQueueRules> {
        self.multi().map(|multi| multi.rules)
    }

    /// Returns the number of tags per word, if limits on tags are counted in each word.
    pub(super) fn limit_word(&self) -> Option<u32> {
        self.multi().and_then(MultiQueue::limit_word)
    }

    /// Returns a context that waited and may submit again.
    #[inline(always)]
    pub(super) fn woken(&mut self, env: &Env, elevator: &mut dyn Elevator, nr_requests: u32) -> Option<ContextId> {
        match self {
            Self::Single(limits) => (!limits.is_calm()).then(|| limits.woken(env.now)).flatten(),
            Self::Multi(multi) => (!multi.is_calm()).then(|| multi.woken(env, elevator, nr_requests)).flatten(),
        }
    }

    /// Counts `request` as in the device.
    #[inline]
    pub(super) fn started(&mut self, request: &Request) {
        if let Self::Multi(multi) = self {
            multi.started(request.hw_queue);
        }
    }

    /// Counts `request` as no longer in the device.
    #[inline]
    pub(super) fn left_device(&mut self, request: &Request) {
        if let Self::Multi(multi) = self {
            multi.left_device(request.hw_queue);
        }
    }

    /// Frees the place or the tag of `request`.
    #[inline]
    pub(super) fn release(&mut self, now: Time, nr_requests: u32, request: &Request, by_completion: bool) {
        match self {
            Self::Single(limits) => limits.release(now, nr_requests, request.is_sync()),
            Self::Multi(multi) => multi.release(request.tag, request.hw_queue, by_completion),
        }
    }

    /// Handles the exit of `context`.
    pub(super) fn exit(&mut self, now: Time, nr_requests: u32, context: ContextId) {
        match self {
            Self::Single(limits) => limits.exit(now, nr_requests, context),
            Self::Multi(multi) => multi.exit(context),
        }
    }

    /// Returns whether a writer that can wait should wait.
    pub(super) fn congested(&self, sync: bool) -> bool {
        match self {
            Self::Single(limits) => limits.congested(sync),
            Self::Multi(_) => false,
        }
    }

    /// Returns all waiting contexts.
    pub(super) fn waiters(&self) -> Vec<ContextId> {
        match self {
            Self::Single(limits) => limits.waiters(),
            Self::Multi(multi) => multi.waiters(),
        }
    }

    /// Counts the requests of `env`, which were allocated in the other layer, and lets `waiters`
    /// try again. Device flushes count in neither layer.
    pub(super) fn adopt(
        &mut self,
        env: &mut Env,
        nr_requests: u32,
        device_flush: Option<RequestId>,
        waiters: Vec<ContextId>,
    ) {
        match self {
            Self::Single(limits) => {
                for id in env.requests.ids().filter(|&id| device_flush != Some(id)) {
                    limits.adopt(env.requests[id].is_sync());
                }
                limits.resized(env.now, nr_requests);
                waiters.into_iter().for_each(|context| limits.retry(context));
            }
            Self::Multi(multi) => {
                let hw_queues = usize::from(multi.hw_queues());
                env.requests.for_each_id(|id, request| {
                    (request.tag, request.hw_queue) = (NO_TAG, 0);
                    if device_flush != Some(id) {
                        request.hw_queue = (request.context.index() % hw_queues) as u16;
                        request.tag = multi.adopt(request.hw_queue);
                    }
                    if request.stage == RequestStage::Started {
                        multi.started(request.hw_queue);
                    }
                });
                waiters.into_iter().for_each(|context| multi.retry(context));
            }
        }
    }

    /// Checks that counters agree with the existing requests.
    pub(super) fn check(&self, env: &Env, device_flush: Option<RequestId>) {
        match self {
            Self::Single(limits) => {
                let mut allocated = [0; 2];
                for id in env.requests.ids().filter(|&id| device_flush != Some(id)) {
                    allocated[usize::from(env.requests[id].is_sync())] += 1;
                }
                assert_eq!(allocated, [limits.allocated(false), limits.allocated(true)]);
            }
            Self::Multi(multi) => multi.check(env),
        }
    }
}
