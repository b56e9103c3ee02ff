//! What the judge says of runs and evaluations, as the store lists them.

use tidemark_judge::evaluation::{Assessment, totals};
use tidemark_judge::{judge, listed, verdict_sentences};
use tidemark_measure::record::Run;
use tidemark_store::{Figures, Listing};

/// A run's.
pub fn of_run(run: &Run) -> Listing {
    let judgement = judge(run);
    let headline = verdict_sentences(run, &judgement).into_iter().next().unwrap_or_default();
    Listing { valid: judgement.is_valid(), headline, figures: figures(run) }
}

fn figures(run: &Run) -> Figures {
    let totals = totals(run);
    Figures {
        load: listed::load(run),
        throughput: totals.throughput,
        bandwidth: totals.bandwidth,
        p50_ns: totals.p50_ns,
        p99_ns: totals.p99_ns,
        shape: listed::shape(run),
    }
}

/// An evaluation's.
pub fn of_evaluation(assessment: &Assessment) -> Listing {
    let headline = assessment.verdict.first().cloned().unwrap_or_default();
    Listing { valid: assessment.validity.is_valid(), headline, figures: Figures::default() }
}
