#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| iosched_workload::fio::fuzz::job_file(data));
