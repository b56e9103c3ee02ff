//! Where a path really leads.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The path with the symbolic links of the part of it that exists followed; the rest as it is written.
///
/// # Errors
/// A clause with the reason why it could lead anywhere: it is relative, contains `..`, or a part of it cannot be read.
pub(super) fn real(path: &Path) -> Result<PathBuf, String> {
    if !path.is_absolute() {
        return Err("which depends on the driver's working directory".into());
    }
    if path.components().any(|part| matches!(part, Component::ParentDir)) {
        return Err("which contains `..`".into());
    }
    let (mut there, mut rest) = (path, Vec::new());
    // Checked without following: a broken link exists, and a write through it goes elsewhere.
    while let Err(error) = there.symlink_metadata() {
        let (Some(parent), Some(name), ErrorKind::NotFound) =
            (there.parent(), there.file_name(), error.kind())
        else {
            return Err(format!("of which {} cannot be read ({error})", there.display()));
        };
        rest.push(name);
        there = parent;
    }
    let found = there
        .canonicalize()
        .map_err(|error| format!("of which {} is a broken link ({error})", there.display()))?;
    Ok(rest.into_iter().rev().fold(found, |path, name| path.join(name)))
}
