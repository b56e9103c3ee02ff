//! `tidemark tune FILE`: searches for better settings; applies and undoes what it found.

use super::document::{self, Evaluation as Source, Opened};
use super::evaluate::{self, Screen};
use super::outcome::write;
use super::table::aligned;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::{Style, Terminal};
use serde_json::json;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tidemark_control::evaluate::apply;
use tidemark_keys::tree::{self, Value};
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::record::Run;
use tidemark_measure::tuning::{Configuration, Tuning};
use tidemark_plan::yaml::Environment;
use tidemark_tune::{Conclusion, End, Problem, least_runs, look, look_at, words};

/// Searches, or shows what it would try, or applies what was found.
pub(crate) fn tune(arguments: &cli::Tune, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    let Opened::Evaluation(source) = document::read(&arguments.run.file, terminal)? else {
        return Err(Stop::usage(format!("{} has no `tune`", arguments.run.file.display())));
    };
    let Some(tuning) = &source.evaluation.tuning else {
        return Err(Stop::usage(format!("{} has no `tune`: use `tidemark run`", source.path)));
    };
    let least = least_runs(tuning.space.settings.len());
    if tuning.runs < least {
        return Err(Stop::usage(format!(
            "{}: {} settings take at least {least} runs, and `runs` is {}: allow more, or search fewer settings",
            source.path,
            tuning.space.settings.len(),
            tuning.runs
        )));
    }
    if let Some(file) = &arguments.apply {
        return set(&source, tuning, &read(file, "apply", tuning)?, arguments, terminal);
    }
    if let Some(file) = &arguments.undo {
        return set(&source, tuning, &read(file, "undo", tuning)?, arguments, terminal);
    }
    if arguments.dry_run {
        let seed = arguments.run.seed.unwrap_or(source.evaluation.seed);
        preview(tuning, seed, arguments.run.running.json, terminal);
        return Ok(Exit::Done);
    }
    evaluate::execute(source, &arguments.run, store, terminal)
}

/// What would be tried first, without running anything.
fn preview(tuning: &Tuning, seed: u64, json: bool, terminal: Terminal) {
    let (_, next) = look(Problem { tuning, seed }, &[]);
    let labels: Vec<String> = next.iter().map(|trial| tuning.space.label(&trial.configuration)).collect();
    if json {
        let event = json!({"settings": tuning.space.settings, "runs": tuning.runs, "objective": tuning.objective, "first": next});
        return terminal.print(&event.to_string());
    }
    terminal.line(&format!("  objective {}", tuning.objective.words()));
    terminal.line(&format!("  runs      at most {}", tuning.runs));
    terminal.print("  settings");
    for setting in &tuning.space.settings {
        let levels: Vec<String> = setting.levels().iter().map(|level| setting.text(*level)).collect();
        let (name, baseline) = (&setting.name, setting.text(setting.baseline));
        let effect = words::takes_effect(setting.takes_effect);
        terminal.line(&format!(
            "    {name}: now {baseline}; screened at {}; takes effect {effect}",
            levels.join(", ")
        ));
    }
    terminal.line(&format!("  screening {} runs, in this order:", labels.len()));
    labels.iter().for_each(|label| terminal.line(&format!("    {label}")));
    terminal.print("  What comes after it depends on what it finds.");
}

/// Brings the arm to these settings and leaves it there.
fn set(
    source: &Source,
    tuning: &Tuning,
    configuration: &Configuration,
    arguments: &cli::Tune,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let registry = tidemark_engines::registry();
    let environment = Environment::process(&registry);
    let options = evaluate::options(&arguments.run, &registry, None)?;
    let mut screen = Screen::new(&arguments.run.running, terminal);
    let done = apply(&source.evaluation, configuration, &options, &environment, &mut screen);
    if !done.map_err(Stop::not_ready)? {
        return Ok(Exit::Interrupted);
    }
    let pairs = tuning.space.pairs(configuration);
    if arguments.run.running.json {
        let settings: serde_json::Map<_, _> =
            pairs.into_iter().map(|(name, value)| (name, value.into())).collect();
        terminal.print(&json!({"event": "applied", "settings": settings}).to_string());
    } else {
        pairs.iter().for_each(|(name, value)| terminal.line(&format!("  {name} {value}")));
    }
    Ok(Exit::Done)
}

/// Reads the settings under a key of a file that a search has written.
fn read(file: &Path, key: &str, tuning: &Tuning) -> Result<Configuration, Stop> {
    let wrong = |what: String| Stop::usage(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let root = tree::parse(&text).map_err(|error| wrong(error.message))?;
    let entry = root.entry(key).ok_or_else(|| wrong(format!("it has no `{key}`")))?;
    let value = |setting: &tidemark_measure::tuning::Setting| {
        let name = &setting.name;
        let found = entry.node.entry(name).map(|entry| &entry.node.value);
        let Some(Value::Scalar(text)) = found else { return Err(wrong(format!("`{key}` has no `{name}`"))) };
        setting.value(text).ok_or_else(|| wrong(format!("'{text}' is no value of `{name}` in the document")))
    };
    Ok(Configuration(tuning.space.settings.iter().map(value).collect::<Result<_, _>>()?))
}

/// What a search came to, on the terminal.
pub(super) fn show(tuning: &Tuning, conclusion: &Conclusion, terminal: Terminal) {
    terminal.print("");
    let sentences = words::sentences(tuning, conclusion);
    for (index, sentence) in sentences.iter().enumerate() {
        let style = if index == 0 { Style::Strong } else { Style::Faint };
        terminal.line(&terminal.paint(style, &format!("  {sentence}")));
    }
    if !conclusion.effects.is_empty() {
        let rows = words::effects(tuning, conclusion).into_iter().map(Vec::from);
        let heading = words::EFFECTS.map(str::to_lowercase).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
        terminal.print("");
        terminal.print(&aligned(&rows, 2));
    }
}

/// Writes the settings that were proven to be better, and those before, to a file beside the report; its path, if there are any.
pub(super) fn keep_settings(
    evaluation: &Evaluation,
    runs: &[Run],
    directory: &Path,
    terminal: Terminal,
) -> Option<PathBuf> {
    let (conclusion, _) = look_at(evaluation, runs)?;
    let tuning = evaluation.tuning.as_ref()?;
    let winner = conclusion.winner.filter(|_| conclusion.end == Some(End::Better))?;
    let mut text = format!(
        "# Better settings for {}, and those before: tidemark tune {} --apply or --undo with this file.\n",
        evaluation.name.replace('\n', " "),
        evaluation.provenance.path
    );
    for (key, configuration) in [("apply", winner), ("undo", tuning.space.baseline())] {
        let _ = writeln!(text, "{key}:");
        for (name, value) in tuning.space.pairs(&configuration) {
            // JSON's texts are YAML's.
            let _ = writeln!(text, "  {name}: {}", json!(value));
        }
    }
    let name = match evaluation.id {
        0 => format!("unstored-evaluation-{}-settings.yaml", evaluation.started_unix_ns / 1_000_000_000),
        id => format!("evaluation-{id}-settings.yaml"),
    };
    let path = directory.join(name);
    write(&path, text.as_bytes(), terminal).then_some(path)
}
