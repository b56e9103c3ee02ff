//! Any frames are taken from a driver that has joined and works for a run: nothing may panic or grow without bound, and no other
//! driver's seat or run may change hands.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|frames: Vec<(bool, &[u8])>| {
    tidemark_fleet::link::rehearse(frames);
});
