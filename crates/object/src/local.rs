//! Files on the load generator's own disk: those that are uploaded, and those that are written instead of
//! objects.

use crate::content::Payload;
use crate::failure::Failure;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};
use tidemark_load::engine::OpenError;
use tidemark_measure::fault::Fault;

/// The files of a directory, sorted by name, as [`crate::job::Verb::PutFile`] numbers them.
pub(crate) struct Files(Vec<LocalFile>);

/// One of them.
pub(crate) struct LocalFile {
    /// Its name, which becomes the object's.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

impl Files {
    /// Lists the files of a directory; directories in it are passed over.
    ///
    /// # Errors
    /// When it cannot be read, holds no file, or a name that is not UTF-8.
    pub(crate) fn list(directory: &Path) -> Result<Self, OpenError> {
        let place = directory.display();
        let unreadable = |error: io::Error| OpenError(format!("cannot list the files of {place}: {error}"));
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let metadata = fs::metadata(&path).map_err(unreadable)?;
            if metadata.is_file() {
                let name =
                    path.file_name().and_then(|name| name.to_str()).map(str::to_owned).ok_or_else(|| {
                        OpenError(format!("the name of {} is not UTF-8: rename the file", path.display()))
                    })?;
                files.push(LocalFile { name, path });
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

/// Writes an object's content to the file `directory/container/object`, and returns how much it is. Blocks.
///
/// # Errors
/// [`Fault::Local`], when the file cannot be written or the names would lead out of the directory.
pub(crate) fn write(
    directory: &Path,
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
    let path = directory.join(&name);
    let file = match File::create(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(directory)).map_err(failed)?;
            File::create(&path)
        }
        created => created,
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
        let plan = DataSet::new(1, 1, 0).plan(&Content::default(), &Naming::default());
        let key = Key { space: 1, item: 2 };
        let payload = plan.payload(key, plan.write(key), 10_000);
        for object in ["b", "a"] {
            assert_eq!(write(place.path(), "c1", object, &payload), Ok(10_000));
        }
        for (container, object) in [("..", "b"), ("c1", "/etc/x"), ("c1", "../../x")] {
            let failure = write(place.path(), container, object, &payload).unwrap_err();
            assert_eq!(failure.fault, Fault::Local);
        }
        let files = Files::list(&place.path().join("c1")).unwrap();
        let names: Vec<_> = (0..4).map(|item| files.get(item).map(|file| file.name.as_str())).collect();
        assert_eq!(names, [None, Some("a"), Some("b"), Some("a")]);
        assert!(Files::list(place.path()).is_err(), "only a directory in it");
    }
}
