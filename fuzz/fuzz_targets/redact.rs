//! See `tidemark_fuzz::redact`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::redact(bytes);
});
