//! See `tidemark_fuzz::proof`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::proof(bytes);
});
