//! What is known of the databases under a stage: their settings and counters, what had to hold in their data, and whether what they
//! acknowledged is there.

mod record;
mod rules;
mod sections;
mod settings;
mod words;

pub use record::{
    Aborts, DataCheck, DatabaseSetting, DatabaseUse, LedgerUse, Record, ReplicaLag, StatementPlan,
};

use tidemark_judge::evidence::{Evidence, Setting};
use tidemark_judge::section::Section;
use tidemark_judge::{Findings, StageContext};
use tidemark_measure::record::{Run, Stage};

/// The name under which the servers' versions are compared.
const VERSION: &str = "version";

/// The evidence of databases.
pub struct DatabaseEvidence;

impl Evidence for DatabaseEvidence {
    type Data = Record;

    const KEY: &'static str = "databases";

    const IO_ELSEWHERE: bool = true;

    fn join(data: &mut Record, other: Record) {
        data.join(other);
    }

    fn judge_stage(stage: &StageContext<'_>, data: &Record, out: &mut Findings) {
        rules::RULES.iter().for_each(|rule| rule(stage, data, out));
    }

    fn counted(data: &Record) -> Option<u64> {
        let sum = data.servers.iter().try_fold(0u64, |sum, one| Some(sum.saturating_add(one.commits?)));
        sum.filter(|_| !data.servers.is_empty())
    }

    fn settings(data: &Record) -> Vec<Setting> {
        let of = |server: &DatabaseUse| {
            let version = Setting { name: VERSION.into(), value: server.version.clone(), durable: None };
            let settings = server.settings.iter().map(|one| Setting {
                name: one.name.clone(),
                value: one.value.clone(),
                durable: one.durable,
            });
            std::iter::once(version).chain(settings).collect::<Vec<_>>()
        };
        data.servers.iter().flat_map(of).collect()
    }

    fn sections(_run: &Run, stages: &[(&Stage, Record)]) -> Vec<Section> {
        vec![sections::section(stages)]
    }
}
