//! What documents can say, for forms: targets and works with their keys.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A kind of target, for forms.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TargetForm {
    /// What its engine puts load on: `objects`, `volumes`.
    pub subject: String,
    /// Whether it requires no settings: `target: embedded`.
    pub bare: bool,
    /// Its kind and keys.
    pub form: Form,
    /// The works that it can have, each under the key that it stands under, with those of its keys that take single values.
    pub works: Vec<Form>,
}

/// One of several kinds of a mapping, for forms.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Form {
    /// The value of its key `kind`, or the key that it stands under: `s3`, `load`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its other keys.
    pub keys: Vec<FormKey>,
    /// Keys exactly one of which is required; or empty.
    pub one_of: Vec<String>,
}

/// A key of a mapping, for forms.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FormKey {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// How its value is written: `duration`.
    pub value: String,
    /// Whether it is required.
    pub required: bool,
    /// The value that it has without being given, or empty.
    pub default: String,
    /// A value to begin with, or empty.
    pub example: String,
    /// The words that its value may be; empty if it is none of some words.
    pub choices: Vec<String>,
    /// Whether it takes a list, too.
    pub list: bool,
    /// Whether its value must be a reference, such as `${NAME}`, for it is a secret.
    pub secret: bool,
    /// The kinds of mapping that its value may be; empty for a single value.
    #[schema(no_recursion)]
    pub kinds: Vec<Form>,
}
