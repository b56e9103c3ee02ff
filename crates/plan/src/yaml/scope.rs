//! What a document gives once for everything below: target, naming, content.

use super::environment::Environment;
use super::table::Table;
use super::target::{self, Target};
use super::tree::Value;
use crate::object::{Content, Form, Naming};
use crate::plan::Drivers;
use std::ops::Range;

/// What an evaluation lends to a workload document.
#[derive(Default)]
pub(super) struct Lent {
    /// The seed, in place of the document's own.
    pub(super) seed: Option<u64>,
    /// The target of works that have none.
    pub(super) target: Option<Target>,
    /// Where and how to report that there is no target.
    pub(super) missing: Option<(Range<usize>, String)>,
    /// Its drivers, where the document does not say.
    pub(super) drivers: Option<Drivers>,
}

/// What holds at one level of the document: the levels above, overridden by this one.
#[derive(Clone, Default)]
pub(super) struct Scope {
    /// The target; replaced as a whole.
    pub(super) target: Option<Target>,
    /// Names; replaced key by key.
    pub(super) naming: Naming,
    /// Content; replaced key by key.
    pub(super) content: Content,
}

impl Scope {
    /// The scope of a stage or a work within this one.
    pub(super) fn within(&self, table: &mut Table<'_>, environment: &Environment<'_>) -> Scope {
        let target = read_target(table, environment).or_else(|| self.target.clone());
        Scope { target, ..self.of_operation(table) }
    }

    /// The scope of an operation within this one: its work has the target.
    pub(super) fn of_operation(&self, table: &mut Table<'_>) -> Scope {
        Scope {
            target: None,
            naming: naming(table, &self.naming).unwrap_or_else(|| self.naming.clone()),
            content: content(table, self.content).unwrap_or(self.content),
        }
    }
}

/// The target under `target`, if present and valid.
pub(super) fn read_target(table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Target> {
    let entry = table.entry("target")?;
    match entry.node.value {
        Value::Scalar(_) => table.scalar(&entry.node, "target", target::named),
        _ => target::target(table.below("`target`", entry), environment),
    }
}

fn naming(table: &mut Table<'_>, above: &Naming) -> Option<Naming> {
    let mut table = table.table("naming")?;
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
    Some(naming)
}

/// What objects can be made of, as documents call it.
pub(super) const FILLS: [&str; 3] = ["seeded", "zero", "hashed"];

fn content(table: &mut Table<'_>, above: Content) -> Option<Content> {
    let mut table = table.table("content")?;
    let (mut compressible, mut duplicate) = (0.0, 0.0);
    if let Form::Seeded { compressible: c, duplicate: d } = above.form {
        (compressible, duplicate) = (c, d);
    }
    let usual = Form::Seeded { compressible, duplicate };
    let words = [(FILLS[0], usual), (FILLS[1], Form::Zero), (FILLS[2], Form::Hashed)];
    let mut form = table.word("fill", &words).unwrap_or(above.form);
    match &mut form {
        Form::Seeded { compressible, duplicate } => {
            *compressible = table.share("compressible").unwrap_or(*compressible);
            *duplicate = table.share("duplicate").unwrap_or(*duplicate);
        }
        Form::Zero | Form::Hashed => {
            table.meaningless(&["compressible", "duplicate"], "they require `fill: seeded`");
        }
    }
    let verify = table.flag("verify").unwrap_or(above.verify);
    if verify && form == Form::Zero {
        let help = "use `fill: seeded`, which can be verified, or remove `verify`";
        table.log().error(
            table.place(),
            "zeroes cannot be verified: they are the same in every object",
            help,
        );
    }
    table.finish();
    Some(Content { form, verify })
}
