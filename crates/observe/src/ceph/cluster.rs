//! A Ceph cluster whose daemons are elsewhere: asked through the cluster, by `ceph tell`, wherever `ceph` can be run. What `tell`
//! reaches are OSDs and monitors; gateways only reply at their admin sockets.

use super::counters::{self, Counted, Dump};
use crate::observer::{LAST_LEAST, nanoseconds};
use crate::recorder::Recorder;
use crate::sample::{Gaps, Sample, Value};
use crate::stop::Stop;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{mem, thread};
use tidemark_measure::observation::Node;

/// Least time from one question to the next: each is a process of Python where `ceph` runs.
const PERIOD: Duration = Duration::from_secs(2);

/// The share of the time in which a question may be on its way, one of so many.
const SHARE: u32 = 2;

/// Pause before a cluster that did not answer is asked again.
const PAUSE: Duration = Duration::from_secs(10);

/// Looks between two questions to the monitors: the state of the cluster changes slowly.
const MONITORS: u64 = 5;

/// How long questions may be on their way after the run's end, all together.
const LAST_MOST: Duration = Duration::from_secs(20);

/// How often it is looked, while a question is on its way, whether the run has ended.
const ENDED: Duration = Duration::from_millis(100);

/// What `ceph` printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// What the daemons that replied told.
    pub text: Vec<u8>,
    /// Why others did not: a clause.
    pub why: Option<String>,
}

/// Runs `ceph` with these arguments, and gives what it printed. Errors are clauses.
pub type RunCeph = dyn Fn(&[&str]) -> Result<Printed, String> + Send + Sync;

/// A Ceph cluster that is asked through `ceph`.
#[derive(Clone)]
pub struct CephCluster {
    /// What its record is called beside those of nodes.
    pub name: String,
    /// What it is asked through.
    pub source: String,
    /// How.
    pub ceph: Arc<RunCeph>,
}

/// Asks a question.
type Ask<'a> = dyn Fn(&'static [&'static str]) -> Result<Printed, String> + 'a;

/// What has been seen so far.
#[derive(Default)]
struct Seen {
    osds: BTreeMap<String, Counted>,
    /// The state of the cluster that the monitors last told.
    state: Vec<Value>,
    looks: u64,
    gaps: Gaps,
}

/// Asks until the flag is set, and once more then.
pub(crate) fn observe(cluster: &CephCluster, start: Instant, stop: &Stop) -> Node {
    observe_until(cluster, start, stop, LAST_MOST)
}

fn observe_until(cluster: &CephCluster, start: Instant, stop: &Stop, most: Duration) -> Node {
    let ended = Cell::new(None);
    let is_late = || {
        let since = ended.get().or_else(|| stop.is_set().then(Instant::now));
        ended.set(since);
        since.is_some_and(|since| since.elapsed() >= most)
    };
    let ceph = |arguments| ask(&cluster.ceph, arguments, &is_late);
    let (mut seen, mut recorder) = (Seen::default(), Recorder::default());
    let mut last;
    loop {
        let asked = Instant::now();
        let pause = match seen.look(&ceph, start, &mut recorder) {
            Ok(()) => PERIOD.max(asked.elapsed() * SHARE),
            Err(why) => {
                seen.osds.clear();
                seen.unread(&why);
                PAUSE
            }
        };
        last = Instant::now();
        if stop.sleep_until(asked + pause) {
            break;
        }
    }
    // After a failure there is nothing to compare with.
    if !seen.osds.is_empty()
        && last.elapsed() >= LAST_LEAST
        && let Err(why) = seen.look(&ceph, start, &mut recorder)
    {
        seen.unread(&why);
    }
    let (name, source, gaps) = (cluster.name.clone(), cluster.source.clone(), seen.gaps.sentences().to_vec());
    Node { name, source, gaps, ..recorder.node() }
}

/// Asks in a thread of its own, which is left to itself when it is too late for an answer.
fn ask(
    ceph: &Arc<RunCeph>,
    arguments: &'static [&'static str],
    is_late: &dyn Fn() -> bool,
) -> Result<Printed, String> {
    let (reply, told) = mpsc::channel();
    let ceph = Arc::clone(ceph);
    thread::spawn(move || reply.send(ceph(arguments)));
    while !is_late() {
        match told.recv_timeout(ENDED) {
            Ok(printed) => return printed,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err("the observer crashed as it asked".into()),
        }
    }
    Err("the run had ended, and there was no answer yet".into())
}

impl Seen {
    fn unread(&mut self, why: &str) {
        self.gaps.say(format!("Ceph's counters could not be read: {why}."));
    }

    /// What was told; why others told nothing is a gap.
    fn told(&mut self, printed: Printed) -> Vec<u8> {
        if let Some(why) = printed.why {
            self.gaps.say(format!("Not all daemons of Ceph replied: {why}."));
        }
        printed.text
    }

    fn look(&mut self, ceph: &Ask<'_>, start: Instant, recorder: &mut Recorder) -> Result<(), String> {
        let printed =
            ceph(&["tell", "osd.*", "perf", "dump", "-f", "json"]).map(|printed| self.told(printed))?;
        let now = Instant::now();
        let mut out = Sample::default();
        let mut osds = BTreeMap::new();
        for (name, dump) in replies(&printed)? {
            let name = match name {
                Some(name) => name,
                None => only_osd(&ceph(&["osd", "ls", "-f", "json"])?.text)?,
            };
            // One that was silent in between begins anew.
            let mut counted = self.osds.remove(&name).unwrap_or_default();
            counted.take(&name, now, dump, &mut out, &mut self.gaps);
            osds.insert(name, counted);
        }
        for silent in mem::replace(&mut self.osds, osds).into_keys() {
            self.gaps
                .say(format!("There was not always a reply of {silent}: its counters are missing at times."));
        }
        if self.looks.is_multiple_of(MONITORS) {
            let told = ceph(&["tell", "mon.*", "perf", "dump", "-f", "json"]);
            let told = told.and_then(|printed| replies(&self.told(printed)));
            let mut state = Sample::default();
            match told {
                Ok(told) => told.iter().for_each(|(_, dump)| counters::cluster(dump, &mut state)),
                Err(why) => self.gaps.say(format!("The state of the cluster could not be read: {why}.")),
            }
            self.state = state.values;
        }
        self.looks += 1;
        // The first look only reads what has been counted.
        if out.seconds.is_some() {
            out.values.extend(self.state.iter().cloned());
            recorder.record(nanoseconds(now.saturating_duration_since(start)), out.values);
        }
        Ok(())
    }
}

/// The replies of daemons, one after the other: `osd.0: {...}`. The only daemon of a cluster has no name there.
fn replies(printed: &[u8]) -> Result<Vec<(Option<String>, Dump)>, String> {
    let mut replies = Vec::new();
    let mut left = printed.trim_ascii_start();
    while let Some(at) = left.iter().position(|byte| *byte == b'{') {
        let name = String::from_utf8_lossy(&left[..at]);
        let name = name.trim().trim_end_matches(':');
        let mut values = serde_json::Deserializer::from_slice(&left[at..]).into_iter::<Dump>();
        let dump = match values.next() {
            Some(Ok(dump)) => dump,
            Some(Err(error)) => return Err(format!("what `ceph tell` prints is not JSON: {error}")),
            None => break,
        };
        replies.push(((!name.is_empty()).then(|| name.to_owned()), dump));
        left = left[at + values.byte_offset()..].trim_ascii_start();
    }
    match replies.is_empty() {
        false => Ok(replies),
        true => Err("no daemon replied to `ceph tell`".into()),
    }
}

/// The name of the only OSD, of what `ceph osd ls` prints.
fn only_osd(printed: &[u8]) -> Result<String, String> {
    match serde_json::from_slice::<Vec<u32>>(printed).as_deref() {
        Ok([only]) => Ok(format!("osd.{only}")),
        _ => Err("`ceph tell` does not say of which OSD it tells".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Mutex;
    use tidemark_measure::observation::Kind;

    fn of(text: &str) -> Result<Printed, String> {
        Ok(Printed { text: text.as_bytes().to_vec(), why: None })
    }

    /// A cluster that answers the questions to its OSDs in turn, and the last one again and again. Why others do not reply comes after a `!`.
    fn cluster(replies: &[&str]) -> (CephCluster, Stop) {
        let replies: Vec<String> = replies.iter().map(|&reply| reply.to_owned()).collect();
        let (asked, stop) = (Mutex::new(0), Stop::default());
        let ends = stop.clone();
        let ceph = move |arguments: &[&str]| match arguments {
            ["osd", "ls", ..] => of("\n[7]\n"),
            ["tell", "mon.*", ..] => of("\n{\"cluster\":{\"num_osd\":3,\"num_osd_up\":2}}\n"),
            _ => {
                let mut asked = asked.lock().unwrap();
                *asked += 1;
                if *asked >= replies.len() {
                    ends.set();
                }
                match replies[(*asked).min(replies.len()) - 1].as_str() {
                    "" => Err("the toolbox is away".to_owned()),
                    reply => match reply.split_once('!') {
                        Some((reply, why)) => Ok(Printed { why: Some(why.to_owned()), ..of(reply)? }),
                        None => of(reply),
                    },
                }
            }
        };
        (CephCluster { name: "Ceph".into(), source: "here".into(), ceph: Arc::new(ceph) }, stop)
    }

    fn sum(node: &Node, osd: &str, metric: &str) -> f64 {
        let values = &node.find(Kind::Ceph, osd, metric).unwrap().values;
        let spans = node.at_ns.windows(2).map(|span| (span[1] - span[0]) as f64 / 1e9);
        spans.zip(&values[1..]).map(|(seconds, rate)| seconds * f64::from(*rate)).sum()
    }

    #[test]
    fn rates_are_over_the_time_between_two_answers_so_their_sum_is_what_was_counted() {
        let reply = |one: u64, other: u64| {
            format!("\nosd.0: {{\"osd\":{{\"op\":{one}}}}}\nosd.12: {{\"osd\":{{\"op\":{other}}}}}\n")
        };
        let (cluster, stop) = cluster(&[&reply(5, 7), &reply(15, 7), &reply(45, 8)]);
        let node = observe(&cluster, Instant::now(), &stop);
        assert!(node.at_ns.len() >= 2, "{:?}", node.at_ns);
        assert!((sum(&node, "osd.0", "op") - 30.0).abs() < 1e-3, "{node:?}");
        assert!((sum(&node, "osd.12", "op") - 1.0).abs() < 1e-3, "{node:?}");
        assert_eq!(node.find(Kind::Ceph, "cluster", "osds_down").unwrap().values[0], 1.0);
        assert_eq!((node.name.as_str(), node.source.as_str(), node.generates), ("Ceph", "here", false));
    }

    #[test]
    fn the_only_osd_is_named_by_the_cluster() {
        let (cluster, stop) = cluster(&["\n{\"osd\":{\"op\":1,\"op_wip\":3}}\n"; 2]);
        let node = observe(&cluster, Instant::now(), &stop);
        assert_eq!(node.find(Kind::Ceph, "osd.7", "op_wip").unwrap().values[0], 3.0);
    }

    #[test]
    fn a_cluster_that_cannot_be_asked_is_a_gap() {
        let (cluster, stop) = cluster(&[""]);
        let node = observe(&cluster, Instant::now(), &stop);
        assert_eq!(node.gaps, ["Ceph's counters could not be read: the toolbox is away."]);
        assert!(node.at_ns.is_empty() && node.series.is_empty());
    }

    #[test]
    fn an_osd_that_does_not_reply_is_named_and_the_others_are_recorded() {
        let reply = |count: u64| format!("\nosd.0: {{\"osd\":{{\"op\":{count}}}}}\n");
        let both = |count: u64| format!("{}\nosd.3: {{\"osd\":{{\"op\":1}}}}\n", reply(count));
        let (cluster, stop) = cluster(&[&both(5), &format!("{}!it is late", reply(15))]);
        let node = observe(&cluster, Instant::now(), &stop);
        let silent = "There was not always a reply of osd.3: its counters are missing at times.";
        // The first two say which counters these OSDs do not have.
        assert_eq!(node.gaps[2..], ["Not all daemons of Ceph replied: it is late.", silent]);
        assert_eq!(node.find(Kind::Ceph, "osd.0", "op").unwrap().values.len(), node.at_ns.len());
    }

    #[test]
    fn what_is_on_its_way_at_the_end_is_not_awaited_for_long() {
        let (never, awaited) = mpsc::channel::<()>();
        let (awaited, stop) = (Mutex::new(awaited), Stop::default());
        let ends = stop.clone();
        let ceph = move |_: &[&str]| {
            ends.set();
            let _ = awaited.lock().unwrap().recv();
            Err("it is over".to_owned())
        };
        let cluster = CephCluster { name: "Ceph".into(), source: "here".into(), ceph: Arc::new(ceph) };
        let node = observe_until(&cluster, Instant::now(), &stop, Duration::ZERO);
        let why = "Ceph's counters could not be read: the run had ended, and there was no answer yet.";
        assert_eq!(node.gaps, [why]);
        drop(never);
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for text in ["", "osd.0: ", "Error ENXIO", "osd.0: {\"osd\":", "[1]"] {
            assert!(replies(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn odd_replies_do_not_panic(text in "(\\{|\\}|osd\\.0|:|\"osd\"|\\s|.){0,30}") {
            let _ = (replies(text.as_bytes()), only_osd(text.as_bytes()));
        }
    }
}
