//! Any text is read as a selector and as a size; what is read can be printed and drawn from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_plan::selector;

fuzz_target!(|text: &str| {
    let _ = selector::range(text);
    if let Ok(pick) = selector::numbers(text) {
        let printed = selector::print(&pick);
        assert_eq!(selector::numbers(&printed).as_ref(), Ok(&pick), "{printed}");
    }
    if let Ok(size) = selector::size(text) {
        let _ = selector::print_size(&size);
    }
});
