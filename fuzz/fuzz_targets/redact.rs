//! A secret stands somewhere in any text: in a document that is read, it must not be in what is shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_plan::redact;
use tidemark_plan::yaml::Environment;

const SECRET: &str = "Hunter2Hunter2";

fuzz_target!(|parts: (&str, &str, bool)| {
    let (before, after, is_xml) = parts;
    let _ = (redact::redact(before), redact::mask(after));
    // Spellings around a value that is a secret, if the text is a document at all.
    let text = match is_xml {
        true => format!(
            "<workload name=\"w\"><storage type=\"s3\" config=\"{before}accesskey=a;secretkey={SECRET};endpoint=http://a:1{after}\"/>\
             <workflow><workstage name=\"s\"><work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/></workstage></workflow></workload>"
        ),
        false => format!(
            "name: w\ntarget:\n  kind: s3\n  endpoints: [http://a:1]\n  access_key: a\n  {before}secret_key: {SECRET}{after}\n\
             stages:\n- init: {{containers: 1-2}}\n"
        ),
    };
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
    // A text that the document shows anyway, or does not have at all, is no secret of it.
    let read = tidemark_plan::document::read(&text, &environment);
    let Ok(read) = read else { return };
    let is_secret = serde_json::to_string(&read.plan).is_ok_and(|packed| packed.contains(SECRET));
    if is_secret && !format!("{:?}", read.plan).contains(SECRET) {
        for shown in [redact::redact(&text), redact::mask(&text)] {
            assert!(!shown.contains(SECRET), "{text}");
        }
    }
});
