//! The `naming` of a document: how containers and objects are called.

use crate::job::Naming;
use tidemark_plan::yaml::scope::Scope;
use tidemark_plan::yaml::table::Table;

/// What holds for a work: its scope's `naming` sections, the innermost last. `table` is the work's.
pub(super) fn naming(scope: &Scope<'_>, table: &Table<'_>) -> Naming {
    let sections = scope.sections("naming");
    sections.fold(Naming::default(), |above, entry| section(table.below("`naming`", entry), &above))
}

/// Reads one `naming` section; what it does not say holds as `above`.
pub(super) fn section(mut table: Table<'_>, above: &Naming) -> Naming {
    let mut part = |key, above: &String| {
        let read = table.read(key, |text| Ok(text.to_owned()));
        read.unwrap_or_else(|| above.clone())
    };
    let naming = Naming {
        container_prefix: part("container_prefix", &above.container_prefix),
        container_suffix: part("container_suffix", &above.container_suffix),
        object_prefix: part("object_prefix", &above.object_prefix),
        object_suffix: part("object_suffix", &above.object_suffix),
    };
    table.finish();
    naming
}
