//! Any bytes are read as responses, whole and cut in two at any byte: both must find the same response, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_object::http;

fuzz_target!(|data: (bool, u16, &[u8])| {
    let (to_head, cut, bytes) = data;
    let cut = usize::from(cut) % (bytes.len() + 1);
    let whole = http::parse([bytes], to_head);
    let halves = http::parse([&bytes[..cut], &bytes[cut..]], to_head);
    // That bytes are no response may show earlier in one than in the other.
    let found = |read: Result<Option<http::Parsed>, http::Malformed>| format!("{:?}", read.ok().flatten());
    assert_eq!(found(whole), found(halves));
});
