//! Values that several engines read: selectors, sizes, ranges, weights.

use super::table::Problem;
use crate::selector;
use tidemark_load::source::Size;
use tidemark_measure::pick::Pick;

/// A selector of numbers. In a load, `1-100` alone means any of these with equal chances; `r(1,100)` goes
/// through them in order. A number alone is itself.
pub fn pick(text: &str) -> Result<Pick, Problem> {
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

/// Refuses half a selector, which is what YAML leaves of one with a comma inside `{}` or `[]`.
pub(super) fn closed(text: &str) -> Result<(), Problem> {
    match text.contains('(') && !text.contains(')') {
        true => Err(Problem::new(format!("'{text}' has no closing bracket"), super::tree::COMMA)),
        false => Ok(()),
    }
}

/// A selector of sizes.
pub fn size(text: &str) -> Result<Size, Problem> {
    closed(text)?;
    Ok(selector::size(text)?)
}

/// A range with an end: `1-100`, `r(1,100)`, or a number alone.
pub fn bounds(text: &str) -> Result<(u64, u64), Problem> {
    match pick(text)? {
        Pick::Constant(number) => Ok((number, number)),
        _ => selector::range(text)?
            .ok_or_else(|| Problem::new("the range is empty", "write a range such as 1-100")),
    }
}

/// The weight of an operation in a mix, or its share in percent.
pub fn weight(text: &str) -> Result<f64, Problem> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    match number.filter(|weight| weight.is_finite() && *weight > 0.0 && *weight <= 1e9) {
        Some(weight) => Ok(weight),
        None => Err(Problem::new(format!("'{text}' is not a weight"), "write a number above 0, such as 70")),
    }
}

/// A size above zero, bytes.
pub fn positive_bytes(text: &str) -> Result<u64, Problem> {
    match tidemark_measure::units::parse_bytes(text)? {
        0 => Err(Problem::new("the size is zero", "write a size such as 64KiB")),
        bytes => Ok(bytes),
    }
}

/// A size that is always the same.
pub fn constant(bytes: u64) -> Size {
    Size { pick: Pick::Constant(bytes), unit: 1 }
}

/// Checks an address; without a path unless `with_path`. Gives it without a slash at its end.
pub fn address(text: &str, with_path: bool) -> Result<String, Problem> {
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
