//! Files on the load generator's own disk: those that are uploaded, and those that are written instead of
//! objects.

use crate::content::Payload;
use crate::failure::Failure;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tidemark_load::engine::OpenError;
use tidemark_measure::fault::Fault;
use tidemark_plan::policy::{Access, Directory};

/// The files of a directory, sorted by name, as [`crate::job::Verb::PutFile`] numbers them.
pub(crate) struct Files(Vec<LocalFile>);

/// One of them.
pub(crate) struct LocalFile {
    /// Its name, which becomes the object's.
    pub name: String,
    /// Where it is, for messages.
    pub path: PathBuf,
    directory: Arc<Directory>,
}

impl LocalFile {
    /// Opens it. A pipe is not waited for.
    pub(crate) fn open(&self) -> io::Result<File> {
        self.directory.open(Path::new(&self.name), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
    }
}

/// Opens a directory that files are written to.
pub(crate) fn directory(path: &Path, access: &Access) -> Result<Directory, OpenError> {
    let place = path.display();
    access.directory(path).map_err(|error| OpenError(format!("cannot open the directory {place}: {error}")))
}

impl Files {
    /// Lists the files of a directory; directories in it are passed over.
    ///
    /// # Errors
    /// When it cannot be read, holds no file, a symbolic link, or a name that is not UTF-8.
    pub(crate) fn list(path: &Path, access: &Access) -> Result<Self, OpenError> {
        let place = path.display();
        let unreadable = |error: io::Error| OpenError(format!("cannot list the files of {place}: {error}"));
        let open = || match path.is_dir() {
            true => access.directory(path),
            false => Err(io::Error::other("it is not a directory")),
        };
        let directory = Arc::new(open().map_err(unreadable)?);
        let mut files = Vec::new();
        for name in directory.names().map_err(unreadable)? {
            let path = path.join(&name);
            let refused = |error: io::Error| OpenError(format!("cannot open {}: {error}", path.display()));
            let found = directory.open(Path::new(&name), OFlags::PATH, Mode::empty()).map_err(refused)?;
            if found.metadata().map_err(unreadable)?.is_file() {
                let name = name.into_string().map_err(|_| {
                    OpenError(format!("the name of {} is not UTF-8: rename the file", path.display()))
                })?;
                files.push(LocalFile { name, path, directory: Arc::clone(&directory) });
            }
        }
        if files.is_empty() {
            return Err(OpenError(format!("there is no file to upload in {place}: add files")));
        }
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self(files))
    }

    /// The file of a number, counted from 1; after the last comes the first again, because a document cannot
    /// know how many there are. `None` for 0.
    pub(crate) fn get(&self, item: u64) -> Option<&LocalFile> {
        let index = item.checked_sub(1)?.checked_rem(self.0.len() as u64)?;
        self.0.get(usize::try_from(index).ok()?)
    }
}

/// Writes an object's content to the file `container/object` of a directory, and returns how much it is. Blocks.
///
/// # Errors
/// [`Fault::Local`], when the file cannot be written or the names would lead out of the directory.
pub(crate) fn write(
    directory: &Directory,
    container: &str,
    object: &str,
    payload: &Payload<'_>,
) -> Result<u64, Failure> {
    let name = Path::new(container).join(object);
    let failed =
        |error: io::Error| Failure::without_effect(Fault::Local, format!("{}: {error}", name.display()));
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(failed(io::Error::other("the name leads out of the directory")));
    }
    let create = || {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        directory.open(&name, flags, Mode::from_raw_mode(0o666))
    };
    let file = match (create(), name.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            directory.make(parent).map_err(failed)?;
            create()
        }
        (created, _) => created,
    };
    let mut writer = BufWriter::new(file.map_err(failed)?);
    payload.each(0..payload.size(), |piece| writer.write_all(piece)).map_err(failed)?;
    writer.flush().map_err(failed)?;
    Ok(payload.size())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{DataSet, Key};
    use crate::job::{Content, Naming};

    #[test]
    fn what_is_written_is_listed_and_nothing_leaves_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let plan = DataSet::new(1, 1, 0, Default::default()).plan(&Content::default(), &Naming::default());
        let key = Key { space: 1, item: 2 };
        let payload = plan.payload(key, plan.write(key), 10_000);
        let directory = directory(place.path(), &Access::own()).unwrap();
        for object in ["b", "a"] {
            assert_eq!(write(&directory, "c1", object, &payload), Ok(10_000));
        }
        for (container, object) in [("..", "b"), ("c1", "/etc/x"), ("c1", "../../x")] {
            let failure = write(&directory, container, object, &payload).unwrap_err();
            assert_eq!(failure.fault, Fault::Local);
        }
        let files = Files::list(&place.path().join("c1"), &Access::own()).unwrap();
        let names: Vec<_> = (0..4).map(|item| files.get(item).map(|file| file.name.as_str())).collect();
        assert_eq!(names, [None, Some("a"), Some("b"), Some("a")]);
        assert!(Files::list(place.path(), &Access::own()).is_err(), "only a directory in it");
    }

    #[test]
    fn links_in_a_directory_lead_nowhere() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let [inside, outside] = ["in", "out"].map(|name| place.path().join(name));
        [&inside, &outside].into_iter().for_each(|one| std::fs::create_dir(one).unwrap());
        std::fs::write(outside.join("key"), "hunter2").unwrap();
        symlink(&outside, inside.join("c1")).unwrap();
        let plan = DataSet::new(1, 1, 0, Access::own()).plan(&Content::default(), &Naming::default());
        let key = Key { space: 1, item: 2 };
        let payload = plan.payload(key, plan.write(key), 10);
        let opened = directory(&inside, &Access::own()).unwrap();
        assert!(write(&opened, "c1", "key", &payload).is_err());
        std::fs::remove_file(inside.join("c1")).unwrap();
        std::fs::create_dir(inside.join("c1")).unwrap();
        symlink(outside.join("key"), inside.join("c1/key")).unwrap();
        assert!(write(&opened, "c1", "key", &payload).is_err());
        assert_eq!(std::fs::read_to_string(outside.join("key")).unwrap(), "hunter2");
        let refused = Files::list(&inside.join("c1"), &Access::own()).err().unwrap().to_string();
        assert!(refused.contains("c1/key"), "{refused}");
        // One that takes a file's place later is not read either.
        std::fs::remove_file(inside.join("c1/key")).unwrap();
        std::fs::write(inside.join("c1/key"), "mine").unwrap();
        let files = Files::list(&inside.join("c1"), &Access::own()).unwrap();
        std::fs::remove_file(inside.join("c1/key")).unwrap();
        symlink(outside.join("key"), inside.join("c1/key")).unwrap();
        assert!(files.get(1).unwrap().open().is_err());
    }
}
