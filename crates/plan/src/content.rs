//! What is written and what is checked: the same for all engines that store bytes.

use crate::yaml::scope::Scope;
use serde::{Deserialize, Serialize};
use tidemark_keys::kinds::{Flag, Share, Word};
use tidemark_keys::shapes::Map;
use tidemark_keys::{Key, Mapping, Table};

/// What is written and what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// What the bytes are.
    pub form: Form,
    /// Whether reads verify the content (forms `Seeded` and `Hashed`).
    pub verify: bool,
}

impl Default for Content {
    fn default() -> Self {
        Self { form: Form::Seeded { compressible: 0.0, duplicate: 0.0 }, verify: false }
    }
}

/// What the bytes of an object are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Form {
    /// Seeded and self-describing: a stamp (object, size, version, seed), then pseudo-random bytes.
    Seeded {
        /// Share of every block that a compressor can remove, 0 to 1.
        compressible: f64,
        /// Share of blocks that occur elsewhere too, 0 to 1.
        duplicate: f64,
    },
    /// All zeroes.
    Zero,
    /// COSBench's `hashCheck`: the last 40 bytes are `!!!!`, the MD5 of what is before them in hexadecimal,
    /// `!!!!`, inside the declared size; objects of up to 40 bytes carry none.
    Hashed,
}

static MAPPING: Mapping =
    Mapping::new("content", "What to write and verify", &[&FILL, &COMPRESSIBLE, &DUPLICATE, &VERIFY]);
static FILL: Key<Word<Fill>> = Key::new(
    "fill",
    "Pseudo-random with a stamp; zeroes; or COSBench's `hashCheck`",
    Word(&[("seeded", Fill::Seeded), ("zero", Fill::Zero), ("hashed", Fill::Hashed)]),
)
.otherwise("`seeded`");
static COMPRESSIBLE: Key<Share> =
    Key::new("compressible", "Share of every block that a compressor can remove (`seeded`)", Share)
        .otherwise("`0`");
static DUPLICATE: Key<Share> =
    Key::new("duplicate", "Share of blocks that are duplicates (`seeded`)", Share).otherwise("`0`");
static VERIFY: Key<Flag> =
    Key::new("verify", "Verify what reads return (not `zero`)", Flag).otherwise("`false`");

/// The key of the section.
pub static CONTENT: Key<Map> = Key::of(&MAPPING);

#[derive(Clone, Copy)]
enum Fill {
    Seeded,
    Zero,
    Hashed,
}

/// What holds for a work: its scope's `content` sections, the innermost last. `table` is the work's.
pub fn content<'a>(scope: &Scope<'a>, table: &Table<'a>) -> Content {
    scope.sections(&CONTENT, table).fold(Content::default(), |above, table| section(table, above))
}

/// Reads one `content` section; what it does not say holds as `above`.
pub fn section(mut table: Table<'_>, above: Content) -> Content {
    let (mut compressible, mut duplicate) = (0.0, 0.0);
    if let Form::Seeded { compressible: c, duplicate: d } = above.form {
        (compressible, duplicate) = (c, d);
    }
    let mut form = match table.get(&FILL) {
        Some(Fill::Seeded) => Form::Seeded { compressible, duplicate },
        Some(Fill::Zero) => Form::Zero,
        Some(Fill::Hashed) => Form::Hashed,
        None => above.form,
    };
    match &mut form {
        Form::Seeded { compressible, duplicate } => {
            *compressible = table.get(&COMPRESSIBLE).unwrap_or(*compressible);
            *duplicate = table.get(&DUPLICATE).unwrap_or(*duplicate);
        }
        Form::Zero | Form::Hashed => {
            table.meaningless(&[&COMPRESSIBLE, &DUPLICATE], "they require `fill: seeded`");
        }
    }
    let verify = table.get(&VERIFY).unwrap_or(above.verify);
    if verify && form == Form::Zero {
        let help = "use `fill: seeded`, which can be verified, or remove `verify`";
        table.log().error(
            table.place(),
            "zeroes cannot be verified: they are the same in every object",
            help,
        );
    }
    table.finish();
    Content { form, verify }
}
