//! What there is of a layout, against what its document says.

use crate::drift::{Difference, differences};
use crate::error::RookError;
use crate::kinds::Object;
use crate::placed::Placed;
use crate::standing::{Standing, State, osds, standing};
use serde::Serialize;

/// What there is of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The layout's name.
    pub layout: String,
    /// Its namespace.
    pub namespace: String,
    /// What the document asks for, and what there is of it.
    pub resources: Vec<Part>,
    /// Resources with the layout's labels that the document does not ask for.
    pub others: Vec<String>,
    /// OSDs that run; absent where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osds: Option<u64>,
    /// OSDs that the document asks for; absent for an imported cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub osds_wanted: Option<u64>,
    /// Ceph's health, such as `HEALTH_OK`; absent where nobody says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

/// A resource that the document asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What it says of itself.
    #[serde(flatten)]
    pub standing: Standing,
    /// In what it differs from the document.
    pub drift: Vec<Difference>,
    /// Why it cannot become what the document says, if the API server refuses that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Status {
    /// Whether all is there, ready, and as the document says.
    pub fn is_as_wanted(&self) -> bool {
        let is_well = |part: &Part| {
            part.standing.state == State::Ready && part.drift.is_empty() && part.refused.is_none()
        };
        self.others.is_empty() && self.resources.iter().all(is_well)
    }
}

impl Placed {
    /// What there is of the layout, against what the document says. Nothing is changed.
    ///
    /// # Errors
    /// The API server refuses to tell, or does not answer.
    pub fn status(&self) -> Result<Status, RookError> {
        let (wanted, found) = (self.wanted()?, self.found()?);
        let needed = self.layout.needs().map(|needs| needs.osds());
        let resources =
            wanted.iter().map(|object| self.part(object, needed)).collect::<Result<Vec<_>, _>>()?;
        let others = found.iter().filter(|one| !wanted.iter().any(|object| object.is(one)));
        let cluster = found.iter().find(|one| one.kind.name == "CephCluster").map(|one| &one.value["status"]);
        Ok(Status {
            layout: self.layout.name.clone(),
            namespace: self.layout.namespace.clone(),
            resources,
            others: others.map(Object::title).collect(),
            osds: cluster.and_then(osds),
            osds_wanted: needed,
            health: cluster.and_then(|status| Some(status["ceph"]["health"].as_str()?.to_owned())),
        })
    }

    fn part(&self, object: &Object, osds: Option<u64>) -> Result<Part, RookError> {
        let path = object.path(&self.layout.namespace);
        let Some(is) = self.get(&path)? else {
            return Ok(Part { standing: standing(object, None, osds), drift: Vec::new(), refused: None });
        };
        let mut standing = standing(object, Some(&is), osds);
        if !self.is_ours(&is) {
            standing.text =
                format!("another's: it does not have the labels of the layout; {}", standing.text);
        }
        let doing = format!("compare the {}", object.title());
        let (drift, refused) = match self.client.apply(&path, &object.value, true) {
            Ok(should) => (differences(&is, &should), None),
            Err(failure) => match self.error(&doing, failure) {
                RookError::Refused { message, .. } => (Vec::new(), Some(message)),
                error => return Err(error),
            },
        };
        Ok(Part { standing, drift, refused })
    }
}
