//! The files and directories that a job file names, joined as fio joins them.

use super::ini::Setting;
use super::job::Variables;
use super::values::expanded;
use std::path::PathBuf;

/// Most files that a job may name.
pub(super) const MOST_NAMES: usize = 1024;

/// The longest name of a file that Linux takes, bytes.
pub(super) const LONGEST_PATH: usize = 4096;

/// Most bytes of all names of a job: each job has those of the `[global]` sections.
const MOST_BYTES: usize = 256 << 10;

/// What `directory` and `filename` name, up to a point of the text.
///
/// fio looks at a section's `directory` first, and joins each `filename` with it at once: no later section changes that. What a
/// `[global]` section names is every later job's, too.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    directories: Vec<String>,
    files: Vec<String>,
    /// Why they are not all here.
    wrong: Option<String>,
}

impl Names {
    /// The same after the options of one more section.
    pub(super) fn after(&self, options: &[Setting<'_>], variables: &Variables<'_>) -> Self {
        let value = |setting: &Setting<'_>| {
            // Variables that are not set are refused beside this.
            let known = expanded(setting.value, variables);
            split(known.as_deref().unwrap_or(setting.value))
        };
        let mut names = self.clone();
        if let Some(setting) = options.iter().rev().find(|setting| setting.name == "directory") {
            names.directories = value(setting);
            if names.directories.is_empty() && !setting.value.is_empty() {
                // fio would begin at the root directory.
                names.wrong = Some("has a `directory` of colons alone".into());
            }
        }
        for setting in options.iter().filter(|setting| setting.name == "filename") {
            names.add(&value(setting));
        }
        names
    }

    fn add(&mut self, files: &[String]) {
        match self.joined(files) {
            Ok(joined) if self.files.len() + joined.len() <= MOST_NAMES => self.files.extend(joined),
            Ok(_) => self.wrong = Some(format!("names more than {MOST_NAMES} files")),
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    /// Names of files in all of the directories. fio joins the two as texts: one that begins with `/` does not replace the directory.
    ///
    /// # Errors
    /// They are more, or longer, than fio can open.
    pub(super) fn joined(&self, files: &[String]) -> Result<Vec<String>, String> {
        let directories = self.directories.len().max(1);
        if directories.saturating_mul(files.len()) > MOST_NAMES {
            return Err(format!("names {} files in {directories} directories", files.len()));
        }
        if self.directories.iter().chain(files).any(|name| name.len() > LONGEST_PATH) {
            return Err(format!("names a file with more than {LONGEST_PATH} bytes"));
        }
        let length = |names: &[String]| names.iter().map(|name| name.len() + 1).sum::<usize>();
        if directories * length(files) + files.len() * length(&self.directories) > MOST_BYTES {
            return Err(format!("names files with more than {} KiB in all", MOST_BYTES >> 10));
        }
        if self.directories.is_empty() {
            return Ok(files.to_vec());
        }
        let within = |directory: &String| {
            let directory = directory.clone();
            files.iter().map(move |file| format!("{directory}/{file}"))
        };
        Ok(self.directories.iter().flat_map(within).collect())
    }

    /// The files that are named with `filename`.
    ///
    /// # Errors
    /// They are more, or longer, than fio can open.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, String> {
        match &self.wrong {
            Some(wrong) => Err(wrong.clone()),
            None => Ok(self.files.iter().map(PathBuf::from).collect()),
        }
    }
}

/// A list of names with colons between them; `\:` is a colon within a name.
fn split(value: &str) -> Vec<String> {
    let (mut names, mut current, mut chars) = (Vec::new(), String::new(), value.chars().peekable());
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(':')) => current.extend(chars.next()),
            (':', _) => names.push(std::mem::take(&mut current)),
            (c, _) => current.push(c),
        }
    }
    names.push(current);
    names.retain(|name| !name.is_empty());
    names
}
