//! Daemons of a Ceph cluster on this node, asked through their admin sockets. They have a thread of their own, so that a
//! daemon that does not reply delays nothing else. Those of a cluster elsewhere are asked through it (`cluster`).

use crate::sample::{Gaps, Sample, Value};
use counters::{Counted, Dump};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) mod cluster;
mod counters;
mod socket;

/// Samples between two searches for sockets.
const SEARCH: u64 = 5;

/// Pause before a daemon that did not reply is asked again.
const PAUSE: Duration = Duration::from_secs(10);

/// Samples between two requests to a monitor: the state of the cluster changes slowly.
const MONITOR: u64 = 5;

/// How long the node's sample waits for the daemons.
const PATIENCE: Duration = Duration::from_millis(300);

/// Sockets that are asked at most.
const MOST: usize = 64;

/// The thread that asks.
pub(crate) struct Ceph {
    ask: SyncSender<u64>,
    answers: Receiver<Answer>,
    looks: u64,
}

struct Answer {
    look: u64,
    values: Vec<Value>,
    gaps: Vec<String>,
}

/// One daemon.
struct Daemon {
    name: String,
    path: PathBuf,
    counted: Counted,
    silent_since: Option<Instant>,
    /// The state of the cluster that a monitor last reported.
    cluster: Vec<Value>,
}

impl Ceph {
    pub(crate) fn start(directories: &[PathBuf]) -> Self {
        // One request at a time: a late thread gets no second one.
        let (ask, questions) = sync_channel(1);
        let (answer, answers) = sync_channel(4);
        let directories = directories.to_vec();
        // It ends with the channel. It is not joined, because it may be waiting for a daemon.
        thread::spawn(move || work(&directories, &questions, &answer));
        Self { ask, answers, looks: 0 }
    }

    pub(crate) fn ask(&mut self) {
        self.looks += 1;
        let _busy = self.ask.try_send(self.looks);
    }

    /// Takes the replies to the last request, if they come soon.
    pub(crate) fn take(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        let until = Instant::now() + PATIENCE;
        while let Ok(answer) = self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
            answer.gaps.into_iter().for_each(|gap| gaps.say(gap));
            if answer.look == self.looks {
                return out.values.extend(answer.values);
            }
        }
        gaps.say(format!(
            "Ceph's daemons sometimes took more than {} ms to reply: those seconds have no values of Ceph.",
            PATIENCE.as_millis()
        ));
    }
}

fn work(directories: &[PathBuf], questions: &Receiver<u64>, answers: &SyncSender<Answer>) {
    let mut daemons: BTreeMap<PathBuf, Daemon> = BTreeMap::new();
    let mut looks = 0u64;
    while let Ok(look) = questions.recv() {
        let (mut out, mut gaps) = (Sample::default(), Gaps::default());
        if looks.is_multiple_of(SEARCH) {
            search(directories, &mut daemons, &mut gaps);
        }
        daemons.values_mut().for_each(|daemon| daemon.sample(looks, &mut out, &mut gaps));
        looks += 1;
        let answer = Answer { look, values: out.values, gaps: gaps.sentences().to_vec() };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

fn search(directories: &[PathBuf], daemons: &mut BTreeMap<PathBuf, Daemon>, gaps: &mut Gaps) {
    for directory in directories {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                gaps.say(format!("Cannot list Ceph's sockets in {}: {error}.", directory.display()));
                continue;
            }
        };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(name) = daemon_name(&path) else { continue };
            if daemons.len() < MOST && !daemons.contains_key(&path) {
                let daemon = Daemon {
                    name,
                    path: path.clone(),
                    counted: Counted::default(),
                    silent_since: None,
                    cluster: Vec::new(),
                };
                daemons.insert(path, daemon);
            }
        }
    }
    daemons.retain(|path, _| path.exists());
}

/// `osd.0` of `ceph-osd.0.asok` or `osd.0.asok`.
fn daemon_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".asok")?;
    let name = name.strip_prefix("ceph-").unwrap_or(name);
    (!name.is_empty()
        && name.len() <= 100
        && !name.contains(|letter: char| letter.is_control() || letter == '"'))
    .then(|| name.to_owned())
}

impl Daemon {
    fn sample(&mut self, looks: u64, out: &mut Sample, gaps: &mut Gaps) {
        if self.silent_since.is_some_and(|since| since.elapsed() < PAUSE) {
            return;
        }
        // A manager's counters say nothing about the data path.
        if self.name.starts_with("mgr.") {
            return;
        }
        let monitors = self.name.starts_with("mon.");
        if monitors && !looks.is_multiple_of(MONITOR) {
            return out.values.extend(self.cluster.iter().cloned());
        }
        match self.dump() {
            Ok(dump) => self.take(dump, monitors, out, gaps),
            Err(error) => {
                (self.silent_since, self.counted) = (Some(Instant::now()), Counted::default());
                gaps.say(format!("{} did not reply at {}: {error}.", self.name, self.path.display()));
            }
        }
    }

    fn dump(&self) -> Result<Dump, socket::AskError> {
        let dump = Dump::parse(&socket::ask(&self.path, "perf dump")?)?;
        if !dump.is_empty() {
            return Ok(dump);
        }
        // Newer versions keep some counters elsewhere, and may one day keep all there. Older ones refuse the question; metadata
        // servers and mounts have none of the counters that are taken.
        let elsewhere = Dump::parse(&socket::ask(&self.path, "counter dump")?);
        Ok(elsewhere.unwrap_or(dump))
    }

    fn take(&mut self, dump: Dump, monitors: bool, out: &mut Sample, gaps: &mut Gaps) {
        let now = Instant::now();
        self.silent_since = None;
        if monitors {
            let mut cluster = Sample::default();
            counters::cluster(&dump, &mut cluster);
            self.cluster = cluster.values;
            return out.values.extend(self.cluster.iter().cloned());
        }
        self.counted.take(&self.name, now, dump, out, gaps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use tidemark_measure::observation::Kind;

    #[test]
    fn daemons_are_named_by_their_sockets() {
        let name = |path: &str| daemon_name(Path::new(path));
        assert_eq!(name("/run/ceph/ceph-osd.0.asok").unwrap(), "osd.0");
        assert_eq!(name("/lab/run/client.rgw.lab.asok").unwrap(), "client.rgw.lab");
        assert_eq!((name("/lab/run/osd.0.pid"), name("/lab/run/.asok")), (None, None));
    }

    /// Answers every question with the next of these replies.
    fn daemon(path: &Path, replies: Vec<String>) {
        let replies = replies.into_iter().map(|reply| ("perf dump", reply)).collect();
        daemon_that_is_asked(path, replies);
    }

    /// Answers each of these questions with its reply.
    fn daemon_that_is_asked(path: &Path, replies: Vec<(&'static str, String)>) {
        let listener = UnixListener::bind(path).unwrap();
        thread::spawn(move || {
            for (expected, reply) in replies {
                let (mut stream, _) = listener.accept().unwrap();
                let mut question = [0; 64];
                let length = stream.read(&mut question).unwrap();
                assert_eq!(question[..length], *format!("{{\"prefix\":\"{expected}\"}}\0").as_bytes());
                stream.write_all(&(reply.len() as u32).to_be_bytes()).unwrap();
                stream.write_all(reply.as_bytes()).unwrap();
            }
        });
    }

    #[test]
    fn a_daemon_is_asked_and_its_counters_become_rates() {
        let directory = tempfile::tempdir().unwrap();
        let reply = |ops: u64| {
            let sum = ops as f64 * 0.002;
            format!(
                "{{\"osd\":{{\"op\":{ops},\"op_wip\":3,\"op_w_latency\":{{\"avgcount\":{ops},\"sum\":{sum}}}}}}}"
            )
        };
        daemon(&directory.path().join("osd.7.asok"), vec![reply(100), reply(200)]);
        std::fs::write(directory.path().join("osd.8.asok"), "no socket").unwrap();
        let mut ceph = Ceph::start(&[directory.path().to_owned()]);
        let (mut out, mut gaps) = (Sample::default(), Gaps::default());
        for _ in 0..2 {
            out = Sample::default();
            ceph.ask();
            ceph.take(&mut out, &mut gaps);
        }
        let value = |metric: &str| {
            let mut found =
                out.values.iter().filter(|value| value.subject == "osd.7" && value.metric == metric);
            found.next().map(|value| (value.kind, value.value))
        };
        assert_eq!(value("op_w_latency_ns"), Some((Kind::Ceph, 2e6)));
        assert_eq!(value("op_wip"), Some((Kind::Ceph, 3.0)));
        assert!(value("op").is_some_and(|(_, rate)| rate > 0.0));
        let said = gaps.sentences().join("\n");
        assert!(
            said.contains("osd.8 did not reply at ") && said.contains("osd.7 has no counters "),
            "{said}"
        );
    }

    #[test]
    fn a_daemon_without_counters_that_are_taken_is_no_gap() {
        let directory = tempfile::tempdir().unwrap();
        let replies =
            vec![("perf dump", "{\"mds\":{\"request\":7}}".into()), ("counter dump", String::new())];
        daemon_that_is_asked(&directory.path().join("mds.lab.asok"), replies);
        let mut ceph = Ceph::start(&[directory.path().to_owned()]);
        let (mut out, mut gaps) = (Sample::default(), Gaps::default());
        ceph.ask();
        ceph.take(&mut out, &mut gaps);
        assert!(gaps.sentences().is_empty() && out.values.is_empty(), "{:?}", gaps.sentences());
    }
}
