//! See `tidemark_fuzz::evaluation`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::evaluation(bytes);
});
