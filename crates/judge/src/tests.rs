//! The rules together.
