//! What documents in YAML say about objects: targets, works and their operations, names.

pub(crate) mod existing;
pub(crate) mod naming;
pub(crate) mod operation;
pub(crate) mod target;
pub(crate) mod work;

#[cfg(test)]
mod tests;
