//! `tidemark check FILE`.

use super::document;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::{Style, Terminal};
use tidemark_measure::units;
use tidemark_plan::forecast::{self, Amount, Forecast, Work};

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
    for (index, stage) in forecast.stages.iter().enumerate() {
        terminal.print(&format!("  {}. {}  ({})", index + 1, stage.name, stage.time.describe()));
        for work in &stage.works {
            let (kind, workers, time) = (&work.kind, units::count(work.workers.into()), work.time.describe());
            terminal.print(&format!("       {} ({kind}): {workers} workers, {time}", work.name));
            actions(work, terminal);
        }
    }
    terminal.print(&format!("  in all    {}", forecast.time.describe()));
    terminal.print(&format!(
        "  at once   {} workers, {} connections",
        units::count(forecast.workers),
        units::count(forecast.connections)
    ));
    terminal.print(&format!("  memory    about {} here", units::bytes(forecast.memory_bytes)));
    terminal.print(&format!("  storage   up to {} of objects", units::bytes(forecast.stored_bytes)));
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
            _ if does.contains("container") => String::new(),
            bytes => format!(", {}", bytes.describe(units::bytes)),
        };
        let count = if action.count == Amount::Open { String::new() } else { format!("{count} ") };
        terminal.print(&format!("         {}: {does}: {count}{operations}{bytes}", action.label));
    }
}
