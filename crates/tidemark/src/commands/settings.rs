//! Files of better settings: written after a search, put into effect, undone. What was in effect before is kept beside them, so that an
//! undo is proven.

use super::document::Evaluation as Source;
use super::evaluate::{self, Screen};
use super::outcome::write;
use super::table::aligned;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::{Style, Terminal};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use tidemark_control::evaluate::{Applied, apply as put_into_effect};
use tidemark_control::execute::ExecuteError;
use tidemark_keys::tree::{self, Node, Value};
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::in_effect::{Change, InEffect};
use tidemark_measure::record::Run;
use tidemark_measure::tuning::{Configuration, Tuning};
use tidemark_plan::yaml::Environment;
use tidemark_tune::{End, look_at};

/// What is said where nothing tells which settings are in effect.
const UNKNOWN: &str = "nothing says which settings are in effect: commands under `show` in the arm, which print them, would prove it";

/// The keys of a file of settings that name the search which found them: by its document, and apart from others of that name.
const OF: &str = "of";
const SEARCH: &str = "search";

/// Which search settings are of. Several stores may have one of the same name and number, but none that began at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Search {
    /// The name of its document.
    of: String,
    /// Its number in its store and when it began; `None` of settings that somebody has written by hand.
    search: Option<String>,
}

impl fmt::Display for Search {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let search = self.search.as_deref().unwrap_or("written by hand");
        write!(formatter, "`{}` ({search})", self.of)
    }
}

/// What was in effect before the settings of a search were.
#[derive(Debug, Serialize, Deserialize)]
struct Before {
    #[serde(flatten)]
    search: Search,
    in_effect: InEffect,
}

/// Puts the better settings of a file into effect, keeps what was in effect before, and shows what has changed.
pub(super) fn apply(
    source: &Source,
    tuning: &Tuning,
    file: &Path,
    arguments: &cli::Tune,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let (search, configuration) = read(file, "apply", source, tuning)?;
    let (before, mut kept) = (before(file), false);
    // An undo will go by it.
    known(&before, &search)?;
    let mut keep = |now: &InEffect| {
        // After a second `--apply`, an undo still leads to what was before the first.
        if !now.is_empty() && !before.exists() {
            let all = Before { search: search.clone(), in_effect: now.clone() };
            let text = serde_json::to_string_pretty(&all).unwrap_or_default();
            std::fs::write(&before, text).map_err(|error| {
                ExecuteError(format!("nothing was changed: {} cannot be written: {error}", before.display()))
            })?;
        }
        kept = before.exists();
        Ok(())
    };
    let Some(applied) = set(source, &configuration, arguments, &mut keep, terminal)? else {
        return Ok(Exit::Interrupted);
    };
    let changes = applied.after.changes_since(&applied.before);
    if arguments.run.running.json {
        let before = kept.then(|| before.display().to_string());
        let event = json!({
            "event": "applied", "settings": values(tuning, &configuration), "changes": changes,
            "in_effect": applied.after.len(), "before": before,
        });
        terminal.print(&event.to_string());
        return Ok(Exit::Done);
    }
    show_settings(tuning, &configuration, terminal);
    match (applied.after.is_empty(), changes.is_empty()) {
        (true, _) => terminal.remark(UNKNOWN),
        (false, true) => terminal.line("  nothing has changed: all of it was in effect already"),
        (false, false) => {
            terminal.line(&format!("  changed, of {} settings that are in effect:", applied.after.len()));
            show_changes(&changes, ["before", "now"], terminal);
        }
    }
    show_secrets(&applied.after, terminal);
    if kept {
        terminal.line(&format!("  before      {}", before.display()));
    }
    Ok(Exit::Done)
}

/// Puts the settings of before into effect again, and compares what is in effect with what was before `--apply`. An undo that is not
/// proven by that has failed.
pub(super) fn undo(
    source: &Source,
    tuning: &Tuning,
    file: &Path,
    arguments: &cli::Tune,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let (search, configuration) = read(file, "undo", source, tuning)?;
    let path = before(file);
    let known = known(&path, &search)?;
    let Some(applied) = set(source, &configuration, arguments, &mut |_| Ok(()), terminal)? else {
        return Ok(Exit::Interrupted);
    };
    let changes = applied.after.changes_since(&applied.before);
    let differences = known.as_ref().map(|known| applied.after.changes_since(known));
    let secrets = applied.after.secrets();
    let compared = applied.after.len() - secrets.len();
    let is_proven = compared > 0 && differences.as_ref().is_some_and(Vec::is_empty);
    if is_proven {
        // The next `--apply` begins anew.
        let _ = std::fs::remove_file(&path);
    }
    if arguments.run.running.json {
        let proof = differences.as_ref().map(|differences| {
            json!({
                "compared": compared, "not_compared": secrets, "is_as_before": is_proven, "differences": differences,
            })
        });
        let event = json!({
            "event": "undone", "settings": values(tuning, &configuration), "changes": changes, "proof": proof,
        });
        terminal.print(&event.to_string());
    } else {
        show_settings(tuning, &configuration, terminal);
        show_changes(&changes, ["before", "now"], terminal);
        match &differences {
            None => {
                let why = match applied.after.is_empty() {
                    true => UNKNOWN.to_owned(),
                    false => format!(
                        "{} is missing: --apply writes it, and it says what was in effect before; compare the settings above yourself",
                        path.display()
                    ),
                };
                terminal.line(&terminal.paint(Style::Bad, "  NOT PROVEN: these settings are in effect"));
                terminal.remark(&why);
            }
            Some(_) if is_proven => {
                let of = if secrets.is_empty() { "" } else { " that can be compared" };
                let words = format!("  UNDONE: all {compared} settings{of} are what they were");
                terminal.line(&terminal.paint(Style::Good, &words));
            }
            Some(differences) if differences.is_empty() => {
                terminal.line(&terminal.paint(Style::Bad, "  NOT PROVEN: nothing can be compared"));
                terminal.remark(UNKNOWN);
            }
            Some(differences) => {
                let words = format!("  NOT UNDONE: {} settings are not what they were", differences.len());
                terminal.line(&terminal.paint(Style::Bad, &words));
                show_changes(differences, ["before --apply", "now"], terminal);
                terminal.remark(
                    "an undo sets the search's baseline: set by hand what was something else before --apply",
                );
            }
        }
        show_secrets(&applied.after, terminal);
    }
    Ok(if is_proven { Exit::Done } else { Exit::Failed })
}

/// Where what was in effect before is kept: beside the settings.
fn before(file: &Path) -> PathBuf {
    file.with_extension("before.json")
}

/// What was in effect before the settings of a search, if it was kept.
///
/// # Errors
/// What is kept there is damaged, or of another search.
fn known(path: &Path, search: &Search) -> Result<Option<InEffect>, Stop> {
    let wrong = |what: String| {
        let path = path.display();
        Stop::usage(format!(
            "{path} should say what was in effect before --apply, and {what}: delete it to go on without proof"
        ))
    };
    match std::fs::read_to_string(path) {
        Ok(text) => match serde_json::from_str::<Before>(&text) {
            Ok(known) if known.search == *search => Ok(Some(known.in_effect)),
            Ok(known) => {
                Err(wrong(format!("it belongs to another search, {}, and not to {search}", known.search)))
            }
            Err(error) => Err(wrong(format!("is damaged ({error})"))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(format!("cannot be read ({error})"))),
    }
}

/// Brings the storage to these settings; `None` when the user stopped it.
fn set(
    source: &Source,
    configuration: &Configuration,
    arguments: &cli::Tune,
    keep: &mut dyn FnMut(&InEffect) -> Result<(), ExecuteError>,
    terminal: Terminal,
) -> Result<Option<Applied>, Stop> {
    let registry = tidemark_engines::registry();
    let environment = Environment::process(&registry);
    let mut options = evaluate::options(&arguments.run, &registry, None)?;
    options.standing.clone_from(&arguments.to);
    let mut screen = Screen::new(&arguments.run.running, Signals::listen(), terminal);
    put_into_effect(&source.evaluation, configuration, &options, &environment, keep, &mut screen)
        .map_err(Stop::not_ready)
}

fn values(tuning: &Tuning, configuration: &Configuration) -> serde_json::Map<String, serde_json::Value> {
    tuning.space.pairs(configuration).into_iter().map(|(name, value)| (name, value.into())).collect()
}

fn show_settings(tuning: &Tuning, configuration: &Configuration, terminal: Terminal) {
    let pairs = tuning.space.pairs(configuration);
    pairs.iter().for_each(|(name, value)| terminal.line(&format!("  {name} {value}")));
}

fn show_changes(changes: &[Change], headings: [&str; 2], terminal: Terminal) {
    if changes.is_empty() {
        return;
    }
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "not there".to_owned());
    let row = |change: &Change| vec![change.name.clone(), cell(&change.before), cell(&change.after)];
    let heading = vec!["setting".to_owned(), headings[0].to_owned(), headings[1].to_owned()];
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(changes.iter().map(row)).collect();
    terminal.print(&aligned(&rows, 3));
}

/// Says of which settings nothing but their presence was compared.
fn show_secrets(in_effect: &InEffect, terminal: Terminal) {
    let secrets = in_effect.secrets();
    let words = match secrets.len() {
        0 => return,
        1 => "whose value is a secret",
        _ => "whose values are secrets",
    };
    terminal.line(&format!("  not compared: {}, {words}", secrets.join(", ")));
}

/// The single value under a key.
fn scalar<'a>(root: &'a Node, key: &str) -> Option<&'a str> {
    match &root.entry(key)?.node.value {
        Value::Scalar(text) => Some(text),
        _ => None,
    }
}

/// Reads the settings under a key of a file that a search has written, and which one it was. Those of another search may have the same
/// names.
fn read(file: &Path, key: &str, source: &Source, tuning: &Tuning) -> Result<(Search, Configuration), Stop> {
    let wrong = |what: String| Stop::usage(format!("{}: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let root = tree::parse(&text).map_err(|error| wrong(error.message))?;
    let name = &source.evaluation.name;
    if let Some(other) = scalar(&root, OF)
        && other != name
    {
        return Err(wrong(format!("these are the settings of `{other}`, and {} is `{name}`", source.path)));
    }
    let entry = root.entry(key).ok_or_else(|| wrong(format!("it has no `{key}`")))?;
    let value = |setting: &tidemark_measure::tuning::Setting| {
        let name = &setting.name;
        let text = scalar(&entry.node, name).ok_or_else(|| wrong(format!("`{key}` has no `{name}`")))?;
        setting.value(text).ok_or_else(|| wrong(format!("'{text}' is no value of `{name}` in the document")))
    };
    let search = Search { of: name.clone(), search: scalar(&root, SEARCH).map(str::to_owned) };
    Ok((search, Configuration(tuning.space.settings.iter().map(value).collect::<Result<_, _>>()?)))
}

/// Writes the settings that were proven to be better, and those before, to a file beside the report; its path, if there are any.
pub(super) fn keep(
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
    // JSON's texts are YAML's.
    let begun = jiff::Timestamp::from_nanosecond(evaluation.started_unix_ns.into()).unwrap_or_default();
    let number = match evaluation.id {
        0 => "not stored".to_owned(),
        id => format!("e{id}"),
    };
    let search = Search { of: evaluation.name.clone(), search: Some(format!("{number}, begun {begun:.0}")) };
    let _ = writeln!(text, "{OF}: {}\n{SEARCH}: {}", json!(search.of), json!(search.search));
    for (key, configuration) in [("apply", winner), ("undo", tuning.space.baseline())] {
        let _ = writeln!(text, "{key}:");
        for (name, value) in tuning.space.pairs(&configuration) {
            let _ = writeln!(text, "  {name}: {}", json!(value));
        }
    }
    let name = match evaluation.id {
        0 => format!("unstored-evaluation-{}-settings", evaluation.started_unix_ns / 1_000_000_000),
        id => format!("evaluation-{id}-settings"),
    };
    let path = free(directory, &name, &search);
    write(&path, text.as_bytes(), terminal).then_some(path)
}

/// The first file of this name, or with a number behind it, that no other search has: another store beside the same directory has the same
/// numbers.
fn free(directory: &Path, name: &str, search: &Search) -> PathBuf {
    let mut path = directory.join(format!("{name}.yaml"));
    let mut number = 1;
    while path.exists() && of(&path).as_ref() != Some(search) {
        number += 1;
        path = directory.join(format!("{name}-{number}.yaml"));
    }
    path
}

/// The search that has written a file of settings; `None` if none has.
fn of(file: &Path) -> Option<Search> {
    let root = tree::parse(&std::fs::read_to_string(file).ok()?).ok()?;
    Some(Search { of: scalar(&root, OF)?.to_owned(), search: scalar(&root, SEARCH).map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_search_is_not_overwritten_and_an_undo_does_not_go_by_it() {
        let place = tempfile::tempdir().unwrap();
        let search =
            |begun: &str| Search { of: "a \"b\"".into(), search: Some(format!("e1, begun {begun}")) };
        let (one, other) = (search("then"), search("later"));
        let write = |name: &str, search: &Search| {
            let text = format!("{OF}: {}\n{SEARCH}: {}\n", json!(search.of), json!(search.search));
            std::fs::write(place.path().join(name), text).unwrap();
        };
        let free = |search: &Search| {
            let path = free(place.path(), "evaluation-1-settings", search);
            path.file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!(free(&one), "evaluation-1-settings.yaml");
        write("evaluation-1-settings.yaml", &one);
        assert_eq!(free(&one), "evaluation-1-settings.yaml", "its own it writes again");
        assert_eq!(free(&other), "evaluation-1-settings-2.yaml");
        write("evaluation-1-settings-2.yaml", &other);
        assert_eq!(free(&other), "evaluation-1-settings-2.yaml");
        std::fs::write(place.path().join("evaluation-1-settings.yaml"), "apply: {}\n").unwrap();
        assert_eq!(free(&one), "evaluation-1-settings-3.yaml", "nor what somebody has written");

        let path = place.path().join("x.before.json");
        assert!(known(&path, &one).unwrap().is_none());
        let mut in_effect = InEffect::default();
        in_effect.add("cache", "1MB");
        let before = Before { search: one.clone(), in_effect: in_effect.clone() };
        std::fs::write(&path, serde_json::to_string(&before).unwrap()).unwrap();
        assert_eq!(known(&path, &one).unwrap(), Some(in_effect));
        let error = known(&path, &other).unwrap_err().message;
        assert!(error.contains("it belongs to another search, `a \"b\"` (e1, begun then)"), "{error}");
    }
}
