//! Values that are more than a text: mappings, lists, and choices between shapes.

use crate::key::{AnyKey, Mapping, Shape};
use crate::kinds::Problem;
use crate::schema;
use serde_json::{Value, json};

/// A mapping.
pub struct Map(pub &'static Mapping);

impl Shape for Map {
    fn schema(&self) -> Value {
        schema::refer(self.0.name)
    }

    fn words(&self) -> String {
        "mapping".to_owned()
    }

    fn mappings(&self) -> Vec<&'static Mapping> {
        vec![self.0]
    }
}

/// A mapping that is put together from what several parts of a program declare, by its name.
pub struct Refer(pub &'static str);

impl Shape for Refer {
    fn schema(&self) -> Value {
        schema::refer(self.0)
    }

    fn words(&self) -> String {
        "mapping".to_owned()
    }
}

/// A mapping whose key `kind` says which other keys it has.
pub struct Kinds(pub &'static [&'static Mapping]);

impl Shape for Kinds {
    fn schema(&self) -> Value {
        schema::of_kinds(self.0)
    }

    fn words(&self) -> String {
        "mapping; its keys depend on its `kind`".to_owned()
    }

    fn mappings(&self) -> Vec<&'static Mapping> {
        self.0.to_vec()
    }
}

/// A mapping that has exactly one of some keys: what it is.
pub struct Under(pub fn() -> Vec<&'static AnyKey>);

impl Shape for Under {
    fn schema(&self) -> Value {
        schema::one_key(&(self.0)())
    }

    fn words(&self) -> String {
        "mapping with one key".to_owned()
    }

    fn mappings(&self) -> Vec<&'static Mapping> {
        (self.0)().into_iter().flat_map(|key| key.shape.mappings()).collect()
    }
}

/// A mapping of names that a document may choose to values.
pub struct Settings;

impl Shape for Settings {
    fn schema(&self) -> Value {
        json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}})
    }

    fn words(&self) -> String {
        "`{name: value}`".to_owned()
    }
}

/// A list.
pub struct List<S>(pub S);

impl<S: Shape> Shape for List<S> {
    fn schema(&self) -> Value {
        json!({"type": "array", "minItems": 1, "items": self.0.schema()})
    }

    fn words(&self) -> String {
        format!("list ({})", self.0.words())
    }

    fn mappings(&self) -> Vec<&'static Mapping> {
        self.0.mappings()
    }
}

/// One value, or a list of them.
pub struct OneOrList<S>(pub S);

impl<S: Shape> Shape for OneOrList<S> {
    fn schema(&self) -> Value {
        let one = self.0.schema();
        json!({"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]})
    }

    fn words(&self) -> String {
        format!("{} or list", self.0.words())
    }

    fn mappings(&self) -> Vec<&'static Mapping> {
        self.0.mappings()
    }

    fn check(&self, text: &str) -> Result<(), Problem> {
        self.0.check(text)
    }
}

/// The one or the other.
pub struct Either<A, B>(pub A, pub B);

impl<A: Shape, B: Shape> Shape for Either<A, B> {
    fn schema(&self) -> Value {
        json!({"anyOf": [self.0.schema(), self.1.schema()]})
    }

    fn words(&self) -> String {
        format!("{}; or {}", self.0.words(), self.1.words())
    }

    fn mappings(&self) -> Vec<&'static Mapping> {
        self.0.mappings().into_iter().chain(self.1.mappings()).collect()
    }

    fn check(&self, text: &str) -> Result<(), Problem> {
        self.0.check(text).or_else(|_| self.1.check(text))
    }
}
