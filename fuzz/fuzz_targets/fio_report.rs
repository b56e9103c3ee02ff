//! See `tidemark_fuzz::fio_report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::fio_report(bytes);
});
