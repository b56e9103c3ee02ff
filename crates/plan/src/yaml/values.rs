//! Kinds of values that several engines read: selectors, sizes, ranges, addresses.

use crate::selector;
use serde_json::{Value, json};
use tidemark_keys::kinds::{Bytes, Kind};
use tidemark_keys::{Problem, tree};
use tidemark_load::source::Size;
use tidemark_measure::pick::Pick;

/// A selector of numbers. In a load, `1-100` alone means any of these with equal chances; `r(1,100)` goes
/// through them in order. A number alone is itself.
pub struct Selector;

impl Kind for Selector {
    type Value = Pick;

    fn read(&self, text: &str) -> Result<Pick, Problem> {
        closed(text)?;
        let bare = text.trim();
        if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(selector::numbers(&format!("c({bare})"))?);
        }
        Ok(match selector::numbers(text)? {
            Pick::Sequence { low, high } if !text.contains('(') => Pick::Uniform { low, high },
            pick => pick,
        })
    }

    fn schema(&self) -> Value {
        json!({"description": "such as 1-100 or zipf(1,100)", "type": ["string", "integer"]})
    }

    fn words(&self) -> String {
        "selector".to_owned()
    }
}

/// Refuses half a selector, which is what YAML leaves of one with a comma inside `{}` or `[]`.
pub(super) fn closed(text: &str) -> Result<(), Problem> {
    match text.contains('(') && !text.contains(')') {
        true => Err(Problem::new(format!("'{text}' has no closing bracket"), tree::COMMA)),
        false => Ok(()),
    }
}

/// A range with an end: `1-100`, `r(1,100)`, or a number alone.
pub struct Range;

impl Kind for Range {
    type Value = (u64, u64);

    fn read(&self, text: &str) -> Result<(u64, u64), Problem> {
        match Selector.read(text)? {
            Pick::Constant(number) => Ok((number, number)),
            _ => selector::range(text)?
                .ok_or_else(|| Problem::new("the range is empty", "write a range such as 1-100")),
        }
    }

    fn schema(&self) -> Value {
        json!({"description": "a range such as 1-100", "type": ["string", "integer"]})
    }

    fn words(&self) -> String {
        "range".to_owned()
    }
}

/// A selector of sizes.
pub struct Sizes;

impl Kind for Sizes {
    type Value = Size;

    fn read(&self, text: &str) -> Result<Size, Problem> {
        closed(text)?;
        Ok(selector::size(text)?)
    }

    fn schema(&self) -> Value {
        json!({"description": "such as 64KiB or u(4,64)KiB", "type": ["string", "integer"]})
    }

    fn words(&self) -> String {
        "sizes".to_owned()
    }
}

/// A size above zero, bytes.
pub struct Length;

impl Kind for Length {
    type Value = u64;

    fn read(&self, text: &str) -> Result<u64, Problem> {
        match Bytes(0).read(text)? {
            0 => Err(Problem::new("the size is zero", "write a size such as 64KiB")),
            bytes => Ok(bytes),
        }
    }

    fn schema(&self) -> Value {
        Kind::schema(&Bytes(0))
    }

    fn words(&self) -> String {
        Kind::words(&Bytes(0))
    }
}

/// A size that is always the same.
pub fn constant(bytes: u64) -> Size {
    Size { pick: Pick::Constant(bytes), unit: 1 }
}

/// The address of a server, `http://host:port`; given without a slash at its end.
pub fn server(text: &str) -> Result<String, Problem> {
    address(text, false)
}

/// The addresses of one server or of several, with commas between them.
pub fn servers(text: &str) -> Result<Vec<String>, Problem> {
    text.split(',').map(|one| server(one.trim())).collect()
}

/// The address of a service, with a path if it has one; given without a slash at its end.
pub fn service(text: &str) -> Result<String, Problem> {
    address(text, true)
}

fn address(text: &str, with_path: bool) -> Result<String, Problem> {
    let help = "write http://host:port or https://host:port";
    if text.contains(['<', '>']) {
        return Err(Problem::new(format!("`{text}` holds a placeholder"), "replace it with the real host"));
    }
    if text.contains('@') {
        return Err(Problem::new("the address holds credentials", "put them under their own keys"));
    }
    let url = match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        _ => return Err(Problem::new(format!("'{text}' is not an HTTP address"), help)),
    };
    if url.query().is_some() || url.fragment().is_some() || (!with_path && url.path() != "/") {
        return Err(Problem::new(format!("'{text}' has more than a host and a port"), help));
    }
    Ok(text.trim_end_matches('/').to_owned())
}
