//! Object keys in places that cannot hold every character: file names and URL-encoded listings.

use std::fmt::Write as _;

/// What the name of every object file ends with.
const EXTENSION: &str = ".object";

/// The longest encoded key kept in a file name, in bytes; with generation and extension it stays under the 255 that
/// Linux file systems allow.
const LONGEST: usize = 200;

/// Percent-encodes every byte of `text` that `keep` does not keep.
fn percent_encoded(text: &str, keep: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if keep(byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// A key or prefix as a listing shows it to a client that asked for `encoding-type=url`.
pub(super) fn url_encoded(text: &str) -> String {
    percent_encoded(text, |byte| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte))
}

/// The file name of one generation of an object: readable, free of separators, at most 255 bytes.
///
/// The generation makes the name unique, so a key too long for a name may be cut; the whole key is in the file.
pub(super) fn file_name(key: &str, generation: u64) -> String {
    let mut name = percent_encoded(key, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    name.truncate(LONGEST);
    let _ = write!(name, ".{generation:016x}{EXTENSION}");
    name
}

/// The generation in a file name made by [`file_name`], or `None` for any other name.
pub(super) fn generation(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(EXTENSION)?;
    let (_, generation) = stem.rsplit_once('.')?;
    if generation.len() == 16 { u64::from_str_radix(generation, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_safe_and_carry_their_generation() {
        for key in ["plain", "../../etc/passwd", "..", "a/b c", "ключ", "%41", &"long/".repeat(300)] {
            let name = file_name(key, 0xabc);
            assert!(name.len() <= 255 && !name.contains('/') && !name.starts_with('/'), "{name}");
            assert_eq!(generation(&name), Some(0xabc));
        }
        assert_eq!(file_name("a/b", 1), "a%2Fb.0000000000000001.object");
        assert_eq!(generation("notes.txt"), None);
        assert_eq!(generation("short.1.object"), None);
    }

    #[test]
    fn listings_keep_slashes() {
        assert_eq!(url_encoded("a/b c+d"), "a/b%20c%2Bd");
    }
}
