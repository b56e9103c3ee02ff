//! Artifacts of Maven repositories, fetched with the user's own Maven, which knows where repositories and proxies are,
//! and held against a hash that our code pins.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::command::{Programs, undisturbed};
use crate::error::LabError;
use crate::home::make_directory;

/// How much of a file is hashed at once, in bytes.
const PIECE: usize = 1 << 16;

/// A file of a Maven repository. It displays as its coordinates, such as `io.trino:trino-server:476:tar.gz`.
#[derive(Clone, Copy, Debug)]
pub struct Artifact {
    /// The group.
    pub group: &'static str,
    /// The artifact's name in its group.
    pub name: &'static str,
    /// The version.
    pub version: &'static str,
    /// The packaging, which is also the file's extension: `jar`, `tar.gz`.
    pub packaging: &'static str,
    /// The classifier, if it has one.
    pub classifier: Option<&'static str>,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: &'static str,
}

impl fmt::Display for Artifact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, name, version, packaging, classifier, .. } = self;
        write!(formatter, "{group}:{name}:{version}:{packaging}")?;
        classifier.map_or(Ok(()), |classifier| write!(formatter, ":{classifier}"))
    }
}

impl Artifact {
    /// The artifact's file in a directory, which is made if it is missing. If it is not there yet, Maven copies it there
    /// from its local repository, and downloads it first if it must. That may take minutes.
    ///
    /// # Errors
    /// A missing `mvn`; [`LabError::NotFetched`] with what Maven says; [`LabError::WrongHash`] if the file is not the
    /// one pinned, and then it is not kept; a directory that cannot be written to.
    pub fn fetch(&self, into: &Path) -> Result<PathBuf, LabError> {
        self.fetched_by(&Programs::installed(), into)
    }

    pub(super) fn fetched_by(&self, programs: &Programs, into: &Path) -> Result<PathBuf, LabError> {
        let file = into.join(self.file_name());
        if file.is_file() && self.check(&file).is_ok() {
            return Ok(file);
        }
        make_directory(into)?;
        // What is not known to be whole and right is in a directory of its own.
        let unchecked = tempfile::tempdir_in(into).map_err(LabError::file("make a directory in", into))?;
        self.copy(programs, unchecked.path())?;
        let copied = unchecked.path().join(self.file_name());
        self.check(&copied)?;
        fs::rename(&copied, &file).map_err(LabError::file("rename", copied))?;
        Ok(file)
    }

    /// As Maven names it: without the group.
    fn file_name(&self) -> String {
        let Self { name, version, packaging, classifier, .. } = self;
        let classifier = classifier.map_or_else(String::new, |classifier| format!("-{classifier}"));
        format!("{name}-{version}{classifier}.{packaging}")
    }

    fn copy(&self, programs: &Programs, into: &Path) -> Result<(), LabError> {
        let mvn = programs.path("mvn")?;
        let mut command = Command::new(&mvn);
        let arguments = [format!("-Dartifact={self}"), format!("-DoutputDirectory={}", into.display())];
        command.args(["--batch-mode", "--quiet", "dependency:copy"]).args(arguments);
        let output = undisturbed(&mut command).output().map_err(LabError::file("run", mvn))?;
        if output.status.success() {
            return Ok(());
        }
        // Maven says what is wrong in the first of many lines, and on its output.
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().find_map(|line| line.split_once("[ERROR] "));
        let said = first.map_or_else(|| output.status.to_string(), |(_, said)| said.trim().to_owned());
        Err(LabError::NotFetched { artifact: self.to_string(), said })
    }

    fn check(&self, file: &Path) -> Result<(), LabError> {
        let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
        let mut content = File::open(file).map_err(LabError::file("open", file))?;
        loop {
            match content.read(&mut piece).map_err(LabError::file("read", file))? {
                0 => break,
                length => hash.update(&piece[..length]),
            }
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        match found == self.sha256 {
            true => Ok(()),
            false => Err(LabError::WrongHash { artifact: self.to_string(), expected: self.sha256, found }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::command::tests::script;

    const ARTIFACT: Artifact = Artifact {
        group: "org.example",
        name: "tides",
        version: "1.2",
        packaging: "tar.gz",
        classifier: Some("queries"),
        // Of "high water\n".
        sha256: "cec95245ee0b486b4369094bd7dd5b7b0b89fc40403f0540f2c8cf3378c3b1c2",
    };

    /// A directory with an `mvn` that writes this text to where it is told to copy, or says this and fails.
    fn maven(text: &str) -> (tempfile::TempDir, Programs) {
        let directory = tempfile::tempdir().unwrap();
        script(&directory.path().join("mvn"), &format!("#!/bin/sh\n{text}\n"));
        let programs = Programs::new(directory.path().as_os_str().to_owned());
        (directory, programs)
    }

    const COPIES: &str = r#"
        [ "$1 $2 $3" = "--batch-mode --quiet dependency:copy" ] || exit 9
        [ "$4" = "-Dartifact=org.example:tides:1.2:tar.gz:queries" ] || exit 8
        echo copied >>"$0.calls"
        printf 'WATER' >"${5#-DoutputDirectory=}/tides-1.2-queries.tar.gz""#;

    #[test]
    fn an_artifact_is_fetched_once_and_has_the_hash_pinned() {
        let (directory, programs) = maven(&COPIES.replace("WATER", "high water\\n"));
        let into = directory.path().join("cache");
        let file = ARTIFACT.fetched_by(&programs, &into).unwrap();
        assert_eq!(file, into.join("tides-1.2-queries.tar.gz"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "high water\n");
        assert_eq!(ARTIFACT.fetched_by(&programs, &into).unwrap(), file);
        let calls = || fs::read_to_string(directory.path().join("mvn.calls")).unwrap().lines().count();
        assert_eq!(calls(), 1, "what is there is not fetched again");
        fs::write(&file, "low water").unwrap();
        ARTIFACT.fetched_by(&programs, &into).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), calls()), ("high water\n", 2));
    }

    #[test]
    fn an_artifact_with_another_hash_is_refused_and_not_kept() {
        let (directory, programs) = maven(&COPIES.replace("WATER", "low water\\n"));
        let into = directory.path().join("cache");
        let error = ARTIFACT.fetched_by(&programs, &into).unwrap_err();
        assert!(matches!(error, LabError::WrongHash { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("org.example:tides:1.2:tar.gz:queries") && text.contains(ARTIFACT.sha256),
            "{text}"
        );
        assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
    }

    #[test]
    fn what_maven_says_is_passed_on() {
        let (directory, programs) = maven(
            "echo '[WARNING] not that'; echo '[ERROR] Could not find artifact'; echo '[ERROR] more'; exit 1",
        );
        let error = ARTIFACT.fetched_by(&programs, directory.path()).unwrap_err().to_string();
        assert!(error.contains("queries: Could not find artifact") && !error.contains("more"), "{error}");
        let (directory, programs) = maven("exit 3");
        let error = ARTIFACT.fetched_by(&programs, directory.path()).unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        let error = ARTIFACT.fetched_by(&Programs::new(OsString::new()), directory.path()).unwrap_err();
        assert!(error.to_string().contains("apt-get install -y maven"), "{error}");
    }
}
