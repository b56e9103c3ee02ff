//! `instances`: several databases, listed or as templates.

use super::target::host_and_port;
use tidemark_keys::Problem;

/// The most instances of a target.
pub(crate) const MOST: usize = 1000;

const HELP: &str =
    "write host:port, host:port/database, or ranges in braces such as 10.0.0.1:{5432-5435} or db-{0-3}:5432";

/// Where an instance is, as far as the document says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    pub(crate) database: Option<String>,
}

/// Reads places with commas between them: the value of a variable has all instances of a lab.
pub(crate) fn places(text: &str) -> Result<Vec<Place>, Problem> {
    let mut places = Vec::new();
    for template in text.split(',').map(str::trim) {
        for one in expand(template, MOST)? {
            places.push(place(&one)?);
        }
    }
    match places.len() {
        ..=MOST => Ok(places),
        count => Err(too_many(count as u64)),
    }
}

fn too_many(count: u64) -> Problem {
    Problem::new(format!("these are {count} instances"), format!("write up to {MOST}"))
}

fn place(text: &str) -> Result<Place, Problem> {
    let wrong = || Problem::new(format!("'{text}' names no instance"), HELP);
    // The directory of a Unix socket has slashes of its own.
    let (server, database) = match text.split_once('/') {
        Some((server, database)) if !server.is_empty() => (server, Some(database)),
        _ => (text, None),
    };
    if database.is_some_and(|name| name.is_empty() || name.contains('/')) {
        return Err(wrong());
    }
    let (host, port) = host_and_port(server).map_err(|_| wrong())?;
    Ok(Place { host, port, database: database.map(str::to_owned) })
}

/// All texts that a template stands for: `a{1-2}` for `a1` and `a2`; two ranges multiply, the last one counts fastest. A number
/// that begins with 0 has the width in which it is written.
fn expand(template: &str, most: usize) -> Result<Vec<String>, Problem> {
    let Some((before, rest)) = template.split_once('{') else { return Ok(vec![template.to_owned()]) };
    let wrong = || Problem::new(format!("'{template}' has no range in its braces"), HELP);
    let (range, behind) = rest.split_once('}').ok_or_else(wrong)?;
    let (low, high) = range.split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u32>().map_err(|_| wrong()),
        false => Err(wrong()),
    };
    let (first, last) = (number(low)?, number(high)?);
    if last < first {
        return Err(wrong());
    }
    let width = if low.starts_with('0') { low.len().min(10) } else { 0 };
    let tails = expand(behind, most)?;
    let count = (u64::from(last - first) + 1).saturating_mul(tails.len() as u64);
    if count > most as u64 {
        return Err(too_many(count));
    }
    let of = |number: u32| tails.iter().map(move |tail| format!("{before}{number:0width$}{tail}"));
    Ok((first..=last).flat_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let words = |place: Place| {
            let port = place.port.map(|port| format!(" {port}")).unwrap_or_default();
            let database = place.database.map(|name| format!(" {name}")).unwrap_or_default();
            format!("{}{port}{database}", place.host)
        };
        places(text).unwrap_or_else(|problem| panic!("{problem:?}")).into_iter().map(words).collect()
    }

    #[test]
    fn instances_are_listed_or_numbered() {
        assert_eq!(said("a:1, b ,[::1]:3"), ["a 1", "b", "::1 3"]);
        assert_eq!(said("h:{5432-5434}"), ["h 5432", "h 5433", "h 5434"]);
        assert_eq!(said("pg-{08-10}.bench"), ["pg-08.bench", "pg-09.bench", "pg-10.bench"]);
        assert_eq!(said("w{1-2}:{7-8}/x{0-0}"), ["w1 7 x0", "w1 8 x0", "w2 7 x0", "w2 8 x0"]);
        assert_eq!(said("h/bench{1-2}"), ["h bench1", "h bench2"]);
        assert_eq!(said("/run/pg{0-1}:5433"), ["/run/pg0 5433", "/run/pg1 5433"]);
    }

    #[test]
    fn what_is_no_instance_is_said() {
        for (text, expected) in [
            ("", "names no instance"),
            ("a,,b", "names no instance"),
            ("a:b", "names no instance"),
            ("a:70000", "names no instance"),
            ("a/", "names no instance"),
            ("a/b/c", "names no instance"),
            ("a{1-2", "no range in its braces"),
            ("a{3-2}", "no range in its braces"),
            ("a{1}", "no range in its braces"),
            ("a{+1-2}", "no range in its braces"),
            ("a{-}", "no range in its braces"),
            ("a{1-1001}", "1001 instances"),
            ("a{0-4294967295}{0-4294967295}", "4294967296 instances"),
            ("a{1-600},b{1-600}", "1200 instances"),
        ] {
            let problem = places(text).unwrap_err();
            assert!(problem.message.contains(expected), "{text}: {}", problem.message);
        }
    }
}
