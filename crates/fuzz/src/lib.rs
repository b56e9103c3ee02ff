//! What reads bytes that anybody may have written: one function each. The tests of this crate and the fuzzer (`fuzz/`, `make fuzz`)
//! call them with any bytes.
//!
//! None may panic, hang or grow without bound; what else must hold is stated at each, and is asserted. Each returns whether
//! the bytes were taken for what they should be, so that a test can see that its seeds reach beyond the first check.

mod databases;
mod results;

pub use databases::{mysql, postgres, trino};
pub use results::{archive, fio_report, import};

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tidemark_measure::tally::{Interval, Tally};
use tidemark_measure::wire;
use tidemark_object::http;
use tidemark_plan::document::read;
use tidemark_plan::policy::Policy;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;
use tidemark_plan::{evaluation, forecast, redact, selector};

/// A target by its name.
pub struct Target {
    /// What its seeds' directory is called, and the fuzzer's target.
    pub name: &'static str,
    /// The function.
    pub run: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "archive", run: archive },
    Target { name: "document", run: document },
    Target { name: "driver", run: driver },
    Target { name: "evaluation", run: evaluation },
    Target { name: "fio_report", run: fio_report },
    Target { name: "http_response", run: http_response },
    Target { name: "import", run: import },
    Target { name: "mysql", run: mysql },
    Target { name: "policy", run: policy },
    Target { name: "postgres", run: postgres },
    Target { name: "proof", run: proof },
    Target { name: "redact", run: redact },
    Target { name: "second", run: second },
    Target { name: "selector", run: selector },
    Target { name: "trino", run: trino },
];

/// A directory in which nothing lies, so that paths lead where they say.
const ALLOWED: &str = "/nonexistent/allowed";

const SECRET: &str = "Hunter2Hunter2";

/// What is before the first of these bytes, and what is behind it.
fn halves(bytes: &[u8], separator: u8) -> (&[u8], &[u8]) {
    let at = bytes.iter().position(|byte| *byte == separator).unwrap_or(bytes.len());
    (&bytes[..at], bytes.get(at + 1..).unwrap_or_default())
}

/// The longest that an error may be, whatever was read, characters.
const LONGEST_ERROR: usize = 3_000;

/// An error is one line of bounded length without a secret in it.
fn check_error(text: &str) {
    assert!(!text.contains(char::is_control), "{text:?}");
    assert!(text.chars().count() <= LONGEST_ERROR, "{} characters: {text}", text.chars().count());
    assert!(!text.contains(SECRET), "{text}");
}

/// Surroundings in which there are no files, and every variable is 1.
fn nothing(registry: &Registry) -> Environment<'_> {
    Environment {
        registry,
        variable: &|_| Some("1".into()),
        file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        bound: &|_| None,
        document: &|_| Err(std::io::ErrorKind::NotFound.into()),
        device_size: &|_| Ok(1 << 30),
        waited_for: &|| true,
    }
}

/// Any text is read as a document, and what is read is forecast.
pub fn document(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let _ = redact::redact(text);
    let registry = tidemark_engines::registry();
    let found = read(text, &Environment::process(&registry));
    found.is_ok_and(|read| {
        let _ = forecast::forecast(&read.plan, &registry);
        true
    })
}

/// Any text is read as an evaluation, and what is read gives cells, fingerprints and plans. No file is read: what other documents
/// hold is the business of [`document`].
pub fn evaluation(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let registry = tidemark_engines::registry();
    let _ = evaluation::is_evaluation(text, &registry);
    let environment = nothing(&registry);
    let Ok((found, _)) = evaluation::read(text, Path::new("/nonexistent"), &environment) else {
        return false;
    };
    for cell in found.cells().iter().take(10) {
        let _ = found.fingerprint(cell.arm, cell.load, &cell.level, cell.repeat);
        let _ = found.sketch(cell.arm, cell.load, &cell.level, cell.repeat, &environment);
    }
    true
}

/// Any frames are taken from a driver that has joined and works for a run: no other driver's seat or run changes hands. Each
/// line is a frame: text if it begins with `{`, otherwise bytes in hexadecimal digits.
pub fn driver(bytes: &[u8]) -> bool {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let frames: Vec<(bool, Vec<u8>)> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| match line.starts_with(b"{") {
            true => (true, line.to_vec()),
            false => {
                let digits: Vec<u8> = line.iter().filter_map(digit).collect();
                (false, digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
            }
        })
        .collect();
    let taken = tidemark_fleet::link::rehearse(frames.iter().map(|(is_text, frame)| (*is_text, &frame[..])));
    taken > 0 && taken == frames.len()
}

/// Any bytes behind the first line are read as the answer in which a controller proves itself, whole and cut off at the byte that the line
/// states: what is cut off is no answer yet.
pub fn proof(bytes: &[u8]) -> bool {
    let (line, bytes) = halves(bytes, b'\n');
    tidemark_fleet::link::proof::rehearse(bytes, stated(line) % (bytes.len() + 1))
}

/// The number that the digits of a line are.
fn stated(line: &[u8]) -> usize {
    let digits = line.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0usize, |number, digit| number.wrapping_mul(10).wrapping_add(usize::from(digit - b'0')))
}

/// Any bytes behind the first line are read as a response, whole and cut in two at the byte that the line states: both find the
/// same response, or none. It is one to a HEAD if the line begins with `HEAD`.
pub fn http_response(bytes: &[u8]) -> bool {
    let (line, bytes) = halves(bytes, b'\n');
    let to_head = line.starts_with(b"HEAD");
    let cut = stated(line) % (bytes.len() + 1);
    let whole = http::parse([bytes], to_head);
    let halves = http::parse([&bytes[..cut], &bytes[cut..]], to_head);
    // That bytes are no response may show earlier in one than in the other.
    let found = |read: Result<Option<http::Parsed>, http::Malformed>| read.ok().flatten();
    let (whole, halves) = (found(whole), found(halves));
    assert_eq!(format!("{whole:?}"), format!("{halves:?}"));
    whole.is_some()
}

/// The first line is a path that is asked for below an allowed directory, and the rest a document that is checked against a policy that
/// allows nothing: what is allowed lies below the directory.
pub fn policy(bytes: &[u8]) -> bool {
    let (path, text) = halves(bytes, b'\n');
    let policy = Policy { directories: vec![ALLOWED.into()], ..Policy::default() };
    for path in
        [Path::new(OsStr::from_bytes(path)).to_owned(), Path::new(ALLOWED).join(OsStr::from_bytes(path))]
    {
        if policy.allow("x", &path).is_ok() {
            assert!(
                path.starts_with(ALLOWED) && !path.components().any(|part| part.as_os_str() == ".."),
                "{path:?}"
            );
        }
    }
    let Ok(text) = str::from_utf8(text) else { return false };
    let registry = tidemark_engines::registry();
    let Ok(read) = read(text, &nothing(&registry)) else { return false };
    let _ = policy.check(&read.plan, &registry);
    let is_triggered =
        read.plan.trigger.is_some() || read.plan.stages.iter().any(|stage| stage.trigger.is_some());
    assert!(!is_triggered || policy.check(&read.plan, &registry).is_err());
    true
}

/// A secret stands somewhere in a text: if that is a document that is read, the secret is not in what is shown. The first line is
/// `xml` or another one, and the rest is what stands before the secret, a zero byte, and what stands behind it.
pub fn redact(bytes: &[u8]) -> bool {
    let (line, bytes) = halves(bytes, b'\n');
    let (before, after) = halves(bytes, 0);
    let (Ok(before), Ok(after)) = (str::from_utf8(before), str::from_utf8(after)) else { return false };
    let _ = (redact::redact(before), redact::mask(after));
    // Spellings around a value that is a secret, if the text is a document at all.
    let text = match line == b"xml" {
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
    let Ok(read) = read(&text, &nothing(&registry)) else { return false };
    // A text that the document shows anyway, or does not have at all, is no secret of it.
    let is_secret = serde_json::to_string(&read.plan).is_ok_and(|packed| packed.contains(SECRET));
    if is_secret && !format!("{:?}", read.plan).contains(SECRET) {
        for shown in [redact::redact(&text), redact::mask(&text)] {
            assert!(!shown.contains(SECRET), "{text}");
        }
        return true;
    }
    false
}

/// Any bytes are read as a second of a driver's load: what is taken adds up, what is damaged changes nothing.
pub fn second(bytes: &[u8]) -> bool {
    let Ok(summary) = wire::summary(bytes) else { return false };
    let mut sum = Interval::new(summary.index, 2);
    match wire::add(bytes, &mut sum) {
        Ok(added) => {
            assert_eq!(added.ok, sum.actions.iter().map(|tally| tally.ok).sum::<u64>());
            let again = wire::encode(&sum);
            assert_eq!(wire::summary(&again).map(|one| one.ok).ok(), Some(summary.ok));
            true
        }
        Err(_) => {
            assert!(sum.actions.iter().all(|tally: &Tally| tally.total() == 0));
            false
        }
    }
}

/// Any text is read as a selector and as a size; what is read can be printed, and read again as the same.
pub fn selector(bytes: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let range = selector::range(text).is_ok();
    let numbers = selector::numbers(text).map(|pick| {
        let printed = selector::print(&pick);
        assert_eq!(selector::numbers(&printed).as_ref(), Ok(&pick), "{printed}");
    });
    let size = selector::size(text).map(|size| {
        let _ = selector::print_size(&size);
    });
    range || numbers.is_ok() || size.is_ok()
}
