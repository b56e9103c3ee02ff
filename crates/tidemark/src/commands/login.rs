//! `tidemark login`: a browser logged in as whoever uses the command line.

use crate::cli;
use crate::exit::{Exit, Stop};
use crate::remote::Controller;
use crate::terminal::Terminal;

/// Prints an address of the controller that logs a browser in, once.
pub(crate) fn login(arguments: &cli::Remote, terminal: Terminal) -> Result<Exit, Stop> {
    let url = Controller::of(arguments)?.login()?;
    match arguments.json {
        true => terminal.print(&serde_json::json!({ "url": url.as_str() }).to_string()),
        false => terminal.print(url.as_str()),
    }
    Ok(Exit::Done)
}
