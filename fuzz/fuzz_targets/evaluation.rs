//! Any text is read as an evaluation, and what is read gives cells, fingerprints and plans: nothing may panic, hang or
//! grow without bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use tidemark_plan::evaluation;
use tidemark_plan::yaml::Environment;

fuzz_target!(|text: &str| {
    let registry = tidemark_engines::registry();
    let _ = evaluation::is_evaluation(text, &registry);
    // No file is read: what other documents hold is the other target's business.
    let environment = Environment {
        registry: &registry,
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        bound: &|_| None,
        document: &|_| Err(std::io::ErrorKind::NotFound.into()),
        device_size: &|_| Ok(1 << 30),
        waited_for: &|| true,
    };
    let Ok((found, _)) = evaluation::read(text, Path::new("/nonexistent"), &environment) else { return };
    for cell in found.cells().iter().take(10) {
        let _ = found.fingerprint(cell.arm, cell.load, &cell.level, cell.repeat);
        let _ = found.sketch(cell.arm, cell.load, &cell.level, cell.repeat, &environment);
    }
});
