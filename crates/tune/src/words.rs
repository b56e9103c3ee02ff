//! What a search comes to, in words: for the terminal and the report alike.

use crate::conclusion::{Conclusion, End, Phase, Proof};
use crate::effects::{Effect, Verdict};
use crate::search::least_runs;
use tidemark_measure::tuning::{Configuration, TakesEffect, Tuning};
use tidemark_measure::units::duration_ns;

/// How the search ended, then the details: sentences with their full stops.
pub fn sentences(tuning: &Tuning, conclusion: &Conclusion) -> Vec<String> {
    let mut all = vec![headline(tuning, conclusion)];
    let named = |verdicts: &[Verdict]| {
        let own = conclusion.effects.iter().filter(|effect| verdicts.contains(&effect.verdict));
        let mut names: Vec<&str> =
            own.map(|effect| tuning.space.settings[effect.setting].name.as_str()).collect();
        names.dedup();
        names.join(", ")
    };
    if !conclusion.effects.is_empty() {
        let matters = named(&[Verdict::Better, Verdict::Worse]);
        if !matters.is_empty() {
            all.push(format!("These settings matter: {matters}."));
        }
        let equal = named(&[Verdict::Equal]);
        if !equal.is_empty() {
            all.push(format!("These do not, within {}: {equal}.", percent(tuning.margin)));
        }
        let open = named(&[Verdict::CannotTell]);
        if !open.is_empty() {
            let seen = conclusion
                .detectable
                .map(|least| format!("; an effect of {} would most likely have been seen", percent(least)));
            all.push(format!("Of these it cannot be told: {open}{}.", seen.unwrap_or_default()));
        }
    }
    if conclusion.is_curved() {
        all.push(
            "The baseline is not what the ends of the ranges suggest: what happens between them is not a straight line, and was searched."
                .to_owned(),
        );
    }
    let outside: u32 = conclusion.standings.iter().map(|standing| standing.outside).sum();
    if outside > 0 {
        all.push(format!(
            "{outside} runs of the search were outside the service level or failed; effects count each as the worst run that was not."
        ));
    }
    for tried in tuning.tried.iter().filter(|tried| !tried.refused.is_empty()) {
        all.push(format!("`{}` was dropped: {}.", tried.arm, tried.refused.trim_end_matches('.')));
    }
    if let Some(noise) = conclusion.noise {
        all.push(format!("Runs with the same settings vary by {} (standard deviation).", percent(noise)));
    }
    let cost = conclusion.runs.iter().map(|(phase, runs)| format!("{} {runs}", phase.name()));
    let (cost, sum) =
        (cost.collect::<Vec<_>>().join(", "), conclusion.runs.iter().map(|(_, runs)| runs).sum::<u32>());
    all.push(format!("It took {sum} of {} runs: {cost}.", tuning.budget()));
    if let Some(time_ns) = tuning.time_ns {
        let over = match tuning.is_closed {
            true => ", which ended the search: what was left of it is the proof's",
            false => "",
        };
        let (spent, time) = (duration_ns(tuning.spent_ns), duration_ns(time_ns));
        all.push(format!("Trials took {spent} of {time}{over}."));
    }
    all
}

fn headline(tuning: &Tuning, conclusion: &Conclusion) -> String {
    let label = |configuration: &Configuration| tuning.space.label(configuration);
    let winner = conclusion.winner.as_ref().map(label).unwrap_or_default();
    let Some(end) = conclusion.end else {
        let phase = conclusion.runs.last().map_or(Phase::Screening, |(phase, _)| *phase);
        return format!("The search is not over: it is at its {}.", phase.name());
    };
    let times = conclusion.proof.as_ref().and_then(|proof| times(tuning, proof)).unwrap_or_default();
    match end {
        End::NothingMatters if conclusion.effects.iter().all(|effect| effect.verdict == Verdict::Equal) => {
            format!("No setting matters: all effects are within {}.", percent(tuning.margin))
        }
        End::NothingMatters => "No setting is shown to matter.".to_owned(),
        End::NoTime => format!(
            "The time is too short: it is enough for {} runs, and {} settings take at least {}. Allow more time, or search fewer settings.",
            tuning.budget(),
            tuning.space.settings.len(),
            least_runs(tuning.space.settings.len())
        ),
        End::NothingBetter => "Nothing that was tried seems better than the baseline.".to_owned(),
        End::NothingWithin => "Nothing that was tried is within the service level.".to_owned(),
        End::Better if times.is_empty() => {
            format!("Better: {winner}. It is within the service level, and the baseline is not.")
        }
        End::Better => format!("Better: {winner}. Measured afresh beside the baseline: {times}."),
        End::Worse => {
            format!("Nothing better was found: {winner} seemed so, but measured afresh it is worse: {times}.")
        }
        End::CannotTell => format!(
            "Nothing better was found: {winner} seemed so, but measured afresh it cannot be told from the baseline: {times}."
        ),
        End::Outside => format!(
            "Nothing better was found: {winner} seemed so, but measured afresh it was outside the service level or failed."
        ),
    }
}

/// What the proof measured: `throughput × 1.32 (1.28 to 1.36 with 95 %)`.
fn times(tuning: &Tuning, proof: &Proof) -> Option<String> {
    let (ratio, (low, high)) = (proof.ratio?, proof.interval?);
    let mean = |values: &[f64]| tuning.objective.value(values.iter().sum::<f64>() / values.len() as f64);
    Some(format!(
        "{} × {ratio:.3} ({low:.3} to {high:.3} with 95 %), {} instead of {}, {} runs each",
        tuning.objective.words(),
        mean(&proof.winner),
        mean(&proof.baseline),
        proof.winner.len()
    ))
}

/// The headings of [`effects`].
pub const EFFECTS: [&str; 5] = ["Setting", "Instead of", "Multiple", "95 %", "Verdict"];

/// A row for each effect, the strongest first.
pub fn effects(tuning: &Tuning, conclusion: &Conclusion) -> Vec<[String; 5]> {
    let mut all: Vec<&Effect> = conclusion.effects.iter().collect();
    all.sort_by(|one, other| one.p.total_cmp(&other.p));
    let row = |effect: &&Effect| {
        let setting = &tuning.space.settings[effect.setting];
        [
            format!("{} {}", setting.name, setting.text(effect.to)),
            setting.text(effect.from),
            format!("× {:.3}", effect.ratio),
            format!("{:.3} to {:.3}", effect.interval.0, effect.interval.1),
            match effect.verdict {
                Verdict::Better => "better",
                Verdict::Worse => "worse",
                Verdict::Equal => "does not matter",
                Verdict::CannotTell => "cannot tell",
            }
            .to_owned(),
        ]
    };
    all.iter().map(row).collect()
}

/// How a setting takes effect.
pub fn takes_effect(effect: TakesEffect) -> &'static str {
    match effect {
        TakesEffect::Run => "with the next run",
        TakesEffect::Restart => "by a restart of servers, or by the arm's set_up commands",
        TakesEffect::Rebuild => "when the arm is built anew",
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::tuning::{Domain, Scale, Setting, Space};

    #[test]
    fn that_nothing_matters_is_said_only_where_every_effect_is_within_the_margin() {
        let setting = Setting {
            name: "cache".into(),
            domain: Domain::Integer(1.0, 9.0, Scale::Linear),
            baseline: 1.0,
            unit: String::new(),
            takes_effect: TakesEffect::Run,
            when: None,
        };
        let tuning =
            Tuning { space: Space { settings: vec![setting] }, runs: 30, margin: 0.05, ..Tuning::default() };
        let told = |verdict| {
            let effect = Effect {
                setting: 0,
                from: 1.0,
                to: 9.0,
                ratio: 1.01,
                interval: (0.9, 1.1),
                p: 0.8,
                verdict,
                score: 0.01,
                suspected: 0.8,
            };
            let conclusion = Conclusion {
                end: Some(End::NothingMatters),
                effects: vec![effect],
                detectable: Some(0.2),
                ..Conclusion::default()
            };
            sentences(&tuning, &conclusion).join(" ")
        };
        assert!(told(Verdict::Equal).starts_with("No setting matters: all effects are within 5.0 %."));
        let open = told(Verdict::CannotTell);
        assert!(
            open.starts_with(
                "No setting is shown to matter. Of these it cannot be told: cache; an effect of 20 %"
            ),
            "{open}"
        );
    }
}
