//! I/O priorities in the kernel's format, as in ioprio_get(2), ioprio_set(2) and requests of
//! io_uring.

use iosched::{IoClass, IoPriority, LEVEL_DEFAULT};

/// Number of bits below the class, as in Linux' include/uapi/linux/ioprio.h.
const CLASS_SHIFT: u32 = 13;
/// Mask of the level's bits.
const LEVEL_MASK: u32 = 7;

/// Converts a priority from the kernel's format. The class none and unknown classes mean that the
/// process never set a priority. The idle class has no levels.
#[must_use]
pub const fn ioprio_of_kernel(stored: u32) -> IoPriority {
    let level = (stored & LEVEL_MASK) as u8;
    match stored >> CLASS_SHIFT {
        1 => IoPriority::new(IoClass::RealTime, level),
        2 => IoPriority::new(IoClass::BestEffort, level),
        3 => IoPriority::new(IoClass::Idle, LEVEL_DEFAULT),
        _ => IoPriority::new(IoClass::None, LEVEL_DEFAULT),
    }
}

/// Converts a priority to the kernel's format. If a process never set a priority, its level follows
/// from its nice value. The kernel would use the nice value of iosched instead. Therefore a level
/// other than the default becomes an explicit priority of the class best effort.
#[must_use]
pub const fn ioprio_for_kernel(ioprio: IoPriority) -> u16 {
    let class: u16 = match ioprio.class() {
        IoClass::None if ioprio.level() == LEVEL_DEFAULT => return 0,
        IoClass::RealTime => 1,
        IoClass::None | IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << CLASS_SHIFT | ioprio.level() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ioprio_converts_to_and_from_kernel_numbers() {
        for (kept, ioprio) in [
            (0, "none"),
            (4, "none"),
            (1 << 13, "rt/0"),
            (2 << 13 | 6, "be/6"),
            (3 << 13 | 7, "idle"),
            (3 << 13, "idle"),
            (7 << 13 | 2, "none"),
            // Newer kernels have hints between the class and the level.
            (2 << 13 | 1 << 3 | 4, "be/4"),
        ] {
            assert_eq!(ioprio_of_kernel(kept), ioprio.parse().unwrap(), "{kept:#x}");
        }
        for (ioprio, number) in [("none", 0), ("none/7", 2 << 13 | 7), ("rt/3", 1 << 13 | 3), ("idle", 3 << 13 | 4)] {
            assert_eq!(ioprio_for_kernel(ioprio.parse().unwrap()), number, "{ioprio}");
        }
    }
}
