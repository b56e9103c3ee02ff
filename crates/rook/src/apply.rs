//! Resources are made, or changed to what the document says.

use crate::error::RookError;
use crate::placed::Placed;
use serde::Serialize;
use serde_json::Value;

/// What became of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It was made.
    Created,
    /// It was another.
    Changed,
    /// It was as it should be.
    Unchanged,
}

/// A resource that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Its kind and name.
    pub resource: String,
    /// What became of it.
    pub change: Change,
}

impl Placed {
    /// Makes the resources of the layout, or changes them to what it says, by server-side apply. Before, the API server is asked
    /// whether it would take each of them: if it refuses one, none is changed.
    ///
    /// # Errors
    /// [`RookError::Missing`], if something must be there before; the API server refuses it, or does not answer.
    pub fn apply(&self) -> Result<Vec<Applied>, RookError> {
        let missing = self.missing()?;
        if !missing.is_empty() {
            return Err(RookError::Missing(missing));
        }
        let wanted = self.wanted()?;
        let apply = |is_dry: bool| {
            wanted.iter().map(move |object| {
                let doing = format!("apply the {}", object.title());
                let path = object.path(&self.layout.namespace);
                let before = self.get(&path)?;
                let applied = self.client.apply(&path, &object.value, is_dry);
                let after = applied.map_err(|failure| self.error(&doing, failure))?;
                Ok(Applied { resource: object.title(), change: change(before.as_ref(), &after) })
            })
        };
        apply(true).collect::<Result<Vec<_>, _>>()?;
        apply(false).collect()
    }
}

/// The version of a resource stays if nothing of it has changed.
fn change(before: Option<&Value>, after: &Value) -> Change {
    let version = |value: &Value| value["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    match before {
        None => Change::Created,
        Some(before) if version(before) == version(after) => Change::Unchanged,
        Some(_) => Change::Changed,
    }
}
