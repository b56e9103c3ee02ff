//! The keys of documents: declared once; read, explained and described from that.
//!
//! A [`Key`] has a name, a meaning, what holds without it, and a [`Shape`]: how its value looks, and how it is read. A
//! [`Mapping`] lists its keys. A [`Table`] reads a mapping of a document by these declarations, with remarks that point at the
//! line and name the nearest key. The JSON [`schema`] and the [`reference`] for people are made of the same declarations.
//!
//! Nothing here knows what a key is for: plans and engines declare theirs.

pub mod diagnostic;
mod document;
mod key;
pub mod kinds;
pub mod nearest;
pub mod outside;
pub mod reference;
pub mod schema;
pub mod secret;
pub mod shapes;
mod table;
pub mod tree;

pub use document::{Document, Log};
pub use key::{Absent, AnyKey, KIND, Key, Mapping, OrFile, Shape};
pub use kinds::{Kind, Problem};
pub use outside::Outside;
pub use secret::Secret;
pub use table::Table;
