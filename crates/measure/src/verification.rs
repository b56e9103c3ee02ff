//! Whether the content that an operation read was compared with what had been written, and if not, why.
//!
//! Content that differs is a failure of its own class ([`crate::fault::Fault::CONTENT`]). What could not be compared is
//! none: the storage is not accused of what nobody knows, and nobody calls it proven either.

use crate::counts::Class;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What became of the content of an operation that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checked {
    /// It brought none, or nobody asked.
    #[default]
    NotAsked,
    /// All of it that says anything was compared, and was right.
    Verified,
    /// It was compared and is right, as far as it says itself where it belongs and whose it is. Of which write it must be is not
    /// known: an older content that once was right there would pass.
    Placed,
    /// It was to be verified, and could not be.
    Not(Unchecked),
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $clause:literal;)*) => {
        /// Why content could not be verified.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[repr(u8)]
        pub enum Unchecked { $($(#[$doc])* $variant,)* }

        impl Unchecked {
            /// How many reasons there are: the length of an array that counts them.
            pub const COUNT: usize = <Self as Class>::ALL.len();

            /// The short name, as it stands in tables and in JSON.
            pub const fn name(self) -> &'static str { match self { $(Unchecked::$variant => $name,)* } }

            /// The reason as a clause: what follows "because".
            pub const fn clause(self) -> &'static str { match self { $(Unchecked::$variant => $clause,)* } }
        }

        impl Class for Unchecked {
            const ALL: &'static [Self] = &[$(Unchecked::$variant,)*];

            #[inline]
            fn number(self) -> usize { self as usize }
        }
    };
}

reasons! {
    /// Too few bytes for a mark or a hash, and not those that Tidemark would have written.
    TooShort = "too_short", "their content is too short to carry a mark or a hash";
    /// A part of an object whose hash is over the whole.
    Part = "part", "they read parts of objects, and the hash is of the whole";
    /// No mark of the data set, and not written by this run: somebody else's, or of another seed, form or name.
    UnknownOrigin = "unknown_origin", "nothing shows that their content was written by Tidemark with this seed, form and name";
    /// The storage keeps no content, or it is the same everywhere.
    NoContent = "no_content", "there is no content to compare";
    /// A write of the same place was in flight: bytes of either may be returned.
    WriteInFlight = "write_in_flight", "a write of the same block was in flight";
    /// Newer than the journal knows: another run wrote there, and did not note it.
    OtherWriter = "other_writer", "they are of a write that the journal does not know";
}

impl Unchecked {
    /// Whether it is in the nature of the load, rather than something that the user should change or look into.
    pub const fn is_expected(self) -> bool {
        matches!(self, Unchecked::Part | Unchecked::WriteInFlight)
    }
}
