//! Carries a search for better settings out: each trial is a cell, whose arm has the trial's settings.
//!
//! Only one arm is up at a time. The next takes over what it can: a setting that is in effect with the next run brings nothing down.

use super::arm::{Arm, Recovered};
use super::{
    CellPlace, Evaluation, EvaluationEvent, EvaluationSink, Evaluator, ExecuteError, Member, Run, State,
};
use crate::event::StopRequest;
use std::time::{Duration, Instant};
use tidemark_measure::evaluation as record;
use tidemark_measure::tuning::{Configuration, TakesEffect, Tried, Tuning};
use tidemark_measure::units::duration_ns;
use tidemark_plan::evaluation::Levels;
use tidemark_plan::provisioner::Health;
use tidemark_plan::yaml::Environment;
use tidemark_tune::time::note;
use tidemark_tune::{Phase, Trial, look_at};

/// Storage that has not recovered after so many times the time that it may take is given up.
const GIVEN_UP: u64 = 5;

/// Whether an earlier search was the same: it asked the same, and the runs of its baseline are what they would be now.
pub(super) fn is_the_same(document: &Evaluation, earlier: &Tuning, runs: &[Run]) -> bool {
    let Some(tuning) = &document.tuning else { return false };
    let (arm, level) = (&document.arms[0].name, level(document));
    let is_stale = |member: &Member| {
        member.arm == *arm && document.fingerprint(0, 0, &level, member.repeat) != member.fingerprint
    };
    tuning.asks_the_same(earlier) && !runs.iter().filter_map(|run| run.member.as_ref()).any(is_stale)
}

/// Whether a run of a search tells something: it has ended by itself.
pub(super) fn is_of_use(run: &Run) -> bool {
    matches!(run.state, State::Completed | State::Failed)
}

/// The only level of a search.
fn level(document: &Evaluation) -> record::Level {
    let levels = document.loads.first().map(|load| &load.levels);
    match levels {
        Some(Levels::Listed(levels)) => levels.first().cloned().unwrap_or_default(),
        _ => record::Level::new(),
    }
}

impl Evaluator<'_> {
    /// Searches until there is nothing more to measure; false when the user stopped it.
    pub(super) fn tune(&mut self, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        sink.event(EvaluationEvent::Started { done: self.before, left: 0 });
        sink.event(EvaluationEvent::Standing { evaluation: &self.record, runs: &self.runs });
        loop {
            let next = look_at(&self.record, &self.runs).map(|(_, next)| next).unwrap_or_default();
            if next.is_empty() {
                return Ok(true);
            }
            for trial in next {
                if self.tuning().is_closed && trial.phase != Phase::Proof {
                    break;
                }
                if !self.try_it(&trial, sink)? {
                    return Ok(false);
                }
            }
        }
    }

    /// Measures a trial; false when the user stopped it. Settings that cannot be set up or reset, or with which the storage is not well
    /// or does not recover in time, are dropped, unless they are the baseline's. Once time is over, nothing but the proof is measured.
    fn try_it(&mut self, trial: &Trial, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        let index = self.arm_of(trial)?;
        if !self.tuning().tried[index].refused.is_empty() {
            // Dropped since it was asked for.
            return Ok(true);
        }
        let cell = CellPlace { arm: index, load: 0, level: level(&self.document), repeat: trial.repeat };
        let fingerprint = self.fingerprint(&cell);
        if self.done.contains_key(&fingerprint) {
            return Ok(true);
        }
        let began = Instant::now();
        let is_baseline = trial.configuration == self.tuning().space.baseline();
        self.is_astray |= !is_baseline;
        let changed = self.change_to(index, sink);
        let is_up = match changed.and_then(|()| self.ready(index, sink)) {
            Ok(true) => {
                self.is_astray = !is_baseline;
                true
            }
            Ok(false) => return Ok(false),
            Err(ExecuteError(error)) => {
                sink.event(EvaluationEvent::Output(&error));
                self.take_down(index, sink)?;
                self.refuse(index, format!("it could not be set up: {error}"))?;
                false
            }
        };
        if sink.stop_request() > StopRequest::None {
            return Ok(false);
        }
        let of = self.tuning().budget() as usize;
        let mut is_measured = !is_up || self.run(&cell, fingerprint, Some(of), sink)?.is_some();
        if is_up && is_measured && self.health == Health::Well {
            is_measured = self.recover(index, sink)?;
        }
        let (took_ns, done) = (began.elapsed().as_nanos() as u64, self.runs.len() as u32);
        note(self.tuning_mut(), trial.phase, took_ns, done, is_up);
        self.keep()?;
        match std::mem::replace(&mut self.health, Health::Well) {
            Health::Well => Ok(is_measured),
            Health::Ill(why) => {
                sink.event(EvaluationEvent::Output(&why));
                // What is ill stays so: it is brought up again.
                self.take_down(index, sink)?;
                self.refuse(index, why)?;
                Ok(true)
            }
            Health::AtRisk(why) => {
                self.tuning_mut().tried[index].refused = format!("data were at risk: {why}");
                self.keep()?;
                Err(ExecuteError(format!(
                    "data are at risk with `{}`: {why}; the search has ended, and takes everything down",
                    self.document.arms[index].name
                )))
            }
        }
    }

    /// Waits until the storage of an arm has recovered from a run, if the search is about that too; false when the user stopped it. Storage
    /// that takes too long is not well.
    fn recover(&mut self, index: usize, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        let Some(within_ns) = self.tuning().recovery_ns else { return Ok(true) };
        let most = Duration::from_nanos(within_ns.saturating_mul(GIVEN_UP));
        match self.arms[index].recover(most, sink) {
            Recovered::After(took) => {
                let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
                let tried = &mut self.tuning_mut().tried[index];
                tried.recovery_ns = tried.recovery_ns.max(Some(took_ns));
                let (took_words, within) = (duration_ns(took_ns), duration_ns(within_ns));
                if took >= most {
                    self.health = Health::Ill(format!(
                        "it had not recovered after {took_words}, and may take {within}"
                    ));
                } else if took_ns > within_ns {
                    self.health =
                        Health::Ill(format!("it took {took_words} to recover, and may take {within}"));
                }
            }
            Recovered::Failed(error) => self.health = Health::Ill(format!("it did not recover: {error}")),
            Recovered::Stopped => return Ok(false),
        }
        Ok(true)
    }

    /// Drops the settings of an arm, which do not work.
    ///
    /// # Errors
    /// When they are the baseline's: there is nothing to compare with.
    fn refuse(&mut self, index: usize, why: String) -> Result<(), ExecuteError> {
        let tuning = self.tuning_mut();
        if tuning.space.baseline() == tuning.tried[index].configuration {
            return Err(ExecuteError(format!("the baseline does not work: {why}")));
        }
        tuning.tried[index].refused = why;
        self.keep()
    }

    /// The place of a trial's arm, which is added if there is none yet. Those of the proof have arms of their own, and so are set up afresh.
    fn arm_of(&mut self, trial: &Trial) -> Result<usize, ExecuteError> {
        let proves = trial.phase == Phase::Proof;
        let known = |tried: &Tried| tried.configuration == trial.configuration && tried.proves == proves;
        let tuning = self.tuning();
        let known = tuning.tried.iter().position(known);
        let index = known.unwrap_or(tuning.tried.len());
        let name = match (known, index) {
            (Some(index), _) => tuning.tried[index].arm.clone(),
            // The first run of all is the baseline's.
            (None, 0) => self.document.arms[0].name.clone(),
            _ => {
                let label = label(&self.document.arms[0].name, &tuning, &trial.configuration);
                if proves { format!("proof: {label}") } else { label }
            }
        };
        // After an interruption, earlier ones are not there yet either.
        while self.arms.len() <= index {
            let place = self.arms.len();
            let (name, configuration) = match self.tuning().tried.get(place) {
                Some(tried) => (tried.arm.clone(), tried.configuration.clone()),
                None => (name.clone(), trial.configuration.clone()),
            };
            self.add(&name, &configuration)?;
        }
        if known.is_none() {
            let configuration = trial.configuration.clone();
            if index > 0 {
                let arm = &self.document.arms[index];
                self.record.arms.push(record::Arm {
                    name: arm.name.clone(),
                    description: arm.description.clone(),
                    settings: arm.settings.clone(),
                });
            }
            self.tuning_mut().tried.push(Tried {
                arm: name,
                configuration,
                proves,
                refused: String::new(),
                recovery_ns: None,
            });
            self.keep()?;
        }
        Ok(index)
    }

    /// Adds an arm with these settings to the document.
    fn add(&mut self, name: &str, configuration: &Configuration) -> Result<(), ExecuteError> {
        let index = add(&mut self.document, name, configuration, self.environment)?;
        let arm = &self.document.arms[index];
        // Names of trials are long, and paths of sockets must not be.
        let directory = format!("trial-{index}");
        let registry = self.environment.registry;
        self.arms.push(Arm::new(&self.document.name, &directory, arm, self.options, registry)?);
        Ok(())
    }

    /// Puts the baseline's settings into effect again if those of another trial would outlive the search: commands have set them on something
    /// that no arm brings up, and no command takes them back.
    ///
    /// # Errors
    /// Why they are not in effect, and what to do by hand.
    pub(super) fn go_back(&mut self, sink: &mut dyn EvaluationSink) -> Result<(), ExecuteError> {
        let arm = &self.document.arms[0];
        if !self.is_astray || !arm.requests.is_empty() || !arm.tear_down.is_empty() {
            return Ok(());
        }
        let space = &self.tuning().space;
        let pairs = space.pairs(&space.baseline()).into_iter();
        let settings = pairs.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ");
        sink.event(EvaluationEvent::GoingBack(&settings));
        let why = match self.change_to(0, sink).and_then(|()| self.ready(0, sink)) {
            Ok(true) => return Ok(()),
            Ok(false) => "you stopped it".to_owned(),
            Err(ExecuteError(error)) => error,
        };
        Err(ExecuteError(format!(
            "settings of a trial may still be in effect, for the baseline's could not be put back: {why}\n\
             put them back by hand: {settings}"
        )))
    }

    /// Hands what is up over to an arm, or takes it down.
    fn change_to(&mut self, index: usize, sink: &mut dyn EvaluationSink) -> Result<(), ExecuteError> {
        let Some(before) = self.up.replace(index).filter(|before| *before != index) else { return Ok(()) };
        let tuning = self.tuning();
        let (from, to) = (&tuning.tried[before], &tuning.tried[index]);
        let change = match to.proves && !from.proves {
            true => TakesEffect::Rebuild,
            false => tuning.space.change(&from.configuration, &to.configuration),
        };
        if !self.arms[before].is_running() {
            return Ok(());
        }
        if change == TakesEffect::Rebuild {
            sink.event(EvaluationEvent::TakingDown(&self.document.arms[before].name));
        }
        let (one, other) = (before.min(index), before.max(index));
        let (left, right) = self.arms.split_at_mut(other);
        let (low, high) = (&mut left[one], &mut right[0]);
        let (from, to) = if before < index { (low, high) } else { (high, low) };
        to.take_over(from, change, sink)
    }

    /// What the search is about, and what it has tried.
    fn tuning(&self) -> Tuning {
        self.record.tuning.clone().unwrap_or_default()
    }

    fn tuning_mut(&mut self) -> &mut Tuning {
        self.record.tuning.get_or_insert_default()
    }
}

/// Adds an arm with these settings to a document; its place.
pub(super) fn add(
    document: &mut Evaluation,
    name: &str,
    configuration: &Configuration,
    environment: &Environment<'_>,
) -> Result<usize, ExecuteError> {
    document.add(name, configuration, environment).map_err(|remarks| {
        let said: Vec<_> = remarks.iter().map(|one| format!("{}; {}", one.message, one.help)).collect();
        ExecuteError(format!("settings `{name}`: {}", said.join("; ")))
    })
}

/// The name of an arm: what differs from the baseline, or the baseline's.
fn label(baseline: &str, tuning: &Tuning, configuration: &Configuration) -> String {
    match *configuration == tuning.space.baseline() {
        true => baseline.to_owned(),
        false => tuning.space.label(configuration),
    }
}
