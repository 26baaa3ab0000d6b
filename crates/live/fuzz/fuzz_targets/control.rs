#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    iosched_live::control::fuzz::fuzz_control(data);
});
