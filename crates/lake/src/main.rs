//! `tidemark-lake`: carries out loads on tables for `tidemark`, which starts it when a document needs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().len() > 1 {
        return print(&format!("tidemark-lake {}", env!("CARGO_PKG_VERSION")));
    }
    match tidemark_fleet::helper::serve(tidemark_lake::registry()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            // Nobody is left to tell.
            let _ = writeln!(std::io::stderr(), "tidemark-lake: {error}");
            ExitCode::from(2)
        }
    }
}

fn print(line: &str) -> ExitCode {
    use std::io::Write as _;
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
