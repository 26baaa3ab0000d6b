#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| iosched_trace::fuzz::tracepoints(data));
