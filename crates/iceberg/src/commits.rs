//! What is known of commits to tables: whether all that was acknowledged is in the table's history, and what a commit took.

mod record;
mod rules;
mod sections;
mod words;

pub use record::{AttemptCount, CommitsUse, Condition, FileRequests, TableFile, TableHistory};

use tidemark_judge::evidence::{Evidence, Nature};
use tidemark_judge::section::Section;
use tidemark_judge::{Findings, WorkContext};
use tidemark_measure::record::{Run, Stage};

/// The evidence of commits: an entry for each work.
pub struct CommitEvidence;

impl Evidence for CommitEvidence {
    type Data = Vec<CommitsUse>;

    const KEY: &'static str = "commits";

    // The program with the query engine does it.
    const IO_ELSEWHERE: bool = true;

    fn join(data: &mut Self::Data, other: Self::Data) {
        data.extend(other);
    }

    fn nature(data: &Self::Data, work: &str) -> Nature {
        // Attempts that commits lost to each other are among what a commit took.
        Nature { counts_attempts: data.iter().any(|used| used.work == work), ..Nature::default() }
    }

    fn judge_work(work: &WorkContext<'_>, data: &Self::Data, out: &mut Findings) {
        for used in data.iter().filter(|used| used.work == work.work.name) {
            rules::history(work, used, out);
            rules::took(work, used, out);
        }
    }

    fn sections(_run: &Run, stages: &[(&Stage, Self::Data)]) -> Vec<Section> {
        vec![sections::section(stages)]
    }
}
