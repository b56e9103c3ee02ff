//! `tidemark check FILE`.

use super::document::{self, Opened};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::{Style, Terminal};
use tidemark_control::provenance;
use tidemark_load::open_files;
use tidemark_measure::evaluation::level_label as level;
use tidemark_measure::record::Cell;
use tidemark_measure::units;
use tidemark_plan::evaluation::{Arm, Evaluation, Levels};
use tidemark_plan::forecast::{self, Amount, Forecast, Stage, Work};
use tidemark_plan::yaml::Environment;

/// Sweeps of more stages than this are shown by their axes.
const MOST_POINTS: usize = 20;

/// Shows what a document will do and require.
pub(crate) fn check(arguments: &cli::Check, terminal: Terminal) -> Result<Exit, Stop> {
    let source = match document::read(&arguments.file, terminal)? {
        Opened::Workload(source) => source,
        Opened::Evaluation(source) => return evaluation(&source.evaluation, arguments.json, terminal),
    };
    let forecast = forecast::forecast(&source.document.plan, &tidemark_engines::registry());
    let possible = possible(&forecast);
    if arguments.json {
        terminal.print(&serde_json::to_string_pretty(&forecast).unwrap_or_default());
        return possible.map(|()| Exit::Done);
    }
    show(&forecast, terminal);
    let notes = source.document.plan.notes.iter().chain(&forecast.notes);
    for note in notes {
        terminal.print(&format!(
            "{} {}",
            terminal.paint(Style::Warning, &format!("note ({}):", note.topic)),
            note.text
        ));
    }
    possible.map(|()| Exit::Done)
}

/// Whether this process could run what is forecast.
fn possible(forecast: &Forecast) -> Result<(), Stop> {
    open_files::check(forecast.open_files, provenance::cores(), open_files::limit())
        .map_err(|refusal| Stop::not_ready(format!("this document cannot be run here: {refusal}")))
}

/// Shows what an evaluation will do: its arms with their commands, its loads, how many runs, how long.
fn evaluation(document: &Evaluation, json: bool, terminal: Terminal) -> Result<Exit, Stop> {
    let registry = tidemark_engines::registry();
    let environment = Environment::process(&registry);
    let cells = document.cells();
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
        let runs = cells.len();
        terminal.print(&serde_json::json!({"name": document.name, "runs": runs, "loads": loads}).to_string());
        return Ok(Exit::Done);
    }
    terminal.print(&terminal.paint(Style::Strong, &document.name));
    terminal.print(&format!("  arms      {} ({})", document.arms.len(), document.order.name()));
    for (index, arm) in document.arms.iter().enumerate() {
        let role = if index == 0 { "  (the baseline)" } else { "" };
        let lab = arm.lab.as_ref().map(|lab| format!("  lab {}", lab.layout)).unwrap_or_default();
        terminal.print(&format!("    {}{role}{lab}", arm.name));
        for (name, value) in &arm.settings {
            terminal.print(&terminal.paint(Style::Faint, &format!("      {name}: {value}")));
        }
        for (key, commands) in [("set_up", &arm.set_up), ("reset", &arm.reset), ("tear_down", &arm.tear_down)]
        {
            commands.iter().for_each(|text| terminal.print(&format!("      {key}: {text}")));
        }
    }
    terminal.print(&format!("  loads     {}", document.loads.len()));
    for (load, forecast) in document.loads.iter().zip(&forecasts) {
        let levels = match &load.levels {
            Levels::Listed(levels) => {
                let texts: Vec<_> = levels.iter().map(level).filter(|text| !text.is_empty()).collect();
                if texts.is_empty() { String::new() } else { format!("  at {}", texts.join("; ")) }
            }
            Levels::Searched(search) => {
                let ends: Vec<_> = load.levels.known().iter().map(level).collect();
                format!("  a search from {}, within {}", ends.join(" to "), units::percent(search.within))
            }
        };
        let within =
            load.service_level.as_ref().map(|level| format!("  ({})", level.text)).unwrap_or_default();
        terminal.print(&format!("    {}: each run {}{levels}{within}", load.name, forecast.time.describe()));
    }
    let searches = document.loads.iter().filter(|load| matches!(load.levels, Levels::Searched(_))).count();
    let (runs, repeats) = (units::count(cells.len() as u64), counted(document.repeats.into(), "repeat"));
    let of_searches = "as many as the searches need";
    let runs = match (cells.len(), searches) {
        (_, 0) => format!("{runs} ({repeats})"),
        (0, _) => format!("{of_searches} ({repeats} of each level)"),
        _ => format!("{runs} ({repeats}), and {of_searches}"),
    };
    terminal.print(&format!("  runs      {runs}"));
    let planned = cells.iter().map(|cell| forecasts[cell.load].time.planned_ns).fold(0, u64::saturating_add);
    let counted = forecasts.iter().any(|forecast| !forecast.time.until.is_empty());
    let and = if counted { ", plus preparation and clean-up" } else { "" };
    let total = match (cells.len(), searches) {
        (_, 0) => format!("{} of load{and}", units::duration_ns(planned)),
        (0, _) => format!("what the runs of the searches take{and}"),
        _ => format!("{} of load, and what the runs of the searches take{and}", units::duration_ns(planned)),
    };
    terminal.print(&format!("  in total  {total}"));
    if document.arms.iter().any(Arm::has_commands) {
        terminal.print("  commands  require --run-commands");
    }
    for note in &document.notes {
        let topic = terminal.paint(Style::Warning, &format!("note ({}):", note.topic));
        terminal.print(&format!("{topic} {}", note.text));
    }
    forecasts.iter().try_for_each(possible).map(|()| Exit::Done)
}

fn show(forecast: &Forecast, terminal: Terminal) {
    terminal.print(&terminal.paint(Style::Strong, &forecast.name));
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
    terminal.print(&format!("  in total  {}", forecast.time.describe()));
    let connections = match forecast.connections {
        0 => String::new(),
        some => format!(", {} connections", units::count(some)),
    };
    terminal.print(&format!("  at once   {}{connections}", counted(forecast.workers, "worker")));
    terminal.print(&format!("  memory    about {}", units::bytes(forecast.memory_bytes)));
    if forecast.volume_bytes > 0 {
        terminal.print(&format!("  volumes   {} in total", units::bytes(forecast.volume_bytes)));
    }
    if forecast.stored_bytes > 0 || forecast.volume_bytes == 0 {
        terminal.print(&format!("  storage   up to {} of objects", units::bytes(forecast.stored_bytes)));
    }
}

fn stage(number: usize, stage: &Stage, terminal: Terminal) {
    terminal.print(&format!("  {number}. {}  ({})", stage.name, stage.time.describe()));
    for work in &stage.works {
        let (kind, workers, time) =
            (work.kind.name(), counted(work.workers.into(), "worker"), work.time.describe());
        let depth = if work.depth > 1 { format!(", {} operations each", work.depth) } else { String::new() };
        let target = if work.target.is_empty() { String::new() } else { format!(", on {}", work.target) };
        terminal.print(&format!("       {} ({kind}): {workers}{depth}, {time}{target}", work.name));
        actions(work, terminal);
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
    terminal.print(&format!(
        "  {first}. to {}. sweep {}: {} points{repeats}",
        first + stages.len() - 1,
        cell.sweep,
        units::count(points().count() as u64)
    ));
    if stages.len() <= MOST_POINTS {
        for (index, stage) in stages.iter().enumerate() {
            terminal.print(&format!("       {}. {}  ({})", first + index, stage.name, stage.time.describe()));
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
        terminal.print(&format!("       {}: {}", axis.name, values.join(", ")));
    }
    terminal.print(&format!("       each {}", stages[0].time.describe()));
}

fn actions(work: &Work, terminal: Terminal) {
    for action in &work.actions {
        let ratio = if work.actions.len() > 1 && action.ratio > 0.0 {
            format!(" {} %", (action.ratio * 100.0).round() / 100.0)
        } else {
            String::new()
        };
        let held = match action.held {
            Amount::Open => String::new(),
            same if same == action.bytes => String::new(),
            held => format!(" ({})", held.describe(units::bytes)),
        };
        let count = match (action.count, action.does.counts) {
            (Amount::Open, _) => String::new(),
            (count, "") => format!("{}{held} ", count.describe(units::count)),
            (Amount::Exactly(1), one) => format!("of 1 {one}, "),
            (count, one) => format!("of {} {one}s, ", count.describe(units::count)),
        };
        let operations = match action.operations {
            Amount::Open => "in as many operations as possible".to_owned(),
            Amount::Exactly(1) => "in 1 operation".to_owned(),
            operations => format!("in {} operations", operations.describe(units::count)),
        };
        let bytes = match action.bytes {
            Amount::Open | Amount::Exactly(0) => String::new(),
            _ if !action.does.moves_bytes => String::new(),
            bytes => format!(", {}", bytes.describe(units::bytes)),
        };
        let does = action.does.words();
        terminal.print(&format!("         {}{ratio}: {does}: {count}{operations}{bytes}", action.label));
        if !action.names.is_empty() {
            terminal.print(&terminal.paint(Style::Faint, &format!("           {}", action.names)));
        }
    }
}
