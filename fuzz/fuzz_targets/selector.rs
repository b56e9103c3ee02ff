//! See `tidemark_fuzz::selector`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::selector(bytes);
});
