//! A virtio block device, sans-IO: its configuration, its requests and their guest memory.
//! [`crate::reactor`] serves the queues, and [`crate::vhost`] communicates with frontends.

pub(crate) mod chain;
pub(crate) mod device;
pub(crate) mod inflight;
pub(crate) mod memory;
pub(crate) mod request;

/// Addresses of a queue's rings, in the frontend's address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Addresses {
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
}

/// Error: a message of a frontend is not allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("there is no queue {number}: a device has at most {}", device::QUEUES_MAX)]
    Queue { number: u32 },
    #[error(
        "the number of entries of a queue must be a power of two, at most {}; it is {size}",
        device::QUEUE_SIZE_MAX
    )]
    Size { size: u32 },
    #[error("the start index of a queue must fit in 16 bits, but it is {base}")]
    Base { base: u32 },
    #[error("a queue cannot change while it runs")]
    Running,
    #[error("the ring address {address:#x} is not in the shared memory")]
    Address { address: u64 },
    #[error("the rings of a queue are not aligned, or not in the shared memory")]
    Rings,
    #[error("a queue must have a doorbell, because polling is not supported")]
    Polled,
    #[error("the device is gone")]
    Gone,
}
