//! Priorities of threads, as the kernel writes them.

use iosched::{IoClass, IoPriority};

/// Bits below the class in Linux' include/uapi/linux/ioprio.h.
const CLASS_SHIFT: u32 = 13;

/// An ioprio as the kernel writes it.
pub(super) const fn ioprio_value(ioprio: IoPriority) -> u16 {
    let class: u16 = match ioprio.class {
        IoClass::None => return 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << CLASS_SHIFT | ioprio.level as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ioprio_that_is_set_is_read_back() {
        std::thread::spawn(|| {
            for given in ["be/0", "be/7", "idle"] {
                let wanted = ioprio_value(given.parse().unwrap());
                iosched_system::call::set_ioprio(wanted).unwrap();
                // Of the idle class the kernel keeps no level.
                let level = if given == "idle" { 0b111 } else { 0 };
                let kept = iosched_system::call::ioprio_of(0).unwrap();
                assert_eq!(kept | level, i32::from(wanted) | level, "{given}");
            }
        })
        .join()
        .unwrap();
    }
}
