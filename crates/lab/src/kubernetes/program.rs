//! The programs of Kubernetes that no distribution has: built once with the user's Go, for all labs of a user.
//!
//! The `go.mod` and `go.sum` of each source pin every module by version and hash. Kubernetes' own `go.mod` has its libraries in
//! folders of its repository; here each is the module of the matching version. They were made by `go mod tidy` over a file that
//! imports the programs.

use std::ffi::OsStr;
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
/// The version of the CSI driver, which is ours, and of all that is built with it: raise it with any change, as what is built already is
/// kept.
const CSI_VERSION: &str = "1";

/// Where programs come from.
struct Source {
    /// The name of its directory in the cache, before the version.
    name: &'static str,
    version: &'static str,
    module: &'static str,
    sums: &'static str,
    /// Further files: what is not in any module. Paths and texts.
    files: &'static [(&'static str, &'static str)],
    /// What a program of the version given says that it is: without these it would call itself a development version.
    stamps: fn(&str) -> String,
}

const KUBERNETES: Source = Source {
    name: "kubernetes",
    version: VERSION,
    module: include_str!("go.mod"),
    sums: include_str!("go.sum"),
    files: &[],
    stamps,
};

/// [rancher/local-path-provisioner](https://github.com/rancher/local-path-provisioner).
const VOLUMES: Source = Source {
    name: "local-path-provisioner",
    version: VOLUMES_VERSION,
    module: include_str!("volumes/go.mod"),
    sums: include_str!("volumes/go.sum"),
    files: &[],
    stamps: |version| format!("-X main.VERSION=v{version}"),
};

/// The controllers of [Kubernetes CSI](https://kubernetes-csi.github.io), and a driver for them.
const CSI: Source = Source {
    name: "csi",
    version: CSI_VERSION,
    module: include_str!("csi/go.mod"),
    sums: include_str!("csi/go.sum"),
    files: &[
        ("driver/main.go", include_str!("csi/driver/main.go")),
        ("driver/volumes.go", include_str!("csi/driver/volumes.go")),
        ("driver/files.go", include_str!("csi/driver/files.go")),
    ],
    stamps: |version| format!("-X main.version=v{version}"),
};

/// A program, and the package that it is built of.
struct Program {
    name: &'static str,
    version: &'static str,
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
        version: VOLUMES_VERSION,
        package: "github.com/rancher/local-path-provisioner",
        source: &VOLUMES,
    },
];
/// What a node with a CSI driver needs besides.
const CSI_PROGRAMS: [Program; 6] = [
    of_csi("lab-csi-driver", CSI_VERSION, "tidemark.invalid/lab/csi/driver"),
    of_csi(
        "csi-provisioner",
        "6.4.0",
        "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
    ),
    of_csi("csi-attacher", "4.13.0", "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"),
    of_csi("csi-resizer", "2.3.0", "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer"),
    of_csi(
        "csi-snapshotter",
        SNAPSHOTTER,
        "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
    ),
    of_csi(
        "snapshot-controller",
        SNAPSHOTTER,
        "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
    ),
];
/// The version of both programs for snapshots, and of the definitions of their resources.
const SNAPSHOTTER: &str = "8.7.0";
/// The module with these definitions, and their files in its directory `config/crd`, which are kept beside the programs.
const DEFINING: &str = "github.com/kubernetes-csi/external-snapshotter/client/v8";
const DEFINITIONS: [&str; 3] = [
    "snapshot.storage.k8s.io_volumesnapshotclasses.yaml",
    "snapshot.storage.k8s.io_volumesnapshotcontents.yaml",
    "snapshot.storage.k8s.io_volumesnapshots.yaml",
];
/// How long building one may take, with the downloads before it.
const BUILDING: Duration = Duration::from_secs(7200);

const fn of_kubernetes(name: &'static str, package: &'static str) -> Program {
    Program { name, version: VERSION, package, source: &KUBERNETES }
}

const fn of_csi(name: &'static str, version: &'static str, package: &'static str) -> Program {
    Program { name, version, package, source: &CSI }
}

/// What finds the programs that a lab needs, with or without a node and a CSI driver, besides those that are installed. Those that the
/// user's cache lacks are built.
pub(super) fn built(
    has_node: bool,
    has_csi: bool,
    programs: &Programs,
    progress: &mut dyn FnMut(&str),
) -> Result<Programs, LabError> {
    let cache = home::cache_directory(|name| std::env::var_os(name))?;
    let node = NODE.iter().filter(|_| has_node);
    let csi = CSI_PROGRAMS.iter().filter(|_| has_csi);
    let found = API_SERVER.iter().chain(node).chain(csi).try_fold(programs.clone(), |found, program| {
        Ok(found.and_in(&program.built_in(&cache, programs, progress)?))
    })?;
    if has_csi {
        keep_definitions(&cache, programs)?;
    }
    Ok(found)
}

/// What snapshots are to an API server, each in YAML. The programs of a CSI driver must have been [`built`].
pub(super) fn snapshot_definitions() -> Result<Vec<String>, LabError> {
    let directory = CSI.directory(&home::cache_directory(|name| std::env::var_os(name))?);
    let read = |name| {
        let path = directory.join(name);
        fs::read_to_string(&path).map_err(LabError::file("read", path))
    };
    DEFINITIONS.into_iter().map(read).collect()
}

/// Copies the definitions from their module to the cache given, unless they are there.
fn keep_definitions(cache: &Path, programs: &Programs) -> Result<(), LabError> {
    let directory = CSI.directory(cache);
    if DEFINITIONS.iter().all(|name| directory.join(name).is_file()) {
        return Ok(());
    }
    let work = CSI.work(cache)?;
    go(programs, work.path(), &["mod", "download", DEFINING])?;
    let module = go(programs, work.path(), &["list", "-m", "-f={{.Dir}}", DEFINING])?;
    for name in DEFINITIONS {
        let (from, half) = (Path::new(module.trim()).join("config/crd").join(name), work.path().join(name));
        let text = fs::read(&from).map_err(LabError::file("read", from))?;
        fs::write(&half, text).map_err(LabError::file("write", &half))?;
        let kept = directory.join(name);
        fs::rename(&half, &kept).map_err(LabError::file("make", kept))?;
    }
    Ok(())
}

/// Runs Go in a directory with a `go.mod`, and returns what it prints.
fn go(programs: &Programs, work: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<String, LabError> {
    let program = programs.go()?;
    let words = ["-n".as_ref(), "10".as_ref(), program.as_os_str()].into_iter();
    let words: Vec<&OsStr> = words.chain(arguments.iter().map(AsRef::as_ref)).collect();
    let running = programs.start_with("nice", &words, |command| {
        // The user's settings for modules and proxies hold; those that would change what is built do not.
        command
            .current_dir(work)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env("GOFLAGS", "-mod=readonly");
    })?;
    running.finish(BUILDING)
}

impl Source {
    /// Where its programs are, in the cache given.
    fn directory(&self, cache: &Path) -> PathBuf {
        cache.join(format!("{}-{}", self.name, self.version))
    }

    /// A directory in which Go has all that it needs, which lasts as long as this value. Half a build there is not taken for one.
    fn work(&self, cache: &Path) -> Result<tempfile::TempDir, LabError> {
        let work = tempfile::tempdir_in(cache).map_err(LabError::file("make a directory in", cache))?;
        let modules = [("go.mod", self.module), ("go.sum", self.sums)];
        for (name, text) in modules.iter().chain(self.files) {
            let path = work.path().join(name);
            path.parent().map_or(Ok(()), home::make_directory)?;
            fs::write(&path, text).map_err(LabError::file("write", path))?;
        }
        Ok(work)
    }
}

impl Program {
    /// The directory that has it, in the cache given.
    fn built_in(
        &self,
        cache: &Path,
        programs: &Programs,
        progress: &mut dyn FnMut(&str),
    ) -> Result<PathBuf, LabError> {
        let Self { name, version, package, source } = self;
        let directory = source.directory(cache);
        let built = directory.join(name);
        if built.is_file() {
            return Ok(directory);
        }
        home::make_directory(&directory)?;
        let work = source.work(cache)?;
        progress(&format!("building {name} {version} with Go: once, some minutes"));
        let flags = format!("-ldflags=-s -w {}", (source.stamps)(version));
        let out = work.path().join(name);
        let words = ["build", "-trimpath", &flags, "-o"].map(AsRef::as_ref).into_iter();
        let words: Vec<&OsStr> = words.chain([out.as_os_str(), package.as_ref()]).collect();
        go(programs, work.path(), &words).map_err(|error| match error {
            LabError::CommandFailed { said, .. } => LabError::NotBuilt { program: name, version, said },
            other => other,
        })?;
        // Another lab may have been faster: then it is replaced by the same.
        fs::rename(&out, &built).map_err(LabError::file("make", built))?;
        Ok(directory)
    }
}

/// The version, as Kubernetes' programs show it.
fn stamps(version: &str) -> String {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    [("gitVersion", format!("v{version}")), ("gitMajor", major.to_owned()), ("gitMinor", minor.to_owned())]
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
        // So does a CSI driver, whose own files are there when it is built.
        for program in &CSI_PROGRAMS {
            let directory = program.built_in(&cache, &programs, &mut |_| {}).unwrap();
            assert!(directory.join(program.name).is_file());
        }
        assert_eq!(fs::read_to_string(directory.path().join("go.calls")).unwrap(), "built\n".repeat(11));
    }

    #[test]
    fn definitions_are_those_of_the_module_and_are_kept() {
        let (directory, programs) = go(r#"
            [ -f go.mod ] && [ -f go.sum ] || exit 9
            case $1 in mod) : ;; list) echo "${0%/go}/module" ;; *) exit 9 ;; esac"#);
        let (cache, module) = (directory.path().join("cache"), directory.path().join("module/config/crd"));
        fs::create_dir_all(CSI.directory(&cache)).unwrap();
        fs::create_dir_all(&module).unwrap();
        for name in DEFINITIONS {
            fs::write(module.join(name), format!("kind: {name}\n")).unwrap();
        }
        keep_definitions(&cache, &programs).unwrap();
        for name in DEFINITIONS {
            let kept = fs::read_to_string(CSI.directory(&cache).join(name)).unwrap();
            assert_eq!(kept, format!("kind: {name}\n"));
        }
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing else stays");
        keep_definitions(&cache, &Programs::new("/nonexistent".into())).unwrap();
        let pinned = format!("{DEFINING} v{SNAPSHOTTER}");
        assert!(CSI.module.contains(&pinned) && CSI.sums.contains(&format!("{pinned} h1:")));
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
        for program in CSI_PROGRAMS.iter().filter(|program| program.package.starts_with("github.com/")) {
            let (module, _) = program.package.split_once("/cmd/").unwrap();
            let pinned = format!("{module} v{}", program.version);
            assert!(
                CSI.module.contains(&format!("{pinned}\n")) && CSI.sums.contains(&format!("{pinned} h1:")),
                "{pinned}"
            );
        }
        assert!(module.contains(&format!("require k8s.io/kubernetes v{VERSION}\n")), "{module}");
        // The libraries' versions follow Kubernetes' own.
        let libraries = format!("v0.{}", VERSION.split_once('.').unwrap().1);
        let replaced = module.lines().filter(|line| line.contains("=>")).collect::<Vec<_>>();
        assert!(replaced.len() > 30, "{replaced:?}");
        assert!(replaced.iter().all(|line| line.ends_with(&libraries)), "{replaced:?}");
        assert!(sums.contains(&format!("k8s.io/kubernetes v{VERSION} h1:")));
        let volumes = format!("github.com/rancher/local-path-provisioner v{VOLUMES_VERSION}");
        assert!(VOLUMES.module.contains(&format!("require {volumes}\n")) && VOLUMES.sums.contains(&volumes));
        assert!(stamps(VERSION).contains("gitVersion=v1.") && stamps(VERSION).contains("gitMajor=1 "));
    }
}
