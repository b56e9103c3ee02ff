//! What the judge says of runs and evaluations, as the store lists them.

use tidemark_judge::evaluation::Assessment;
use tidemark_judge::{judge, verdict_sentences};
use tidemark_measure::record::Run;
use tidemark_store::Listing;

/// A run's.
pub fn of_run(run: &Run) -> Listing {
    let judgement = judge(run);
    let headline = verdict_sentences(run, &judgement).into_iter().next().unwrap_or_default();
    Listing { valid: judgement.is_valid(), headline }
}

/// An evaluation's.
pub fn of_evaluation(assessment: &Assessment) -> Listing {
    let headline = assessment.verdict.first().cloned().unwrap_or_default();
    Listing { valid: assessment.validity.is_valid(), headline }
}
