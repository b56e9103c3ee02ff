//! What works on databases will do and need, before anything runs.

use crate::data::DataSet;
use crate::job::{Endpoint, Job, Purpose, Target, Tls};
use crate::workload::{self, Runnable};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use tidemark_load::work::Share;
use tidemark_measure::units;
use tidemark_plan::forecast::{
    Action, Amount, Does, Forecaster, Holdings, Remarks, operations, operations_of,
};
use tidemark_plan::plan::{Stage, Work};

const LOADS: Does = Does { code: "loads_rows", counts: "", moves_bytes: true };
const DROPS: Does = Does { code: "drops_tables", counts: "", moves_bytes: false };
const SENDS: Does = Does { code: "sends_statements", counts: "", moves_bytes: false };

/// Memory of a connection: its buffers, and its statements' state; bytes.
const CONNECTION_MEMORY: u64 = 24 << 10;

/// The way through a plan: the data sets that are loaded by now.
#[derive(Default)]
pub(crate) struct Preview {
    loaded: BTreeMap<String, DataSet>,
}

impl Forecaster for Preview {
    fn stage(&mut self, stage: &Stage, works: &[&Work], remarks: &mut Remarks) -> Vec<Vec<Action>> {
        works.iter().map(|work| self.work(stage, work, remarks).unwrap_or_default()).collect()
    }

    fn until(&self, work: &Work) -> Option<String> {
        let (job, _, data) = parts(work)?;
        match job.purpose {
            Purpose::Fill { .. } => {
                let rows = rows(&data).saturating_mul(job.instances.count() as u64);
                Some(format!("{} rows are loaded", units::count(rows)))
            }
            Purpose::Load => Some(match work.load.workers {
                1 => "the stream is through".to_owned(),
                streams => format!("all {streams} streams are through"),
            }),
            _ if job.instances.count() > 1 => Some("the tables of all instances are dropped".to_owned()),
            _ if data.tables().len() == 1 => Some("the table is dropped".to_owned()),
            _ => Some(format!("the {} tables are dropped", data.tables().len())),
        }
    }

    fn target(&self, work: &Work) -> String {
        Job::of(work).map_or_else(String::new, |job| job.serving().describe())
    }

    fn connections(&self, work: &Work) -> u64 {
        work.load.slots(Share::whole(&work.load)).1.into()
    }

    fn memory(&self, work: &Work) -> u64 {
        self.connections(work).saturating_mul(CONNECTION_MEMORY)
    }

    fn holdings(&self) -> Holdings {
        let stored = self.loaded.values().fold(0, |sum: u64, data| sum.saturating_add(data.bytes()));
        Holdings { stored, in_memory: 0, volumes: 0 }
    }
}

impl Preview {
    fn work(&mut self, stage: &Stage, work: &Work, remarks: &mut Remarks) -> Option<Vec<Action>> {
        let (job, workload, data) = parts(work)?;
        let keys = job.instances.iter().map(|target| format!("{} {}", target.describe(), data.name));
        let instances = job.instances.count() as u64;
        job.instances.iter().for_each(|target| unverified(target, remarks));
        let [rows, bytes] = [rows(&data), data.bytes()].map(|each| each.saturating_mul(instances));
        let one = |does, count, bytes: u64| Action {
            label: work.labels.first().map(|label| label.label.clone()).unwrap_or_default(),
            ratio: 100.0,
            does,
            names: String::new(),
            operations: operations(&work.load),
            count,
            held: Amount::About(bytes),
            bytes: Amount::About(bytes),
        };
        Some(match job.purpose {
            Purpose::Fill { .. } => {
                self.loaded.extend(keys.map(|key| (key, data.clone())));
                vec![one(LOADS, Amount::About(rows), bytes)]
            }
            Purpose::Drop => {
                keys.for_each(|key| _ = self.loaded.remove(&key));
                vec![one(DROPS, Amount::Exactly(data.tables().len() as u64 * instances), 0)]
            }
            Purpose::Load => {
                if !data.tables().is_empty() && !keys.clone().all(|key| self.loaded.contains_key(&key)) {
                    let text = format!(
                        "stage {} needs the data set {}, which no earlier stage loads: it must already be there",
                        stage.name, data.name
                    );
                    remarks.add("data-not-loaded", text);
                }
                let others =
                    keys.filter_map(|key| self.loaded.get(&key)).filter(|loaded| !loaded.is_same(&data));
                if let Some(loaded) = others.take(1).next() {
                    let text = format!(
                        "stage {} needs the data set {} with the options {}, and an earlier stage loads it with {}: write the \
                         same options in both, or the run ends there",
                        stage.name,
                        data.name,
                        data.options(),
                        loaded.options()
                    );
                    remarks.add("data-differs", text);
                }
                let actions = workload.actions().into_iter().zip(&work.labels).enumerate();
                let action = |(number, (action, label)): (usize, (workload::Action, _))| {
                    let label: &tidemark_plan::plan::Label = label;
                    let done = operations_of(&work.load, number as u16);
                    let entered = job.settings.ledger && action.writes;
                    let begin_and_end = if action.explicit || entered { 2.0 } else { 0.0 };
                    let each = action.statements + begin_and_end + f64::from(u8::from(entered));
                    let statements = |transactions: u64| (transactions as f64 * each).round() as u64;
                    Action {
                        label: label.label.clone(),
                        ratio: label.weight,
                        does: SENDS,
                        names: format!("{each} statements each"),
                        operations: done,
                        count: match done {
                            Amount::Exactly(number) => Amount::About(statements(number)),
                            Amount::About(number) => Amount::About(statements(number)),
                            Amount::UpTo(number) => Amount::UpTo(statements(number)),
                            Amount::Open => Amount::Open,
                        },
                        held: Amount::About(bytes),
                        bytes: Amount::Exactly(0),
                    }
                };
                actions.map(action).collect()
            }
        })
    }
}

/// Remarks on a password that goes to a server on another machine that nobody has checked.
fn unverified(target: &Target, remarks: &mut Remarks) {
    let far = |endpoint: &&Endpoint| match endpoint {
        Endpoint::Unix(_) => false,
        Endpoint::Tcp(host, _) => !is_loopback(host),
    };
    let (true, Some(server)) = (target.password.is_some(), target.endpoints.iter().find(far)) else { return };
    let how = match target.tls {
        Tls::Verify => return,
        Tls::Disable => "the connection is not encrypted",
        Tls::Prefer => "the connection may be unencrypted, and no certificate is checked",
        Tls::Require => "no certificate is checked",
    };
    let text = format!(
        "the password for {server} can be read or asked for by others on the network: {how}; set `tls: verify-full`, with `ca_file` \
         where the server's authority is your own"
    );
    remarks.add("password-unprotected", text);
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A work's job, its workload, and that one's data set.
fn parts(work: &Work) -> Option<(&Job, Arc<dyn Runnable>, DataSet)> {
    let job = Job::of(work)?;
    let (family, _) = workload::find(&job.workload.name)?;
    let workload = workload::open(&job.workload).ok()?;
    let data = DataSet::new(family.name, Arc::clone(&workload), job.instances.first().dialect);
    Some((job, workload, data))
}

fn rows(data: &DataSet) -> u64 {
    data.tables().iter().map(crate::schema::Table::rows).sum()
}
