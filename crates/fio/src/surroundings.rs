//! What lies below a directory in which fio makes files. The kernel lets it write to all of that, so nothing there may be a device, or in use.

use std::fs::{self, DirEntry};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use tidemark_block::guard::FileUsers;
use tidemark_measure::units;

/// More entries are not looked at.
const MOST_ENTRIES: usize = 65_536;

/// Looks at all that is below a directory.
///
/// # Errors
/// There is something that fio must not write to by mistake, or too much to look at.
pub(crate) fn check(directory: &Path, allow: &[PathBuf]) -> Result<(), String> {
    let refuse = |why: String| {
        Err(format!(
            "fio would make files in {}, and so could write to all that is below it, but {why}; put the files into a directory of their own",
            directory.display()
        ))
    };
    let (mut seen, mut next) = (0, vec![directory.to_owned()]);
    let users = FileUsers::look();
    while let Some(at) = next.pop() {
        // Where this user may not look, fio may not either.
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_ENTRIES {
                return refuse(format!("that is more than {} entries", units::count(MOST_ENTRIES as u64)));
            }
            if let Err(why) = look(&entry, &users, allow, &mut next) {
                return refuse(why);
            }
        }
    }
    Ok(())
}

fn look(
    entry: &DirEntry,
    users: &FileUsers,
    allow: &[PathBuf],
    next: &mut Vec<PathBuf>,
) -> Result<(), String> {
    // What is behind a link is not below the directory.
    let Ok(kind) = entry.file_type() else { return Ok(()) };
    let path = entry.path();
    if kind.is_dir() {
        next.push(path);
        return Ok(());
    }
    if allow.contains(&path) {
        return Ok(());
    }
    if kind.is_block_device() || (kind.is_char_device() && !tidemark_sandbox::is_harmless(&path)) {
        return Err(format!("{} is a device", path.display()));
    }
    match users.of(&path).filter(|_| kind.is_file()) {
        Some(user) => Err(format!("{} is in use: {user}", path.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_files_and_directories_harm_nobody_and_too_many_are_refused() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("below")).unwrap();
        fs::write(place.path().join("below/file"), "text").unwrap();
        std::os::unix::fs::symlink("/dev/null", place.path().join("link")).unwrap();
        assert_eq!(check(place.path(), &[]), Ok(()));
        for number in 0..MOST_ENTRIES {
            std::os::unix::fs::symlink("x", place.path().join(format!("below/{number}"))).unwrap();
        }
        let refused = check(place.path(), &[]).unwrap_err();
        assert!(refused.contains("more than 65") && refused.contains("entries"), "{refused}");
    }
}
