//! `tidemark import`: results of other tools into the store.

use super::assessment::{self, Judged};
use super::outcome::{exit_of, open_store, summary};
use crate::cli::{self, ImportFormat};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use serde_json::json;
use std::path::PathBuf;
use tidemark_control::listing;
use tidemark_import::{Format, Imported, Options, import as read};
use tidemark_judge::evaluation::assess;
use tidemark_measure::service_level::ServiceLevel;
use tidemark_measure::units;
use tidemark_store::Store;

/// Reads results of other tools and keeps them.
pub(crate) fn import(
    arguments: &cli::Import,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let wrong = |error: units::UnitError| Stop::usage(format!("{}; {}", error.message, error.advice));
    let service_level = arguments.service_level.as_deref().map(ServiceLevel::parse);
    let options = Options {
        format: arguments.format.map(format),
        name: arguments.name.clone(),
        service_level: service_level.transpose().map_err(wrong)?,
        object_bytes: arguments.size.as_deref().map(units::parse_bytes).transpose().map_err(wrong)?,
    };
    let mut read_in = Vec::new();
    for path in &arguments.paths {
        read_in.push(read(path, &options).map_err(Stop::usage)?);
    }
    let mut store = open_store(store)?;
    let mut exit = Exit::Done;
    for imported in read_in {
        let own = keep(imported, arguments, &mut store, terminal).map_err(Stop::not_ready)?;
        exit = if exit == Exit::Done { own } else { exit };
    }
    Ok(exit)
}

/// Keeps what was read, and shows it. Returns how a command that measured it would have ended.
fn keep(
    mut imported: Imported,
    arguments: &cli::Import,
    store: &mut Store,
    terminal: Terminal,
) -> Result<Exit, tidemark_store::StoreError> {
    if let Some(evaluation) = &mut imported.evaluation {
        evaluation.id = store.begin_evaluation(evaluation)?;
        for member in imported.runs.iter_mut().filter_map(|run| run.member.as_mut()) {
            member.evaluation = evaluation.id;
        }
    }
    for run in &mut imported.runs {
        run.id = store.add(run, &listing::of_run(run))?;
    }
    let Some(evaluation) = &imported.evaluation else {
        let mut exit = Exit::Done;
        for run in &imported.runs {
            let judgement = tidemark_judge::judge(run);
            exit = if exit == Exit::Done { exit_of(run, &judgement) } else { exit };
            match arguments.json {
                true => terminal.print(&json!({"run": run.id, "name": run.name}).to_string()),
                false => {
                    summary(run, &judgement, terminal);
                    terminal.print(&format!("\nrun     {} (`tidemark report {}`)", run.id, run.id));
                }
            }
        }
        return Ok(exit);
    };
    let assessment = assess(evaluation, &imported.runs);
    store.keep_evaluation(evaluation, Some(&listing::of_evaluation(&assessment)))?;
    let judged = Judged { evaluation, assessment: &assessment, runs: &imported.runs };
    let exit = Exit::of(evaluation.state, assessment.validity.is_valid(), assessment::failed(&judged));
    if arguments.json {
        let runs: Vec<u64> = imported.runs.iter().map(|run| run.id).collect();
        terminal.print(
            &json!({"evaluation": evaluation.id, "runs": runs, "verdict": assessment.verdict}).to_string(),
        );
        return Ok(exit);
    }
    assessment::show(&judged, terminal);
    assessment::closing(evaluation, None, terminal);
    Ok(exit)
}

fn format(format: ImportFormat) -> Format {
    match format {
        ImportFormat::Cosbench => Format::Cosbench,
        ImportFormat::Fio => Format::Fio,
        ImportFormat::Warp => Format::Warp,
        ImportFormat::Elbencho => Format::Elbencho,
        ImportFormat::Sysbench => Format::Sysbench,
        ImportFormat::Pgbench => Format::Pgbench,
        ImportFormat::Hammerdb => Format::Hammerdb,
        ImportFormat::Table => Format::Table,
    }
}
