//! A chain of descriptors: the guest memory of a request. This module follows a chain itself,
//! because an earlier server leaves only the index of a chain's first descriptor (the head).

use virtio_queue::desc::RawDescriptor;
use virtio_queue::desc::split::Descriptor;
use vm_memory::ByteValued;

use super::memory::{Memory, Span};

/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u64 = 16;
/// Maximum number of descriptors of a chain in an indirect table, as in QEMU.
const DESCRIPTORS_MAX: u32 = 1024;

/// Error: the guest has violated the rules for chains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("descriptor {0} is not in the descriptor table")]
    Descriptor(u16),
    #[error("a descriptor table is not in the memory of the guest")]
    Table,
    #[error("the range {0:#x}+{1} goes beyond the last address")]
    Address(u64, u32),
    #[error("an indirect table has a length of {0} bytes, or is inside another indirect table")]
    Indirect(u32),
    #[error("a chain has more descriptors than its table")]
    Endless,
    #[error("a writable descriptor comes before a readable one")]
    Order,
    #[error("a request has no room for its header or its status")]
    Short,
}

/// Guest memory of a chain.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Memory that the device reads.
    pub(crate) readable: Vec<Span>,
    /// Memory that the device writes.
    pub(crate) writable: Vec<Span>,
}

/// An array of descriptors.
#[derive(Clone, Copy)]
struct Table {
    address: u64,
    descriptors: u32,
}

impl Table {
    fn get(self, memory: &Memory, number: u16) -> Result<Descriptor, Broken> {
        if u32::from(number) >= self.descriptors {
            return Err(Broken::Descriptor(number));
        }
        let address = self.address.checked_add(u64::from(number) * DESCRIPTOR_BYTES).ok_or(Broken::Table)?;
        let mut raw = RawDescriptor::default();
        memory.read(address, raw.as_mut_slice()).map_err(|_| Broken::Table)?;
        Ok(raw.into())
    }
}

impl Chain {
    /// Follows the chain that begins with `head`, in the table at `address` with `descriptors`
    /// entries.
    pub(crate) fn follow(&mut self, memory: &Memory, address: u64, descriptors: u16, head: u16) -> Result<(), Broken> {
        self.readable.clear();
        self.writable.clear();
        let mut table = Table { address, descriptors: descriptors.into() };
        let (mut number, mut left, mut is_indirect) = (head, table.descriptors, false);
        loop {
            left = left.checked_sub(1).ok_or(Broken::Endless)?;
            let descriptor = table.get(memory, number)?;
            if descriptor.refers_to_indirect_table() {
                let bytes = descriptor.len();
                let within = bytes / DESCRIPTOR_BYTES as u32;
                if is_indirect
                    || !u64::from(bytes).is_multiple_of(DESCRIPTOR_BYTES)
                    || !(1..=DESCRIPTORS_MAX).contains(&within)
                {
                    return Err(Broken::Indirect(bytes));
                }
                table = Table { address: descriptor.addr().0, descriptors: within };
                (number, left, is_indirect) = (0, within, true);
                continue;
            }
            let span = Span { address: descriptor.addr().0, bytes: descriptor.len() };
            if span.address.checked_add(span.bytes.into()).is_none() {
                return Err(Broken::Address(span.address, span.bytes));
            }
            if descriptor.is_write_only() {
                self.writable.push(span);
            } else if self.writable.is_empty() {
                self.readable.push(span);
            } else {
                return Err(Broken::Order);
            }
            if !descriptor.has_next() {
                return Ok(());
            }
            number = descriptor.next();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::memory::tests::memory;
    use super::*;

    pub(crate) const NEXT: u16 = 1;
    pub(crate) const WRITE: u16 = 2;
    const INDIRECT: u16 = 4;

    /// Writes a descriptor into the table at `table`.
    pub(crate) fn put(memory: &Memory, table: u64, number: u16, (address, bytes, flags, next): (u64, u32, u16, u16)) {
        let raw = RawDescriptor::from(Descriptor::new(address, bytes, flags, next));
        memory.write(table + u64::from(number) * DESCRIPTOR_BYTES, raw.as_slice()).unwrap();
    }

    fn follow(memory: &Memory, head: u16) -> Result<Chain, Broken> {
        let mut chain = Chain::default();
        chain.follow(memory, 0, 4, head).map(|()| chain)
    }

    #[test]
    fn chain_is_followed_through_direct_and_indirect_tables() {
        let memory = memory(4096);
        put(&memory, 0, 2, (2048, 16, NEXT, 0));
        put(&memory, 0, 0, (3000, 5, WRITE, 0));
        let chain = follow(&memory, 2).unwrap();
        assert_eq!(chain.readable, [Span { address: 2048, bytes: 16 }]);
        assert_eq!(chain.writable, [Span { address: 3000, bytes: 5 }]);
        put(&memory, 0, 1, (1024, 48, INDIRECT, 0));
        for (number, flags) in [(0, NEXT), (1, NEXT | WRITE), (2, WRITE)] {
            put(&memory, 1024, number, (100, 7, flags, number + 1));
        }
        let chain = follow(&memory, 1).unwrap();
        assert_eq!((chain.readable.len(), chain.writable.len()), (1, 2));
    }

    #[test]
    fn chains_that_break_the_rules_are_refused() {
        let memory = memory(4096);
        let broken = |descriptors: &[(u64, u32, u16, u16)]| {
            for (number, &descriptor) in descriptors.iter().enumerate() {
                put(&memory, 0, number as u16, descriptor);
            }
            follow(&memory, 0).unwrap_err()
        };
        assert_eq!(broken(&[(0, 16, NEXT, 4)]), Broken::Descriptor(4));
        assert_eq!(broken(&[(0, 16, NEXT, 1), (0, 16, NEXT, 0)]), Broken::Endless);
        assert_eq!(broken(&[(0, 16, NEXT | WRITE, 1), (0, 16, 0, 0)]), Broken::Order);
        assert_eq!(broken(&[(0, 17, INDIRECT, 0)]), Broken::Indirect(17));
        assert_eq!(broken(&[(0, 0, INDIRECT, 0)]), Broken::Indirect(0));
        assert_eq!(broken(&[(0, 16, INDIRECT, 0)]), Broken::Indirect(16), "a table in a table");
        assert_eq!(broken(&[(u64::MAX - 8, 16, INDIRECT, 0)]), Broken::Table);
        assert_eq!(broken(&[(u64::MAX - 8, 16, 0, 0)]), Broken::Address(u64::MAX - 8, 16));
        assert_eq!(broken(&[(0, 16 * 1025, INDIRECT, 0)]), Broken::Indirect(16 * 1025));
    }
}
