//! What observing costs: `cost SECONDS [PROCESS ...] [DIRECTORY ...]` observes this node, and the daemons whose sockets are in the
//! directories, and writes the processor time that this process used for it, the mean of every series, and the gaps.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tidemark_observe::{Observer, Options};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(20);
    let (directories, processes): (Vec<_>, Vec<_>) = arguments.partition(|word| word.contains('/'));
    let ceph_sockets = directories.into_iter().map(PathBuf::from).collect();
    let options = Options { processes, ceph_sockets, ..Options::default() };
    let (start, before) = (Instant::now(), used());
    let observer = Observer::start(&options, start);
    std::thread::sleep(Duration::from_secs(seconds));
    let nodes = observer.finish();
    let (cost, wall) = (used() - before, start.elapsed());
    let mut out = io::stdout().lock();
    for node in &nodes {
        node.facts.iter().try_for_each(|(name, value)| writeln!(out, "{name}: {value}"))?;
        for series in &node.series {
            let mean = node.mean(series, 0, u64::MAX).unwrap_or(f64::NAN);
            writeln!(out, "{:?} {} {}: {mean:.4}", series.kind, series.subject, series.metric)?;
        }
        node.gaps.iter().try_for_each(|gap| writeln!(out, "{gap}"))?;
    }
    let share = cost.as_secs_f64() / wall.as_secs_f64() * 100.0;
    writeln!(out, "processor time: {cost:?} in {wall:?} = {share:.2} % of one core")
}

/// Processor time of this process so far.
fn used() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or(0))
}
