//! Hints about devices, settings of the kernel's disks and of served disks, and the measured part
//! of a run.

mod hints;
mod measured;
mod values;

use crate::list::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case("--destroy-data is not suggested for a regular file", hints::a_file),
    case("--destroy-data is not suggested for a pipe or character device", hints::a_pipe_or_character_device),
    case("--destroy-data is not suggested for a mounted device", hints::a_mounted_device),
    case("--destroy-data is not suggested for an unmounted file system", hints::an_unmounted_file_system),
    case("--destroy-data is not suggested for a partition table", hints::a_partition_table),
    case("--destroy-data is not suggested for unused swap space", hints::unused_swap_space),
    case("the error names the loop device that uses the target", hints::below_a_loop_device),
    case("a device that another program has opened exclusively is refused", hints::opened_exclusively),
    case("--destroy-data is not suggested for RAID, LVM, LUKS or ZFS members", hints::members),
    case("--destroy-data is suggested for an empty device, with a warning", hints::an_empty_device),
    case("--destroy-data with the name of another device is refused", hints::name_of_another_device),
    case("a refused comparison leaves the device's scheduler unchanged", hints::no_change_before_a_refusal),
    case("restore refuses settings recorded for a replaced device", hints::replaced_device),
    case("set refuses a value out of range and does not write it", values::out_of_range),
    case("set fails if the disk stores a different value", values::stored_value_differs),
    case("set succeeds if the value reads back in another notation", values::another_notation),
    case("a failed set reports the earlier changes that stay in force", values::earlier_changes_stay),
    case("set writes nothing if a later value is known to be wrong", values::later_value_is_wrong),
    case("compare refuses bad settings and restores the scheduler", values::compare_restores_the_scheduler),
    case("scheduler lists work alike in simulation and on a device", values::lists_of_schedulers),
    case("compare refuses a workload larger than the free space", values::free_space),
    case("compare refuses a simulated tunable out of range", values::out_of_range_in_simulation),
    case("all commands refuse a wrong setting with the same message", values::same_message_for_a_wrong_setting),
    case("set and compare --on report a missing scheduler alike", values::missing_scheduler),
    case("a mounted disk refuses wrong values with iosched's messages", values::wrong_values_on_a_mounted_disk),
    case("a served disk refuses wrong values with iosched's messages", values::wrong_values_on_a_served_disk),
    case("a served disk refuses wrong weights of an export", values::wrong_weights_of_an_export),
    case("the error for an unknown name lists or suggests known names", values::unknown_names),
    case("simulated metrics exclude the warm-up", measured::simulated_warm_up),
    case("metrics on a device exclude the warm-up", measured::real_warm_up),
    case("records, their command and the report include the warm-up", measured::warm_up_is_recorded),
    case("records omit warm_up_ns and device_unwatched if unused", measured::unused_fields_are_omitted),
    case("a run that ends within its warm-up is an error", measured::only_warm_up),
    case("external commands have a finish time but no I/O metrics", measured::external_commands),
    case("utilisation is missing if the kernel keeps no statistics", measured::without_statistics),
    case("tune accepts and records --run-for and --warm-up", measured::tune_accepts_a_warm_up),
];
