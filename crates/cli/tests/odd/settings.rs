//! Hints of what to do to devices, settings of the kernel's disks and of live ones, and what counts of a run.

mod hints;

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[
    Odd {
        name: "where a file is named as the target, the answer is a directory or a device, never to destroy the disk below",
        check: hints::a_file,
    },
    Odd { name: "neither a pipe nor a character device stands for the disk that it is on", check: hints::a_pipe },
    Odd {
        name: "a mounted device is refused with what is mounted, and not proposed to be destroyed",
        check: hints::mounted,
    },
    Odd { name: "a file system that is not mounted is not proposed to be destroyed", check: hints::a_file_system },
    Odd { name: "a partition table is not proposed to be destroyed", check: hints::a_partition_table },
    Odd { name: "swap space, whether used or not, is not proposed to be destroyed", check: hints::swap },
    Odd { name: "a device below a loop device is refused with it", check: hints::below_a_loop_device },
    Odd { name: "a device that somebody has opened exclusively is refused with that", check: hints::held },
    Odd { name: "a RAID, LVM, LUKS or ZFS member is not proposed to be destroyed", check: hints::members },
    Odd { name: "a device that holds nothing is proposed with what writing does", check: hints::empty },
    Odd {
        name: "another name with --destroy-data is told not to be the device's, which is not proposed instead",
        check: hints::another_name,
    },
    Odd {
        name: "a workload that may not write there changes no setting of the device first",
        check: hints::nothing_set,
    },
    Odd {
        name: "what was left of another device is to be forgotten, not set on this one",
        check: hints::another_device,
    },
];
