//! What is written and what is checked: the same for all engines that store bytes.

use crate::yaml::scope::Scope;
use crate::yaml::table::Table;
use serde::{Deserialize, Serialize};

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

/// What objects can be made of, as documents call it.
pub const FILLS: [&str; 3] = ["seeded", "zero", "hashed"];

/// What holds for a work: its scope's `content` sections, the innermost last. `table` is the work's.
pub fn content(scope: &Scope<'_>, table: &Table<'_>) -> Content {
    let sections = scope.sections("content");
    sections.fold(Content::default(), |above, entry| section(table.below("`content`", entry), above))
}

/// Reads one `content` section; what it does not say holds as `above`.
pub fn section(mut table: Table<'_>, above: Content) -> Content {
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
    Content { form, verify }
}
