//! What is known of cycles of tables: whether every answer was right, and what queries took as the table aged.

mod record;
mod rules;
mod sections;
mod words;

pub use record::{CycleUse, CyclesUse, MergeMode, QueriesTook, StepKind, StepUse, TableState};

use tidemark_judge::evidence::{Evidence, Nature};
use tidemark_judge::section::Section;
use tidemark_judge::{Findings, WorkContext};
use tidemark_measure::record::{Run, Stage};

/// The evidence of cycles: an entry for each work.
pub struct CycleEvidence;

impl Evidence for CycleEvidence {
    type Data = Vec<CyclesUse>;

    const KEY: &'static str = "cycles";

    // The program with the query engine does it.
    const IO_ELSEWHERE: bool = true;

    fn join(data: &mut Self::Data, other: Self::Data) {
        data.extend(other);
    }

    fn nature(data: &Self::Data, work: &str) -> Nature {
        let is_of_cycles = data.iter().any(|used| used.work == work);
        // Between its steps a worker compares answers, row by row.
        Nature { uneven: is_of_cycles, works_between: is_of_cycles, ..Nature::default() }
    }

    fn judge_work(work: &WorkContext<'_>, data: &Self::Data, out: &mut Findings) {
        for used in data.iter().filter(|used| used.work == work.work.name) {
            rules::answers(work, used, out);
            rules::aged(work, used, out);
        }
    }

    fn sections(_run: &Run, stages: &[(&Stage, Self::Data)]) -> Vec<Section> {
        vec![sections::section(stages)]
    }
}
