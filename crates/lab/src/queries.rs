//! The queries of TPC-DS in files: published texts, fetched with Maven and adapted to more than one engine.
//!
//! The texts are the TPC's, and not part of Tidemark. Two projects publish them under the Apache License 2.0: each query comes from
//! one of their archives, whose hash is pinned, and is written to the user's own directory.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;

use tidemark_tpc::ds;
use tidemark_tpc::ds::texts::{self, Style};
use zip::ZipArchive;

use crate::error::LabError;
use crate::maven::Artifact;

/// Presto's benchmarks: all queries, of those of two parts the first.
static PRESTO: Artifact = Artifact {
    group: "io.prestosql",
    name: "presto-benchto-benchmarks",
    version: "350",
    packaging: "jar",
    classifier: None,
    sha256: "2a38fd6052ba01aa7c733da14d90d900075908732d3f5bcc0238396690228a24",
};

/// Tests of Spark: the second parts.
static SPARK: Artifact = Artifact {
    group: "org.apache.spark",
    name: "spark-sql_2.13",
    version: "3.5.6",
    packaging: "jar",
    classifier: Some("tests"),
    sha256: "e4d59b8fccbb0dde234a98b499bb656309cb2321c18183b391f46052514a5caf",
};

/// Writes a file for each part of each query into a directory, which is made if it is not there: `q1.sql` to `q99.sql`, of four
/// queries `q14a.sql` and `q14b.sql`. Tables have bare names. Returns how many files there are.
///
/// `progress` gets a line as each step begins.
///
/// # Errors
/// Those of [`Artifact::fetch`]; [`LabError::OtherText`] if one of the files is there and has another text, and then none is written;
/// files that cannot be written.
pub fn write(directory: &Path, progress: &mut dyn FnMut(&str)) -> Result<usize, LabError> {
    // Maven keeps them; here they are only unpacked.
    let fetched = tempfile::tempdir().map_err(LabError::file("make a directory in", std::env::temp_dir()))?;
    let mut open = |artifact: &Artifact| {
        progress(&format!("fetching {artifact}"));
        let file = artifact.fetch(fetched.path())?;
        let unpack = LabError::file("unpack", &file);
        File::open(&file).and_then(|file| Ok(ZipArchive::new(file)?)).map_err(unpack)
    };
    let (first, second) = (open(&PRESTO)?, open(&SPARK)?);
    unpack(first, second, directory)
}

/// Writes what is not there yet: of the second archive the second parts, of the first one all else.
fn unpack<A: Read + Seek>(
    mut first: ZipArchive<A>,
    mut second: ZipArchive<A>,
    directory: &Path,
) -> Result<usize, LabError> {
    let names = ds::names();
    let mut missing = Vec::new();
    for name in &names {
        let number = ds::number(name).unwrap_or_default();
        let text = match name.ends_with('b') {
            false => read(&mut first, &format!("sql/presto/tpcds/q{number:02}.sql"), Style::Parenthesised),
            true => read(&mut second, &format!("tpcds/{name}.sql"), Style::Plain),
        };
        let file = directory.join(format!("{name}.sql"));
        let text = text.map_err(LabError::file("unpack", &file))?;
        match fs::read_to_string(&file) {
            Ok(known) if known == text => {}
            // What the user has changed stays as it is.
            Ok(_) => return Err(LabError::OtherText { file }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push((file, text)),
            Err(error) => return Err(LabError::file("read", file)(error)),
        }
    }
    fs::create_dir_all(directory).map_err(LabError::file("create", directory))?;
    for (file, text) in missing {
        fs::write(&file, text).map_err(LabError::file("write", file))?;
    }
    Ok(names.len())
}

/// The text of a query in an archive, adapted.
fn read<A: Read + Seek>(archive: &mut ZipArchive<A>, entry: &str, style: Style) -> io::Result<String> {
    let mut text = String::new();
    archive.by_name(entry)?.read_to_string(&mut text)?;
    Ok(texts::adapted(&text, style))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write as _};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn archive(entries: impl IntoIterator<Item = String>) -> ZipArchive<Cursor<Vec<u8>>> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for entry in entries {
            writer.start_file(&entry, SimpleFileOptions::default()).unwrap();
            write!(writer, "SELECT (1 / 2), '{entry}' FROM ${{database}}.${{schema}}.item").unwrap();
        }
        ZipArchive::new(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn each_part_has_a_file_and_changed_ones_are_kept() {
        let first = || archive((1..=99).map(|number| format!("sql/presto/tpcds/q{number:02}.sql")));
        let second = || archive([14, 23, 24, 39].map(|number| format!("tpcds/q{number}b.sql")));
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("queries");
        assert_eq!(unpack(first(), second(), &directory).unwrap(), 103);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 103);
        let text = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(text("q7.sql"), "SELECT (CAST(1 AS DOUBLE) / 2), 'sql/presto/tpcds/q07.sql' FROM item\n");
        assert_eq!(text("q14b.sql"), "SELECT (1 / 2), 'tpcds/q14b.sql' FROM item\n");
        fs::remove_file(directory.join("q1.sql")).unwrap();
        fs::write(directory.join("q99.sql"), "SELECT 99").unwrap();
        let refused = unpack(first(), second(), &directory).unwrap_err();
        assert!(matches!(refused, LabError::OtherText { .. }), "{refused}");
        assert!(text("q99.sql") == "SELECT 99" && !directory.join("q1.sql").exists(), "nothing is written");
        fs::remove_file(directory.join("q99.sql")).unwrap();
        assert_eq!(unpack(first(), second(), &directory).unwrap(), 103);
        assert!(text("q1.sql").contains("q01.sql"), "what was missing is there again");
        assert!(unpack(first(), archive([]), &directory).unwrap_err().to_string().contains("q14b.sql"));
    }
}
