//! Features and configuration of a virtio block device.

use vhost::vhost_user::message::VhostUserProtocolFeatures;

/// Maximum number of queues of a device. The frontend chooses the number.
pub(crate) const QUEUES_MAX: u16 = 64;
/// Maximum number of descriptors of a queue.
pub(crate) const QUEUE_SIZE_MAX: u16 = 1024;
/// Maximum number of memory segments of a request, without the header and the status. With these
/// two, a request has 128 segments: the length of a queue in QEMU.
const SEGMENTS_MAX: u32 = 126;
/// Maximum range that one request can trim or zero, sectors (1 GiB).
const RANGE_SECTORS_MAX: u32 = 1 << 21;
/// Maximum logical block size of a Linux device, bytes.
const BLOCK_BYTES_MAX: u32 = 4096;
const SECTOR_BYTES: u32 = iosched::SECTOR_BYTES as u32;
/// Maximum size of the configuration, bytes. Unused fields are zero.
const CONFIG_BYTES: usize = 256;

/// Feature: the driver can flush.
pub(crate) const F_FLUSH: u64 = 1 << 9;
/// Feature: the driver selects the next answer for which it wants a notification.
pub(crate) const F_EVENT_IDX: u64 = 1 << 29;
/// Feature: the frontend enables and disables rings.
pub(crate) const F_PROTOCOL_FEATURES: u64 = 1 << 30;
const F_SEG_MAX: u64 = 1 << 2;
const F_RO: u64 = 1 << 5;
const F_BLK_SIZE: u64 = 1 << 6;
const F_TOPOLOGY: u64 = 1 << 10;
const F_MQ: u64 = 1 << 12;
const F_DISCARD: u64 = 1 << 13;
const F_WRITE_ZEROES: u64 = 1 << 14;
const F_INDIRECT_DESC: u64 = 1 << 28;
const F_VERSION_1: u64 = 1 << 32;

/// Protocol features of this server. It does not offer to log its writes to guest memory, so
/// frontends refuse to migrate a guest.
pub(crate) const PROTOCOL_FEATURES: VhostUserProtocolFeatures = VhostUserProtocolFeatures::MQ
    .union(VhostUserProtocolFeatures::REPLY_ACK)
    .union(VhostUserProtocolFeatures::CONFIG)
    .union(VhostUserProtocolFeatures::BACKEND_REQ)
    .union(VhostUserProtocolFeatures::INFLIGHT_SHMFD);

/// Properties of a device.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    /// Size, bytes.
    pub(crate) capacity_bytes: u64,
    /// Block size for guests, bytes.
    pub(crate) block_bytes: u32,
    pub(crate) read_only: bool,
}

impl Card {
    /// Creates the properties for a disk of this size and block size. The device ends at the end of
    /// the last whole block.
    pub(crate) fn new(capacity_bytes: u64, block_bytes: u32, read_only: bool) -> Self {
        let block_bytes = block_bytes.next_power_of_two().clamp(SECTOR_BYTES, BLOCK_BYTES_MAX);
        let capacity_bytes = capacity_bytes / u64::from(block_bytes) * u64::from(block_bytes);
        Self { capacity_bytes, block_bytes, read_only }
    }

    /// Returns the features that the driver may use.
    pub(crate) fn features(&self) -> u64 {
        let writes = F_DISCARD | F_WRITE_ZEROES;
        let device_features =
            F_SEG_MAX | F_BLK_SIZE | F_FLUSH | F_TOPOLOGY | F_MQ | if self.read_only { F_RO } else { writes };
        device_features | F_INDIRECT_DESC | F_EVENT_IDX | F_PROTOCOL_FEATURES | F_VERSION_1
    }

    /// Returns `bytes` bytes of the configuration from `offset`. Returns `None` if the range is
    /// outside the configuration.
    pub(crate) fn config(&self, offset: u32, bytes: u32) -> Option<Vec<u8>> {
        let mut config = [0; CONFIG_BYTES];
        let mut set = |at: usize, field: &[u8]| config[at..at + field.len()].copy_from_slice(field);
        let alignment = self.block_bytes / SECTOR_BYTES;
        set(0, &(self.capacity_bytes / u64::from(SECTOR_BYTES)).to_le_bytes());
        set(12, &SEGMENTS_MAX.to_le_bytes());
        set(20, &self.block_bytes.to_le_bytes());
        // Minimum length of a write, in blocks.
        set(26, &1_u16.to_le_bytes());
        set(34, &QUEUES_MAX.to_le_bytes());
        if !self.read_only {
            set(36, &RANGE_SECTORS_MAX.to_le_bytes());
            // Maximum number of ranges in a request.
            set(40, &1_u32.to_le_bytes());
            set(44, &alignment.to_le_bytes());
            set(48, &RANGE_SECTORS_MAX.to_le_bytes());
            set(52, &1_u32.to_le_bytes());
            // The device may make holes instead of writing zeroes.
            set(56, &[1]);
        }
        let first = usize::try_from(offset).ok()?;
        config.get(first..first.checked_add(bytes as usize)?).map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(block_bytes: u32, read_only: bool) -> Card {
        Card::new((1 << 20) + 511, block_bytes, read_only)
    }

    #[test]
    fn the_configuration_has_the_layout_of_virtio() {
        let config = card(4096, false).config(0, 60).unwrap();
        let number = |at: usize| u32::from_le_bytes([config[at], config[at + 1], config[at + 2], config[at + 3]]);
        assert_eq!((number(0), number(4), number(12), number(20)), (2048, 0, 126, 4096));
        assert_eq!(
            (number(36), number(40), number(44), number(48), number(52), config[56]),
            (1 << 21, 1, 8, 1 << 21, 1, 1)
        );
        assert_eq!((config[34], config[35]), (64, 0));
        assert_eq!(card(512, false).config(20, 4).unwrap(), [0, 2, 0, 0]);
        assert_eq!(card(512, false).config(200, 57), None);
        assert_eq!(card(512, false).config(u32::MAX, u32::MAX), None);
    }

    #[test]
    fn a_read_only_device_offers_no_writing_features() {
        let (writable, read_only) = (card(512, false).features(), card(512, true).features());
        assert_eq!(writable & (F_RO | F_DISCARD | F_WRITE_ZEROES), F_DISCARD | F_WRITE_ZEROES);
        assert_eq!(read_only & (F_RO | F_DISCARD | F_WRITE_ZEROES), F_RO);
        assert_eq!(card(512, true).config(36, 24).unwrap(), [0; 24]);
    }

    #[test]
    fn logging_of_changed_memory_is_not_offered() {
        assert!(!PROTOCOL_FEATURES.contains(VhostUserProtocolFeatures::LOG_SHMFD));
        assert_eq!(card(512, false).features() & (1 << 26), 0);
    }
}
