//! What documents in YAML say about databases: targets, works and their options.

pub(crate) mod instances;
pub(crate) mod target;
pub(crate) mod work;

#[cfg(test)]
pub(crate) mod tests;
