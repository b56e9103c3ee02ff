//! Values on which something is decided: read as fio reads them, or refused. A text that fio takes for another than it looks like
//! (`nrfiles=0x2`, `ioengine=ex${NOTHING}ec`) decides nothing.

use super::ini::Setting;
use super::job::Variables;
use tidemark_plan::diagnostic::Diagnostic;

/// fio keeps most numbers in 32 bits, and cuts what goes beyond.
const LARGEST: u64 = i32::MAX as u64;

/// What fio puts a number of this machine in place of, in any value; it has a shell calculate the result.
pub(crate) const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// How an option's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Decimal digits alone, at most 2147483647.
    Number,
    /// Decimal digits and a unit; or a share, or a range.
    Bytes,
    /// Decimal digits and a unit.
    Time,
    /// 0 or another number; the name alone is 1.
    Switch,
    /// A word without variables.
    Word,
    /// Paths, in which variables are replaced.
    Paths,
}

/// The options that decide about something, and how they are written.
#[rustfmt::skip]
const DECISIVE: [(Kind, &[&str]); 6] = [
    (Kind::Number, &[
        "numjobs", "iodepth", "rwmixread", "rwmixwrite", "nrfiles", "nr_files", "fsync", "fdatasync", "verify_backlog",
    ]),
    (Kind::Bytes, &["size", "filesize", "offset", "fileoffset", "offset_increment"]),
    (Kind::Time, &["runtime", "timeout", "ramp_time"]),
    (Kind::Switch, &[
        "stats", "stonewall", "wait_for_previous", "group_reporting", "new_group", "direct", "buffered", "time_based",
        "do_verify", "randrepeat", "allrandrepeat", "unlink", "unlink_each_loop", "create_on_open", "file_append",
        "per_job_logs", "log_store_compressed", "disable_lat", "disable_clat", "disable_slat",
    ]),
    (Kind::Word, &["ioengine", "rw", "readwrite", "name", "protocol", "proto"]),
    (Kind::Paths, &[
        "filename", "directory", "filename_format", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log",
    ]),
];

/// Whether all variables of a setting that names paths are set; others are not looked at here.
pub(super) fn is_set(setting: &Setting<'_>, variables: &Variables<'_>) -> bool {
    let names_paths =
        DECISIVE.iter().any(|(kind, names)| *kind == Kind::Paths && names.contains(&setting.name));
    !names_paths || expanded(setting.value, variables).is_ok()
}

/// Refuses a setting that decides about something and whose value Tidemark may read otherwise than fio.
pub(super) fn check(setting: &Setting<'_>, variables: &Variables<'_>, found: &mut Vec<Diagnostic>) {
    let Some((kind, _)) = DECISIVE.iter().find(|(_, names)| names.contains(&setting.name)) else { return };
    let (name, value) = (setting.name, setting.value);
    let mut refuse = |message: String, help: &str| {
        found.push(Diagnostic::error(setting.span.clone(), message, help));
    };
    if *kind == Kind::Word {
        if value.contains('$') {
            refuse(format!("`{name}={value}` has a variable in it"), "write the value out");
        }
        return;
    }
    let whole = match expanded(value, variables) {
        Ok(whole) => whole,
        Err(variable) => {
            let help = format!("set it before the run: export {variable}=..., or write the value itself");
            return refuse(format!("`{name}`: the environment variable {variable} is not set"), &help);
        }
    };
    let (is_read, help) = match kind {
        Kind::Number => (number(&whole).is_some(), "write it in decimal digits alone"),
        Kind::Bytes => (
            bytes(&whole).is_some(),
            "write it in decimal digits with k, m, g or t, such as 16m, or as a share, such as 50%",
        ),
        Kind::Time => {
            (time_ns(&whole).is_some(), "write it in decimal digits with us, ms, s, m, h or d, such as 30s")
        }
        Kind::Switch => (switch(&whole).is_some(), "write 0 or 1"),
        Kind::Paths | Kind::Word => (!KEYWORDS.iter().any(|keyword| whole.contains(keyword)), "write it out"),
    };
    if !is_read {
        refuse(format!("`{name}={value}`: fio may read this value otherwise than Tidemark"), help);
    }
}

/// A value as fio sees it, with every `${NAME}` replaced; or else the variable that is not set.
pub(super) fn expanded<'v>(value: &'v str, variables: &Variables<'_>) -> Result<String, &'v str> {
    let (mut whole, mut rest) = (String::new(), value);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        whole += before;
        whole += &variables(name).ok_or(name)?;
        rest = behind;
    }
    Ok(whole + rest)
}

/// A number in decimal digits.
pub(super) fn number(value: &str) -> Option<u64> {
    digits(value).filter(|number| *number <= LARGEST)
}

fn digits(value: &str) -> Option<u64> {
    // The standard parser takes a sign, too.
    value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten()
}

/// Digits, and what follows them in lower case.
fn with_unit(value: &str) -> Option<(u64, String)> {
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    Some((digits(&value[..end])?, value[end..].to_ascii_lowercase()))
}

/// Whether a switch is on; its name alone switches it on.
pub(super) fn switch(value: &str) -> Option<bool> {
    if value.is_empty() { Some(true) } else { number(value).map(|number| number != 0) }
}

/// A time in nanoseconds: a number of seconds, or one with a unit. fio takes a unit that it does not know for microseconds.
pub(super) fn time_ns(value: &str) -> Option<u64> {
    let (number, unit) = with_unit(value)?;
    let unit = match unit.as_str() {
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The most bytes that a size can mean, whatever `kb_base` says; of a range the lowest, and 0 of a share, which is one of what is there.
pub(super) fn bytes(value: &str) -> Option<u64> {
    if value.strip_suffix('%').is_some_and(|share| digits(share).is_some_and(|share| share <= 100)) {
        return Some(0);
    }
    let one = |value: &str| {
        let (number, unit) = with_unit(value)?;
        let power = match unit.as_str() {
            // Zones are those of a device.
            "z" => return Some(0),
            "" => 0,
            "k" | "kb" | "kib" => 1,
            "m" | "mb" | "mib" => 2,
            "g" | "gb" | "gib" => 3,
            "t" | "tb" | "tib" => 4,
            "p" | "pb" | "pib" => 5,
            _ => return None,
        };
        number.checked_mul(1024_u64.pow(power))
    };
    match value.split_once('-') {
        Some((low, high)) => one(high).and(one(low)),
        None => one(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_none() {
        assert_eq!((number("007"), number("2147483647")), (Some(7), Some(2_147_483_647)));
        for other in ["", "0x2", "1k", "-1", "+1", " 1", "2147483648", "(1+1)", "$ncpus", "1.5"] {
            assert_eq!(number(other), None, "{other}");
        }
        assert_eq!((switch(""), switch("00"), switch("2")), (Some(true), Some(false), Some(true)));
        assert_eq!((switch("0x0"), switch("no"), switch("false")), (None, None, None));
    }

    #[test]
    fn times_and_sizes_have_the_units_that_fio_knows() {
        assert_eq!(
            (time_ns("30"), time_ns("2M"), time_ns("5ms")),
            (Some(30_000_000_000), Some(120_000_000_000), Some(5_000_000))
        );
        for other in ["10sec", "5min", "0x10", "1.5s", "s", ""] {
            assert_eq!(time_ns(other), None, "{other}");
        }
        assert_eq!((bytes("4096"), bytes("16M"), bytes("1KiB")), (Some(4096), Some(16 << 20), Some(1024)));
        assert_eq!((bytes("50%"), bytes("4z"), bytes("4k-1m")), (Some(0), Some(0), Some(4096)));
        for other in ["0x1000", "1q", "(4*1024)", "1m:2m", "200%", "-1", "4k-"] {
            assert_eq!(bytes(other), None, "{other}");
        }
    }
}
