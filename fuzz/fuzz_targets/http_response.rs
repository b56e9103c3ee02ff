//! See `tidemark_fuzz::http_response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    tidemark_fuzz::http_response(bytes);
});
