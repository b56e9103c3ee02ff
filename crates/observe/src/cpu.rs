//! Processors: `/proc/stat` and `/proc/loadavg` (proc(5)).

use crate::reader::{Source, numbers};
use crate::sample::{Gaps, Sample};
use tidemark_measure::observation::Kind;

/// What is sampled of processors.
pub(crate) struct Cpu {
    stat: Source,
    load: Source,
    before: Vec<(String, Times)>,
}

/// Time of one processor, or of all, by state; clock ticks since the start of the system. Guests' time is part of `user`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Times {
    user: u64,
    /// The part of it at low priority.
    nice: u64,
    system: u64,
    irq: u64,
    steal: u64,
    iowait: u64,
    idle: u64,
}

impl Cpu {
    pub(crate) fn new() -> Self {
        Self { stat: Source::new("/proc/stat"), load: Source::new("/proc/loadavg"), before: Vec::new() }
    }

    pub(crate) fn sample(&mut self, out: &mut Sample, gaps: &mut Gaps) {
        if let Some(text) = self.stat.read(gaps) {
            let now = times(&text);
            for (name, after) in &now {
                if let Some((_, before)) = self.before.iter().find(|(known, _)| known == name) {
                    put_shares(name, before, after, out);
                }
            }
            self.before = now;
            for (line, metric) in [("procs_running ", "running"), ("procs_blocked ", "blocked")] {
                if let Some(value) =
                    text.lines().find_map(|text| text.strip_prefix(line)?.trim().parse().ok())
                {
                    out.put(Kind::Cpu, "all", metric, value);
                }
            }
        }
        if let Some(load) = self.load.read(gaps).and_then(|text| text.split(' ').next()?.parse().ok()) {
            out.put(Kind::Cpu, "all", "load", load);
        }
    }
}

fn put_shares(name: &str, before: &Times, after: &Times, out: &mut Sample) {
    let rise = |of: fn(&Times) -> u64| of(after).saturating_sub(of(before)) as f64;
    let user = rise(|times| times.user);
    let nice = rise(|times| times.nice);
    let system = rise(|times| times.system);
    let irq = rise(|times| times.irq);
    let steal = rise(|times| times.steal);
    let iowait = rise(|times| times.iowait);
    let idle = rise(|times| times.idle);
    let busy = user + system + irq + steal;
    let all = busy + iowait + idle;
    let shares = [
        ("user", user),
        ("nice", nice),
        ("system", system),
        ("irq", irq),
        ("steal", steal),
        ("iowait", iowait),
        ("idle", idle),
        ("busy", busy),
    ];
    // Without a single tick all are 0 / 0, which is left out.
    shares.iter().for_each(|(metric, ticks)| out.put(Kind::Cpu, name, metric, ticks / all));
}

/// The times of all processors, `all`, and each.
fn times(text: &str) -> Vec<(String, Times)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("cpu"));
    let row = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))?;
        let fields = numbers(words.filter(|word| !word.is_empty()));
        let field = |index: usize| fields.get(index).copied().unwrap_or(0);
        let times = Times {
            user: field(0).saturating_add(field(1)),
            nice: field(1),
            system: field(2),
            idle: field(3),
            iowait: field(4),
            irq: field(5).saturating_add(field(6)),
            steal: field(7),
        };
        Some((if name.is_empty() { "all".to_owned() } else { format!("cpu{name}") }, times))
    };
    rows.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEFORE: &str = "cpu  108837 3 6610 98295 506 7 98 52 0 0\ncpu0 54422 0 3443 48954 335 0 43 26 0 0\n\
        cpu1 54415 0 3166 49340 171 0 54 26 0 0\nintr 12 0\nctxt 547158\nprocs_running 3\nprocs_blocked 1\n";

    #[test]
    fn states_are_told_apart() {
        let rows = times(BEFORE);
        let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["all", "cpu0", "cpu1"]);
        let all =
            Times { user: 108_840, nice: 3, system: 6610, irq: 105, steal: 52, iowait: 506, idle: 98_295 };
        assert_eq!(rows[0].1, all);
    }

    #[test]
    fn shares_are_of_the_time_between_two_looks() {
        let before = Times::default();
        let after = Times { user: 40, nice: 10, system: 20, irq: 10, steal: 5, iowait: 15, idle: 10 };
        let mut out = Sample::default();
        put_shares("all", &before, &after, &mut out);
        let value = |metric: &str| out.values.iter().find(|value| value.metric == metric).unwrap().value;
        assert_eq!((value("user"), value("irq"), value("iowait")), (0.4, 0.1, 0.15));
        assert_eq!(value("busy"), 0.75);
        let mut nothing = Sample::default();
        put_shares("all", &after, &after, &mut nothing);
        assert!(nothing.values.is_empty(), "no time went by");
    }

    #[test]
    fn this_machine_has_processors() {
        let (mut cpu, mut gaps) = (Cpu::new(), Gaps::default());
        let mut out = Sample::default();
        cpu.sample(&mut out, &mut gaps);
        assert!(gaps.sentences().is_empty(), "{gaps:?}");
        let running = out.values.iter().find(|value| value.metric == "running").unwrap();
        assert!(running.value >= 1.0, "this test is running");
        assert!(cpu.before.len() >= 2);
    }

    proptest! {
        #[test]
        fn odd_content_does_not_panic(text in ".*", numbers in proptest::collection::vec(any::<u64>(), 0..12)) {
            let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let line = format!("cpu  {}\ncpu{text}\n{text}", words.join(" "));
            let rows = times(&line);
            let mut out = Sample::default();
            rows.iter().for_each(|(name, row)| put_shares(name, &Times::default(), row, &mut out));
            prop_assert!(out.values.iter().all(|value| (0.0..=1.0).contains(&value.value)));
        }
    }
}
