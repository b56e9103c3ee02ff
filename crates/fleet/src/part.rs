//! A driver's part of one stage: sessions opened, started when the controller says, every second told.

use crate::link::Link;
use crate::orders::Orders;
use crate::protocol::{Opened, Part, Second, Up};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tidemark_control::audience::Audience;
use tidemark_control::field::{self, Field as _, StagePlace};
use tidemark_control::here::Here;
use tidemark_control::player::Player;
use tidemark_control::provenance;
use tidemark_load::crew::{Lead, Word};
use tidemark_load::work::Share;
use tidemark_measure::record::Note;
use tidemark_measure::tally::Interval;
use tidemark_measure::wire;
use tidemark_plan::plan::{Plan, Stage};

/// How the parts of a run speak to its controller: not at all once the run is void.
#[derive(Clone)]
pub(crate) struct Voice {
    pub(crate) link: Arc<Link>,
    pub(crate) orders: Arc<Orders>,
    pub(crate) run: u64,
}

impl Voice {
    pub(crate) fn say(&self, up: Up) {
        if !self.orders.is_given_up() {
            self.link.say(up);
        }
    }

    fn second(&self, stage: u32, work: u32, interval: &Interval) {
        if !self.orders.is_given_up() {
            let interval = wire::encode(interval);
            self.link.second(Second { run: self.run, stage, work, interval });
        }
    }
}

/// A run, as far as a driver has to do with it.
pub(crate) struct Task {
    pub(crate) plan: Plan,
    /// Stage and work of what lies on other machines.
    pub(crate) elsewhere: Vec<(u32, u32)>,
}

impl Task {
    /// The plan without what lies on other machines.
    pub(crate) fn own(&self) -> Plan {
        let mut plan = self.plan.clone();
        for (number, stage) in (0..).zip(&mut plan.stages) {
            let mut works = 0..;
            stage
                .works
                .retain(|_| works.next().is_some_and(|work| !self.elsewhere.contains(&(number, work))));
        }
        plan
    }

    /// The stage with the works only of which there are parts.
    fn share(&self, number: u32, parts: &[Part]) -> Option<Stage> {
        let whole = self.plan.stages.get(number as usize)?;
        let own = |part: &Part| {
            let work = whole.works.get(part.work as usize)?;
            (!self.elsewhere.contains(&(number, part.work))).then(|| work.clone())
        };
        let works = parts.iter().map(own).collect::<Option<_>>()?;
        Some(Stage { works, ..whole.clone() })
    }
}

/// Where the threads of a stage's works meet before its load.
struct Gathering<'a> {
    voice: &'a Voice,
    stage: u32,
    players: usize,
    open: AtomicUsize,
    said: AtomicBool,
    notes: Mutex<Vec<Note>>,
}

impl Gathering<'_> {
    /// A player's sessions are open; the last one tells the controller.
    fn opened(&self) {
        if self.open.fetch_add(1, Ordering::AcqRel) + 1 == self.players {
            self.say(Opened::Ready);
        }
    }

    /// Tells the controller, once.
    fn say(&self, opened: Opened) {
        if !self.said.swap(true, Ordering::AcqRel) {
            let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
            self.voice.say(Up::Ready { run: self.voice.run, stage: self.stage, opened, notes });
        }
    }
}

/// Carries out `parts` of a stage from its opening to its end.
#[expect(
    clippy::too_many_arguments,
    reason = "all of them are what a run is made of, and this is called once"
)]
pub(crate) fn carry_out(
    voice: &Voice,
    here: &mut Here,
    task: &Task,
    stage: u32,
    parts: &[Part],
    threads: Option<u32>,
    run_start: Instant,
    audience: &mut dyn Audience,
) {
    let run = voice.run;
    let mut notes = Vec::new();
    let mine = task.share(stage, parts);
    let place = StagePlace { index: stage as usize, run_start };
    let opened = match &mine {
        Some(mine) => here.open(place, mine, &mut notes, audience),
        None => field::Opened::Failed("the controller speaks of a work that is not this driver's".into()),
    };
    let gathering = |players| Gathering {
        voice,
        stage,
        players,
        open: AtomicUsize::new(0),
        said: AtomicBool::new(false),
        notes: Mutex::new(notes),
    };
    match opened {
        field::Opened::Nothing(why) => gathering(0).say(Opened::Nothing(why)),
        field::Opened::Failed(why) => gathering(0).say(Opened::Failed(why)),
        field::Opened::Players(players) => {
            let gathering = gathering(players.len());
            play(&gathering, &players, parts, threads.unwrap_or_else(provenance::cores).max(1));
        }
    }
    let proof = here.proof(Vec::new()).map(Box::new);
    voice.say(Up::StageEnded { run, stage, proof });
}

fn play(gathering: &Gathering<'_>, players: &[Player<'_>], parts: &[Part], threads: u32) {
    std::thread::scope(|scope| {
        let mut left = parts;
        for player in players {
            let (own, rest) = left.split_at(player.works().len().min(left.len()));
            left = rest;
            scope.spawn(move || play_one(gathering, player, own, threads));
        }
    });
}

fn play_one(gathering: &Gathering<'_>, player: &Player<'_>, parts: &[Part], threads: u32) {
    let Gathering { voice, stage, .. } = *gathering;
    let mut leads: Vec<_> = parts.iter().map(|part| Told { gathering, work: part.work }).collect();
    let mut leads: Vec<&mut dyn Lead> = leads.iter_mut().map(|lead| lead as &mut dyn Lead).collect();
    let shares: Vec<_> = parts.iter().map(|part| Share { first: part.first, count: part.count }).collect();
    let endings = player.play_shares(&shares, threads, &mut leads);
    for (part, ending) in parts.iter().zip(endings) {
        let ending = ending.map(Box::new).map_err(|error| error.to_string());
        if let Err(reason) = &ending
            && !gathering.said.load(Ordering::Acquire)
        {
            // The others wait for a start that will not come.
            gathering.say(Opened::Failed(reason.clone()));
            voice.orders.stop();
        }
        voice.say(Up::Ended { run: voice.run, stage, work: part.work, ending });
    }
}

/// A work's load, led by the controller.
struct Told<'a> {
    gathering: &'a Gathering<'a>,
    work: u32,
}

impl Lead for Told<'_> {
    fn start(&mut self) -> Option<Instant> {
        self.gathering.opened();
        self.gathering.voice.orders.wait_for_start()
    }

    fn interval(&mut self, interval: &Interval) {
        self.gathering.voice.second(self.gathering.stage, self.work, interval);
    }

    fn word(&mut self) -> Word {
        self.gathering.voice.orders.word(self.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_elsewhere_is_neither_prepared_nor_done() {
        let work = "<work name=\"a\" workers=\"2\" runtime=\"9\">\
            <operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9)\"/></work>";
        let text = format!(
            "<workload name=\"t\"><storage type=\"mock\"/><workflow><workstage name=\"main\">{work}{work}</workstage></workflow></workload>"
        );
        let plan = tidemark_plan::document::read(&text).unwrap().plan;
        let task = Task { plan, elsewhere: vec![(0, 1), (9, 9)] };
        assert_eq!(task.own().stages[0].works, task.plan.stages[0].works[..1]);
        let share = |stage, work| task.share(stage, &[Part { work, first: 0, count: 1 }]);
        assert!(share(0, 0).is_some_and(|stage| stage.works.len() == 1));
        assert!(share(0, 1).is_none() && share(0, 2).is_none() && share(1, 0).is_none());
    }
}
