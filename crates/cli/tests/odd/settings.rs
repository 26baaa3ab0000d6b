//! Hints of what to do to devices, settings of the kernel's disks and of live ones, and what counts of a run.

mod hints;
mod measured;
mod values;

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
    Odd { name: "a value out of its declared range is refused before it is written", check: values::out_of_range },
    Odd { name: "a value that the kernel made another of is told and fails", check: values::another_value },
    Odd { name: "a value that reads back in another notation is what was asked for", check: values::another_notation },
    Odd { name: "where the second of two fails, what was set before it is told", check: values::first_of_two },
    Odd { name: "where the second of two is known to be wrong, the first is not written", check: values::wrong_second },
    Odd {
        name: "a compared setting that the device does not take is refused, and nothing is left set",
        check: values::compared,
    },
    Odd { name: "a simulated setting out of its declared range is refused", check: values::simulated },
    Odd { name: "on a mounted disk a wrong value is refused in our words", check: values::mounted },
    Odd { name: "on a served disk a wrong value is refused in our words", check: values::served },
    Odd {
        name: "on a served disk a wrong weight of an export is refused in our words",
        check: values::served_in_shares,
    },
    Odd { name: "a name that the disk has not is told with those that it has", check: values::unknown_names },
    Odd { name: "in simulation neither what a warm-up does nor its time counts", check: measured::simulated_warm_up },
    Odd { name: "on a device neither what a warm-up does nor its time counts", check: measured::real_warm_up },
    Odd { name: "a warm-up is in the records, in their command and in the page", check: measured::reproduced },
    Odd { name: "records without a warm-up are as they were", check: measured::old_records },
    Odd { name: "a run that is over within its warm-up is an error", check: measured::only_warm_up },
    Odd {
        name: "of a command of others only what it tells and how long it took is shown",
        check: measured::of_a_command,
    },
    Odd { name: "where the kernel keeps no statistics there is no utilisation", check: measured::without_statistics },
    Odd { name: "a search warms up and ends its runs as a comparison does", check: measured::tuned },
];
