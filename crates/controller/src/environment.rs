//! What a submitted document may refer to outside itself: secrets that the operator has laid out for it, nothing else of
//! this machine.
//!
//! Variables whose name begins with [`PREFIX`], and files below the controller's secrets directory. The directory is
//! compared after all links were followed, so that neither `..` nor a link leads out of it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// Only variables with this prefix are given to documents.
const PREFIX: &str = "TIDEMARK_SECRET_";

/// A file with a secret is not larger than this; bytes.
const LARGEST_SECRET: u64 = 64 << 10;

/// Lends the environment of submitted documents. `secrets` is the directory of files with secrets, if there is one;
/// readers go on as long as they are `waited_for`.
pub(crate) fn restricted<T>(
    secrets: Option<&Path>,
    registry: &Registry,
    waited_for: &dyn Fn() -> bool,
    to: impl FnOnce(&Environment<'_>) -> T,
) -> T {
    let variable = |name: &str| name.starts_with(PREFIX).then(|| std::env::var(name).ok()).flatten();
    let file = |path: &Path| secret_file(secrets, path);
    let document = |_: &Path| {
        Err(io::Error::other(
            "a submitted document cannot refer to other documents: copy the text into this one",
        ))
    };
    let device_size =
        |_: &Path| Err(io::Error::other("the controller cannot look at the drivers' devices: give a `size`"));
    to(&Environment {
        registry,
        variable: &variable,
        file: &file,
        document: &document,
        device_size: &device_size,
        waited_for,
    })
}

fn secret_file(secrets: Option<&Path>, path: &Path) -> io::Result<String> {
    let refused = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let Some(secrets) = secrets else {
        return Err(refused("the controller has no secrets directory: start it with --secrets".into()));
    };
    let outside = || {
        // What else is there is nobody's business, not even whether it is.
        refused("a submitted document can refer only to files in the controller's secrets directory".into())
    };
    let secrets = secrets
        .canonicalize()
        .map_err(|_| refused("the controller's secrets directory does not exist".into()))?;
    let found = resolved(&secrets, path).filter(|found| found.starts_with(&secrets)).ok_or_else(outside)?;
    // Asked before it is opened: opening a pipe waits for its other end.
    if !found.is_file() {
        return Err(outside());
    }
    let mut content = String::new();
    std::fs::File::open(found)?.take(LARGEST_SECRET).read_to_string(&mut content)?;
    Ok(content)
}

/// The path without links; relative ones are looked for in the secrets directory.
fn resolved(secrets: &Path, path: &Path) -> Option<PathBuf> {
    secrets.join(path).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_read_in_the_directory_of_secrets_only() {
        let directory = tempfile::tempdir().unwrap();
        let secrets = directory.path().join("secrets");
        std::fs::create_dir(&secrets).unwrap();
        std::fs::create_dir(directory.path().join("secrets-of-others")).unwrap();
        std::fs::write(secrets.join("key"), "hunter2").unwrap();
        std::fs::write(directory.path().join("outside"), "no").unwrap();
        std::fs::write(directory.path().join("secrets-of-others/key"), "no").unwrap();
        symlink(directory.path().join("outside"), secrets.join("link")).unwrap();
        symlink(secrets.join("key"), secrets.join("inner")).unwrap();
        let read = |path: &Path| {
            restricted(Some(&secrets), &Registry::default(), &|| true, |environment| (environment.file)(path))
        };
        for inside in [secrets.join("key"), "key".into(), "./key".into(), "inner".into()] {
            assert_eq!(read(&inside).unwrap(), "hunter2", "{}", inside.display());
        }
        let outside = [
            "../outside",
            "link",
            "/etc/passwd",
            "../secrets-of-others/key",
            "",
            ".",
            "/dev/stdin",
            "missing",
        ];
        for path in outside {
            let error = read(Path::new(path)).unwrap_err().to_string();
            assert!(error.contains("secrets directory"), "{path}: {error}");
        }
        let none = restricted(None, &Registry::default(), &|| true, |environment| {
            (environment.file)(&secrets.join("key"))
        });
        assert!(none.unwrap_err().to_string().contains("--secrets"));
    }

    #[test]
    fn nothing_else_of_this_machine_is_looked_at() {
        restricted(None, &Registry::default(), &|| true, |environment| {
            assert_eq!((environment.variable)("PATH"), None, "there is a PATH, and it is not given away");
            assert!(std::env::var("PATH").is_ok());
            assert!((environment.document)(Path::new("/etc/hostname")).is_err());
            assert!((environment.device_size)(Path::new("/dev/null")).is_err());
        });
    }
}
