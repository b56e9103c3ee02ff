//! Tables and queries: power runs by our engine and by DataFusion alone, on files and over two S3 clients; and tables made, beside
//! tpchgen-cli.

mod generation;
mod place;
mod power;
mod void;
mod watch;

pub(crate) use generation::generate;
pub(crate) use place::serve;
pub(crate) use power::{make, run};

use crate::{Done, ROUNDS, child, median, row};
use generation::Generation;
use place::{Place, Server};
use power::{By, Cost, Power};
use tidemark_judge::statistics::Difference;
use tidemark_tpc::{QUERIES, answers};

/// The share that is still the same, of what is compared with our engine's own cost.
const OWN: f64 = 0.01;

/// Compares on tables of this scale.
pub(crate) fn compare(scale: f64) -> Done {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let files = Place::Files(directory.path().to_owned());
    child::<_, ()>("make-tables", &Power::new(&files, scale, By::Us))?;
    on_files(&files, scale)?;
    drop(directory);
    over_s3(scale)?;
    into_null_store(scale)
}

/// Who goes first changes: what one leaves behind hits both alike.
fn alternately<T>(
    mut ours: impl FnMut() -> Result<T, String>,
    mut theirs: impl FnMut() -> Result<T, String>,
) -> Result<(Vec<T>, Vec<T>), String> {
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round % 2 == 1 {
            other.push(theirs()?);
        }
        own.push(ours()?);
        if round % 2 == 0 {
            other.push(theirs()?);
        }
    }
    Ok((own, other))
}

/// Our figure as a multiple of theirs, and the interval that has the true one with 95 %.
struct Ratio {
    ratio: f64,
    interval: (f64, f64),
}

impl Ratio {
    fn of<T>(ours: &[T], theirs: &[T], what: impl Fn(&T) -> f64) -> Result<Self, String> {
        let figures = |side: &[T]| side.iter().map(&what).collect::<Vec<_>>();
        let difference = Difference::between(&figures(ours), &figures(theirs));
        let ratio = difference.and_then(|one| Some((one.ratio(), one.interval(0.05)?)));
        let (ratio, interval) = ratio.ok_or("too few figures for a ratio")?;
        Ok(Self { ratio, interval })
    }

    /// A row of the ratio of times. It is missed where the whole interval is beyond the limit: noise can only keep that from being seen.
    fn row(&self, what: &str, limit: f64) {
        let (low, high) = self.interval;
        let value = format!("{:.3} ({low:.3} to {high:.3})", self.ratio);
        let verdict = if low <= 1.0 && 1.0 <= high { "no difference shown" } else { "they differ" };
        row(what, &value, &format!("{limit:.2}; {verdict}"), low <= limit);
    }
}

/// Processor time is compared as well: neighbours disturb it least. Ours has the driver's own in it.
fn ratios(what: &str, ours: &[Cost], theirs: &[Cost], limit: f64) -> Done {
    Ratio::of(ours, theirs, Cost::queries_s)?.row(&format!("{what}: time of queries"), limit);
    Ratio::of(ours, theirs, |cost| cost.cpu_s)?.row("  processor time", 1.0 + OWN);
    let rows = |costs: &[Cost]| costs.iter().map(|cost| cost.rows.clone()).collect::<Vec<_>>();
    match rows(ours) == rows(theirs) {
        true => Ok(()),
        false => Err("the answers of the two have not as many rows".into()),
    }
}

fn on_files(files: &Place, scale: f64) -> Done {
    let run = |by| child::<_, Cost>("power-run", &Power::new(files, scale, by));
    let (ours, theirs) = alternately(|| run(By::Us), || run(By::DataFusion))?;
    let elapsed = median(ours.iter().map(|cost| cost.elapsed_s).collect());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let limit = if scale == 1.0 { "under 60 s on two" } else { "-" };
    let what = format!("{QUERIES} queries at scale {scale} on files, {processors} processors");
    row(&what, &format!("{elapsed:.1} s"), limit, scale != 1.0 || elapsed < 60.0);
    if answers::known(1, (scale * 1e3).round() as u64).is_some() {
        let known = ours.iter().map(|cost| cost.known).min().unwrap_or(0);
        let all = usize::from(QUERIES);
        row("  answers that are PostgreSQL's", &known.to_string(), &all.to_string(), known == all);
    }
    let own = median(ours.iter().map(|cost| cost.driver_s / cost.cpu_s).collect());
    let what = "  the driver's own processor time, of all";
    row(what, &format!("{:.2} %", own * 100.0), &format!("under {:.0} %", OWN * 100.0), own < OWN);
    ratios("  ours / DataFusion alone", &ours, &theirs, 1.0 + OWN)
}

fn over_s3(scale: f64) -> Done {
    let what = "queries over S3, ours / object_store's client";
    if !cfg!(feature = "peers") {
        row(what, "object_store's is not built in: `make bench` does", "-", true);
        return Ok(());
    }
    let server = Server::start()?;
    child::<_, ()>("make-tables", &Power::new(server.place(), scale, By::Us))?;
    let run = |by| child::<_, Cost>("power-run-on-one", &Power::new(server.place(), scale, by));
    let (ours, theirs) = alternately(|| run(By::Us), || run(By::DataFusion))?;
    ratios(what, &ours, &theirs, 1.0)
}

fn into_null_store(scale: f64) -> Done {
    let Some(version) = generation::version() else {
        let hint = "tpchgen-cli is not installed: `pip install tpchgen-cli`";
        row("tables into a null store, ours / tpchgen-cli", hint, "-", true);
        return Ok(());
    };
    let ours = || child::<_, Generation>("generate", &scale);
    let (ours, theirs) = alternately(ours, || generation::tpchgen_cli(scale))?;
    // tpchgen-cli does not say how many rows it made. They are those of the same generator, and so as many.
    let rows = ours.first().and_then(|made| made.rows).unwrap_or(f64::NAN);
    let rate = |side: &[Generation]| median(side.iter().map(|made| rows / made.cpu_s).collect());
    let ratio = Ratio::of(&theirs, &ours, |made| made.cpu_s)?;
    let (low, high) = ratio.interval;
    let what = format!("tables at scale {scale} into a null store, ours / {version}");
    let value = format!("{:.2} ({low:.2} to {high:.2})", ratio.ratio);
    row(&what, &value, "at least 0.90", high >= 0.9);
    let value = format!("{:.0} / {:.0}", rate(&ours), rate(&theirs));
    row("  rows per second of a processor", &value, "-", true);
    Ok(())
}
