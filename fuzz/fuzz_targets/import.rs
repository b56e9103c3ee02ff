//! See `tidemark_fuzz::import`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::import(bytes);
});
