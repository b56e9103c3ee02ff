//! Which driver gets which workers of a stage.

use crate::protocol::Part;
use tidemark_load::work;
use tidemark_measure::record::Note;
use tidemark_plan::object::Target;
use tidemark_plan::plan::{Engine, Stage, Work};

/// Workers of a work on one driver: never none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seats {
    pub(crate) driver: usize,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Seats {
    pub(crate) fn part(&self, work: u32) -> Part {
        Part { work, first: self.first, count: self.count }
    }
}

/// The workers of a stage as they were dealt.
pub(crate) struct Dealt {
    /// Of every work.
    pub(crate) works: Vec<Vec<Seats>>,
    pub(crate) notes: Vec<Note>,
}

/// Deals the workers of a stage to `drivers`: evenly, what does not divide evenly in turns over the works (as COSBench
/// does), a pinned work to its driver. What lies on one machine (files, devices, embedded servers) is not divided.
pub(crate) fn deal(stage: &Stage, drivers: &[String]) -> Result<Dealt, String> {
    let mut notes = Vec::new();
    let mut offset = 0;
    let works = stage.works.iter().map(|work| {
        let all = work.load.workers;
        if let Some(pin) = &work.driver {
            let driver = drivers.iter().position(|name| name == pin).ok_or_else(|| {
                format!("work `{}` is pinned to driver {pin}, which is not there", work.name)
            })?;
            return Ok(vec![Seats { driver, first: 0, count: all }]);
        }
        if drivers.len() > 1
            && let Some(what) = lies_on_one_machine(work)
        {
            notes.push(Note {
                topic: "one-driver".into(),
                text: format!(
                    "{what} on one machine: the works on them all ran on driver {}. To have them elsewhere, pin them with `driver:`.",
                    drivers[0]
                ),
            });
            return Ok(vec![Seats { driver: 0, first: 0, count: all }]);
        }
        let shares = work::deal(all, drivers.len() as u32, offset);
        offset = (offset + all % drivers.len().max(1) as u32) % drivers.len().max(1) as u32;
        let seats = shares.into_iter().enumerate().filter(|(_, share)| share.count > 0);
        Ok(seats.map(|(driver, share)| Seats { driver, first: share.first, count: share.count }).collect())
    });
    let works = works.collect::<Result<_, String>>()?;
    notes.dedup();
    Ok(Dealt { works, notes })
}

/// What of a work lies on one machine, if anything does.
fn lies_on_one_machine(work: &Work) -> Option<&'static str> {
    match &work.engine {
        Engine::Object(job) => matches!(job.target, Target::Embedded(_)).then_some("Embedded servers run"),
        Engine::Block(_) => Some("Volumes lie"),
        Engine::Fio(_) => Some("What fio job files name lies"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_plan::document;

    fn stage(works: &str) -> Stage {
        let text = format!(
            "<workload name=\"t\"><storage type=\"s3\" config=\"accesskey=k;secretkey=s;endpoint=http://127.0.0.1:1\"/>\
             <workflow><workstage name=\"main\">{works}</workstage></workflow></workload>"
        );
        document::read(&text).unwrap().plan.stages.swap_remove(0)
    }

    const READ: &str = "<operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9)\"/>";

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("d{number}")).collect()
    }

    #[test]
    fn workers_are_dealt_exactly_and_what_is_left_goes_round() {
        let work = |name: &str| format!("<work name=\"{name}\" workers=\"5\" runtime=\"9\">{READ}</work>");
        let dealt = deal(&stage(&(work("a") + &work("b"))), &names(4)).unwrap();
        for seats in &dealt.works {
            assert_eq!(seats.iter().map(|seats| seats.count).sum::<u32>(), 5);
        }
        let per_driver: Vec<u32> = (0..4)
            .map(|driver| dealt.works.iter().flatten().filter(|s| s.driver == driver).map(|s| s.count).sum())
            .collect();
        assert_eq!(per_driver.iter().max(), Some(&3), "{per_driver:?}: no driver has both of what was left");
    }

    #[test]
    fn a_pinned_work_is_on_its_driver_whole() {
        let text = format!("<work name=\"a\" workers=\"5\" runtime=\"9\" driver=\"d3\">{READ}</work>");
        let dealt = deal(&stage(&text), &names(4)).unwrap();
        assert_eq!(dealt.works, [vec![Seats { driver: 2, first: 0, count: 5 }]]);
        let error = deal(&stage(&text), &names(2)).err().unwrap();
        assert_eq!(error, "work `a` is pinned to driver d3, which is not there");
    }

    #[test]
    fn fewer_workers_than_drivers_leave_some_without() {
        let text = format!("<work name=\"a\" workers=\"2\" runtime=\"9\">{READ}</work>");
        let dealt = deal(&stage(&text), &names(4)).unwrap();
        assert_eq!(dealt.works[0].len(), 2);
    }
}
