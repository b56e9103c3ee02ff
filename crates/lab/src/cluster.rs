//! A cluster as its own tools see it: running them against it, and reading its state.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidemark_measure::in_effect::InEffect;

use crate::command::Programs;
use crate::error::LabError;
use crate::home::Home;
use crate::record::Shape;

/// How long one command of an administrator may take.
const COMMAND: Duration = Duration::from_secs(60);
/// How long the cluster may take to report its state.
const STATE: Duration = Duration::from_secs(10);

/// Parameters of a pool that can be set; the rest tells what became of it.
const POOL: [&str; 9] = [
    "size",
    "min_size",
    "pg_num_target",
    "pgp_num_target",
    "pg_autoscale_mode",
    "crush_rule",
    "quota_max_bytes",
    "quota_max_objects",
    "cache_mode",
];

/// What Ceph calls it when data are lost, or will be.
const AT_RISK: [&str; 6] =
    ["OSD_DOWN", "OSD_FULL", "POOL_FULL", "OBJECT_UNFOUND", "PG_DAMAGED", "OSD_SCRUB_ERRORS"];

/// A cluster and the programs to manage it with.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) home: Home,
    pub(super) shape: Shape,
    pub(super) programs: Programs,
}

/// Ceph's own health report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// `HEALTH_OK`, `HEALTH_WARN` or `HEALTH_ERR`.
    pub status: String,
    /// One line for each thing that is wrong.
    pub problems: Vec<String>,
}

impl Health {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.status == "HEALTH_OK"
    }
}

/// What a cluster is doing.
#[derive(Debug)]
pub(super) struct State {
    health: Health,
    osds: OsdMap,
    groups: Groups,
}

/// The part of `ceph status --format json` that the lab reads.
#[derive(Deserialize)]
struct Status {
    health: StatusHealth,
    osdmap: OsdMap,
}

#[derive(Deserialize)]
struct StatusHealth {
    status: String,
    #[serde(default)]
    checks: BTreeMap<String, Check>,
}

#[derive(Deserialize)]
struct Check {
    summary: Summary,
}

/// A line of `ceph config dump`.
#[derive(Deserialize)]
struct Setting {
    section: String,
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Summary {
    message: String,
}

#[derive(Debug, Deserialize)]
struct OsdMap {
    num_osds: usize,
    num_up_osds: usize,
}

/// The part of `ceph pg stat --format json` that the lab reads.
#[derive(Deserialize)]
struct PgStat {
    pg_summary: Groups,
}

#[derive(Debug, Deserialize)]
struct Groups {
    num_pgs: u64,
    num_pg_by_state: Vec<GroupState>,
}

#[derive(Debug, Deserialize)]
struct GroupState {
    name: String,
    num: u64,
}

impl Cluster {
    /// Runs `ceph` on this cluster, as its administrator.
    pub(super) fn ceph(&self, arguments: &[&str]) -> Result<String, LabError> {
        self.run("ceph", arguments, COMMAND)
    }

    /// Runs `radosgw-admin` on this cluster, as its administrator.
    pub(super) fn radosgw_admin(&self, arguments: &[&str]) -> Result<String, LabError> {
        self.run("radosgw-admin", arguments, COMMAND)
    }

    /// Asks the cluster for its health.
    pub(super) fn health(&self) -> Result<Health, LabError> {
        self.ask::<Status>("status").map(|status| status.health.into())
    }

    /// The configuration that the monitor has, and the parameters of the pools.
    pub(super) fn in_effect(&self) -> Result<InEffect, LabError> {
        let mut all = InEffect::default();
        for Setting { section, name, value } in self.ask::<Vec<Setting>>("config dump")? {
            all.add(&format!("{section} {name}"), &value);
        }
        for pool in self.ask::<Vec<Map<String, Value>>>("osd pool ls detail")? {
            let name = pool.get("pool_name").and_then(Value::as_str).unwrap_or_default();
            let own = pool.iter().filter(|(key, _)| POOL.contains(&key.as_str()));
            let options = pool.get("options").and_then(Value::as_object).into_iter().flatten();
            for (key, value) in own.chain(options) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                all.add(&format!("pool {name} {key}"), &value);
            }
        }
        Ok(all)
    }

    /// Why it is not well, if it is not, and whether data are at risk.
    pub(super) fn ill(&self) -> Option<(String, bool)> {
        // A monitor under load may take its time: that is no illness.
        let answer = self.ceph(&["status", "--format", "json"]);
        match answer.and_then(|answer| parse::<Status>("ceph status", &answer)) {
            Err(error) => Some((error.to_string(), false)),
            Ok(status) => status.health.ill(),
        }
    }

    /// Asks the cluster what it is doing.
    pub(super) fn state(&self) -> Result<State, LabError> {
        let Status { health, osdmap } = self.ask("status")?;
        // The manager itself is asked about placement groups: the monitor repeats what a manager last
        // reported, which is outdated after a crash.
        let PgStat { pg_summary } = self.ask("pg stat")?;
        Ok(State { health: health.into(), osds: osdmap, groups: pg_summary })
    }

    fn ask<T: DeserializeOwned>(&self, what: &str) -> Result<T, LabError> {
        let words: Vec<_> = what.split(' ').chain(["--format", "json"]).collect();
        parse(&format!("ceph {what}"), &self.run("ceph", &words, STATE)?)
    }

    fn run(&self, program: &'static str, arguments: &[&str], limit: Duration) -> Result<String, LabError> {
        let conf = self.home.ceph_conf();
        let whose = ["-c".as_ref(), conf.as_os_str()];
        let all: Vec<_> = whose.into_iter().chain(arguments.iter().map(AsRef::as_ref)).collect();
        self.programs.run(program, &all, limit)
    }
}

/// Reads the JSON that a command answered. An error tells where it is wrong, and never quotes it: it may hold
/// keys.
pub(super) fn parse<T: DeserializeOwned>(command: &str, text: &str) -> Result<T, LabError> {
    serde_json::from_str(text).map_err(|error| LabError::CommandOutput {
        command: command.to_owned(),
        why: format!("line {}, column {}", error.line(), error.column()),
    })
}

impl StatusHealth {
    /// Why it is not well, if it is not, and whether data are at risk. A warning alone is none.
    fn ill(self) -> Option<(String, bool)> {
        let at_risk = self.checks.iter().find(|(name, _)| AT_RISK.contains(&name.as_str()));
        match at_risk {
            Some((name, check)) => Some((format!("{name}: {}", check.summary.message), true)),
            None if self.status == "HEALTH_ERR" => Some((Health::from(self).problems.join(", "), false)),
            None => None,
        }
    }
}

impl From<StatusHealth> for Health {
    fn from(health: StatusHealth) -> Self {
        let problems = health.checks.into_values().map(|check| check.summary.message).collect();
        Health { status: health.status, problems }
    }
}

impl State {
    /// Whether every OSD is up and every placement group takes reads and writes.
    pub(super) fn is_serving(&self) -> bool {
        let takes_both = |words: &[&str]| words.contains(&"active") && !words.contains(&"stale");
        self.osds.num_up_osds == self.osds.num_osds
            && self.groups.num_pgs > 0
            && self.groups_that(takes_both) == self.groups.num_pgs
    }

    /// Whether it serves, has every copy of everything, and reports no problem.
    pub(super) fn is_settled(&self) -> bool {
        let are_clean = self.groups_that(|words| words.contains(&"clean")) == self.groups.num_pgs;
        self.is_serving() && are_clean && self.health.is_ok()
    }

    /// How many placement groups are in a state, such as `active+clean`, whose words fit.
    fn groups_that(&self, fit: impl Fn(&[&str]) -> bool) -> u64 {
        let fits = |state: &&GroupState| fit(&state.name.split('+').collect::<Vec<_>>());
        self.groups.num_pg_by_state.iter().filter(fits).map(|state| state.num).sum()
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OsdMap { num_osds, num_up_osds } = self.osds;
        let active = self.groups_that(|words| words.contains(&"active"));
        let all = self.groups.num_pgs;
        write!(
            formatter,
            "{num_up_osds} of {num_osds} OSDs up, {active} of {all} placement groups active, "
        )?;
        formatter.write_str(&self.health.status)?;
        self.health.problems.iter().try_for_each(|problem| write!(formatter, ", {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A state from what Ceph 16.2 says, shortened.
    fn state(up: u64, groups: &[(&str, u64)], health: &str) -> State {
        let checks = match health {
            "HEALTH_OK" => json!({}),
            _ => json!({"OSD_DOWN": {"severity": health, "summary": {"message": "1 osds down", "count": 1}}}),
        };
        let status = json!({
            "fsid": "5fd7b2e4", "quorum": [0],
            "health": {"status": health, "checks": checks, "mutes": []},
            "osdmap": {"epoch": 32, "num_osds": 3, "num_up_osds": up, "num_in_osds": 3},
        });
        let total: u64 = groups.iter().map(|(_, number)| number).sum();
        let by_state: Vec<_> =
            groups.iter().map(|(name, number)| json!({"name": name, "num": number})).collect();
        let groups = json!({
            "pg_ready": true,
            "pg_summary": {"num_pg_by_state": by_state, "num_pgs": total, "num_bytes": 5591},
        });
        let Status { health, osdmap } = parse("ceph status", &status.to_string()).unwrap();
        let PgStat { pg_summary } = parse("ceph pg stat", &groups.to_string()).unwrap();
        State { health: health.into(), osds: osdmap, groups: pg_summary }
    }

    #[test]
    fn a_cluster_serves_when_all_of_it_is_active_and_is_settled_when_all_is_clean() {
        let clean = state(3, &[("active+clean", 80), ("active+clean+scrubbing", 1)], "HEALTH_OK");
        assert!(clean.is_serving() && clean.is_settled());
        let recovering = state(3, &[("active+clean", 80), ("active+undersized+degraded", 1)], "HEALTH_OK");
        assert!(recovering.is_serving() && !recovering.is_settled());
        let complaining = state(3, &[("active+clean", 81)], "HEALTH_WARN");
        assert!(complaining.is_serving() && !complaining.is_settled());
        for not_serving in [
            state(3, &[("active+clean", 80), ("creating+peering", 1)], "HEALTH_OK"),
            state(3, &[("stale+active+clean", 81)], "HEALTH_OK"),
            state(3, &[("activating", 81)], "HEALTH_OK"),
            state(2, &[("active+clean", 81)], "HEALTH_OK"),
            state(3, &[], "HEALTH_OK"),
        ] {
            assert!(!not_serving.is_serving(), "{not_serving:?}");
        }
    }

    #[test]
    fn a_state_is_described_with_its_problems() {
        let state = state(2, &[("active+clean", 60), ("stale", 21)], "HEALTH_WARN");
        assert_eq!(
            state.health,
            Health { status: "HEALTH_WARN".into(), problems: vec!["1 osds down".into()] }
        );
        assert_eq!(
            state.to_string(),
            "2 of 3 OSDs up, 60 of 81 placement groups active, HEALTH_WARN, 1 osds down"
        );
    }

    #[test]
    fn a_warning_is_no_illness_and_a_lost_osd_is_a_risk() {
        let ill = |status: &str, check: &str| {
            let checks = json!({check: {"severity": status, "summary": {"message": "1 of them"}}});
            let text = json!({"status": status, "checks": checks}).to_string();
            parse::<StatusHealth>("ceph status", &text).unwrap().ill()
        };
        assert_eq!(ill("HEALTH_WARN", "POOL_APP_NOT_ENABLED"), None);
        assert_eq!(ill("HEALTH_WARN", "OSD_DOWN"), Some(("OSD_DOWN: 1 of them".into(), true)));
        assert_eq!(ill("HEALTH_ERR", "MGR_MODULE_ERROR"), Some(("1 of them".into(), false)));
    }

    #[test]
    fn unreadable_output_is_not_quoted() {
        let answer = parse::<Status>("ceph status", "{\"health\": \"SECRET\"}");
        let error = answer.map(|_| ()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    }
}
