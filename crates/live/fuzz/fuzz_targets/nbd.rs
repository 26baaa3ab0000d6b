#![no_main]
#![allow(dead_code, reason = "the tests look at what was told, too")]
#[path = "../../tests/nbd/session.rs"]
mod session;
libfuzzer_sys::fuzz_target!(|data: &[u8]| session::fuzz_nbd(data));
