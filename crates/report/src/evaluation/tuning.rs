//! The section of a search for better settings: what it came to, what each setting does, how the search went.

use super::Subject;
use crate::figures::{Bar, Figure, Group, bars, front};
use crate::html::parts::{charts, list, maybe_folded};
use crate::table::{Forms as _, Table, Tone, markdown as plain};
use maud::{Markup, html};
use tidemark_judge::statistics::estimate;
use tidemark_measure::tuning::{Objective, Tuning};
use tidemark_measure::units;
use tidemark_tune::effects::{Effect, Verdict};
use tidemark_tune::{Conclusion, Phase, Standing, look_at, words};

/// Rows of the table of trials that are shown unfolded.
const MOST_ROWS: usize = 12;

/// What is searched, and what that has come to; `None` of other evaluations.
pub(super) fn searched<'a>(subject: &Subject<'a>) -> Option<(&'a Tuning, Conclusion)> {
    let conclusion = look_at(subject.evaluation, subject.runs)?.0;
    Some((subject.evaluation.tuning.as_ref()?, conclusion))
}

/// The section; empty of other evaluations.
pub(super) fn section(subject: &Subject<'_>) -> Markup {
    let Some((tuning, conclusion)) = searched(subject) else { return Markup::default() };
    html! {
        (list("", &words::sentences(tuning, &conclusion)))
        @if let Some(table) = points(tuning, &conclusion) {
            h3 { "The front" } "\n"
            (charts("figure", &front_figure(tuning, &conclusion)))
            (maybe_folded("Settings that may belong to the front", &table, MOST_ROWS))
            p class="legend" {
                "Means of the search's runs, with 95 % intervals. Not dominated: no other has better means in both. Cannot tell: another has, but \
                 the difference may be noise. Dominated, and not in the table: another is better in both; with 95 %, none of those belongs to the front."
            }
        }
        @if !conclusion.effects.is_empty() || !conclusion.failing.is_empty() { h3 { "Effects of the settings" } "\n" }
        (charts("figure", &effect_figures(tuning, &conclusion)))
        @for (objective, table) in effects(tuning, &conclusion) {
            (table.html())
            p class="legend" {
                "From the screening's runs within the service level: the " (objective.words()) " with the value as a multiple of that with the \
                 other, the settings beside it being at either end. All intervals hold at once with 95 %. They say what to look at; only the \
                 proof says what is better."
            }
        }
        (maybe_folded("Everything that was tried", &trials(tuning, &conclusion), MOST_ROWS))
    }
}

/// The same in Markdown.
pub(super) fn markdown(subject: &Subject<'_>) -> String {
    let Some((tuning, conclusion)) = searched(subject) else { return String::new() };
    let sentences = words::sentences(tuning, &conclusion);
    let list: String = sentences.iter().map(|sentence| format!("- {}\n", plain(sentence))).collect();
    let tables = effects(tuning, &conclusion).into_iter().map(|(_, table)| table);
    let tables = points(tuning, &conclusion).into_iter().chain(tables).chain([trials(tuning, &conclusion)]);
    let tables: Vec<String> = tables.map(|table| table.markdown()).collect();
    format!("## Settings\n\n{list}\n{}\n", tables.join("\n"))
}

/// All figures.
pub(super) fn figures(tuning: &Tuning, conclusion: &Conclusion) -> Vec<Figure> {
    let mut all = front_figure(tuning, conclusion);
    all.extend(effect_figures(tuning, conclusion));
    all
}

/// The front of two objectives, with everything that was measured around it.
fn front_figure(tuning: &Tuning, conclusion: &Conclusion) -> Vec<Figure> {
    let (Some(found), Some(second)) = (&conclusion.front, tuning.second) else { return Vec::new() };
    front(&found.points, [tuning.objective, second]).into_iter().collect()
}

/// The effects on each objective, and how far the search has come with each of its steps.
fn effect_figures(tuning: &Tuning, conclusion: &Conclusion) -> Vec<Figure> {
    let bar = |effect: &Effect| {
        let setting = &tuning.space.settings[effect.setting];
        Bar {
            label: format!("{} {}", setting.name, setting.text(effect.to)),
            value: effect.ratio,
            interval: Some(effect.interval),
            words: format!("× {:.2}", effect.ratio),
            colour: usize::from(!matches!(effect.verdict, Verdict::Better | Verdict::Worse)),
        }
    };
    let group = |(objective, effects): (Objective, &[Effect])| Group {
        title: format!("{}, the other end being 1", objective.words()),
        bars: effects.iter().map(bar).collect(),
    };
    let all: Vec<Group> = all_effects(tuning, conclusion).into_iter().map(group).collect();
    let progress = Group { title: tuning.objective.words().to_owned(), bars: progress(tuning, conclusion) };
    let steps = "How far each step of the search has come: the best mean until then";
    [
        bars("effects", "What each setting does, by itself", &all, Some(1.0)),
        bars("progress", steps, &[progress], None),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The effects on each objective.
fn all_effects<'c>(tuning: &Tuning, conclusion: &'c Conclusion) -> Vec<(Objective, &'c [Effect])> {
    let second = conclusion.front.iter().map(|front| &front.effects[..]);
    tuning.objectives().into_iter().zip(std::iter::once(&conclusion.effects[..]).chain(second)).collect()
}

/// The best mean after each step, and what the proof measured.
fn progress(tuning: &Tuning, conclusion: &Conclusion) -> Vec<Bar> {
    let bar = |label: &str, values: &[f64], colour| {
        let found = estimate(values.to_vec());
        let words = tuning.objective.value(found.mean);
        Bar { label: label.to_owned(), value: found.mean, interval: found.interval, words, colour }
    };
    let baseline = tuning.space.baseline();
    let own = conclusion.standings.iter().find(|standing| standing.configuration == baseline);
    // Where no run was within the service level, there is no number.
    let own = own.filter(|standing| !standing.values.is_empty());
    let mut all: Vec<Bar> = own.map(|standing| bar("baseline", &standing.values, 0)).into_iter().collect();
    let steps = [Phase::Screening, Phase::Halving, Phase::Refining];
    for (count, phase) in steps.iter().enumerate() {
        if !conclusion.runs.iter().any(|(own, _)| own == phase) {
            continue;
        }
        let until = conclusion.standings.iter().filter(|standing| steps[..=count].contains(&standing.phase));
        let until = until.filter(|standing| !standing.values.is_empty() && standing.outside == 0);
        let mean = |standing: &Standing| standing.values.iter().sum::<f64>() / standing.values.len() as f64;
        let best = match tuning.objective.is_less_better() {
            true => until.min_by(|one, other| mean(one).total_cmp(&mean(other))),
            false => until.max_by(|one, other| mean(one).total_cmp(&mean(other))),
        };
        all.extend(best.map(|standing| bar(&format!("after {}", phase.name()), &standing.values, 1)));
    }
    if let Some(proof) = conclusion.proof_of_first() {
        let sides = [("proof: baseline", &proof.baseline, 0), ("proof: winner", &proof.winner, 2)];
        let sides = sides.into_iter().filter(|(_, values, _)| !values.is_empty());
        all.extend(sides.map(|(label, values, colour)| bar(label, values, colour)));
    }
    all
}

fn effects(tuning: &Tuning, conclusion: &Conclusion) -> Vec<(Objective, Table)> {
    let table = |(objective, effects): (Objective, &[Effect])| {
        let [setting, from, ratio, interval, verdict] = words::EFFECTS;
        let title = match tuning.second {
            Some(_) => format!("What each setting does to the {}", objective.words()),
            None => "What each setting does".to_owned(),
        };
        let mut table = Table::new(title).words([setting, from]).numbers([ratio, interval]).words([verdict]);
        words::effects(tuning, effects, &conclusion.failing)
            .into_iter()
            .for_each(|row| table.row(Tone::Plain, row.to_vec()));
        (objective, table)
    };
    all_effects(tuning, conclusion).into_iter().map(table).collect()
}

/// What may belong to the front; `None` of one objective.
fn points(tuning: &Tuning, conclusion: &Conclusion) -> Option<Table> {
    let (first, second) = (tuning.objective.words(), tuning.second?.words());
    let [number, settings, runs, place] = words::POINTS;
    let title = "The front, and what cannot be told from it; numbers as in the figure";
    let mut table =
        Table::new(title).numbers([number]).words([settings]).numbers([runs, first, second]).words([place]);
    words::points(tuning, conclusion).into_iter().for_each(|row| table.row(Tone::Plain, row.to_vec()));
    Some(table)
}

fn trials(tuning: &Tuning, conclusion: &Conclusion) -> Table {
    let mut table = Table::new("Everything that was tried, in the order in which it was tried first")
        .words(["Settings", "Step"])
        .numbers(["Runs", "Mean", "Outside or failed"]);
    let is_about_recovery = tuning.recovery_ns.is_some();
    if is_about_recovery {
        table = table.numbers(["Recovery, at most"]);
    }
    for standing in &conclusion.standings {
        let mean = standing.values.iter().sum::<f64>() / standing.values.len() as f64;
        let mean = if standing.values.is_empty() { "–".to_owned() } else { tuning.objective.value(mean) };
        let runs = standing.values.len() as u32 + standing.outside;
        let label = tuning.space.label(&standing.configuration);
        let cells = [runs.to_string(), mean, standing.outside.to_string()];
        let own = tuning
            .tried
            .iter()
            .filter(|tried| tried.configuration == standing.configuration && !tried.proves);
        let recovery = own.filter_map(|tried| tried.recovery_ns).max();
        let recovery = recovery.map_or_else(|| "–".to_owned(), units::duration_ns);
        let recovery = is_about_recovery.then_some(recovery);
        let words = [label, standing.phase.name().to_owned()];
        table.row(Tone::Plain, words.into_iter().chain(cells).chain(recovery).collect());
    }
    table
}
