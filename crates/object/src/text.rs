//! Numbers and names as bytes, appended to a buffer: what `format!` does, without its machinery.

/// Appends a number in decimal.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number in hexadecimal.
pub fn push_hexadecimal(out: &mut Vec<u8>, number: u64) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    out.extend((0..digits).rev().map(|place| HEX[(number >> (4 * place) & 15) as usize]));
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Bytes as hexadecimal digits: arithmetic, which compilers turn into vectors, rather than a table.
#[inline]
pub fn hexadecimal<const BYTES: usize, const DIGITS: usize>(bytes: &[u8; BYTES]) -> [u8; DIGITS] {
    const { assert!(DIGITS == 2 * BYTES) };
    let digit = |half: u8| half + if half > 9 { b'a' - 10 } else { b'0' };
    let mut digits = [0; DIGITS];
    for (place, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        place[0] = digit(byte >> 4);
        place[1] = digit(byte & 15);
    }
    digits
}

/// Percent-encodes what is not unreserved (RFC 3986, section 2.3), slashes too unless they are kept: the
/// encoding that signatures are made over.
pub fn encode(text: &str, keep_slashes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            b'/' if keep_slashes => out.push('/'),
            other => {
                out.push('%');
                out.extend(
                    [other >> 4, other & 15]
                        .map(|half| char::from(HEX[usize::from(half)].to_ascii_uppercase())),
                );
            }
        }
    }
    out
}

/// Undoes [`encode`].
pub fn decode(encoded: &[u8]) -> String {
    let mut out = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((first, after)) = rest.split_first() {
        let half = |at: usize| char::from(*after.get(at)?).to_digit(16);
        match (first, half(0), half(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                rest = &after[2..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_encoded_as_signatures_want_them() {
        assert_eq!(encode("a b/ü~-._", true), "a%20b/%C3%BC~-._");
        assert_eq!(encode("a/b", false), "a%2Fb");
        assert_eq!(&hexadecimal::<2, 4>(&[0x0f, 0xa0]), b"0fa0");
    }

    proptest! {
        #[test]
        fn names_survive_encoding(name in "\\PC{0,20}", slashes: bool) {
            prop_assert_eq!(decode(encode(&name, slashes).as_bytes()), name);
        }

        #[test]
        fn numbers_are_those_of_the_standard_library(number: u64) {
            for number in [number, number >> 40, 0] {
                let (mut decimal, mut hexadecimal) = (Vec::new(), Vec::new());
                push_decimal(&mut decimal, number);
                push_hexadecimal(&mut hexadecimal, number);
                prop_assert_eq!(decimal, number.to_string().into_bytes());
                prop_assert_eq!(hexadecimal, format!("{number:x}").into_bytes());
            }
        }
    }
}
