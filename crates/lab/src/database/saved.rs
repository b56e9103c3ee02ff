//! A copy of all data, to go back to before every run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::power;
use super::record::Credentials;
use super::server::Site;
use super::start;
use crate::error::LabError;
use crate::home::{make_directory, remove};

/// How long copying may take.
const COPY: Duration = Duration::from_secs(3600);

/// Stops the servers, keeps a copy of their data and starts them again.
pub(super) fn save(
    site: &Site,
    credentials: &Credentials,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let (data, saved) = places(site)?;
    site.stop_servers(progress)?;
    power::unmount(site, progress)?;
    progress("keeping a copy of the data");
    copy(site, &data, &saved)?;
    start::resume(site, credentials, progress)
}

/// Stops the servers, goes back to the copy and starts them again; false if there is none.
pub(super) fn restore(
    site: &Site,
    credentials: &Credentials,
    progress: &mut dyn FnMut(&str),
) -> Result<bool, LabError> {
    let (data, saved) = places(site)?;
    if fs::read_dir(&saved).map_or(true, |mut entries| entries.next().is_none()) {
        return Ok(false);
    }
    site.stop_servers(progress)?;
    power::unmount(site, progress)?;
    progress("restoring the data from the copy");
    copy(site, &saved, &data)?;
    start::resume(site, credentials, progress)?;
    Ok(true)
}

/// The real directories of the data, or of what the disk below them holds, and of the copy: beside it, so that the file
/// system can share their blocks.
fn places(site: &Site) -> Result<(PathBuf, PathBuf), LabError> {
    let (home, shape) = (&site.home, &site.shape);
    let data = if shape.power_cut { home.store() } else { home.all_data() };
    let link = home.saved();
    if link.symlink_metadata().is_err() {
        match &shape.on {
            None => make_directory(&link)?,
            Some(on) => {
                let elsewhere = home.elsewhere(on, "saved");
                make_directory(&elsewhere)?;
                symlink(&elsewhere, &link).map_err(LabError::file("link", &link))?;
            }
        }
    }
    let real = |path: PathBuf| path.canonicalize().map_err(LabError::file("find", &path));
    Ok((real(data)?, real(link)?))
}

/// Replaces the content of a directory by that of another: shared blocks where the file system can, otherwise a copy.
fn copy(site: &Site, from: &Path, to: &Path) -> Result<(), LabError> {
    for entry in fs::read_dir(to).map_err(LabError::file("read", to))? {
        remove(&entry.map_err(LabError::file("read", to))?.path())?;
    }
    let mut all = from.as_os_str().to_owned();
    all.push("/.");
    let arguments = ["-a".as_ref(), "--reflink=auto".as_ref(), all.as_os_str(), to.as_os_str()];
    site.programs.run("cp", &arguments, COPY).map(drop)
}
