//! Block storage in Tidemark YAML: the targets, and the works on them.

mod axes;
mod load;
mod volumes;
mod work;

pub(crate) use volumes::{KINDS, Volumes, volumes};
pub(crate) use work::{KEYS, works, works_on};

#[cfg(test)]
pub(crate) mod tests;
