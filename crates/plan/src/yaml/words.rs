//! The words that the reader accepts, for the schema.

use super::operation::{DIVISIONS, VERBS};
use super::scope::FILLS;
use super::target::{AUTHS, KINDS};
use super::work;

/// The kinds of works.
pub(crate) fn works() -> impl Iterator<Item = &'static str> {
    work::KINDS.into_iter().map(|(name, _)| name)
}

/// The operations on objects.
pub(crate) fn verbs() -> impl Iterator<Item = &'static str> {
    VERBS.into_iter().map(|(name, _)| name)
}

/// What can be divided among workers.
pub(crate) fn divisions() -> impl Iterator<Item = &'static str> {
    DIVISIONS.into_iter().map(|(name, _)| name)
}

/// The kinds of targets.
pub(crate) fn targets() -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().map(|(name, _)| name)
}

/// The ways to get a Swift token.
pub(crate) fn auths() -> impl Iterator<Item = &'static str> {
    AUTHS.into_iter().map(|(name, _)| name)
}

/// What objects can be made of.
pub(crate) fn fills() -> impl Iterator<Item = &'static str> {
    FILLS.into_iter()
}
