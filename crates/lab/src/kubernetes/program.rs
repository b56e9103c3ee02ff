//! The API server's program: built once with the user's Go, for all labs of a user.
//!
//! `go.mod` and `go.sum` beside this file pin every module by version and hash. Kubernetes' own `go.mod` has its libraries in
//! folders of its repository; here each is the module of the matching version. They were made by `go mod tidy` over a file that
//! imports the program.

use std::fs;
use std::path::{Path, PathBuf};
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
    built_in(&cache, programs, progress)
}

fn built_in(cache: &Path, programs: &Programs, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, LabError> {
    let built = cache.join(format!("kubernetes-{VERSION}"));
    if built.join(NAME).is_file() {
        return Ok(built);
    }
    home::make_directory(cache)?;
    // Half a build must not be taken for one.
    let work = tempfile::tempdir_in(cache).map_err(LabError::file("make a directory in", cache))?;
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
    use crate::command::tests::script;

    /// A directory with a `nice` that becomes the program after its own words, and a `go` that does this.
    fn go(text: &str) -> (tempfile::TempDir, Programs) {
        let directory = tempfile::tempdir().unwrap();
        script(&directory.path().join("nice"), "#!/bin/sh\nshift 2\nexec \"$@\"\n");
        script(&directory.path().join("go"), &format!("#!/bin/sh\n{text}\n"));
        let programs = Programs::new(directory.path().as_os_str().to_owned());
        (directory, programs)
    }

    /// Writes the last but one of its words, as Go writes the program, if all that it needs is there.
    const BUILDS: &str = r#"
        [ -f go.mod ] && [ -f go.sum ] && [ "$1 $2 $CGO_ENABLED $GOFLAGS" = "build -trimpath 0 -mod=readonly" ] || exit 9
        echo built >>"$0.calls"
        /bin/mkdir -p "${5%/*}" && echo program >"$5""#;

    #[test]
    fn the_program_is_built_once_and_kept() {
        let (directory, programs) = go(BUILDS);
        let cache = directory.path().join("cache");
        let built = built_in(&cache, &programs, &mut |_| {}).unwrap();
        assert_eq!(fs::read_to_string(built.join(NAME)).unwrap(), "program\n");
        assert_eq!(built_in(&cache, &programs, &mut |text| panic!("{text}")).unwrap(), built);
        assert_eq!(fs::read_to_string(directory.path().join("go.calls")).unwrap(), "built\n");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing else stays");
    }

    #[test]
    fn what_go_says_is_passed_on_and_half_a_build_is_not_kept() {
        let (directory, programs) = go("echo 'go: proxy is away' >&2; exit 1");
        let cache = directory.path().join("cache");
        let error = built_in(&cache, &programs, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("kube-apiserver") && error.contains("go: proxy is away"), "{error}");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
        let none = Programs::new("/nonexistent".into());
        let error = built_in(&cache, &none, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("requires Go 1.26"), "{error}");
    }

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
