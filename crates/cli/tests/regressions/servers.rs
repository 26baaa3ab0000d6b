//! The start, the messages and the end of a served or mounted disk.

mod metrics;
mod sockets;
mod speech;
mod storage;
mod tools;

use crate::list::{Case, case};

pub(crate) const CASES: &[Case] = &[
    case("a stalled reader of messages does not stop the server", speech::stalled_reader),
    case("stalled readers of messages do not stop a mount", speech::stalled_reader_of_a_mount),
    case("with unread messages, a second SIGTERM ends a slow shutdown", speech::stalled_reader_and_two_signals),
    case("repeated messages are suppressed and counted", speech::repeated_messages),
    case("a broken pipe on standard error does not stop the server", speech::closed_message_pipe),
    case("SIGTERM just after the socket appears ends a server cleanly", speech::early_sigterm),
    case("SIGTERM just after a vhost socket appears ends cleanly", speech::early_sigterm_to_vhost),
    case("SIGTERM ends a server that waits for its exports file", speech::sigterm_while_waiting_for_exports),
    case("SIGTERM just after a disk is mounted ends cleanly", speech::early_sigterm_to_a_mount),
    case("SIGHUP ends a server cleanly", speech::hangup),
    case("a server started with SIGHUP ignored survives SIGHUP", speech::ignored_hangup),
    case("closed standard streams put no messages into the disk", speech::closed_standard_streams),
    case("an unreachable NOTIFY_SOCKET does not stop the server", speech::unreachable_notify_socket),
    case("an inherited file that is not a socket is refused", speech::inherited_file_is_not_a_socket),
    case("a directory with files is refused as a mount point", speech::mount_on_a_directory_with_files),
    case("a directory with a mounted disk is refused as a mount point", speech::mount_over_a_mount),
    case("promtool accepts the default text format", metrics::text_format),
    case("promtool accepts OpenMetrics when a client requests it", metrics::openmetrics),
    case("stalled metrics clients do not block other metrics clients", metrics::stalled_metrics_clients),
    case("wrong metrics requests get HTTP errors", metrics::wrong_metrics_requests),
    case("an address in use or malformed is refused before serving", metrics::unusable_addresses),
    case("floods at the control socket do not block other clients", metrics::control_floods),
    case("only backings with fast zeroes offer and accept FAST_ZERO", storage::fast_zeroes),
    case("errors of the backing are reported and counted", storage::errors_of_the_backing),
    case("writes to a full file system are reported and counted", storage::full_file_system),
    case("reads fail with a message when the backing file shrinks", storage::a_file_that_shrinks),
    case("a backing file deleted while it is served is reported", storage::a_file_that_is_deleted),
    case("--record refuses the file of the served disk", storage::record_over_the_disk),
    case("--record refuses a block device", storage::record_over_a_device),
    case("--record refuses a FIFO without a reader", storage::record_to_an_unread_fifo),
    case("the server keeps serving when its trace cannot be written", storage::record_to_a_full_device),
    case("serve refuses the file of a loop device without --force", storage::file_of_a_loop_device),
    case("serve refuses a mounted device and its file", storage::mounted_device),
    case("serve refuses a backing file on a read-only file system", storage::read_only_storage),
    case("a failed start leaves existing sockets and creates none", sockets::sockets_after_a_failed_start),
    case("one path for --unix and --control is refused", sockets::same_path_for_two_options),
    case("get and ls refuse sockets that are not control sockets", sockets::not_a_control_socket),
    case("a stale socket of another user is not removed", sockets::stale_socket_of_another_user),
    case("a socket with a full backlog counts as in use", sockets::full_backlog),
    case("of six servers that start on one socket, one remains", sockets::six_servers_on_one_socket),
    case("an RSA key of an unsupported size is refused with its size", sockets::rsa_key_of_unsupported_size),
    case("a private key that others can read causes a warning", sockets::keys_that_others_can_read),
    case("an error about locked memory names the limit and the remedy", sockets::limit_of_locked_memory),
];
