//! How sure it is that a resource that had no reserve was what limited the load.

use super::Facts;
use super::limits::Limit;
use super::phrase::{Phrase, phrase, share};
use serde::Serialize;

/// What is known of a resource that had no reserve while the load was on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Standing {
    /// The load or an observed process used it up, and more load brought no more.
    NoMore,
    /// The load or an observed process used it up, and an open loop's rate was not reached.
    RateMissed,
    /// The load or an observed process used it up; whether more load brings more was not tried.
    Likely,
    /// The load or an observed process used it up, and more load brought more all the same.
    StillGrew,
    /// Most of its use was that of processes that are not observed: `share`.
    Others { share: f64 },
    /// It is not known whose use that was.
    Unknown,
}

impl Standing {
    /// Whether the resource may be called the limit.
    pub fn is_limit(self) -> bool {
        self.rank() < Standing::StillGrew.rank()
    }

    /// The surest first.
    pub(crate) const fn rank(self) -> u8 {
        match self {
            Standing::NoMore | Standing::RateMissed => 0,
            Standing::Likely => 1,
            Standing::StillGrew => 2,
            Standing::Others { .. } | Standing::Unknown => 3,
        }
    }

    /// What follows the resource's own sentence.
    pub(super) fn words(self) -> Phrase {
        match self {
            Standing::NoMore => phrase![", and more load brought no more"],
            Standing::RateMissed => phrase![", and the rate asked for was not reached"],
            Standing::Likely => phrase![", likely the limit"],
            Standing::StillGrew => phrase![", not the limit there: more load brought more"],
            Standing::Others { share: others } => {
                phrase![", not shown to be the limit: ", share(others), " of that was not the load's"]
            }
            Standing::Unknown => phrase![", not shown to be the limit: it is not known whose that was"],
        }
    }

    /// What would make it surer; may be empty.
    pub(super) const fn advice(self) -> &'static str {
        match self {
            Standing::Likely => {
                " One level of load cannot show that more load brings no more: run it with twice the load as well."
            }
            Standing::Others { .. } => {
                " The load is that of Tidemark and of the processes named under `observe`: name the servers there if they are missing, and keep others off this node."
            }
            _ => "",
        }
    }
}

/// A resource without reserve, where it was seen, and how sure it is that it limited the load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limited {
    /// The node, if there are several.
    pub node: Option<String>,
    /// `None` where there is nothing to doubt, or nothing to name.
    pub standing: Option<Standing>,
    /// What it was.
    #[serde(flatten)]
    pub limit: Limit,
}

impl Limited {
    /// Whether it may be called the limit: of the storage, or of the generator.
    pub(crate) fn is_limit(&self) -> bool {
        match self.standing {
            Some(standing) => standing.is_limit(),
            None => !matches!(self.limit, Limit::Unobserved {} | Limit::TooFewSamples { .. }),
        }
    }

    /// The surest first; a target's own latency is what is left when nothing else is.
    pub(crate) fn rank(&self) -> u8 {
        match (self.standing, &self.limit) {
            (Some(standing), _) => standing.rank(),
            (None, Limit::OwnLatency { .. }) => 2,
            (None, Limit::Unobserved {} | Limit::TooFewSamples { .. }) => 4,
            (None, _) => 0,
        }
    }
}

impl Facts for Limited {
    fn rule(&self) -> &'static str {
        let (limit, busy) = self.limit.rules();
        if self.standing.is_none_or(Standing::is_limit) { limit } else { busy }
    }

    fn title(&self) -> Phrase {
        let mut title = self.limit.title();
        if let Some(node) = &self.node {
            title.0.extend(phrase![" (on ", node, ")"].0);
        }
        title.0.extend(self.standing.into_iter().flat_map(|standing| standing.words().0));
        title
    }

    fn detail(&self) -> String {
        let advice = self.standing.map_or("", Standing::advice);
        match self.standing.is_none_or(Standing::is_limit) {
            true => format!("{}{advice}", self.limit.detail()),
            false => advice.trim_start().to_owned(),
        }
    }

    fn evidence(&self) -> Vec<String> {
        self.limit.evidence()
    }
}
