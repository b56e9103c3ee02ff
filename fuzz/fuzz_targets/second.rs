//! See `tidemark_fuzz::second`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::second(bytes);
});
