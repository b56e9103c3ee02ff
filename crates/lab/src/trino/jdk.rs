//! The Java that runs Trino: named by the user, or found.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The oldest version of Java that runs this version of Trino.
const LEAST: u32 = 24;
/// Where distributions put theirs, a directory for each.
const USUAL: &str = "/usr/lib/jvm";

/// A directory with a Java of some version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jdk {
    /// Its directory, which has `bin/java`.
    pub(super) home: PathBuf,
    /// Its version as it writes it, such as `25.0.3`.
    version: String,
}

impl fmt::Display for Jdk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.home.display(), self.version)
    }
}

impl Jdk {
    /// The one named, or else the first that is new enough: that of `JAVA_HOME`, that of `PATH`, those below
    /// `/usr/lib/jvm`.
    pub(super) fn find(named: Option<&Path>) -> Result<Self, LabError> {
        match named {
            Some(home) => choose(&[home.to_owned()], &home.display().to_string()),
            None => choose(&usual(), &format!("JAVA_HOME, PATH and {USUAL}")),
        }
    }

    /// What a directory has, by its file `release`; none if it has no Java.
    pub(super) fn at(home: &Path) -> Option<Self> {
        let release = fs::read_to_string(home.join("release")).ok()?;
        let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
        let is_there = home.join("bin/java").is_file();
        is_there.then(|| Self { home: home.to_owned(), version: version.trim().trim_matches('"').to_owned() })
    }

    fn is_new_enough(&self) -> bool {
        let digits = self.version.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).is_some_and(|major: u32| major >= LEAST)
    }
}

/// Where one may be, best first.
fn usual() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    for directory in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
        // In the path there are links to it.
        let java = directory.join("java").canonicalize().ok();
        homes.extend(java.as_deref().and_then(|java| java.parent()?.parent()).map(Path::to_owned));
    }
    let entries = fs::read_dir(USUAL).into_iter().flatten().flatten();
    let mut installed: Vec<_> = entries.filter_map(|entry| entry.path().canonicalize().ok()).collect();
    installed.sort();
    homes.extend(installed);
    homes
}

fn choose(homes: &[PathBuf], places: &str) -> Result<Jdk, LabError> {
    let mut found: Vec<Jdk> = Vec::new();
    for jdk in homes.iter().filter_map(|home| Jdk::at(home)) {
        if jdk.is_new_enough() {
            return Ok(jdk);
        }
        if !found.contains(&jdk) {
            found.push(jdk);
        }
    }
    let found = found.iter().map(ToString::to_string).collect::<Vec<_>>();
    Err(LabError::NoJdk { least: LEAST, places: places.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jdk(parent: &Path, name: &str, version: &str) -> PathBuf {
        let home = parent.join(name);
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::write(home.join("bin/java"), "").unwrap();
        fs::write(home.join("release"), format!("IMPLEMENTOR=\"X\"\nJAVA_VERSION=\"{version}\"\n")).unwrap();
        home
    }

    #[test]
    fn the_first_that_is_new_enough_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let homes = [("a", "17.0.15"), ("b", "24"), ("c", "25.0.3")]
            .map(|(name, version)| jdk(directory.path(), name, version));
        assert_eq!(choose(&homes, "here").unwrap().home, homes[1]);
        assert_eq!(
            Jdk::find(Some(&homes[2])).unwrap().to_string(),
            format!("{} (25.0.3)", homes[2].display())
        );
    }

    #[test]
    fn what_was_found_instead_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let old = jdk(directory.path(), "old", "17.0.15");
        let error = choose(&[old.clone(), old.clone(), "/nonexistent".into()], "all places").unwrap_err();
        let text = error.to_string();
        let known = format!("{} (17.0.15)", old.display());
        assert!(text.contains("24") && text.contains("all places") && text.contains("--jdk"), "{text}");
        assert_eq!(text.matches(&known).count(), 1, "{text}");
        let error = Jdk::find(Some(directory.path())).unwrap_err().to_string();
        assert!(error.contains(&format!("{} has none", directory.path().display())), "{error}");
    }
}
