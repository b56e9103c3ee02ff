//! See `tidemark_fuzz::mysql`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::mysql(bytes);
});
