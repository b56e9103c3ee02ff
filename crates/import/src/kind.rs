//! What a text is, by what is in it.

use crate::Format;
use crate::sheet::{Rows, delimiter, find};

/// As much of a text as is looked at for what its JSON is about, bytes.
const GLANCE: usize = 64 << 10;

/// What a text is.
pub(crate) fn of(text: &str) -> Result<Format, String> {
    match of_json(text) {
        Some(format) => Ok(format),
        None if text.trim_start().starts_with('{') => {
            Err("JSON of an unknown tool; fio's has `jobs`, warp's `by_op_type` or `operations`, elbencho's `phase_type`".into())
        }
        None => of_table(text),
    }
}

/// By the keys of its JSON, which fio's messages may stand before.
fn of_json(text: &str) -> Option<Format> {
    let begins = text.find('{')?;
    let is_json = begins == 0 || text[..begins].ends_with('\n') || text[..begins].trim().is_empty();
    let mut end = text.len().min(begins + GLANCE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let summary = &text[begins..end];
    let has = |key: &str| {
        let key = format!("\"{key}\"");
        summary.match_indices(&key).any(|(at, _)| summary[at + key.len()..].trim_start().starts_with(':'))
    };
    match () {
        () if !is_json => None,
        () if has("jobs") || has("fio version") => Some(Format::Fio),
        () if has("by_op_type") || has("operations") => Some(Format::Warp),
        () if has("phase_type") => Some(Format::Elbencho),
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
            ("{\"v\":2,\"by_op_type\":{}}", Format::Warp),
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
        assert!(of("{\"x\": 1}").unwrap_err().contains("by_op_type"));
        assert!(of("Id,Op-Name,Config-Info\n").unwrap_err().contains("directory"));
        assert_eq!(of(" \n").unwrap_err(), "is empty");
    }
}
