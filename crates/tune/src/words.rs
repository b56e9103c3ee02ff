//! What a search comes to, in words: for the terminal and the report alike.

use crate::conclusion::{Compared, Conclusion, End, Extreme, Failing, FewSamples, Phase, Proof, Standing};
use crate::effects::{Effect, Verdict};
use crate::front::{Estimated, Place, Point};
use crate::search::least_runs;
use tidemark_measure::tuning::{Configuration, Domain, Objective, Setting, TakesEffect, Tried, Tuning};
use tidemark_measure::units::duration_ns;

/// An effect that even a screening of few runs should find, as a share.
const TENFOLD: f64 = 9.0;

/// Fewer failures are told with the others.
const SEVERAL: usize = 2;

/// How the search ended, then the details: sentences with their full stops.
pub fn sentences(tuning: &Tuning, conclusion: &Conclusion) -> Vec<String> {
    let mut all = vec![headline(tuning, conclusion)];
    all.extend(attempted(tuning, conclusion));
    // Where both ends of a front are the same settings, the same may be said of both.
    let other = front(tuning, conclusion).into_iter().filter(|sentence| *sentence != all[0]);
    all.extend(other.collect::<Vec<_>>());
    let second = conclusion.front.iter().flat_map(|front| &front.effects);
    // Of two objectives a setting matters if it does to one, and does not if it does not to both.
    let strongest = |setting: usize| {
        let rank = |verdict: Verdict| match verdict {
            Verdict::Better | Verdict::Worse => 2,
            Verdict::CannotTell => 1,
            Verdict::Equal => 0,
        };
        let own = conclusion.effects.iter().chain(second.clone()).filter(|effect| effect.setting == setting);
        own.map(|effect| effect.verdict).max_by_key(|verdict| rank(*verdict))
    };
    let named = |verdicts: &[Verdict]| {
        let is_named =
            |effect: &&Effect| strongest(effect.setting).is_some_and(|one| verdicts.contains(&one));
        let own = conclusion.effects.iter().filter(is_named);
        let mut names: Vec<&str> =
            own.map(|effect| tuning.space.settings[effect.setting].name.as_str()).collect();
        names.dedup();
        names.join(", ")
    };
    let matters = named(&[Verdict::Better, Verdict::Worse]);
    if !matters.is_empty() {
        all.push(format!("These settings matter: {matters}."));
    }
    let equal = named(&[Verdict::Equal]);
    if !equal.is_empty() {
        all.push(format!(
            "From one end of their ranges to the other these make no difference, within {}: {equal}.",
            percent(tuning.margin)
        ));
    }
    let open = named(&[Verdict::CannotTell]);
    if !open.is_empty() {
        all.push(format!(
            "What these do by themselves cannot be told: {open}{}.",
            detectable(tuning, conclusion)
        ));
    }
    if is_untold(conclusion) {
        all.push(
            "What each setting does cannot be told: too few runs of the screening were within the service level, or those that were always \
             had the same settings together."
                .to_owned(),
        );
    }
    if conclusion.is_curved() {
        let searched = if conclusion.searched.is_empty() { "" } else { ", and was searched" };
        all.push(format!(
            "The baseline is not what the ends of the ranges suggest: what happens between them is not a straight line{searched}."
        ));
    }
    all.extend(unseen(tuning, conclusion));
    for Failing { setting, value, runs } in &conclusion.failing {
        let setting = &tuning.space.settings[*setting];
        all.push(format!(
            "{} {} was given up: all {runs} runs with it were outside the service level or failed.",
            setting.name,
            setting.text(*value)
        ));
    }
    all.extend(untested(tuning, conclusion));
    all.extend(outside(tuning, conclusion));
    all.extend(unreliable(tuning, conclusion));
    for FewSamples { objective, runs, needed } in &conclusion.few_samples {
        all.push(format!(
            "In {runs} runs the {} rests on fewer than {needed} operations, so that chance has a large part in it. Let runs be longer, or search \
             by the mean response time.",
            objective.words()
        ));
    }
    all.extend(dropped(tuning, conclusion));
    let recovered = tuning.tried.iter().filter(|tried| tried.refused.is_empty());
    let longest = recovered.filter_map(|tried| tried.recovery_ns).max();
    if let (Some(longest), Some(within)) = (longest, tuning.recovery_ns) {
        let (longest, within) = (duration_ns(longest), duration_ns(within));
        all.push(format!(
            "With all others, storage had recovered {longest} after a run at most; it may take {within}."
        ));
    }
    if let Some(noise) = conclusion.noise {
        all.push(format!("Runs with the same settings vary by {} (standard deviation).", percent(noise)));
    }
    let cost = conclusion.runs.iter().map(|(phase, runs)| format!("{} {runs}", phase.name()));
    let (cost, sum) =
        (cost.collect::<Vec<_>>().join(", "), conclusion.runs.iter().map(|(_, runs)| runs).sum::<u32>());
    all.push(format!("It took {sum} of {} runs: {cost}.", tuning.budget()));
    if let Some(time_ns) = tuning.time_ns {
        let over = match (tuning.is_closed, conclusion.end) {
            (true, Some(End::NoTime)) => ", which ended the search",
            (true, _) => "; the search was ended so that the proof had time",
            (false, _) => "",
        };
        let (spent, time) = (duration_ns(tuning.spent_ns), duration_ns(time_ns));
        all.push(format!("Trials took {spent} of {time}{over}."));
    }
    all
}

fn headline(tuning: &Tuning, conclusion: &Conclusion) -> String {
    let Some(end) = conclusion.end else {
        let phase = conclusion.runs.last().map_or(Phase::Screening, |(phase, _)| *phase);
        return format!("The search is not over: it is at its {}.", phase.name());
    };
    match end {
        End::NothingMatters => {
            let but = if conclusion.failing.is_empty() {
                "No setting matters"
            } else {
                "But for what was given up, no setting matters"
            };
            format!(
                "{but}: from one end of its range to the other, none has an effect of more than {} by itself.",
                percent(tuning.margin)
            )
        }
        End::NothingShown => {
            let but = if conclusion.failing.is_empty() { "No" } else { "But for what was given up, no" };
            let tried = if is_tried(conclusion) {
                ""
            } else {
                " None seems more likely to help than not, so nothing was measured afresh."
            };
            format!("{but} setting is shown to matter by itself.{tried}")
        }
        End::NoTime => {
            let (settings, runs) = (tuning.space.settings.len(), tuning.budget());
            let least = least_runs(settings);
            match runs < least {
                true => format!(
                    "The time is too short: it is enough for {runs} runs, and {settings} settings take at least {least}. Allow more time, or \
                     search fewer settings."
                ),
                false => "The time was over before the screening had been carried out once: later trials took longer than the second, by which \
                          their number had been reckoned. Allow more time."
                    .to_owned(),
            }
        }
        _ => {
            let objective = decided(conclusion);
            proven(tuning, objective, end, conclusion.winner.as_ref(), conclusion.proof.as_ref())
        }
    }
}

/// Whether something was measured afresh beside the baseline.
fn is_tried(conclusion: &Conclusion) -> bool {
    let mut ends = conclusion.front.iter().flat_map(|front| &front.ends);
    conclusion.proof.is_some() || ends.any(|one| one.proof.is_some())
}

/// Where no setting is shown to matter by itself: what came of those together that seemed more likely to help than not, by the only
/// objective.
fn attempted(tuning: &Tuning, conclusion: &Conclusion) -> Option<String> {
    let is_it = conclusion.end == Some(End::NothingShown) && tuning.second.is_none();
    let proof = conclusion.proof.as_ref().filter(|_| is_it)?;
    let end = proof.end(tuning.objective.is_less_better());
    Some(together(tuning, 0, end, conclusion.winner.as_ref(), proof))
}

/// What came of what was set together.
fn together(
    tuning: &Tuning,
    objective: usize,
    end: End,
    winner: Option<&Configuration>,
    proof: &Proof,
) -> String {
    let by = by(tuning, objective);
    let winner = winner.map(|winner| tuning.space.label(winner)).unwrap_or_default();
    let came = came(tuning, objective, end, proof);
    format!(
        "What seemed more likely to help than not{by} was set together ({winner}). Measured afresh, {came}."
    )
}

/// Where there are two objectives, which one is meant.
fn by(tuning: &Tuning, objective: usize) -> String {
    match tuning.second {
        Some(_) => format!(" by {}", tuning.objectives()[objective].words()),
        None => String::new(),
    }
}

/// What a proof that did not find its winner to be better came to.
fn came(tuning: &Tuning, objective: usize, end: End, proof: &Proof) -> String {
    let times = times(tuning, objective, proof).map(|times| format!(": {times}")).unwrap_or_default();
    match end {
        End::Better => format!("it is better{times}"),
        End::Worse => format!("it is worse{times}"),
        End::Outside => {
            let runs = |compared: &[f64], outside: u32| compared.len() + outside as usize;
            let Proof { compared, winner_outside, baseline_outside, .. } = proof;
            format!(
                "runs were outside the service level or failed: {winner_outside} of its {}, and {baseline_outside} of the baseline's {}",
                runs(&compared.winner, *winner_outside),
                runs(&compared.baseline, *baseline_outside)
            )
        }
        _ => format!("it cannot be told from the baseline{times}"),
    }
}

/// Which effects the screening would most likely have found; of two objectives, by each.
fn detectable(tuning: &Tuning, conclusion: &Conclusion) -> String {
    let second = conclusion.front.as_ref().and_then(|front| front.detectable);
    let all = tuning.objectives().into_iter().zip([conclusion.detectable, second]);
    let of = |(objective, least): (Objective, Option<f64>)| {
        let least = percent(least?);
        Some(if tuning.second.is_some() { format!("{least} on the {}", objective.words()) } else { least })
    };
    let all: Vec<String> = all.filter_map(of).collect();
    if all.is_empty() {
        return String::new();
    }
    if conclusion.detectable.into_iter().chain(second).any(|least| least > TENFOLD) {
        return "; with so few runs not even a tenfold effect is sure to be seen".to_owned();
    }
    format!("; an effect of {} would most likely have been seen", all.join(" and of "))
}

/// Settings that the winner changes although nothing has shown that it needs them.
fn untested(tuning: &Tuning, conclusion: &Conclusion) -> Option<String> {
    let is_better = conclusion.end == Some(End::Better);
    let (winner, space) = (conclusion.winner.as_ref().filter(|_| is_better)?, &tuning.space);
    let is_shown = |index: usize| {
        let mut own = effects_of(conclusion).filter(|effect| effect.setting == index);
        own.any(|effect| matches!(effect.verdict, Verdict::Better | Verdict::Worse))
    };
    let is_needed = |index: usize| {
        let mut failing = conclusion.failing.iter();
        failing.any(|one| one.setting == index && one.value == space.settings[index].baseline)
    };
    let is_untested = |index: &usize| {
        winner.0[*index] != space.settings[*index].baseline
            && !conclusion.searched.contains(index)
            && !is_shown(*index)
            && !is_needed(*index)
    };
    let names = names(tuning, (0..space.settings.len()).filter(is_untested));
    (!names.is_empty()).then(|| {
        format!(
            "What was proven is a combination: whether it needs its {names}, or one of them does harm, was not looked into."
        )
    })
}

/// The effects on all objectives.
fn effects_of(conclusion: &Conclusion) -> impl Iterator<Item = &Effect> {
    conclusion.effects.iter().chain(conclusion.front.iter().flat_map(|front| &front.effects))
}

/// Whether the screening is over and has told no effects.
fn is_untold(conclusion: &Conclusion) -> bool {
    let is_over = conclusion.end.is_some_and(|end| !matches!(end, End::NoTime | End::NothingWithin));
    is_over && conclusion.effects.is_empty()
}

/// Settings of which something was left unseen: ranges between whose ends nothing was measured that counts, because the baseline is at an end
/// or outside the service level; and where effects are not known, those that were not searched.
fn unseen(tuning: &Tuning, conclusion: &Conclusion) -> Vec<String> {
    let mut all = Vec::new();
    if !matches!(conclusion.end, Some(end) if end != End::NoTime && end != End::NothingWithin) {
        return all;
    }
    let settings = &tuning.space.settings;
    let is_left = |index: &usize| !conclusion.searched.contains(index);
    let baseline = tuning.space.baseline();
    let has_no_value = |one: &Standing| one.configuration == baseline && one.values.is_empty();
    let is_outside = conclusion.standings.iter().any(has_no_value);
    let is_at_an_end = |setting: &Setting| match setting.domain {
        Domain::Integer(from, to, _) | Domain::Real(from, to, _) => {
            is_outside || setting.baseline == from || setting.baseline == to
        }
        Domain::Choice(_) => false,
    };
    let between = (0..settings.len()).filter(is_left).filter(|index| is_at_an_end(&settings[*index]));
    let between = names(tuning, between);
    if !between.is_empty() {
        all.push(format!("What lies between the ends of these ranges is not known: {between}."));
    }
    let left = names(tuning, (0..settings.len()).filter(is_left));
    if is_untold(conclusion) && !conclusion.searched.is_empty() && !left.is_empty() {
        all.push(format!("These were not searched: {left}."));
    }
    all
}

/// Values with which runs fail at least twice as often as with others of the same setting.
fn unreliable(tuning: &Tuning, conclusion: &Conclusion) -> Option<String> {
    let fails = |standing: &&Standing| {
        let has = |one: &Failing| standing.configuration.0[one.setting] == one.value;
        conclusion.failing.iter().any(has)
    };
    let sound: Vec<&Standing> = conclusion.standings.iter().filter(|one| !fails(one)).collect();
    let count = |fits: &dyn Fn(f64) -> bool, index: usize| {
        let own = sound.iter().filter(|one| fits(one.configuration.0[index]));
        own.fold((0, 0), |(outside, runs), one| (outside + one.outside as usize, runs + one.runs()))
    };
    let mut found = Vec::new();
    for (index, setting) in tuning.space.settings.iter().enumerate() {
        for level in setting.levels() {
            let ((outside, runs), (others, of)) =
                (count(&|value| value == level, index), count(&|value| value != level, index));
            if outside >= SEVERAL && of > 0 && outside * of >= 2 * others * runs {
                found.push(format!("{} {} {outside} of {runs}", setting.name, setting.text(level)));
            }
        }
    }
    (!found.is_empty()).then(|| {
        format!(
            "With these values, or with several of them together, more runs were outside or failed than with others: {}.",
            found.join(", ")
        )
    })
}

/// The names of settings at these places.
fn names(tuning: &Tuning, places: impl Iterator<Item = usize>) -> String {
    places.map(|index| tuning.space.settings[index].name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Runs without a value: all, and those of the baseline.
fn outside(tuning: &Tuning, conclusion: &Conclusion) -> Vec<String> {
    let mut all = Vec::new();
    let outside: u32 = conclusion.standings.iter().map(|standing| standing.outside).sum();
    if outside > 0 {
        let effects = if conclusion.effects.is_empty() { "" } else { "; effects are those of the others" };
        let runs = if outside == 1 {
            "1 run of the search was".to_owned()
        } else {
            format!("{outside} runs of the search were")
        };
        all.push(format!("{runs} outside the service level or failed{effects}."));
    }
    let baseline = tuning.space.baseline();
    let own = conclusion.standings.iter().find(|standing| standing.configuration == baseline);
    if let Some(own) = own.filter(|own| own.outside > 0) {
        let runs = own.outside as usize + own.values.len();
        all.push(format!(
            "Of the baseline's runs, {} of {runs} were outside the service level or failed.",
            own.outside
        ));
    }
    if let Some(proof) = conclusion.proof.as_ref().filter(|proof| proof.baseline_outside > 0) {
        let runs = proof.baseline_outside as usize + proof.compared.baseline.len();
        all.push(format!(
            "In the proof, {} of the baseline's {runs} runs were outside the service level or failed; their pairs are not compared.",
            proof.baseline_outside
        ));
    }
    all
}

/// What does not work: one sentence for all that have a value that was given up, and one for each of the others.
fn dropped(tuning: &Tuning, conclusion: &Conclusion) -> Vec<String> {
    let refused = tuning.tried.iter().filter(|tried| !tried.refused.is_empty());
    let has_failing = |tried: &&Tried| {
        let has = |one: &Failing| tried.configuration.0[one.setting] == one.value;
        conclusion.failing.iter().any(has)
    };
    let (given_up, alone): (Vec<&Tried>, Vec<&Tried>) = refused.partition(has_failing);
    let reason = |tried: &Tried| {
        let words: Vec<&str> = tried.refused.split_whitespace().collect();
        words.join(" ").trim_end_matches('.').to_owned()
    };
    let dropped = |tried: &Tried| format!("`{}` was dropped: {}.", tried.arm, reason(tried));
    let mut all = match &given_up[..] {
        [] => Vec::new(),
        [one] => vec![dropped(one)],
        [one, ..] => vec![format!(
            "{} combinations with what was given up were dropped; `{}` because {}.",
            given_up.len(),
            one.arm,
            reason(one)
        )],
    };
    all.extend(alone.into_iter().map(dropped));
    all
}

/// The place of the objective that the search's end is about.
fn decided(conclusion: &Conclusion) -> usize {
    let ends = conclusion.front.iter().flat_map(|front| &front.ends);
    let mut told = ends.filter(|one| one.end == conclusion.end && one.winner == conclusion.winner);
    told.next().map_or(0, |one| one.objective)
}

/// What a proof came to.
fn proven(
    tuning: &Tuning,
    objective: usize,
    end: End,
    winner: Option<&Configuration>,
    proof: Option<&Proof>,
) -> String {
    let winner = winner.map(|winner| tuning.space.label(winner)).unwrap_or_default();
    let times = proof.and_then(|proof| times(tuning, objective, proof)).unwrap_or_default();
    let by = by(tuning, objective);
    match end {
        End::NothingBetter => format!("Nothing that was tried seems better than the baseline{by}."),
        End::NothingWithin => "Nothing that was tried is within the service level.".to_owned(),
        End::Better if times.is_empty() => {
            format!("Better: {winner}. It is within the service level, and the baseline is not.")
        }
        End::Better => format!("Better{by}: {winner}. Measured afresh beside the baseline: {times}."),
        _ => {
            let came = proof.map(|proof| came(tuning, objective, end, proof)).unwrap_or_default();
            format!("Nothing better was found{by}: {winner} seemed so, but measured afresh {came}.")
        }
    }
}

/// Whether what was proven for the other objective is better by this one too.
fn is_better_elsewhere(tuning: &Tuning, ends: &[Extreme], objective: usize) -> bool {
    let is_less_better = tuning.objectives()[objective].is_less_better();
    let others = ends.iter().filter(|one| one.objective != objective && one.end == Some(End::Better));
    let mut proven = others.filter_map(|one| one.proof.as_ref()?.other.as_ref()?.interval);
    proven.any(|(low, high)| if is_less_better { high < 1.0 } else { low > 1.0 })
}

/// What there is to say of a front: its other end, and how much of it is known.
fn front(tuning: &Tuning, conclusion: &Conclusion) -> Vec<String> {
    let (Some(front), true) = (&conclusion.front, tuning.second.is_some()) else { return Vec::new() };
    let mut all = Vec::new();
    if conclusion.end.is_some() {
        let told = decided(conclusion);
        let is_shown = conclusion.end != Some(End::NothingShown);
        for Extreme { objective, end, winner, proof } in &front.ends {
            match (end, proof) {
                _ if is_shown && *objective == told => {}
                (Some(End::NothingBetter), _) if !is_shown && is_tried(conclusion) => all.push(format!(
                    "No setting seems more likely to help than not{}, so nothing was measured afresh for it.",
                    by(tuning, *objective)
                )),
                (Some(End::NothingBetter), _) if !is_shown => {}
                (Some(end), Some(proof)) if !is_shown => {
                    all.push(together(tuning, *objective, *end, winner.as_ref(), proof));
                }
                (Some(end), Some(proof))
                    if *end != End::Better && is_better_elsewhere(tuning, &front.ends, *objective) =>
                {
                    all.push(format!(
                        "{} seemed best{}, but measured afresh {}; what was proven for the other objective is better by this one too.",
                        winner.as_ref().map(|winner| tuning.space.label(winner)).unwrap_or_default(),
                        by(tuning, *objective),
                        came(tuning, *objective, *end, proof)
                    ));
                }
                (Some(end), _) => all.push(proven(tuning, *objective, *end, winner.as_ref(), proof.as_ref())),
                (None, _) => all.push(format!(
                    "{} seems best by {}; no runs were left to prove it.",
                    winner.as_ref().map(|winner| tuning.space.label(winner)).unwrap_or_default(),
                    tuning.objectives()[*objective].words()
                )),
            }
        }
    }
    let count = |place: Place| front.points.iter().filter(|point| point.place == place).count();
    let names: Vec<&str> = tuning.objectives().into_iter().map(Objective::words).collect();
    let proven = front.ends.iter().filter(|end| end.proof.is_some());
    let proven: Vec<&str> = proven.map(|end| names[end.objective]).collect();
    let afresh = match proven.is_empty() {
        true => "nothing of it was measured afresh".to_owned(),
        false => format!(
            "measured afresh was only what the search believes to be the best by {}, which need not be the first or last of them",
            proven.join(" and by ")
        ),
    };
    all.push(format!(
        "The front of {}, of {} settings that were measured: not dominated {}, cannot be told from these {}, dominated {}. It is of the \
         search's runs; {afresh}.",
        names.join(" and "),
        front.points.len(),
        count(Place::Front),
        count(Place::CannotTell),
        count(Place::Dominated)
    ));
    if let Some(noise) = front.noise {
        all.push(format!("By {}, runs with the same settings vary by {}.", names[1], percent(noise)));
    }
    all
}

/// What the proof measured: `throughput × 1.32 (1.28 to 1.36 with 95 %)`; of two objectives, by both.
fn times(tuning: &Tuning, objective: usize, proof: &Proof) -> Option<String> {
    let objectives = tuning.objectives();
    let by = |objective: Objective, compared: &Compared| {
        let (ratio, (low, high)) = (compared.ratio?, compared.interval?);
        // Geometric means, of which the multiple is the quotient.
        let mean = |values: &[f64]| {
            let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
            objective.value((logarithms / values.len() as f64).exp())
        };
        Some(format!(
            "{} × {ratio:.3} ({low:.3} to {high:.3} with 95 %), {} instead of {}",
            objective.words(),
            mean(&compared.winner),
            mean(&compared.baseline)
        ))
    };
    let mut parts = vec![by(objectives[objective], &proof.compared)?];
    if let (Some(other), [_, _]) = (&proof.other, &objectives[..]) {
        parts.extend(by(objectives[1 - objective], other));
    }
    Some(format!("{}, {} runs each", parts.join("; "), proof.compared.winner.len()))
}

/// The headings of [`points`] besides the objectives' names.
pub const POINTS: [&str; 4] = ["No.", "Settings", "Runs", "Front"];

/// A row for each point that may belong to the front: its number, its settings, its runs, both objectives with their intervals, and where
/// it stands.
pub fn points(tuning: &Tuning, conclusion: &Conclusion) -> Vec<[String; 6]> {
    let points = conclusion.front.iter().flat_map(|front| &front.points);
    let objectives = tuning.objectives();
    let value = |index: usize, estimated: &Estimated| {
        let objective = objectives.get(index).copied().unwrap_or_default();
        let mean = objective.value(estimated.mean);
        match estimated.interval {
            Some((low, high)) => format!("{mean} ({} to {})", objective.value(low), objective.value(high)),
            None => mean,
        }
    };
    let row = |(number, point): (usize, &Point)| {
        let [one, other] = &point.values;
        let place = match point.place {
            Place::Front => "not dominated",
            Place::CannotTell => "cannot tell",
            Place::Dominated => "dominated",
        };
        let label = tuning.space.label(&point.configuration);
        let (number, runs) = ((number + 1).to_string(), point.runs.to_string());
        [number, label, runs, value(0, one), value(1, other), place.to_owned()]
    };
    points.filter(|point| point.place != Place::Dominated).enumerate().map(row).collect()
}

/// The headings of [`effects`].
pub const EFFECTS: [&str; 5] = ["Setting", "Instead of", "Multiple", "95 %", "Verdict"];

/// A row for each effect, the strongest first, and for each value that fails.
pub fn effects(tuning: &Tuning, effects: &[Effect], failing: &[Failing]) -> Vec<[String; 5]> {
    let mut all: Vec<&Effect> = effects.iter().collect();
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
                Verdict::Equal => "no difference",
                Verdict::CannotTell => "cannot tell",
            }
            .to_owned(),
        ]
    };
    let given_up = |failing: &Failing| {
        let setting = &tuning.space.settings[failing.setting];
        let none = || "–".to_owned();
        let verdict = format!("failed in all {} runs", failing.runs);
        [format!("{} {}", setting.name, setting.text(failing.value)), none(), none(), none(), verdict]
    };
    all.iter().map(row).chain(failing.iter().map(given_up)).collect()
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
mod tests;
