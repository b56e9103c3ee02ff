//! The `observe` of a document: what is watched while load is on.

use super::table::{Problem, Table};
use super::values;
use crate::plan::Observe;
use std::path::PathBuf;

/// More of one kind than this are treated as a mistake.
const MOST: usize = 1000;

/// Reads the mapping under `observe`, if present.
pub(super) fn observe(table: &mut Table<'_>) -> Observe {
    let Some(mut own) = table.table("observe") else { return Observe::default() };
    let observe = Observe {
        nodes: texts(&mut own, "nodes", |text| values::address(text, false)),
        processes: texts(&mut own, "processes", super::table::text),
        ceph_sockets: texts(&mut own, "ceph_sockets", |text| {
            let path = super::table::text(text)?;
            match path.starts_with('/') {
                true => Ok(PathBuf::from(path)),
                false => Err(Problem::new(
                    format!("{path} is not an absolute path"),
                    "write an absolute path such as /var/run/ceph",
                )),
            }
        }),
    };
    own.finish();
    observe
}

/// The texts under a key: one, or a list.
pub(super) fn texts<T: PartialEq>(
    table: &mut Table<'_>,
    key: &'static str,
    read: impl Fn(&str) -> Result<T, Problem>,
) -> Vec<T> {
    let nodes = table.list(key).unwrap_or_default();
    if nodes.len() > MOST {
        let message = format!("the list of `{key}` has {} values", nodes.len());
        table.log().error(table.place(), message, format!("write at most {MOST}"));
        return Vec::new();
    }
    nodes.iter().filter_map(|node| table.scalar(node, key, &read)).collect()
}
