//! See `tidemark_fuzz::policy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::policy(bytes);
});
