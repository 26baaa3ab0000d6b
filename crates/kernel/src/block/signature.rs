//! Detects valuable data on a device by the marks of file systems, volume managers and partition
//! tables. iosched does not propose to overwrite a device with such marks.
//!
//! Offsets and values are those of the published on-disk formats. A device without any mark may
//! still hold data.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::BlockDevice;

/// Bytes at the start of a device to search. The last mark in these bytes belongs to a zfs label.
const HEAD_BYTES: usize = 256 << 10;
/// Bytes at the end of a device to search.
const TAIL_BYTES: usize = 256 << 10;
const GPT: &str = "a GPT partition table";
const MD: &str = "a part of a Linux RAID (md)";
const MD_MAGIC: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const LVM: &str = "an LVM physical volume";
const SWAP: &str = "swap space";
const FAT: &str = "a FAT file system";

/// Marks: offset from the start in bytes, the bytes at this offset, and the format that they
/// identify.
const MARKS: &[(usize, &[u8], &str)] = &[
    (0, b"LUKS\xba\xbe", "LUKS encrypted data"),
    (0, b"XFSB", "an XFS file system"),
    (0, b"hsqs", "a squashfs file system"),
    (0, b"bluestore block device", "a Ceph OSD"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (32, b"ORCLDISK", "an Oracle ASM disk"),
    (54, b"FAT", FAT),
    (82, b"FAT32   ", FAT),
    (512, b"EFI PART", GPT),
    (4096, b"EFI PART", GPT),
    (0, b"LABELONE", LVM),
    (512, b"LABELONE", LVM),
    (1024, b"LABELONE", LVM),
    (1536, b"LABELONE", LVM),
    // The superblock is at byte 1024, and its magic number is at byte 56 of the superblock.
    (1080, &[0x53, 0xef], "an ext2, ext3 or ext4 file system"),
    (1024, &[0x10, 0x20, 0xf5, 0xf2], "an f2fs file system"),
    (1024, &[0xe2, 0xe1, 0xf5, 0xe0], "an EROFS file system"),
    (1024, b"H+", "an HFS+ file system"),
    (1024, b"HX", "an HFS+ file system"),
    (1030, &[0x34, 0x34], "a NILFS2 file system"),
    (0, MD_MAGIC, MD),
    (4096, MD_MAGIC, MD),
    // The magic numbers of bcache and bcachefs have the same first four bytes. Six bytes
    // distinguish them.
    (4120, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a], "a bcache device"),
    (4120, &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce], "a bcachefs file system"),
    // Swap space has its mark at the end of the first page, and page sizes differ.
    (4086, b"SWAPSPACE2", SWAP),
    (4086, b"SWAP-SPACE", SWAP),
    (16_374, b"SWAPSPACE2", SWAP),
    (65_526, b"SWAPSPACE2", SWAP),
    (32_768, b"JFS1", "a JFS file system"),
    (32_769, b"CD001", "an ISO 9660 file system"),
    (65_536, &[0x01, 0x16, 0x19, 0x70], "a GFS2 file system"),
    (65_588, b"ReIsEr", "a ReiserFS file system"),
    (65_600, b"_BHRfS_M", "a btrfs file system"),
    // Every boot sector ends with these bytes. More specific formats with a boot sector are listed
    // above.
    (510, &[0x55, 0xaa], "an MBR partition table or a boot sector"),
];

/// zfs keeps its newest states in slots of 1 KiB in the second half of a label.
const ZFS_SLOTS: std::ops::Range<usize> = 128..256;
const ZFS_MAGIC: u64 = 0x00ba_b10c;

/// Marks: offset from the end in bytes, the bytes at this offset, and the format that they
/// identify.
const MARKS_BEFORE_END: &[(usize, &[u8], &str)] = &[
    (512, b"EFI PART", GPT),
    (4096, b"EFI PART", GPT),
    (512, &[0xde, 0x11, 0xde, 0x11], "a part of a RAID (DDF)"),
    (1024, b"Intel Raid ISM Cfg", "a part of a RAID (Intel)"),
];

impl BlockDevice {
    /// Returns a description of the contents, such as "an XFS file system", from the marks at the
    /// start and end of the device. Returns `None` if there is no known mark.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn signature(&self) -> io::Result<Option<&'static str>> {
        let bytes = self.size_bytes();
        let file = File::open(self.path())?;
        let part = |at: u64, most: usize| {
            let mut part = vec![0; most.min(usize::try_from(bytes - at).unwrap_or(most))];
            file.read_exact_at(&mut part, at).map(|()| part)
        };
        let head = part(0, HEAD_BYTES)?;
        let tail_at = bytes.saturating_sub(TAIL_BYTES as u64);
        let tail = part(tail_at, TAIL_BYTES)?;
        Ok(at_start(&head).or_else(|| before_end(&tail, bytes)))
    }
}

fn has(bytes: &[u8], at: usize, mark: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(mark))
}

fn at_start(head: &[u8]) -> Option<&'static str> {
    let known = MARKS.iter().find(|(at, mark, _)| has(head, *at, mark)).map(|(.., what)| *what);
    let is_zfs = |slot: usize| {
        let (little, big) = (ZFS_MAGIC.to_le_bytes(), ZFS_MAGIC.to_be_bytes());
        has(head, slot << 10, &little) || has(head, slot << 10, &big)
    };
    known.or_else(|| ZFS_SLOTS.into_iter().any(is_zfs).then_some("a part of a ZFS pool"))
}

/// Returns the format that a mark near the end identifies. `tail` contains the last bytes of a
/// device of `bytes` bytes.
fn before_end(tail: &[u8], bytes: u64) -> Option<&'static str> {
    let at_end = |back: usize, mark: &[u8]| tail.len().checked_sub(back).is_some_and(|at| has(tail, at, mark));
    let known = MARKS_BEFORE_END.iter().find(|(back, mark, _)| at_end(*back, mark)).map(|(.., what)| *what);
    // Version 0.90 has its superblock in the second-to-last whole block of 64 KiB. Version 1.0 has
    // it in the last whole block of 4 KiB that starts at least 8 KiB before the end.
    let places = [(bytes & !0xffff).checked_sub(0x1_0000), bytes.checked_sub(0x2000).map(|at| at & !0xfff)];
    let is_md = |at: u64| usize::try_from(bytes - at).is_ok_and(|back| at_end(back, MD_MAGIC));
    known.or_else(|| places.into_iter().flatten().any(is_md).then_some(MD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    const BYTES: usize = 8192 * 512;

    #[test]
    fn every_signature_is_found_at_its_offset() {
        let machine = Recorded::new();
        let image = machine.path().join("dev/sdc");
        let found = |at: usize, mark: &[u8]| {
            let file = File::create(&image).unwrap();
            file.set_len(BYTES as u64).unwrap();
            file.write_all_at(mark, at as u64).unwrap();
            machine.device("sdc").signature().unwrap()
        };
        assert_eq!(found(0, &[]), None);
        assert_eq!(found(BYTES / 2, b"XFSB"), None);
        for (at, mark, what) in MARKS {
            assert_eq!(found(*at, mark), Some(*what), "{at} {mark:x?}");
        }
        for (back, mark, what) in MARKS_BEFORE_END {
            assert_eq!(found(BYTES - back, mark), Some(*what), "{back} {mark:x?}");
        }
        assert_eq!(found(BYTES - 0x1_0000, MD_MAGIC), Some(MD));
        assert_eq!(found(BYTES - 0x2000, MD_MAGIC), Some(MD));
        assert_eq!(found(200 << 10, &ZFS_MAGIC.to_le_bytes()), Some("a part of a ZFS pool"));
    }

    #[test]
    fn signature_search_accepts_short_devices() {
        assert_eq!(at_start(b"XFS"), None);
        assert_eq!(at_start(b"XFSB"), Some("an XFS file system"));
        assert_eq!(before_end(&[], 0), None);
        assert_eq!(before_end(&[0; 512], 512), None);
    }
}
