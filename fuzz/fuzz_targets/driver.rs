//! See `tidemark_fuzz::driver`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::driver(bytes);
});
