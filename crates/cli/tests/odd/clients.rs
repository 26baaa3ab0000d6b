//! Clients of a served disk that stall, lie, flood or go away. After each the server answers others, has given back
//! what it took, and ends as it should.

mod crowd;
mod handshake;
mod memory;
mod ports;
mod requests;

use crate::list::{Odd, Place};

const fn odd(name: &'static str, check: fn(&Place)) -> Odd {
    Odd { name, check }
}

pub(crate) const CASES: &[Odd] = &[
    odd("16 clients that begin a write of 32 MiB and leave it take next to no memory", memory::begun_and_left_alone),
    odd("clients that send half of their writes stay within the budget together", memory::half_sent_and_left_alone),
    odd("reads and writes of 32 MiB are done with a budget of 1 MiB", memory::larger_than_the_memory),
    odd("and so they are through TLS", memory::larger_than_the_memory_through_tls),
    odd("a client that stands still in the middle of a request is closed and told of", memory::stands_still_in_a_write),
    odd("a client that takes none of its answers is closed and told of", memory::stands_still_over_its_answers),
    odd("a client that is slow is not one that stands still", memory::slow_is_not_still),
    odd("1,000 clients that begin a write fit into 256 MiB beside one that verifies", memory::a_thousand_begin_a_write),
    odd(
        "1,000 clients that begin a write leave another its memory with a small budget",
        memory::a_thousand_begin_a_write_with_little_memory,
    ),
    odd("1,000 clients that send what they can fit into 256 MiB", memory::a_thousand_send_what_they_can),
    odd("1,000 clients that take no answers fit into 256 MiB", memory::a_thousand_take_no_answers),
    odd("an error in a piece of a write is the one answer to all of it", requests::one_error_for_a_write_in_pieces),
    odd("an error in a piece of a read is told, or ends the connection", requests::an_error_in_a_read_in_pieces),
    odd("garbage instead of a handshake ends its connection alone", handshake::garbage),
    odd("client flags that were not offered end the connection", handshake::unknown_client_flags),
    odd("an option of an absurd length ends the connection", handshake::absurd_lengths),
    odd("a flood of options is ended", handshake::option_flood),
    odd("lists that nobody takes take no memory", handshake::lists_that_nobody_takes),
    odd("a name of an export that is too long is refused", handshake::long_names),
    odd("a name of an export that is no text is refused", handshake::names_of_no_text),
    odd("a name that no export has is refused", handshake::names_of_nothing),
    odd("an option whose lengths do not add up is refused", handshake::lengths_that_do_not_add_up),
    odd("an option that is not offered is refused and the handshake goes on", handshake::what_is_not_offered),
    odd("structured replies may be asked for twice", handshake::structured_replies_twice),
    odd("a client that aborts is answered and closed", handshake::aborts),
    odd("a client of old is served", handshake::old_clients),
    odd("a client that sends byte by byte is served", handshake::byte_by_byte),
    odd("a client may go at every byte of the handshake", handshake::gone_at_every_byte),
    odd("200 clients that say nothing are ended", handshake::silence),
    odd("plain text to a server with TLS is refused", handshake::plain_text_to_a_secure_server),
    odd("garbage instead of TLS ends its connection", handshake::garbage_instead_of_tls),
    odd("silence instead of TLS is ended, and takes little memory", handshake::silence_instead_of_tls),
    odd("garbage instead of a request ends its connection and is told", requests::no_request),
    odd("an unknown command is refused", requests::unknown_commands),
    odd("an unknown flag is refused", requests::unknown_flags),
    odd("what is beyond the end is refused", requests::beyond_the_end),
    odd("a request of an absurd length is refused", requests::absurd_lengths),
    odd("a request of no bytes is refused", requests::no_bytes),
    odd("FUA is taken with everything", requests::fua_on_everything),
    odd("zeroes and trims of parts of blocks leave the rest alone", requests::unaligned_zeroes_and_trims),
    odd("what is read-only is not written to", requests::writes_to_what_is_read_only),
    odd("cookies may repeat", requests::cookies_that_repeat),
    odd("10,000 writes at once are all answered", requests::ten_thousand_writes),
    odd("10,000 flushes at once are all answered", requests::flush_flood),
    odd("2,000 times zeroes for the whole disk are all answered", requests::zeroes_flood),
    odd("2,000 trims of the whole disk are all answered", requests::trim_flood),
    odd("10,000 requests that are refused are all answered", requests::refusal_flood),
    odd("sectors that several write at once are one of theirs", requests::writers_of_the_same_sectors),
    odd("a goodbye comes after the answers", requests::goodbye_with_requests_under_way),
    odd("a client that has only ended its sending is answered", requests::half_closed),
    odd("clients that go with requests under way leave nothing behind", requests::gone_with_requests_under_way),
    odd("connections that are reset leave nothing behind", requests::reset),
    odd("500 clients that come and go leave nothing behind", crowd::five_hundred_come_and_go),
    odd("200 slow handshakes keep nobody from working", crowd::slow_handshakes_beside_one_that_works),
    odd("more connections than are allowed are refused and told", crowd::too_many),
    odd("without files for more connections it waits and goes on", crowd::no_more_files),
    odd("a soft limit of files is raised", crowd::a_server_with_few_files),
    odd("without memory for a write that is refused and the server goes on", crowd::no_more_memory),
    odd("64 connections to a light export take nothing from a heavy one", crowd::sixty_four_beside_another_export),
    odd("garbage at the control socket is told what is wrong with it", ports::garbage_lines),
    odd("huge lines at the control socket are cut off", ports::huge_lines),
    odd("slow lines at the control socket keep nobody waiting", ports::slow_lines),
    odd("a crowd at the control socket keeps nobody out", ports::crowds_at_the_control_socket),
    odd("answers of the control socket that nobody takes take no memory", ports::control_answers_that_nobody_takes),
    odd("garbage at the metrics' port does no harm", ports::garbage_at_the_metrics),
    odd("connections that are refused and ended are counted", ports::what_is_refused_and_ended_is_counted),
];
