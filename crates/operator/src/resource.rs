//! An Evaluation as the API server has it: `spec` is the user's, `status` is the operator's.

use serde::{Deserialize, Serialize};

/// The group and the version of the resource.
pub const GROUP: &str = "tidemark.dev/v1alpha1";

/// An Evaluation.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Evaluation {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Changes with `spec`.
    pub(crate) generation: i64,
    pub(crate) creation_timestamp: String,
    pub(crate) deletion_timestamp: Option<String>,
}

/// What a user wants.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// The text of the evaluation's document.
    pub document: String,
    /// Whether it is not to be carried out, or not any further.
    pub suspend: bool,
    /// What `${NAME}` stands for in the document.
    pub variables: Vec<Variable>,
    /// The pods that put the load on; `None`: the operator's own process does.
    pub drivers: Option<Drivers>,
}

/// A variable: a value, or a key of a Secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, if that is no secret.
    pub value: Option<String>,
    /// Where its value is, if that is one.
    pub secret_key_ref: Option<SecretKeyRef>,
}

/// A key of a Secret in the same namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SecretKeyRef {
    /// The Secret's name.
    pub name: String,
    /// The key in it.
    pub key: String,
}

/// Driver pods, as options of the command line: each goes before what the document says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Drivers {
    /// How many.
    pub count: Option<u32>,
    /// Their image.
    pub image: Option<String>,
    /// The processors that each requests.
    pub cpu: Option<String>,
    /// The memory of each.
    pub memory: Option<String>,
}

/// Where an Evaluation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Another one is carried out.
    Queued,
    /// A Secret that it needs is not there.
    Waiting,
    Running,
    /// The user does not want it to go on for now.
    Suspended,
    /// It is over, and its report is there.
    Completed,
    /// It is over, and there is no report.
    Failed,
}

impl Phase {
    /// Whether nothing follows until the resource changes.
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "Queued",
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Suspended => "Suspended",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }
}

/// What became of it. In a patch, what is `None` is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The generation that the rest is about.
    pub(crate) observed_generation: i64,
    pub(crate) phase: Option<Phase>,
    pub(crate) runs: Option<Runs>,
    pub(crate) verdict: Option<String>,
    /// `Valid` or `Invalid`.
    pub(crate) validity: Option<String>,
    pub(crate) report: Option<ReportPlace>,
    pub(crate) conditions: Vec<Condition>,
}

/// How many runs are measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Runs {
    pub(crate) done: u64,
    /// `None`: a search decides as it goes.
    pub(crate) of: Option<u64>,
    /// Both, for people: `3/6`.
    pub(crate) progress: String,
}

impl Runs {
    pub(crate) fn new(done: u64, of: Option<u64>) -> Self {
        let progress = of.map_or_else(|| done.to_string(), |of| format!("{done}/{of}"));
        Self { done, of, progress }
    }
}

/// Where the report is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReportPlace {
    pub(crate) config_map: Option<String>,
    /// The directory on the operator's volume that has it and the result store.
    pub(crate) directory: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) observed_generation: i64,
    pub(crate) last_transition_time: String,
}

/// The longest text in a condition, bytes: Kubernetes' own limit for one (`metav1.Condition`).
const LONGEST: usize = 32768;

impl Status {
    /// The status in another phase, with the condition `Ready` that belongs to it, as of `now` (RFC 3339).
    pub(crate) fn turned(
        &self,
        phase: Phase,
        generation: i64,
        reason: &str,
        message: &str,
        now: &str,
    ) -> Self {
        let status = if phase == Phase::Completed { "True" } else { "False" };
        let same = self.conditions.iter().find(|one| one.kind == "Ready" && one.status == status);
        let mut message = message.to_owned();
        message.truncate(message.floor_char_boundary(LONGEST));
        let ready = Condition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: generation,
            last_transition_time: same.map_or(now, |one| &one.last_transition_time).to_owned(),
        };
        Self { observed_generation: generation, phase: Some(phase), conditions: vec![ready], ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let running = Status::default().turned(Phase::Running, 1, "Running", "", "10:00");
        let queued = running.turned(Phase::Queued, 2, "Queued", "x", "10:01");
        assert_eq!(queued.conditions[0].last_transition_time, "10:00");
        assert_eq!((queued.observed_generation, queued.conditions[0].observed_generation), (2, 2));
        let done = queued.turned(Phase::Completed, 2, "Completed", &"ü".repeat(LONGEST), "10:02");
        assert_eq!((done.conditions.len(), &*done.conditions[0].last_transition_time), (1, "10:02"));
        assert_eq!(done.conditions[0].message.len(), LONGEST);
    }

    #[test]
    fn what_is_not_known_is_removed_by_a_patch() {
        let patch = serde_json::to_value(Status::default()).unwrap();
        assert!(patch["verdict"].is_null() && patch.as_object().unwrap().contains_key("verdict"));
    }
}
