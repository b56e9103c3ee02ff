//! Where results are kept: a directory for each Evaluation, `NAMESPACE/NAME.UID`, as long as there is that Evaluation.

use crate::resource::Metadata;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The length of a `uid`, which is a UUID.
const UID: usize = 36;

/// The directories of one namespace.
#[derive(Debug)]
pub(crate) struct Volume(PathBuf);

impl Volume {
    pub(crate) fn new(directory: &Path, namespace: &str) -> io::Result<Self> {
        let own = directory.join(namespace);
        std::fs::create_dir_all(&own)?;
        Ok(Self(own))
    }

    /// The directory of an Evaluation; it need not be there.
    pub(crate) fn of(&self, owner: &Metadata) -> PathBuf {
        self.0.join(format!("{}.{}", owner.name, owner.uid))
    }

    /// Removes the directories of Evaluations that are gone. What has no such name is not ours.
    pub(crate) fn sweep(&self, uids: &BTreeSet<&str>) -> io::Result<Vec<String>> {
        let mut removed = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
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
        let volume = Volume::new(directory.path(), "bench").unwrap();
        let owner =
            |name: &str, uid: &str| Metadata { name: name.into(), uid: uid.into(), ..Metadata::default() };
        let [here, gone] = ["1", "2"].map(|end| format!("0000000-0000-4000-8000-00000000000{end}0"));
        for own in
            [volume.of(&owner("a.b", &here)), volume.of(&owner("a.b", &gone)), volume.0.join("lost+found")]
        {
            std::fs::create_dir(own).unwrap();
        }
        let removed = volume.sweep(&BTreeSet::from([&*here])).unwrap();
        assert_eq!(removed, [format!("a.b.{gone}")]);
        assert!(volume.of(&owner("a.b", &here)).exists() && volume.0.join("lost+found").exists());
    }
}
