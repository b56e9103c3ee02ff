//! `tidemark check FILE`.

use super::document;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::{Style, Terminal};
use tidemark_measure::record::Cell;
use tidemark_measure::units;
use tidemark_plan::forecast::{self, Amount, Forecast, Stage, Work};

/// Sweeps of more stages than this are shown by their axes.
const MOST_POINTS: usize = 20;

/// Says what a document will do and need.
pub(crate) fn check(arguments: &cli::Check, terminal: Terminal) -> Result<Exit, Stop> {
    let source = document::read(&arguments.file, terminal)?;
    let forecast = forecast::forecast(&source.document.plan);
    if arguments.json {
        terminal.print(&serde_json::to_string_pretty(&forecast).unwrap_or_default());
        return Ok(Exit::Done);
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
    Ok(Exit::Done)
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
    terminal.print(&format!("  in all    {}", forecast.time.describe()));
    let connections = match forecast.connections {
        0 => String::new(),
        some => format!(", {} connections", units::count(some)),
    };
    terminal.print(&format!("  at once   {} workers{connections}", units::count(forecast.workers)));
    terminal.print(&format!("  memory    about {} here", units::bytes(forecast.memory_bytes)));
    if forecast.volume_bytes > 0 {
        terminal.print(&format!("  volumes   {} in all", units::bytes(forecast.volume_bytes)));
    }
    if forecast.stored_bytes > 0 || forecast.volume_bytes == 0 {
        terminal.print(&format!("  storage   up to {} of objects", units::bytes(forecast.stored_bytes)));
    }
}

fn stage(number: usize, stage: &Stage, terminal: Terminal) {
    terminal.print(&format!("  {number}. {}  ({})", stage.name, stage.time.describe()));
    for work in &stage.works {
        let (kind, workers, time) = (&work.kind, units::count(work.workers.into()), work.time.describe());
        let depth = if work.depth > 1 { format!(", {} operations each", work.depth) } else { String::new() };
        terminal.print(&format!("       {} ({kind}): {workers} workers{depth}, {time}", work.name));
        actions(work, terminal);
    }
}

/// The stages of a sweep: a line for each point, or what its axes are if that would be too long.
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
    for (axis, (name, _)) in cell.axes.iter().enumerate() {
        let mut values: Vec<&str> = Vec::new();
        for (_, value) in points().filter_map(|cell| cell.axes.get(axis)) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        terminal.print(&format!("       {name}: {}", values.join(", ")));
    }
    terminal.print(&format!("       each {}", stages[0].time.describe()));
}

fn actions(work: &Work, terminal: Terminal) {
    for action in &work.actions {
        let does = serde_json::to_value(action.does).unwrap_or_default();
        let does = does.as_str().unwrap_or_default().replace('_', " ");
        let count = action.count.describe(units::count);
        let operations = match action.operations {
            Amount::Open => "in as many operations as the target allows".to_owned(),
            operations => format!("in {} operations", operations.describe(units::count)),
        };
        let bytes = match action.bytes {
            Amount::Open => String::new(),
            Amount::Exactly(0) => String::new(),
            _ if does.contains("container") => String::new(),
            bytes => format!(", {}", bytes.describe(units::bytes)),
        };
        let of_volumes = does.contains("block") || does.contains("volume");
        let count = match action.count {
            Amount::Open => String::new(),
            Amount::Exactly(1) if of_volumes => "of 1 volume, ".to_owned(),
            _ if of_volumes => format!("of {count} volumes, "),
            _ => format!("{count} "),
        };
        terminal.print(&format!("         {}: {does}: {count}{operations}{bytes}", action.label));
    }
}
