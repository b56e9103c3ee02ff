//! Directories that take seconds to make: each is made once per build directory, and copied for every test that needs one.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a directory is made of. One that is made of something else is another one.
#[derive(Hash)]
pub(crate) struct Template<'a> {
    /// What it is called.
    pub(crate) name: &'a str,
    /// The program that it is for: another version of it gets a directory of its own.
    pub(crate) program: &'a Path,
    /// What the program is told that shows in the directory.
    pub(crate) options: &'a [&'a str],
}

impl Template<'_> {
    /// Copies the directory to `to`, which does not exist; if there is none yet, `make` makes it there, and it is kept.
    ///
    /// # Panics
    /// When it cannot be copied.
    pub(crate) fn lay_out(&self, to: &Path, make: impl FnOnce()) {
        self.lay_out_from(&place(), to, make);
    }

    fn lay_out_from(&self, place: &Path, to: &Path, make: impl FnOnce()) {
        let kept = place.join(format!("{}-{:016x}", self.name, self.digest()));
        if !kept.is_dir() {
            std::fs::create_dir_all(place).expect("a directory for templates");
            let lock = File::create(kept.with_extension("lock")).expect("a file to lock");
            lock.lock().expect("the lock of a template");
            if !kept.is_dir() {
                make();
                let unfinished = kept.with_extension("unfinished");
                let _ = std::fs::remove_dir_all(&unfinished);
                copy(to, &unfinished);
                std::fs::rename(&unfinished, &kept).expect("a template that is whole");
                return;
            }
        }
        copy(&kept, to);
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        // Of several users, none can read what belongs to another one's server.
        crate::is_root().hash(&mut hasher);
        let program = std::fs::metadata(self.program).map(|file| (file.len(), file.mtime()));
        program.ok().hash(&mut hasher);
        hasher.finish()
    }
}

/// Where templates are kept: in the build directory that this program was built into.
fn place() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let build = program.ancestors().find(|directory| directory.join("CACHEDIR.TAG").is_file());
    build.map_or_else(std::env::temp_dir, Path::to_owned).join("e2e/databases")
}

/// Copies a directory with its owners. Where the file system can, both share their blocks.
fn copy(from: &Path, to: &Path) {
    let mut command = Command::new("cp");
    command.args(["-a", "--reflink=auto", "--no-target-directory"]).arg(from).arg(to);
    let copied = command.output().expect("cp starts");
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_directory_is_made_once_even_by_many_at_a_time() {
        let place = std::env::temp_dir().join(format!("tidemark-template-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir(&place).unwrap();
        let template = |options| Template { name: "t", program: Path::new("/bin/sh"), options };
        let made = AtomicUsize::new(0);
        let lay_out = |template: &Template, to: &str| {
            let to = place.join(to);
            template.lay_out_from(&place.join("kept"), &to, || {
                made.fetch_add(1, Ordering::Relaxed);
                std::fs::create_dir_all(to.join("a")).unwrap();
                std::fs::write(to.join("a/b"), "content").unwrap();
            });
            assert_eq!(std::fs::read_to_string(to.join("a/b")).unwrap(), "content");
            std::fs::write(to.join("a/b"), "changed").unwrap();
        };
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (lay_out, template) = (&lay_out, &template);
                scope.spawn(move || lay_out(&template(&["x"]), &number.to_string()));
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        lay_out(&template(&["y"]), "other");
        assert_eq!(made.load(Ordering::Relaxed), 2);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
