//! Tidemark: find your storage's high-water mark.
//!
//! The binary is glue: it parses arguments, calls one function of a library, and is the only place that prints.

mod cli;
mod commands;
mod exit;
mod progress;
mod remote;
mod signals;
mod terminal;

use clap::Parser;
use cli::{Cli, Command};
use exit::{Exit, Stop};
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;
use terminal::Terminal;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return answered(&answer),
    };
    let terminal = Terminal::new(cli.color);
    let store = cli.store.clone();
    let done = match cli.command {
        Command::Run(arguments) => commands::run::run(&arguments, store, terminal),
        Command::Tune(arguments) => commands::tune::tune(&arguments, store, terminal),
        Command::Object(arguments) => commands::object::run(&arguments, store, terminal),
        Command::Block(arguments) => commands::block::block(&arguments, store, terminal),
        Command::Check(arguments) => commands::check::check(&arguments, store, terminal),
        Command::Report(arguments) => commands::report::report(&arguments, store, terminal),
        Command::Runs(arguments) => commands::runs::runs(&arguments, store, terminal),
        Command::Compare(arguments) => commands::compare::compare(&arguments, store, terminal),
        Command::Import(arguments) => commands::import::import(&arguments, store, terminal),
        Command::Observe(arguments) => commands::observe::observe(&arguments, terminal),
        Command::Serve(arguments) => commands::serve::serve(&arguments, store, terminal),
        Command::Driver(arguments) => commands::driver::driver(&arguments, terminal),
        Command::Submit(arguments) => commands::submissions::submit(&arguments, terminal),
        Command::Status(arguments) => commands::submissions::status(&arguments, terminal),
        Command::Cancel(arguments) => commands::submissions::cancel(&arguments, terminal),
        Command::Watch(arguments) => commands::watch::watch(&arguments, terminal),
        Command::Login(arguments) => commands::login::login(&arguments, terminal),
        Command::Token(arguments) => commands::token::token(&arguments, store, terminal),
        Command::Schema => commands::manual::schema(terminal),
        Command::Lab(arguments) => commands::lab::lab(&arguments, terminal),
        Command::Layout(arguments) => commands::layout::layout(&arguments, terminal),
        Command::Kubernetes(arguments) => commands::kubernetes::kubernetes(&arguments, terminal),
        Command::Operator(arguments) => commands::operator::operator(&arguments, terminal),
        Command::VolumeProbe(arguments) => commands::volumes::probe(&arguments),
        Command::RunPart => commands::driver::run_part(),
        Command::Completions { shell } => commands::manual::completions(shell, terminal),
        Command::Man { directory } => commands::manual::pages(&directory, terminal),
    };
    let exit = done.unwrap_or_else(|Stop { exit, message }| {
        if !message.is_empty() {
            terminal.remark(&format!("tidemark: {message}"));
        }
        exit
    });
    let exit = if terminal::is_unwritten() { Exit::NotWritten } else { exit };
    ExitCode::from(exit as u8)
}

/// The end of a command line that is answered at once: by help, by the version, or by what is wrong with it.
fn answered(answer: &clap::Error) -> ExitCode {
    let exit = if answer.use_stderr() { Exit::Usage } else { Exit::Done };
    let written = answer.print().and_then(|()| std::io::stdout().flush());
    match written {
        Err(error) if exit == Exit::Done && error.kind() != ErrorKind::BrokenPipe => {
            let told = format!("tidemark: cannot write to the standard output: {error}");
            Terminal::new(cli::When::Never).remark(&told);
            ExitCode::from(Exit::NotWritten as u8)
        }
        _ => ExitCode::from(exit as u8),
    }
}
