//! See `tidemark_fuzz::archive`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::archive(bytes);
});
