//! Where results are kept: a directory for each Evaluation, `NAMESPACE/NAME.UID`, as long as there is that Evaluation.

use crate::resource::Metadata;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The length of a `uid`, which is a UUID.
const UID: usize = 36;

/// The file that says at which API server the Evaluations of these directories are.
pub(crate) const SERVER: &str = "server";

/// The directories of one namespace.
#[derive(Debug)]
pub(crate) struct Volume {
    directory: PathBuf,
    /// Where the Evaluations are, if that is not the server that is asked now.
    other: Option<String>,
}

impl Volume {
    pub(crate) fn new(directory: &Path, namespace: &str, cluster: &str) -> io::Result<Self> {
        let directory = directory.join(namespace);
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(SERVER);
        let noted = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::write(&path, cluster)?;
                cluster.to_owned()
            }
            noted => noted?,
        };
        let other = (noted != cluster).then_some(noted);
        Ok(Self { directory, other })
    }

    /// Where the Evaluations are whose results are here, if that is another server: none of them is gone then because it is not listed.
    pub(crate) fn other_server(&self) -> Option<&str> {
        self.other.as_deref().map(|other| other.lines().next().unwrap_or_default())
    }

    /// The directory of an Evaluation; it need not be there.
    pub(crate) fn of(&self, owner: &Metadata) -> PathBuf {
        self.directory.join(format!("{}.{}", owner.name, owner.uid))
    }

    /// Removes the directories of Evaluations that are gone. What has no such name is not ours.
    pub(crate) fn sweep(&self, uids: &BTreeSet<&str>) -> io::Result<Vec<String>> {
        let mut removed = Vec::new();
        if self.other.is_some() {
            return Ok(removed);
        }
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let uid = name.rsplit_once('.').map(|(_, uid)| uid).filter(|uid| is_uid(uid));
            if uid.is_some_and(|uid| !uids.contains(uid)) && entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
                removed.push(name);
            }
        }
        Ok(removed)
    }
}

fn is_uid(text: &str) -> bool {
    text.len() == UID && text.bytes().all(|one| one.is_ascii_hexdigit() || one == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_an_evaluation_that_is_gone_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let volume = Volume::new(directory.path(), "bench", "https://one").unwrap();
        let owner =
            |name: &str, uid: &str| Metadata { name: name.into(), uid: uid.into(), ..Metadata::default() };
        let [here, gone] = ["1", "2"].map(|end| format!("0000000-0000-4000-8000-00000000000{end}0"));
        for own in [
            volume.of(&owner("a.b", &here)),
            volume.of(&owner("a.b", &gone)),
            volume.directory.join("lost+found"),
        ] {
            std::fs::create_dir(own).unwrap();
        }
        let other = Volume::new(directory.path(), "bench", "https://two").unwrap();
        assert_eq!(
            (other.other_server(), other.sweep(&BTreeSet::new()).unwrap().len()),
            (Some("https://one"), 0)
        );
        let removed = volume.sweep(&BTreeSet::from([&*here])).unwrap();
        assert_eq!(removed, [format!("a.b.{gone}")]);
        assert!(volume.of(&owner("a.b", &here)).exists() && volume.directory.join("lost+found").exists());
    }
}
