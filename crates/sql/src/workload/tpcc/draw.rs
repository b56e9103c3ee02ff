//! What the specification draws: numbers that are not uniform, last names, texts.

use super::{CUSTOMERS, ITEMS};
use tidemark_measure::rng::Rng;

/// The constants C of clause 2.1.6. Those of last names differ between load and run by 85, as 2.1.6.1 demands (65 to 119, and
/// neither 96 nor 112).
const C_LAST_LOAD: u64 = 123;
const C_LAST_RUN: u64 = 208;
const C_CUSTOMER: u64 = 259;
const C_ITEM: u64 = 7911;

/// The parts of last names, clause 4.3.2.3.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Letters and digits, and two more, so that six random bits make one.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

/// A number from `low` to `high`, all equally likely.
pub(super) fn between(rng: &mut Rng, low: u64, high: u64) -> u64 {
    low + rng.below(high - low + 1)
}

/// Whether something happens that happens in so many of a hundred cases.
pub(super) fn percent(rng: &mut Rng, share: u64) -> bool {
    rng.below(100) < share
}

/// NURand(a, low, high) of clause 2.1.6 with the constant `c`.
fn uneven(rng: &mut Rng, a: u64, c: u64, low: u64, high: u64) -> u64 {
    let (one, other) = (between(rng, 0, a), between(rng, low, high));
    ((one | other) + c) % (high - low + 1) + low
}

/// A customer's number.
pub(super) fn customer(rng: &mut Rng) -> u64 {
    uneven(rng, 1023, C_CUSTOMER, 1, CUSTOMERS)
}

/// An item's number.
pub(super) fn item(rng: &mut Rng) -> u64 {
    uneven(rng, 8191, C_ITEM, 1, ITEMS)
}

/// The number of a last name, when customers are loaded and while the load is on.
pub(super) fn name_to_load(rng: &mut Rng) -> u64 {
    uneven(rng, 255, C_LAST_LOAD, 0, 999)
}

/// See [`name_to_load`].
pub(super) fn name_to_look_for(rng: &mut Rng) -> u64 {
    uneven(rng, 255, C_LAST_RUN, 0, 999)
}

/// The last name of a number from 0 to 999.
pub(super) fn last_name(number: u64, out: &mut String) {
    out.clear();
    for digit in [number / 100 % 10, number / 10 % 10, number % 10] {
        out.push_str(SYLLABLES[digit as usize]);
    }
}

/// A text of `low` to `high` letters and digits.
pub(super) fn text(rng: &mut Rng, low: u64, high: u64, out: &mut String) {
    out.clear();
    let length = between(rng, low, high) as usize;
    while out.len() < length {
        let mut bits = rng.bits();
        for _ in 0..10.min(length - out.len()) {
            out.push(char::from(LETTERS[(bits & 63) as usize]));
            bits >>= 6;
        }
    }
}

/// A number of so many digits as text.
pub(super) fn digits(rng: &mut Rng, length: usize, out: &mut String) {
    out.clear();
    for _ in 0..length {
        out.push(char::from(b'0' + rng.below(10) as u8));
    }
}
