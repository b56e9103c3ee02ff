//! The server's files: fetched and unpacked once, for all labs of a user.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::VERSION;
use crate::command::Programs;
use crate::error::LabError;
use crate::home;
use crate::maven::Artifact;

const ARCHIVE: Artifact = Artifact {
    group: "io.trino",
    name: "trino-server",
    version: VERSION,
    packaging: "tar.gz",
    classifier: None,
    sha256: "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
};

/// How long unpacking may take, on a slow disk too.
const UNPACKING: Duration = Duration::from_secs(1800);

/// The directory of the unpacked server, in the user's cache.
pub(super) fn server(programs: &Programs, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, LabError> {
    let cache = home::cache_directory(|name| std::env::var_os(name))?;
    let name = format!("trino-server-{VERSION}");
    let server = cache.join(&name);
    if server.is_dir() {
        return Ok(server);
    }
    home::make_directory(&cache)?;
    // Half an installation must not be taken for one.
    let work = tempfile::tempdir_in(&cache).map_err(LabError::file("make a directory in", &cache))?;
    progress(&format!("fetching {ARCHIVE} with Maven: about 820 MB, once"));
    let archive = ARCHIVE.fetched_by(programs, work.path())?;
    progress(&format!("unpacking it into {}", server.display()));
    let options = ["--extract", "--gzip", "--no-same-owner", "--file"].map(Into::into);
    let places = [archive.into_os_string(), "--directory".into(), work.path().into()];
    let arguments: Vec<std::ffi::OsString> = options.into_iter().chain(places).collect();
    programs.run("tar", &arguments, UNPACKING)?;
    match fs::rename(work.path().join(name), &server) {
        // Another lab was faster.
        Err(_) if server.is_dir() => Ok(server),
        renamed => renamed.map(|()| server.clone()).map_err(LabError::file("make", server)),
    }
}
