//! What a text is, by what is in it.

use crate::Format;
use crate::sheet::{Rows, delimiter, find};
use crate::source::begin_of_json;

/// As much of a text as is looked at at all, bytes: whoever prints more than this before its results has not kept them.
const HEAD: usize = 2 << 20;

/// As much of a text as is looked at for what its JSON is about, bytes.
const GLANCE: usize = 64 << 10;

/// As many lines of a text are looked at for the words of a benchmark of databases: progress reports may stand before them.
const DATABASE_LINES: usize = 5_000;

/// What a text is.
pub(crate) fn of(text: &str) -> Result<Format, String> {
    let text = head(text, HEAD);
    if let Some(format) = database_tool(text) {
        return Ok(format);
    }
    match of_json(text) {
        Some(format) => Ok(format),
        None if crate::fio::is_terse(text)? => Ok(Format::Fio),
        None if text.trim_start().starts_with('{') => {
            Err("JSON of an unknown tool; fio's has `jobs`, warp's `by_op_type` or `operations`, elbencho's `phase_type`, HammerDB's times `NEWORD`".into())
        }
        None => of_table(text),
    }
}

/// The first bytes of a text, to the end of a letter.
fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The benchmark of databases that wrote a text, by its words.
fn database_tool(text: &str) -> Option<Format> {
    let has = |words: &[&str]| {
        words
            .iter()
            .all(|word| text.lines().take(DATABASE_LINES).any(|line| line.trim_start().starts_with(word)))
    };
    let says = |word: &str| text.lines().take(DATABASE_LINES).any(|line| line.contains(word));
    match () {
        () if has(&["sysbench "])
            || has(&["SQL statistics:"])
            || has(&["General statistics:", "Latency (ms):"]) =>
        {
            Some(Format::Sysbench)
        }
        () if has(&["pgbench ("]) || has(&["transaction type:", "scaling factor:"]) => Some(Format::Pgbench),
        () if crate::pgbench::is_log(text) => Some(Format::Pgbench),
        () if says("System achieved") && says("NOPM") || says(">>>>> PROC: ") => Some(Format::Hammerdb),
        () => None,
    }
}

/// By the keys of its JSON, which messages of the tool may stand before.
fn of_json(text: &str) -> Option<Format> {
    let begins = begin_of_json(text)?;
    let summary = head(&text[begins..], GLANCE);
    let has = |key: &str| {
        let key = format!("\"{key}\"");
        summary.match_indices(&key).any(|(at, _)| summary[at + key.len()..].trim_start().starts_with(':'))
    };
    match () {
        () if has("jobs") || has("fio version") => Some(Format::Fio),
        () if has("by_op_type") || has("operations") => Some(Format::Warp),
        () if has("phase_type") => Some(Format::Elbencho),
        () if has("NEWORD") && has("calls") => Some(Format::Hammerdb),
        () => None,
    }
}

/// By the names of its columns.
fn of_table(text: &str) -> Result<Format, String> {
    let header = Rows::new(text, delimiter(text)).next().ok_or("is empty")??;
    let has = |name: &str| find(&header, name).is_some();
    Ok(match () {
        () if has("Stage") && has("Op-Type") && has("Op-Count") => Format::Cosbench,
        () if has("Id") && has("Op-Name") && has("Config-Info") => {
            return Err(
                "the matrix of a COSBench archive; import the archive's directory, or one of its workloads"
                    .into(),
            );
        }
        () if has("op") && (has("duration_ns") || has("ops_ended")) => Format::Warp,
        () if has("ISO date") && has("operation") => Format::Elbencho,
        () => Format::Table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_content() {
        let kinds = [
            ("{\"fio version\" : \"fio-3.33\", \"jobs\" : []}", Format::Fio),
            ("fio: a warning\n{\n  \"jobs\" : [", Format::Fio),
            ("4;fio-3.33;seq\n{\n  \"jobs\" : [", Format::Fio),
            ("seq: Laying out IO file\n3;fio-3.33;seq;0;0;4096", Format::Fio),
            ("{\"v\":2,\"by_op_type\":{}}", Format::Warp),
            ("warp: Benchmark data written to x.json.zst\n{\"v\":2,\"by_op_type\":{}}\n", Format::Warp),
            ("warp-1 | {\"v\":2,\"by_op_type\":{}}", Format::Warp),
            ("{\"phase_type\":\"READ\"}\n{\"phase_type\":\"WRITE\"}", Format::Elbencho),
            ("Stage,Op-Name,Op-Type,Op-Count\n", Format::Cosbench),
            ("idx\tthread\top\tduration_ns\n", Format::Warp),
            ("index\top\thost\tops_ended\n", Format::Warp),
            ("ISO date,label,operation\n", Format::Elbencho),
            ("workers;op/s\n", Format::Table),
            ("workers,{\"jobs\":\n", Format::Table),
        ];
        for (text, format) in kinds {
            assert_eq!(of(text), Ok(format), "{text}");
        }
        let databases = [
            (
                Format::Sysbench,
                "sysbench 1.0.20 (using bundled LuaJIT 2.1.0)\n\nRunning the test with following options:\n",
            ),
            (Format::Sysbench, "SQL statistics:\n    queries performed:\n"),
            (Format::Pgbench, "pgbench (15.4)\nstarting vacuum...end.\n"),
            (Format::Pgbench, "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 10\n"),
            (
                Format::Hammerdb,
                "Vuser 1:TEST RESULT : System achieved 12345 NOPM from 28000 PostgreSQL TPM\n",
            ),
        ];
        for (format, text) in databases {
            assert_eq!(of(text), Ok(format), "{text}");
        }
        // Whatever comes late is not looked for in a text of any size.
        let late = |length: usize| format!("{}\n{{\"jobs\" : [", "ü".repeat(length / 2));
        assert_eq!((of(&late(HEAD - 100)), of(&late(HEAD + 1))), (Ok(Format::Fio), Ok(Format::Table)));
        assert!(of("{\"x\": 1}").unwrap_err().contains("by_op_type"));
        assert!(of("Id,Op-Name,Config-Info\n").unwrap_err().contains("directory"));
        assert_eq!(of(" \n").unwrap_err(), "is empty");
    }
}
