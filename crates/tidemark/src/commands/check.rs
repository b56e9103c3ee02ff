//! `tidemark check FILE`.

use super::document::{self, Opened};
use super::outcome::open_store;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::{Style, Terminal};
use std::path::PathBuf;
use tidemark_control::evaluate::expected_searches;
use tidemark_control::{evaluate, provenance};
use tidemark_judge::evaluation::{Power, difference, finds_nothing, plus_minus, power};
use tidemark_judge::knee::{Expected, expected};
use tidemark_load::open_files;
use tidemark_measure::evaluation::level_label as level;
use tidemark_measure::record::{Cell, Run};
use tidemark_measure::units;
use tidemark_plan::evaluation::{Arm, CellPlace, Evaluation, Levels};
use tidemark_plan::forecast::{self, Forecast, Stage, Time};
use tidemark_plan::plan::Plan;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// Sweeps of more stages than this are shown by their axes.
const MOST_POINTS: usize = 20;

/// Shows what a document will do and require.
pub(crate) fn check(
    arguments: &cli::Check,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let source = match document::read(&arguments.file, terminal)? {
        Opened::Workload(source) => source,
        Opened::Evaluation(source) => {
            let (record, runs) = measured(&source.evaluation, store)?;
            let known = power(&record, &runs, arguments.noise);
            evaluation(&source.evaluation, &known, arguments.json, terminal)?;
            if !arguments.json {
                tell_power(&record, &known, terminal);
            }
            return Ok(Exit::Done);
        }
    };
    let registry = tidemark_engines::registry();
    let plan = &source.document.plan;
    rehearse(plan, &registry).map_err(Stop::usage)?;
    let forecast = forecast::forecast(plan, &registry);
    let possible = possible(&forecast);
    if arguments.json {
        terminal.print(&serde_json::to_string_pretty(&forecast).unwrap_or_default());
        return possible.map(|()| Exit::Done);
    }
    show(&forecast, terminal);
    let notes = source.document.plan.notes.iter().chain(&forecast.notes);
    for note in notes {
        terminal.line(&format!(
            "{} {}",
            terminal.paint(Style::Warning, &format!("note ({}):", note.topic)),
            note.text
        ));
    }
    possible.map(|()| Exit::Done)
}

/// Whether the programs that would carry out the plan are there and understand it.
fn rehearse(plan: &Plan, registry: &Registry) -> Result<(), String> {
    registry.engines().try_for_each(|engine| engine.rehearse(plan))
}

/// The same for all arms and loads of an evaluation. What an arm's set-up makes known is not known yet: a load that needs it is not
/// looked at.
pub(super) fn rehearse_all(document: &Evaluation) -> Result<(), String> {
    let registry = tidemark_engines::registry();
    let environment = Environment::process(&registry);
    for load in 0..document.loads.len() {
        let first = document.loads[load].levels.known().into_iter().next().unwrap_or_default();
        for arm in 0..document.arms.len() {
            if let Ok(plan) = document.sketch(arm, load, &first, 1, &environment) {
                rehearse(&plan, &registry)?;
            }
        }
    }
    Ok(())
}

/// Whether this process could run what is forecast.
fn possible(forecast: &Forecast) -> Result<(), Stop> {
    open_files::check(forecast.open_files, provenance::cores(), open_files::limit())
        .map_err(|refusal| Stop::not_ready(format!("this document cannot be run here: {refusal}")))
}

/// How many runs an evaluation takes, and how long.
fn extent(document: &Evaluation, cells: &[CellPlace], forecasts: &[Forecast], terminal: Terminal) {
    let searches = expected_searches(document);
    let repeats = match document.until {
        Some(until) => {
            let (least, most) = (document.repeats_least(), document.repeats);
            format!("{least} to {most} repeats, until {} of each mean", plus_minus(until))
        }
        None => counted(document.repeats.into(), "repeat"),
    };
    let at_most = if document.until.is_some() { "at most " } else { "" };
    let listed = match cells.len() as u64 {
        0 if searches.is_some() => None,
        runs => Some(format!("{at_most}{} ({repeats})", units::count(runs))),
    };
    let searched = searches.map(|Expected { least, most, .. }| match least == most {
        true => format!("{} for the searches", units::count(least.into())),
        false => format!("{} to {} for the searches", units::count(least.into()), units::count(most.into())),
    });
    let runs: Vec<String> = listed.into_iter().chain(searched).collect();
    terminal.line(&format!("  runs      {}", runs.join(", and ")));
    let planned = cells.iter().map(|cell| forecasts[cell.load].time.planned_ns).fold(0, u64::saturating_add);
    let of_searches = |runs: fn(&Expected) -> u32| {
        let loads = document.loads.iter().zip(forecasts);
        let each = loads.filter_map(|(load, forecast)| match &load.levels {
            Levels::Searched(search) => {
                Some(forecast.time.planned_ns.saturating_mul(runs(&expected(search)).into()))
            }
            Levels::Listed(_) => None,
        });
        each.fold(planned, |sum, own| sum.saturating_add(own.saturating_mul(document.arms.len() as u64)))
    };
    let (least, most) = (of_searches(|runs| runs.least), of_searches(|runs| runs.most));
    if most > 0 {
        let until = forecasts.iter().flat_map(|forecast| forecast.time.until.clone()).collect();
        let at_most = (document.until.is_some() && !cells.is_empty())
            || forecasts.iter().any(|forecast| forecast.time.at_most);
        let has_least = least < most && !at_most;
        let least = if has_least { format!("{} to ", units::duration_ns(least)) } else { String::new() };
        let time = Time { planned_ns: most, until, at_most };
        terminal.line(&format!("  in total  {least}{}", load_time(&time)));
    }
}

/// Shows what an evaluation will do: its arms with their commands, its loads, how many runs, how long.
fn evaluation(document: &Evaluation, power: &[Power], json: bool, terminal: Terminal) -> Result<Exit, Stop> {
    let registry = tidemark_engines::registry();
    let environment = Environment::process(&registry);
    let cells = document.cells();
    rehearse_all(document).map_err(Stop::usage)?;
    let mut forecasts = Vec::new();
    for load in 0..document.loads.len() {
        let first = document.loads[load].levels.known().into_iter().next().unwrap_or_default();
        let plan = document.sketch(0, load, &first, 1, &environment).map_err(|diagnostics| {
            let said: Vec<_> = diagnostics.iter().map(|one| one.message.as_str()).collect();
            Stop::usage(format!("load `{}`: {}", document.loads[load].name, said.join("; ")))
        })?;
        forecasts.push(forecast::forecast(&plan, &registry));
    }
    if json {
        let loads: Vec<_> = forecasts.iter().map(|forecast| serde_json::json!(forecast)).collect();
        let searches = expected_searches(document).map(|searches| {
            let Expected { least, undisturbed, most } = searches;
            serde_json::json!({"least": least, "undisturbed": undisturbed, "most": most})
        });
        let runs = document.tuning.as_ref().map_or(cells.len(), |tuning| tuning.runs as usize);
        let name = &document.name;
        let event = serde_json::json!({
            "name": name, "runs": runs, "searches": searches, "loads": loads, "power": power
        });
        terminal.print(&event.to_string());
        return Ok(Exit::Done);
    }
    terminal.line(&terminal.paint(Style::Strong, &document.name));
    terminal.line(&format!("  arms      {} ({})", document.arms.len(), document.order.name()));
    for (index, arm) in document.arms.iter().enumerate() {
        let role = if index == 0 { "  (the baseline)" } else { "" };
        terminal.line(&format!("    {}{role}", arm.name));
        for (name, value) in &arm.settings {
            terminal.line(&terminal.paint(Style::Faint, &format!("      {name}: {value}")));
        }
        for (key, commands) in arm.commands() {
            commands.iter().for_each(|text| terminal.line(&format!("      {key}: {text}")));
        }
    }
    if let Some(tuning) = &document.tuning {
        let settings = tuning.space.settings.len();
        terminal.line(&format!(
            "  search    {settings} settings of it, by `tidemark tune`; --dry-run shows them"
        ));
    }
    terminal.line(&format!("  loads     {}", document.loads.len()));
    for (load, forecast) in document.loads.iter().zip(&forecasts) {
        let levels = match &load.levels {
            Levels::Listed(levels) => {
                let texts: Vec<_> = levels.iter().map(level).filter(|text| !text.is_empty()).collect();
                if texts.is_empty() { String::new() } else { format!("at {}", texts.join("; ")) }
            }
            Levels::Searched(search) => {
                let ends: Vec<_> = load.levels.known().iter().map(level).collect();
                let within = units::percent(search.within).replace(".00", "");
                let Expected { least, undisturbed, most } = expected(search);
                format!(
                    "search between {}, to within {within}: {least} to {most} runs on each arm, about {undisturbed} if no run \
                     misleads",
                    ends.join(" and ")
                )
            }
        };
        let service_level = load.service_level.as_ref().map(|level| format!("service level: {}", level.text));
        terminal.line(&format!("    {}: each run {}", load.name, load_time(&forecast.time)));
        for line in [levels].into_iter().filter(|line| !line.is_empty()).chain(service_level) {
            terminal.line(&terminal.paint(Style::Faint, &format!("      {line}")));
        }
    }
    match &document.tuning {
        Some(tuning) => {
            let time = forecasts.first().map_or(0, |forecast| forecast.time.planned_ns);
            let time = units::duration_ns(time.saturating_mul(tuning.runs.into()));
            terminal.line(&format!(
                "  runs      at most {}, which take {time} without set-up",
                units::count(tuning.runs.into())
            ));
        }
        None => extent(document, &cells, &forecasts, terminal),
    }
    if document.arms.iter().any(Arm::has_commands) {
        terminal.print("  commands  require --run-commands");
    }
    for note in &document.notes {
        let topic = terminal.paint(Style::Warning, &format!("note ({}):", note.topic));
        terminal.line(&format!("{topic} {}", note.text));
    }
    forecasts.iter().try_for_each(possible).map(|()| Exit::Done)
}

/// What earlier starts measured of the same cells; nothing where there is no store yet.
fn measured(
    document: &Evaluation,
    store: Option<PathBuf>,
) -> Result<(tidemark_measure::evaluation::Evaluation, Vec<Run>), Stop> {
    let path = store.unwrap_or_else(tidemark_store::default_path);
    let store = path.exists().then(|| open_store(Some(path))).transpose()?;
    evaluate::measured(document, "Tidemark evaluation", store.as_ref()).map_err(Stop::not_ready)
}

/// Noise for which it is said what would be found where none is known.
const ASSUMED: [f64; 2] = [0.01, 0.05];

/// Which differences would be found.
fn tell_power(record: &tidemark_measure::evaluation::Evaluation, known: &[Power], terminal: Terminal) {
    if record.arms.len() < 2 {
        return;
    }
    if finds_nothing(record) {
        terminal.line(
            "  power     none: in `order: blocks` the arms are measured one after the other, and no difference between them is called \
             better or worse; `order: interleaved` tells them apart",
        );
        return;
    }
    let line = |one: &Power| {
        let cell = match one.cell {
            Some(share) => format!("{} in one cell", difference(share)),
            None => "none without repeats".to_owned(),
        };
        let mean =
            one.mean.map(|share| format!(", {} in the mean of {} cells", difference(share), one.cells));
        let vary = units::percent(one.variation);
        let source = match one.runs {
            0 => format!("if repeats vary by {vary}"),
            runs => format!("repeats varied by {vary} in {runs} earlier runs"),
        };
        let repeats = counted(one.repeats.into(), "repeat");
        format!("    {}: {cell}{} ({repeats}, {source})", one.load, mean.unwrap_or_default())
    };
    let assumed: Vec<Power> = ASSUMED.into_iter().flat_map(|noise| power(record, &[], Some(noise))).collect();
    let shown = if known.is_empty() { &assumed } else { known };
    terminal.print("  power     differences that four of five such evaluations would find, from");
    shown.iter().for_each(|one| terminal.line(&line(one)));
}

/// The planned time of runs, apart from what takes as long as it takes.
fn load_time(time: &Time) -> String {
    let planned = Time { until: Vec::new(), ..time.clone() }.describe();
    match (time.until.is_empty(), time.planned_ns) {
        (true, _) => planned,
        (false, 0) => time.summary(),
        (false, _) => format!("{planned}, plus preparation and cleanup"),
    }
}

fn show(forecast: &Forecast, terminal: Terminal) {
    terminal.line(&terminal.paint(Style::Strong, &forecast.name));
    let sweep_of = |stage: &Stage| stage.cell.as_ref().map(|cell| cell.sweep.clone());
    let mut first = 1;
    for stages in forecast.stages.chunk_by(|one, next| one.cell.is_some() && sweep_of(one) == sweep_of(next))
    {
        match &stages[0].cell {
            Some(cell) => sweep(first, stages, cell, terminal),
            None => stages.iter().for_each(|only| stage(first, only, terminal)),
        }
        first += stages.len();
    }
    terminal.line(&format!("  in total  {}", forecast.time.summary()));
    let connections = match forecast.connections {
        0 => String::new(),
        some => format!(", {}", counted(some, "connection")),
    };
    terminal.line(&format!("  at once   {}{connections}", counted(forecast.workers, "worker")));
    terminal.line(&format!("  memory    about {}", units::bytes(forecast.memory_bytes)));
    if forecast.volume_bytes > 0 {
        terminal.line(&format!("  volumes   {} in total", units::bytes(forecast.volume_bytes)));
    }
    if forecast.stored_bytes > 0 {
        terminal.line(&format!("  stored    up to {}", units::bytes(forecast.stored_bytes)));
    }
}

fn stage(number: usize, stage: &Stage, terminal: Terminal) {
    terminal.line(&format!("  {number}. {}  ({})", stage.name, stage.time.describe()));
    for work in &stage.works {
        let workers = counted(work.workers.into(), "worker");
        let kind = match work.kind.name() {
            kind if kind == work.name => String::new(),
            kind => format!(" ({kind})"),
        };
        let sharing = work.sharing();
        let think = if work.think.is_none() { String::new() } else { format!(", think time {}", work.think) };
        let target = if work.target.is_empty() { String::new() } else { format!(", on {}", work.target) };
        let time = match stage.works.len() {
            1 => String::new(),
            _ => format!(", {}", work.time.describe()),
        };
        terminal.line(&format!("       {}{kind}: {workers}{sharing}{think}{time}{target}", work.name));
        for (operation, names) in work.operations() {
            terminal.line(&format!("         {operation}"));
            if !names.is_empty() {
                terminal.line(&terminal.paint(Style::Faint, &format!("           {names}")));
            }
        }
    }
}

/// A number of things: `1 worker`, `32 workers`.
fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", units::count(number), if number == 1 { "" } else { "s" })
}

/// The stages of a sweep: a line for each point, or its axes if that would be too long.
fn sweep(first: usize, stages: &[Stage], cell: &Cell, terminal: Terminal) {
    let repeats = if cell.repeats > 1 { format!(", {} repeats", cell.repeats) } else { String::new() };
    let points = stages.iter().filter_map(|stage| stage.cell.as_ref());
    let points = || points.clone().filter(|cell| cell.repeat == 1);
    terminal.line(&format!(
        "  {first}. to {}. sweep {}: {} points{repeats}",
        first + stages.len() - 1,
        cell.sweep,
        units::count(points().count() as u64)
    ));
    if stages.len() <= MOST_POINTS {
        for (index, stage) in stages.iter().enumerate() {
            terminal.line(&format!("       {}. {}  ({})", first + index, stage.name, stage.time.describe()));
        }
        return;
    }
    for (place, axis) in cell.axes.iter().enumerate() {
        let mut values: Vec<String> = Vec::new();
        for value in points().filter_map(|cell| Some(cell.axes.get(place)?.value.to_string())) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        terminal.line(&format!("       {}: {}", axis.name, values.join(", ")));
    }
    terminal.line(&format!("       each {}", stages[0].time.describe()));
}
