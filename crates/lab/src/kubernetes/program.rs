//! The programs of Kubernetes that no distribution has: built once with the user's Go, for all labs of a user.
//!
//! The `go.mod` and `go.sum` of each source pin every module by version and hash. Kubernetes' own `go.mod` has its libraries in
//! folders of its repository; here each is the module of the matching version. They were made by `go mod tidy` over a file that
//! imports the programs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::Programs;
use crate::error::LabError;
use crate::home;

/// Kubernetes' version.
pub(super) const VERSION: &str = "1.36.3";
/// The version of the provisioner of volumes.
const VOLUMES_VERSION: &str = "0.0.30";

/// Where programs come from.
struct Source {
    /// The name of its directory in the cache, before the version.
    name: &'static str,
    version: &'static str,
    module: &'static str,
    sums: &'static str,
    /// What the programs say that they are: without these they would call themselves development versions.
    stamps: fn() -> String,
}

const KUBERNETES: Source = Source {
    name: "kubernetes",
    version: VERSION,
    module: include_str!("go.mod"),
    sums: include_str!("go.sum"),
    stamps,
};

/// [rancher/local-path-provisioner](https://github.com/rancher/local-path-provisioner).
const VOLUMES: Source = Source {
    name: "local-path-provisioner",
    version: VOLUMES_VERSION,
    module: include_str!("volumes/go.mod"),
    sums: include_str!("volumes/go.sum"),
    stamps: || format!("-X main.VERSION=v{VOLUMES_VERSION}"),
};

/// A program, and the package that it is built of.
struct Program {
    name: &'static str,
    package: &'static str,
    source: &'static Source,
}

/// What checks manifests.
const API_SERVER: [Program; 1] = [of_kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver")];
/// What a node needs besides.
const NODE: [Program; 4] = [
    of_kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    of_kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    of_kubernetes("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    Program {
        name: "local-path-provisioner",
        package: "github.com/rancher/local-path-provisioner",
        source: &VOLUMES,
    },
];
/// How long building one may take, with the downloads before it.
const BUILDING: Duration = Duration::from_secs(7200);

const fn of_kubernetes(name: &'static str, package: &'static str) -> Program {
    Program { name, package, source: &KUBERNETES }
}

/// What finds the programs that a lab needs, with or without a node, besides those that are installed. Those that the user's cache lacks are built.
pub(super) fn built(
    has_node: bool,
    programs: &Programs,
    progress: &mut dyn FnMut(&str),
) -> Result<Programs, LabError> {
    let cache = home::cache_directory(|name| std::env::var_os(name))?;
    let node = NODE.iter().filter(|_| has_node);
    API_SERVER.iter().chain(node).try_fold(programs.clone(), |found, program| {
        Ok(found.and_in(&program.built_in(&cache, programs, progress)?))
    })
}

impl Program {
    /// The directory that has it, in the cache given.
    fn built_in(
        &self,
        cache: &Path,
        programs: &Programs,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, LabError> {
        let Self { name, package, source } = self;
        let directory = cache.join(format!("{}-{}", source.name, source.version));
        let built = directory.join(name);
        if built.is_file() {
            return Ok(directory);
        }
        home::make_directory(&directory)?;
        // Half a build must not be taken for one.
        let work = tempfile::tempdir_in(cache).map_err(LabError::file("make a directory in", cache))?;
        for (name, text) in [("go.mod", source.module), ("go.sum", source.sums)] {
            let path = work.path().join(name);
            fs::write(&path, text).map_err(LabError::file("write", path))?;
        }
        progress(&format!("building {name} {} with Go: once, some minutes", source.version));
        let go = programs.go()?;
        let flags = format!("-ldflags=-s -w {}", (source.stamps)());
        let out = work.path().join(name);
        let words = ["-n", "10", &go.to_string_lossy(), "build", "-trimpath", &flags, "-o"].map(Into::into);
        let arguments: Vec<OsString> =
            words.into_iter().chain([out.clone().into_os_string(), package.into()]).collect();
        let running = programs.start_with("nice", &arguments, |command| {
            // The user's settings for modules and proxies hold; those that would change what is built do not.
            command
                .current_dir(work.path())
                .env("CGO_ENABLED", "0")
                .env("GOWORK", "off")
                .env("GOFLAGS", "-mod=readonly");
        })?;
        running.finish(BUILDING).map_err(|error| match error {
            LabError::CommandFailed { said, .. } => {
                LabError::NotBuilt { program: name, version: source.version, said }
            }
            other => other,
        })?;
        // Another lab may have been faster: then it is replaced by the same.
        fs::rename(&out, &built).map_err(LabError::file("make", built))?;
        Ok(directory)
    }
}

/// The version, as Kubernetes' programs show it.
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
        let [server] = API_SERVER;
        let built = server.built_in(&cache, &programs, &mut |_| {}).unwrap();
        assert_eq!(fs::read_to_string(built.join("kube-apiserver")).unwrap(), "program\n");
        assert_eq!(server.built_in(&cache, &programs, &mut |text| panic!("{text}")).unwrap(), built);
        assert_eq!(fs::read_to_string(directory.path().join("go.calls")).unwrap(), "built\n");
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing else stays");

        // A node adds what is missing, and builds nothing again.
        for program in &NODE {
            let directory = program.built_in(&cache, &programs, &mut |_| {}).unwrap();
            assert!(directory.join(program.name).is_file());
        }
        assert_eq!(fs::read_to_string(directory.path().join("go.calls")).unwrap(), "built\n".repeat(5));
        assert_eq!(fs::read_dir(&built).unwrap().count(), 4);
    }

    #[test]
    fn what_go_says_is_passed_on_and_half_a_build_is_not_kept() {
        let (directory, programs) = go("echo 'go: proxy is away' >&2; exit 1");
        let cache = directory.path().join("cache");
        let [server] = API_SERVER;
        let error = server.built_in(&cache, &programs, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("kube-apiserver") && error.contains("go: proxy is away"), "{error}");
        let built = cache.join(format!("kubernetes-{VERSION}"));
        assert!(fs::read_dir(&cache).unwrap().all(|entry| entry.unwrap().path() == built));
        assert_eq!(fs::read_dir(&built).unwrap().count(), 0);
        let none = Programs::new("/nonexistent".into());
        let error = server.built_in(&cache, &none, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("requires Go 1.26"), "{error}");
    }

    #[test]
    fn every_module_is_pinned() {
        let Source { module, sums, .. } = KUBERNETES;
        assert!(module.contains(&format!("require k8s.io/kubernetes v{VERSION}\n")), "{module}");
        // The libraries' versions follow Kubernetes' own.
        let libraries = format!("v0.{}", VERSION.split_once('.').unwrap().1);
        let replaced = module.lines().filter(|line| line.contains("=>")).collect::<Vec<_>>();
        assert!(replaced.len() > 30, "{replaced:?}");
        assert!(replaced.iter().all(|line| line.ends_with(&libraries)), "{replaced:?}");
        assert!(sums.contains(&format!("k8s.io/kubernetes v{VERSION} h1:")));
        let volumes = format!("github.com/rancher/local-path-provisioner v{VOLUMES_VERSION}");
        assert!(VOLUMES.module.contains(&format!("require {volumes}\n")) && VOLUMES.sums.contains(&volumes));
        assert!(stamps().contains("gitVersion=v1.") && stamps().contains("gitMajor=1 "));
    }
}
