//! The API server's program: built once with the user's Go, for all labs of a user.
//!
//! `go.mod` and `go.sum` beside this file pin every module by version and hash. Kubernetes' own `go.mod` has its libraries in
//! folders of its repository; here each is the module of the matching version. They were made by `go mod tidy` over a file that
//! imports the program.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::command::Programs;
use crate::error::LabError;
use crate::home;

/// Kubernetes' version.
pub(super) const VERSION: &str = "1.36.3";
const MODULE: &str = include_str!("go.mod");
const SUMS: &str = include_str!("go.sum");
/// The program, and its package.
const NAME: &str = "kube-apiserver";
const PACKAGE: &str = "k8s.io/kubernetes/cmd/kube-apiserver";
/// How long building may take, with the downloads before it.
const BUILDING: Duration = Duration::from_secs(7200);

/// The directory that has the program, in the user's cache.
pub(super) fn api_server(programs: &Programs, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, LabError> {
    let cache = home::cache_directory(|name| std::env::var_os(name))?;
    let built = cache.join(format!("kubernetes-{VERSION}"));
    if built.join(NAME).is_file() {
        return Ok(built);
    }
    home::make_directory(&cache)?;
    // Half a build must not be taken for one.
    let work = tempfile::tempdir_in(&cache).map_err(LabError::file("make a directory in", &cache))?;
    for (name, text) in [("go.mod", MODULE), ("go.sum", SUMS)] {
        let path = work.path().join(name);
        fs::write(&path, text).map_err(LabError::file("write", path))?;
    }
    progress(&format!("building {NAME} {VERSION} with Go: once, some minutes"));
    let bin = work.path().join("bin");
    let go = programs.go()?;
    let version = format!("-ldflags=-s -w {}", stamps());
    let out = bin.join(NAME).into_os_string();
    let words = ["-n", "10", &go.to_string_lossy(), "build", "-trimpath", &version, "-o"].map(Into::into);
    let arguments: Vec<std::ffi::OsString> = words.into_iter().chain([out, PACKAGE.into()]).collect();
    let running = programs.start_with("nice", &arguments, |command| {
        // The user's settings for modules and proxies hold; those that would change what is built do not.
        command
            .current_dir(work.path())
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env("GOFLAGS", "-mod=readonly");
    })?;
    running.finish(BUILDING).map_err(|error| match error {
        LabError::CommandFailed { said, .. } => LabError::NotBuilt { program: NAME, version: VERSION, said },
        other => other,
    })?;
    match fs::rename(&bin, &built) {
        // Another lab was faster.
        Err(_) if built.join(NAME).is_file() => Ok(built),
        renamed => renamed.map(|()| built.clone()).map_err(LabError::file("make", built)),
    }
}

/// What the program says that it is: without these it would call itself a development version.
fn stamps() -> String {
    let mut parts = VERSION.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    [("gitVersion", format!("v{VERSION}")), ("gitMajor", major.to_owned()), ("gitMinor", minor.to_owned())]
        .map(|(name, value)| format!("-X k8s.io/component-base/version.{name}={value}"))
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_is_pinned() {
        assert!(MODULE.contains(&format!("require k8s.io/kubernetes v{VERSION}\n")), "{MODULE}");
        // The libraries' versions follow Kubernetes' own.
        let libraries = format!("v0.{}", VERSION.split_once('.').unwrap().1);
        let replaced = MODULE.lines().filter(|line| line.contains("=>")).collect::<Vec<_>>();
        assert!(replaced.len() > 30, "{replaced:?}");
        assert!(replaced.iter().all(|line| line.ends_with(&libraries)), "{replaced:?}");
        assert!(SUMS.contains(&format!("k8s.io/kubernetes v{VERSION} h1:")));
        assert!(stamps().contains("gitVersion=v1.") && stamps().contains("gitMajor=1 "));
    }
}
