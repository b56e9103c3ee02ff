//! `tidemark tune FILE`: searches for better settings.

use super::document::{self, Opened};
use super::outcome::Means;
use super::table::aligned;
use super::{evaluate, settings};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::{Style, Terminal};
use serde_json::json;
use std::path::PathBuf;
use tidemark_measure::tuning::{Objective, Tuning};
use tidemark_measure::units;
use tidemark_tune::{Conclusion, Problem, least_runs, look, words};

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
        return settings::apply(&source, tuning, file, arguments, terminal);
    }
    if let Some(file) = &arguments.undo {
        return settings::undo(&source, tuning, file, arguments, terminal);
    }
    if arguments.dry_run {
        let seed = arguments.run.seed.unwrap_or(source.evaluation.seed);
        preview(tuning, seed, arguments.run.running.json, terminal);
        return Ok(Exit::Done);
    }
    evaluate::execute(source, &arguments.run, Means::local(), store, terminal)
}

/// What would be tried first, without running anything.
fn preview(tuning: &Tuning, seed: u64, json: bool, terminal: Terminal) {
    // As if its time were enough.
    let assumed = Tuning { affords: Some(tuning.runs), ..tuning.clone() };
    let (_, next) = look(Problem { tuning: &assumed, seed }, &[]);
    let labels: Vec<String> = next.iter().map(|trial| tuning.space.label(&trial.configuration)).collect();
    if json {
        let event = json!({"settings": tuning.space.settings, "runs": tuning.runs, "objective": tuning.objective, "second": tuning.second, "first": next});
        return terminal.print(&event.to_string());
    }
    let objectives: Vec<&str> = tuning.objectives().into_iter().map(Objective::words).collect();
    terminal.line(&format!("  objective {}", objectives.join(" and ")));
    if let Some(price) = &tuning.price {
        let hour = price.of_hour(&tuning.space, &tuning.space.baseline());
        terminal.line(&format!("  price     {} an hour now", Objective::Price.value(hour)));
    }
    terminal.line(&format!("  runs      at most {}", tuning.runs));
    if let Some(time_ns) = tuning.time_ns {
        let words = "the second run tells how many it is enough for";
        terminal.line(&format!("  time      at most {}; {words}", units::duration_ns(time_ns)));
    }
    if let Some(bytes) = tuning.memory_bytes {
        terminal.line(&format!("  memory    at most {}", units::bytes(bytes)));
    }
    if let Some(within_ns) = tuning.recovery_ns {
        terminal.line(&format!("  recovery  within {} after each run", units::duration_ns(within_ns)));
    }
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

/// What a search came to, on the terminal.
pub(super) fn show(tuning: &Tuning, conclusion: &Conclusion, terminal: Terminal) {
    terminal.print("");
    let sentences = words::sentences(tuning, conclusion);
    for (index, sentence) in sentences.iter().enumerate() {
        let style = if index == 0 { Style::Strong } else { Style::Faint };
        terminal.line(&terminal.paint(style, &format!("  {sentence}")));
    }
    let second = conclusion.front.as_ref().map(|front| &front.effects);
    for (objective, effects) in tuning.objectives().into_iter().zip([Some(&conclusion.effects), second]) {
        let Some(effects) = effects.filter(|effects| !effects.is_empty()) else { continue };
        let rows = words::effects(tuning, effects, &conclusion.failing).into_iter().map(Vec::from);
        let heading = words::EFFECTS.map(str::to_lowercase).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
        terminal.print("");
        if tuning.second.is_some() {
            terminal.line(&format!("  {}:", objective.words()));
        }
        terminal.print(&aligned(&rows, 2));
    }
    let points = words::points(tuning, conclusion);
    if let (false, [first, second]) = (points.is_empty(), &tuning.objectives()[..]) {
        let [number, settings, runs, front] = words::POINTS.map(str::to_lowercase);
        let heading =
            vec![number, settings, runs, first.words().to_owned(), second.words().to_owned(), front];
        let rows = std::iter::once(heading).chain(points.into_iter().map(Vec::from));
        terminal.print("");
        terminal.print(&aligned(&rows.collect::<Vec<_>>(), 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_runs_are_those_that_the_key_says() {
        assert_eq!([1, 3, 4, 7, 8, 15].map(least_runs), [21, 21, 30, 30, 50, 50]);
    }
}
