//! The start, the messages and the end of a served or mounted disk.

mod metrics;
mod sockets;
mod speech;
mod storage;
mod tools;

use crate::list::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case("a reader of messages that stalls does not stop the server", speech::stalled_reader),
    case("readers of messages that stall do not stop a mount", speech::stalled_reader_of_a_mount),
    case(
        "a second signal ends a slow shutdown at once, although nobody reads messages",
        speech::stalled_reader_and_two_signals,
    ),
    case("many messages of a kind are told as a number and counted", speech::many_of_a_kind),
    case("that nobody listens to messages any more ends nothing", speech::nobody_listens_any_more),
    case("SIGTERM as soon as the socket is there ends in order", speech::a_signal_at_once),
    case("SIGTERM as soon as a virtual machine's socket is there ends in order", speech::a_signal_at_once_to_vhost),
    case("a signal ends a server that still waits for a file", speech::a_signal_while_a_file_is_read),
    case("SIGTERM as soon as a disk is mounted ends in order", speech::a_signal_at_once_to_a_mount),
    case("SIGHUP ends in order", speech::hangup),
    case("SIGHUP ends nothing that nohup has started", speech::hangup_after_nohup),
    case("with its standard streams closed a server writes nothing into the disk", speech::closed_at_the_start),
    case("a systemd that is gone is not missed", speech::nobody_to_notify),
    case("what systemd hands over and is no socket is told", speech::handed_over_what_is_no_socket),
    case("no files are hidden by a mount", speech::a_directory_with_files),
    case("a disk is not mounted over another", speech::over_itself),
    case("promtool takes the classic text, which is the usual one", metrics::the_classic_text),
    case("promtool takes OpenMetrics from who asks for it", metrics::openmetrics),
    case("who stalls at the metrics costs others nothing", metrics::stalled_readers_of_metrics),
    case("who sends garbage to the metrics is told so", metrics::garbage_for_metrics),
    case("an address for metrics that is taken is told, and nothing begun", metrics::an_address_that_is_taken),
    case("who floods the control socket costs others nothing", metrics::floods_of_control),
    case("fast zeroes are offered where they are fast, and fail quickly elsewhere", storage::fast_zeroes),
    case("errors of the backing are told and counted", storage::errors_of_the_backing),
    case("a file system without room is told and counted", storage::no_room),
    case("a file that shrinks while it is served is told", storage::a_file_that_shrinks),
    case("a file that is deleted while it is served is told", storage::a_file_that_is_deleted),
    case("a trace never replaces the disk that it is of", storage::a_trace_over_the_disk),
    case("a trace never replaces what is on a device", storage::a_trace_over_a_device),
    case("a FIFO that nobody reads is no place for a trace", storage::a_trace_to_nobody),
    case("a trace without room is told, and the disk served on", storage::a_trace_without_room),
    case("a loop device's file is not served without a word", storage::a_file_that_is_a_loop_devices),
    case("what is mounted is not served without a word", storage::what_is_mounted),
    case("storage that can only be read is told", storage::read_only_storage),
    case("a start that fails leaves others' sockets alone", sockets::kept_by_a_start_that_fails),
    case("a socket that two options name is told before anything is served", sockets::named_twice),
    case("a socket of NBD clients is told from a control socket, with the one there is", sockets::of_nbd_clients),
    case("a socket that another user left is not removed", sockets::of_another_user),
    case("a socket whose server takes nobody does not hold up a start", sockets::one_that_takes_nobody),
    case("of several servers that want one socket one has it", sockets::wanted_by_several),
    case("an RSA key of a size that cannot be used is told with its size", sockets::keys_of_odd_sizes),
    case("a private key that others can read is warned of", sockets::keys_that_others_can_read),
    case("a limit of locked memory that is too small is told", sockets::little_memory_to_lock),
];
