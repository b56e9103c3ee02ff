//! What the guard has examined, kept for the time of a run: whatever a stage opens to change it must still be that, or is examined again.
//!
//! All of them stay open to the end of the run: as long as a file or device is open, nothing else gets its number. Devices are open
//! exclusively, unless somebody else uses them by leave: nobody can mount them or make a file system on them. Files can be replaced at any
//! time, so their paths are looked at whenever a stage opens.

use crate::guard::{self, GuardError, Intent, Subject};
use crate::identity::Identity;
use crate::job::{Place, Volume};
use crate::mark;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;
use tidemark_plan::policy::Access;

/// The volumes that a run changes or removes.
#[derive(Default)]
pub(crate) struct Examined(Vec<Known>);

/// A volume that a run changes or removes.
struct Known {
    volume: Volume,
    /// What it was when it was examined last. Images have none: their cluster is asked.
    identity: Option<Identity>,
    /// What was examined, open; `None`: there was no such file.
    file: Option<File>,
    /// Whether the device is open exclusively.
    is_held: bool,
    /// Whether the user has given up what it held before the run.
    is_allowed: bool,
    /// Whether a file holds nothing but Tidemark's own content.
    is_stamped: bool,
    /// Whether this run has changed it.
    is_changed: bool,
    /// Whether the current stage writes to it.
    is_written: bool,
    /// The signature of what this run left on it.
    signature: Option<&'static str>,
}

impl Examined {
    /// Examines a file or device before the run, and describes it. One that is only read is not kept in mind.
    pub(crate) fn examine(
        &mut self,
        volume: &Volume,
        intent: Intent,
        is_allowed: bool,
        access: &Access,
    ) -> Result<String, GuardError> {
        let subject = Subject::open(volume, intent, access)?;
        let passed = subject.examine(is_allowed)?;
        if intent.destroys() {
            let identity = subject.identity()?;
            let (file, is_held) = subject.into_file();
            let known = Known {
                identity: Some(identity),
                file,
                is_held,
                is_stamped: passed.is_stamped,
                ..Known::new(volume, is_allowed)
            };
            self.0.push(known);
        }
        Ok(passed.description)
    }

    /// Keeps an image in mind that was examined.
    pub(crate) fn add_image(&mut self, volume: &Volume, is_allowed: bool) {
        self.0.push(Known::new(volume, is_allowed));
    }

    /// Whether this run has changed a volume.
    pub(crate) fn is_changed(&self, volume: &Volume) -> bool {
        self.0.iter().any(|known| known.volume == *volume && known.is_changed)
    }

    /// What a volume was when it was examined last.
    pub(crate) fn identity(&self, volume: &Volume) -> Option<&Identity> {
        self.0.iter().find(|known| known.volume == *volume)?.identity.as_ref()
    }

    /// The numbers of the devices.
    pub(crate) fn devices(&self) -> Vec<u64> {
        let number = |known: &Known| match known.identity {
            Some(Identity::Device(number)) => Some(number),
            _ => None,
        };
        self.0.iter().filter_map(number).collect()
    }

    /// Examines a volume again, since a stage is going to change or remove it.
    pub(crate) fn open(
        &mut self,
        volume: &Volume,
        intent: Intent,
        access: &Access,
    ) -> Result<(), GuardError> {
        let Some(known) = self.0.iter_mut().find(|known| known.volume == *volume) else { return Ok(()) };
        match volume.place {
            Place::File(_) => known.open_file(intent, access),
            Place::Device(_) => known.open_device(intent, access),
            Place::Rbd(_) => Ok(()),
        }
    }

    /// Makes a file that there was none of when it was examined, and makes one longer that is too short.
    ///
    /// # Errors
    /// When it cannot be made, with the reason; also when somebody has made it meanwhile.
    pub(crate) fn claim(&mut self, volume: &Volume, access: &Access) -> Result<(), String> {
        let Place::File(path) = &volume.place else { return Ok(()) };
        let Some(known) = self.0.iter_mut().find(|known| known.volume == *volume) else { return Ok(()) };
        known.claim(path, access).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "{} was made by another program just now and is left alone: remove it, or start the run again",
                path.display()
            ),
            _ => format!("cannot create {}: {error}", path.display()),
        })
    }

    /// Notes that a stage begins to write to a volume. `fills`: with Tidemark's own content from its beginning to its end; `is_stamped`:
    /// with Tidemark's own content.
    pub(crate) fn begin(&mut self, volume: &Volume, is_stamped: bool, fills: bool) {
        let Some(known) = self.0.iter_mut().find(|known| known.volume == *volume) else { return };
        (known.is_changed, known.is_written) = (true, true);
        if let (Place::File(_), Some(file)) = (&volume.place, &known.file) {
            let is_whole = fills && file.metadata().is_ok_and(|found| found.len() <= volume.size);
            known.is_stamped = is_stamped && (known.is_stamped || is_whole);
            mark::begin_writing(file);
        }
    }

    /// Ends a stage: marks the files that it has written to, and forgets those that it has removed.
    pub(crate) fn end(&mut self) {
        let written = self.0.iter().filter(|known| known.is_written);
        let files = written.filter(|known| matches!(known.volume.place, Place::File(_)));
        let files = files.filter_map(|known| Some((known.file.as_ref()?, known.is_stamped)));
        mark::mark_all(&files.collect::<Vec<_>>());
        for known in &mut self.0 {
            let Some(file) = &known.file else { continue };
            if known.is_written {
                known.signature = guard::signature_of(file).unwrap_or(None);
            }
            known.is_written = false;
            if fstat(file).is_ok_and(|found| found.st_nlink == 0) {
                (known.identity, known.file, known.is_changed) = (None, None, false);
            }
        }
    }
}

impl Known {
    fn new(volume: &Volume, is_allowed: bool) -> Self {
        Self {
            volume: volume.clone(),
            identity: None,
            file: None,
            is_held: false,
            is_allowed,
            is_stamped: false,
            is_changed: false,
            is_written: false,
            signature: None,
        }
    }

    fn open_file(&mut self, intent: Intent, access: &Access) -> Result<(), GuardError> {
        let subject = Subject::open(&self.volume, intent, access)?;
        let identity = subject.identity()?;
        let is_same = self.identity.as_ref() == Some(&identity);
        if is_same && self.is_changed {
            if !self.is_allowed {
                subject.examine_changed(self.signature)?;
            }
        } else {
            // The user has given up what was there, not what somebody has put in its place.
            let passed = subject.examine(is_same && self.is_allowed);
            let passed =
                passed.map_err(|error| if is_same { error } else { self.replaced(&identity, error) })?;
            (self.is_stamped, self.is_changed, self.signature) = (passed.is_stamped, false, None);
            self.identity = Some(identity);
        }
        (self.file, _) = subject.into_file();
        Ok(())
    }

    fn open_device(&mut self, intent: Intent, access: &Access) -> Result<(), GuardError> {
        let name = self.volume.name();
        let unusable = |reason: String| GuardError::Unusable { path: name.clone(), reason };
        let (Some(file), Place::Device(path)) = (&self.file, &self.volume.place) else { return Ok(()) };
        let found =
            access.open(path, OFlags::PATH, Mode::empty()).and_then(|file| Ok(Identity::of_open(&file)?));
        let found = found.map_err(|error| unusable(format!("cannot be opened any more: {error}")))?;
        if self.identity.as_ref() != Some(&found) {
            let reason = "a device is not exchanged during a run".to_owned();
            return Err(self.replaced(&found, unusable(reason)));
        }
        if self.is_allowed {
            return Ok(());
        }
        let copy = file.try_clone().map_err(|error| unusable(format!("cannot be examined: {error}")))?;
        let subject = Subject::held(&self.volume, intent, copy, self.is_held)?;
        match self.is_changed {
            true => subject.examine_changed(self.signature),
            false => subject.examine(false).map(drop),
        }
    }

    /// An error of what was found in the place of what was examined.
    fn replaced(&self, found: &Identity, error: GuardError) -> GuardError {
        let words = |identity: &Identity| match identity.exists() {
            true => identity.to_string(),
            false => "a file that did not exist".to_owned(),
        };
        let (path, is) = (self.volume.name(), words(found));
        let was = self.identity.as_ref().map_or_else(|| "a file that this run removed".into(), words);
        match error {
            GuardError::Precious { reason, .. }
            | GuardError::InUse { reason, .. }
            | GuardError::Unusable { reason, .. } => GuardError::Changed { path, was, is, reason },
            other => other,
        }
    }

    fn claim(&mut self, path: &Path, access: &Access) -> io::Result<()> {
        let is_there = self.identity.as_ref().is_some_and(Identity::exists);
        let how = if is_there { OFlags::empty() } else { OFlags::CREATE | OFlags::EXCL };
        let file = access.open(path, OFlags::RDWR | how, Mode::from_raw_mode(0o644))?;
        let identity = Identity::of_open(&file)?;
        if is_there && self.identity.as_ref() != Some(&identity) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if file.metadata()?.len() < self.volume.size {
            file.set_len(self.volume.size)?;
        }
        (self.identity, self.file) = (Some(identity), Some(file));
        Ok(())
    }
}

/// Why a file was not removed.
pub(crate) enum NotRemoved {
    /// The system refused it.
    Refused(Errno),
    /// It is not what was examined.
    Replaced,
}

/// Removes the file at a path if it is what was examined; `None`: whatever it is. One that does not exist is a success.
pub(crate) fn remove(path: &Path, examined: Option<&Identity>, access: &Access) -> Result<(), NotRemoved> {
    let refused = |error: &io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let open = |path: &Path, flags| access.open(path, OFlags::PATH | flags, Mode::empty());
    let is_it = |found: Identity| examined.is_none_or(|examined| *examined == found);
    let removed = match (open(parent, OFlags::DIRECTORY), path.file_name()) {
        (Ok(directory), Some(name)) => match statat(&directory, name, AtFlags::empty()) {
            Ok(found) if !is_it(Identity::found(&found)) => return Err(NotRemoved::Replaced),
            Ok(_) => unlinkat(&directory, name, AtFlags::empty()),
            Err(error) => Err(error),
        },
        // The file is all that the plan may touch.
        _ => match open(path, OFlags::empty()).and_then(|file| Ok(Identity::of_open(&file)?)) {
            Ok(found) if !is_it(found.clone()) => return Err(NotRemoved::Replaced),
            Ok(_) => std::fs::remove_file(path).map_err(|error| refused(&error)),
            Err(error) => Err(refused(&error)),
        },
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(NotRemoved::Refused(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_that_was_examined_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("a"), directory.path().join("link"));
        let remove =
            |path: &Path, examined: Option<&Identity>| remove(path, examined, &Access::own()).is_ok();
        std::fs::write(&path, "ours").unwrap();
        let ours = Identity::of(&path).unwrap();
        std::fs::rename(&path, directory.path().join("elsewhere")).unwrap();
        std::fs::write(&path, "a thesis").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!remove(&path, Some(&ours)) && !remove(&link, Some(&ours)));
        assert_eq!(std::fs::read(&path).unwrap(), b"a thesis");
        let new = Identity::of(&directory.path().join("new")).unwrap();
        assert!(!remove(&path, Some(&new)), "there was none when it was examined");
        assert!(remove(&path, Identity::of(&path).as_ref()) && !path.exists());
        assert!(remove(&path, Some(&ours)), "it is gone");
        std::fs::write(&path, "x").unwrap();
        assert!(remove(&path, None) && !path.exists(), "nobody has examined it");
    }
}
