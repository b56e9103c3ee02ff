//! `tidemark completions`, `man` and `schema`: descriptions of the program for shells, readers and editors.

use crate::cli::Cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use clap::CommandFactory;
use std::path::Path;

/// Prints a completion script.
pub(crate) fn completions(shell: clap_complete::Shell, terminal: Terminal) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tidemark", &mut script);
    terminal.print(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}

/// Prints the JSON Schema of documents.
pub(crate) fn schema(terminal: Terminal) -> Result<Exit, Stop> {
    terminal.print(
        &serde_json::to_string_pretty(&tidemark_plan::schema::schema(&tidemark_engines::registry()))
            .unwrap_or_default(),
    );
    Ok(Exit::Done)
}

/// Writes a manual page for the program and one for every command.
pub(crate) fn pages(directory: &Path, terminal: Terminal) -> Result<Exit, Stop> {
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|error| Stop::not_written(format!("cannot write to {}: {error}", directory.display())))?;
    terminal.remark(&format!("manual pages: {}", directory.display()));
    Ok(Exit::Done)
}
