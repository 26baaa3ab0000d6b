//! How a served or mounted disk starts, speaks and ends.

mod sockets;
mod speech;
mod storage;
mod told;
mod tools;

use crate::list::Odd;

pub(crate) const CASES: &[Odd] = &[
    Odd { name: "a reader of messages that stalls does not stop the server", check: speech::stalled_reader },
    Odd { name: "readers of messages that stall do not stop a mount", check: speech::stalled_reader_of_a_mount },
    Odd {
        name: "a second signal ends a slow shutdown at once, although nobody reads messages",
        check: speech::stalled_reader_and_two_signals,
    },
    Odd { name: "many messages of a kind are told as a number and counted", check: speech::many_of_a_kind },
    Odd { name: "that nobody listens to messages any more ends nothing", check: speech::nobody_listens_any_more },
    Odd { name: "SIGTERM as soon as the socket is there ends in order", check: speech::a_signal_at_once },
    Odd { name: "SIGTERM as soon as a disk is mounted ends in order", check: speech::a_signal_at_once_to_a_mount },
    Odd { name: "SIGHUP ends in order", check: speech::hangup },
    Odd { name: "SIGHUP ends nothing that nohup has started", check: speech::hangup_after_nohup },
    Odd {
        name: "with its standard streams closed a server writes nothing into the disk",
        check: speech::closed_at_the_start,
    },
    Odd { name: "a systemd that is gone is not missed", check: speech::nobody_to_notify },
    Odd { name: "what systemd hands over and is no socket is told", check: speech::handed_over_what_is_no_socket },
    Odd { name: "no files are hidden by a mount", check: speech::a_directory_with_files },
    Odd { name: "a disk is not mounted over another", check: speech::over_itself },
    Odd { name: "promtool takes the classic text, which is the usual one", check: told::the_classic_text },
    Odd { name: "promtool takes OpenMetrics from who asks for it", check: told::openmetrics },
    Odd { name: "who stalls at the metrics costs others nothing", check: told::stalled_readers_of_metrics },
    Odd { name: "who sends garbage to the metrics is told so", check: told::garbage_for_metrics },
    Odd {
        name: "an address for metrics that is taken is told, and nothing begun",
        check: told::an_address_that_is_taken,
    },
    Odd { name: "who floods the control socket costs others nothing", check: told::floods_of_control },
    Odd {
        name: "fast zeroes are offered where they are fast, and fail quickly elsewhere",
        check: storage::fast_zeroes,
    },
    Odd { name: "errors of the backing are told and counted", check: storage::errors_of_the_backing },
    Odd { name: "a file system without room is told and counted", check: storage::no_room },
    Odd { name: "a file that shrinks while it is served is told", check: storage::a_file_that_shrinks },
    Odd { name: "a file that is deleted while it is served is told", check: storage::a_file_that_is_deleted },
    Odd { name: "a trace never replaces the disk that it is of", check: storage::a_trace_over_the_disk },
    Odd { name: "a trace never replaces what is on a device", check: storage::a_trace_over_a_device },
    Odd { name: "a trace without room is told, and the disk served on", check: storage::a_trace_without_room },
    Odd { name: "a loop device's file is not served without a word", check: storage::a_file_that_is_a_loop_devices },
    Odd { name: "what is mounted is not served without a word", check: storage::what_is_mounted },
    Odd { name: "storage that can only be read is told", check: storage::read_only_storage },
    Odd { name: "a start that fails leaves others' sockets alone", check: sockets::kept_by_a_start_that_fails },
    Odd { name: "a socket that another user left is not removed", check: sockets::of_another_user },
    Odd { name: "a socket whose server takes nobody does not hold up a start", check: sockets::one_that_takes_nobody },
    Odd { name: "of several servers that want one socket one has it", check: sockets::wanted_by_several },
    Odd { name: "an RSA key of a size that cannot be used is told with its size", check: sockets::keys_of_odd_sizes },
    Odd { name: "a private key that others can read is warned of", check: sockets::keys_that_others_can_read },
    Odd { name: "a limit of locked memory that is too small is told", check: sockets::little_memory_to_lock },
];
