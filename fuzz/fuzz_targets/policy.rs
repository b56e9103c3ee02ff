//! Any path is asked for below an allowed directory, and any document is checked against a policy that allows nothing: what is
//! allowed lies below the directory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::Environment;

/// A directory in which nothing lies, so that paths lead where they say.
const ALLOWED: &str = "/nonexistent/allowed";

fuzz_target!(|given: (&[u8], &str)| {
    let (path, text) = given;
    let policy = Policy { directories: vec![ALLOWED.into()], ..Policy::default() };
    for path in [Path::new(OsStr::from_bytes(path)).to_owned(), Path::new(ALLOWED).join(OsStr::from_bytes(path))] {
        if policy.allow("x", &path).is_ok() {
            assert!(path.starts_with(ALLOWED) && !path.components().any(|part| part.as_os_str() == ".."), "{path:?}");
        }
    }
    let registry = tidemark_engines::registry();
    let environment = Environment {
        registry: &registry,
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        bound: &|_| None,
        document: &|_| Err(std::io::ErrorKind::NotFound.into()),
        device_size: &|_| Ok(1 << 30),
        waited_for: &|| true,
    };
    if let Ok(read) = tidemark_plan::document::read(text, &environment) {
        let _ = policy.check(&read.plan, &registry);
        let is_triggered = read.plan.trigger.is_some() || read.plan.stages.iter().any(|stage| stage.trigger.is_some());
        assert!(!is_triggered || policy.check(&read.plan, &registry).is_err());
    }
});
