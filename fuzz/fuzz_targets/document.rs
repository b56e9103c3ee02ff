//! Any text is read as a document, and what is read is forecast: nothing may panic, hang or grow without bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_plan::yaml::Environment;

fuzz_target!(|text: &str| {
    let _ = tidemark_plan::redact::redact(text);
    let registry = tidemark_engines::registry();
    if let Ok(read) = tidemark_plan::document::read(text, &Environment::process(&registry)) {
        let _ = tidemark_plan::forecast::forecast(&read.plan, &registry);
    }
});
