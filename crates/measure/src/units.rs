//! Bytes, durations, rates and counts: parsed from text, printed for people, never mixed up.
