//! See `tidemark_fuzz::postgres`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::postgres(bytes);
});
