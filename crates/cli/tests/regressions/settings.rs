//! Hints about devices, settings of the kernel's disks and of served disks, and the measured part
//! of a run.

mod hints;
mod measured;
mod values;

use crate::list::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case(
        "where a file is named as the target, the answer is a directory or a device, never to destroy the disk below",
        hints::a_file,
    ),
    case("neither a pipe nor a character device stands for the disk that it is on", hints::a_pipe),
    case("a mounted device is refused with what is mounted, and not proposed to be destroyed", hints::mounted),
    case("a file system that is not mounted is not proposed to be destroyed", hints::a_file_system),
    case("a partition table is not proposed to be destroyed", hints::a_partition_table),
    case("swap space, whether used or not, is not proposed to be destroyed", hints::swap),
    case("a device below a loop device is refused with it", hints::below_a_loop_device),
    case("a device that somebody has opened exclusively is refused with that", hints::held),
    case("a RAID, LVM, LUKS or ZFS member is not proposed to be destroyed", hints::members),
    case("a device that holds nothing is proposed with what writing does", hints::empty),
    case(
        "another name with --destroy-data is told not to be the device's, which is not proposed instead",
        hints::another_name,
    ),
    case("a workload that may not write there changes no setting of the device first", hints::nothing_set),
    case("what was left of another device is to be forgotten, not set on this one", hints::another_device),
    case("a value out of its declared range is refused before it is written", values::out_of_range),
    case("a value that the kernel made another of is told and fails", values::another_value),
    case("a value that reads back in another notation is what was asked for", values::another_notation),
    case("where the second of two fails, what was set before it is told", values::first_of_two),
    case("where the second of two is known to be wrong, the first is not written", values::wrong_second),
    case("a compared setting that the device does not take is refused, and nothing is left set", values::compared),
    case("a list of schedulers in one option is the same in simulation and on a device", values::lists),
    case("an application whose files do not fit is refused before anything is made", values::room),
    case("a simulated setting out of its declared range is refused", values::simulated),
    case("every command that takes a setting refuses a wrong one in the same words", values::same_words),
    case("set and compare --on name a scheduler that the kernel lacks in the same words", values::missing_scheduler),
    case("on a mounted disk a wrong value is refused in our words", values::mounted),
    case("on a served disk a wrong value is refused in our words", values::served),
    case("on a served disk a wrong weight of an export is refused in our words", values::served_in_shares),
    case("a name that the disk has not is told with those that it has", values::unknown_names),
    case("in simulation neither what a warm-up does nor its time counts", measured::simulated_warm_up),
    case("on a device neither what a warm-up does nor its time counts", measured::real_warm_up),
    case("a warm-up is in the records, in their command and in the page", measured::reproduced),
    case("records without a warm-up are as they were", measured::old_records),
    case("a run that is over within its warm-up is an error", measured::only_warm_up),
    case("of a command of others only what it tells and how long it took is shown", measured::of_a_command),
    case("where the kernel keeps no statistics there is no utilisation", measured::without_statistics),
    case("a search warms up and ends its runs as a comparison does", measured::tuned),
];
