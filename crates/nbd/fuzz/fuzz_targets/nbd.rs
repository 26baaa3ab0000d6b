#![no_main]
#![allow(dead_code, reason = "the tests also read the record")]
#[path = "../../tests/session.rs"]
mod session;
libfuzzer_sys::fuzz_target!(|data: &[u8]| session::fuzz_nbd(data));
