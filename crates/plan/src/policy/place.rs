//! Where a path really leads.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The path with the symbolic links of the part of it that exists followed; the rest as it is written.
///
/// # Errors
/// A clause that says why it could lead anywhere: it is relative, has `..` in it, or a part of it cannot be looked at.
pub(super) fn real(path: &Path) -> Result<PathBuf, String> {
    if !path.is_absolute() {
        return Err("which depends on where the driver was started".into());
    }
    if path.components().any(|part| matches!(part, Component::ParentDir)) {
        return Err("which has `..` in it".into());
    }
    let (mut there, mut rest) = (path, Vec::new());
    // Asked without following: a link that leads nowhere yet is there, and what is written through it is elsewhere.
    while let Err(error) = there.symlink_metadata() {
        let (Some(parent), Some(name), ErrorKind::NotFound) =
            (there.parent(), there.file_name(), error.kind())
        else {
            return Err(format!("of which {} cannot be looked at ({error})", there.display()));
        };
        rest.push(name);
        there = parent;
    }
    let found = there
        .canonicalize()
        .map_err(|error| format!("of which {} leads nowhere ({error})", there.display()))?;
    Ok(rest.into_iter().rev().fold(found, |path, name| path.join(name)))
}
