//! Which driver gets which workers of a stage.

use crate::protocol::Part;
use std::collections::BTreeSet;
use tidemark_load::work;
use tidemark_measure::record::{Note, Share};
use tidemark_plan::engine::Placement;
use tidemark_plan::plan::{Plan, Stage, Work};
use tidemark_plan::registry::Registry;

/// Workers of a work on one driver, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) driver: usize,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl Assignment {
    pub(crate) fn part(&self, work: u32) -> Part {
        Part { work, first: self.first, count: self.count }
    }

    /// What the record says of it before anything was done.
    pub(crate) fn share(&self, work: u32) -> Share {
        let (driver, first_worker, workers) = (self.driver as u32, self.first, self.count);
        Share { driver, work, first_worker, workers, ..Share::default() }
    }
}

/// The assignments of a stage.
pub(crate) struct Assignments {
    /// Of every work.
    pub(crate) works: Vec<Vec<Assignment>>,
    /// Drivers that are not there, and keep what they have of their own, though the stage would clean it up.
    pub(crate) left: BTreeSet<usize>,
    pub(crate) notes: Vec<Note>,
}

/// Fits a plan to so many drivers: a work that each of them carries out has as many workers for each. What ends a load that is measured, and
/// its rate, are those of all drivers together; whatever else is done, such as filling volumes, each driver does all of.
pub(crate) fn fit(plan: &mut Plan, drivers: &[String], registry: &Registry) -> Result<(), String> {
    for work in plan.stages.iter_mut().flat_map(|stage| &mut stage.works) {
        if work.driver.is_some() || registry.engine_of(work)?.placement(work) != Placement::EachDriver {
            continue;
        }
        let copies = drivers.len() as u32;
        work.load = work.load.copied(copies);
        if !work.kind.measures() {
            let stop = &mut work.load.stop;
            for end in [&mut stop.operations, &mut stop.bytes] {
                *end = end.map(|own| own.saturating_mul(copies.into()));
            }
        }
    }
    Ok(())
}

/// Assigns the workers of a stage to those of `drivers` that are `there`: evenly, with remainders taken in turns over the works
/// (as COSBench does), and a pinned work to its driver. What every driver has of its own each carries out: one that is not there is assigned
/// its part all the same, which is then missing, unless the stage only cleans up. What is on one machine (files, devices, embedded servers) is
/// not divided: the first driver has it, whether it is there or not.
///
/// # Errors
/// When a driver that is needed is not there.
pub(crate) fn assign(
    stage: &Stage,
    drivers: &[String],
    there: &[bool],
    registry: &Registry,
) -> Result<Assignments, String> {
    let (mut notes, mut left) = (Vec::new(), BTreeSet::new());
    let mut offset = 0;
    let able: Vec<usize> = (0..drivers.len()).filter(|driver| there[*driver]).collect();
    let works = stage.works.iter().map(|work| {
        let all = work.load.workers;
        if able.is_empty() {
            return Err("all drivers are lost".to_owned());
        }
        if let Some(driver) = home(work, drivers, registry)? {
            let name = &drivers[driver];
            if !there[driver] {
                return Err(format!("work `{}` can run only on driver {name}, which is lost", work.name));
            }
            if let (None, Placement::OneMachine(what), true) =
                (&work.driver, registry.engine_of(work)?.placement(work), drivers.len() > 1)
            {
                notes.push(Note {
                    topic: "one-driver".into(),
                    text: format!(
                        "{what} on one machine, so driver {name} ran all works on them. To run them elsewhere, pin them with `driver:`."
                    ),
                });
            }
            return Ok(vec![Assignment { driver, first: 0, count: all }]);
        }
        if registry.engine_of(work)?.placement(work) == Placement::EachDriver {
            let own = |driver: usize| {
                let count = work.load.workers_of_copy();
                Assignment { driver, first: count.saturating_mul(driver as u32), count }
            };
            let (kept, lost): (Vec<usize>, Vec<usize>) = (0..drivers.len()).partition(|driver| there[*driver]);
            if work.kind.cleans() {
                left.extend(lost);
                return Ok(kept.into_iter().map(own).collect());
            }
            return Ok((0..drivers.len()).map(own).collect());
        }
        let shares = work::divide(all, able.len() as u32, offset);
        offset = (offset + all % able.len() as u32) % able.len() as u32;
        let assignments = able.iter().zip(shares).filter(|(_, share)| share.count > 0);
        Ok(assignments.map(|(driver, share)| Assignment { driver: *driver, first: share.first, count: share.count }).collect())
    });
    let works = works.collect::<Result<_, String>>()?;
    notes.dedup();
    Ok(Assignments { works, left, notes })
}

/// Stage and work of whatever is on one machine other than this driver's.
///
/// # Errors
/// When a work is pinned to a driver that does not take part.
pub(crate) fn elsewhere(
    plan: &Plan,
    drivers: &[String],
    driver: usize,
    registry: &Registry,
) -> Result<Vec<(u32, u32)>, String> {
    let mut all = Vec::new();
    for (stage, works) in (0..).zip(plan.stages.iter().map(|stage| &stage.works)) {
        for (number, work) in (0..).zip(works) {
            let home = home(work, drivers, registry)?;
            let placement = registry.engine_of(work)?.placement(work);
            if placement != Placement::Divisible && home.is_some_and(|home| home != driver) {
                all.push((stage, number));
            }
        }
    }
    Ok(all)
}

/// The most files and sockets that each driver has open at once, as long as no other driver is lost.
///
/// # Errors
/// When a work is pinned to a driver that does not take part.
pub(crate) fn open_files(plan: &Plan, drivers: &[String], registry: &Registry) -> Result<Vec<u64>, String> {
    let there = vec![true; drivers.len()];
    let mut most = vec![0; drivers.len()];
    for stage in plan.stages.iter().filter(|stage| !stage.works.is_empty()) {
        let assigned = assign(stage, drivers, &there, registry)?;
        for (driver, most) in most.iter_mut().enumerate() {
            *most = registry.open_files(&share(stage, &assigned.works, driver)).max(*most);
        }
    }
    Ok(most)
}

/// The works of a stage with as many workers as a driver has of them.
fn share(stage: &Stage, assigned: &[Vec<Assignment>], driver: usize) -> Vec<Work> {
    let own = |(work, assignments): (&Work, &Vec<Assignment>)| {
        let count = assignments.iter().find(|assignment| assignment.driver == driver)?.count;
        Some(Work { load: work::Work { workers: count, ..work.load.clone() }, ..work.clone() })
    };
    stage.works.iter().zip(assigned).filter_map(own).collect()
}

/// The only driver that can run this work, if there is such a one.
fn home(work: &Work, drivers: &[String], registry: &Registry) -> Result<Option<usize>, String> {
    match &work.driver {
        Some(pin) => drivers.iter().position(|name| name == pin).map(Some).ok_or_else(|| {
            format!("work `{}` is pinned to driver {pin}, which does not take part", work.name)
        }),
        None => match registry.engine_of(work)?.placement(work) {
            Placement::Divisible | Placement::EachDriver => Ok(None),
            Placement::OneMachine(_) => Ok(Some(0)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_engines::registry;
    use tidemark_plan::document;
    use tidemark_plan::yaml::Environment;

    fn stage(works: &str) -> Stage {
        let text = format!(
            "<workload name=\"t\"><storage type=\"s3\" config=\"accesskey=k;secretkey=s;endpoint=http://127.0.0.1:1\"/>\
             <workflow><workstage name=\"main\">{works}</workstage></workflow></workload>"
        );
        document::read(&text, &Environment::process(&registry())).unwrap().plan.stages.swap_remove(0)
    }

    const READ: &str = "<operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9)\"/>";

    const VOLUMES: &str = "name: v\ntarget: {kind: file, path: /nowhere/volume, size: 1MiB}\n\
        stages:\n- name: fill\n  prepare: {}\n- name: main\n  load: {pattern: read, block_size: 4KiB, for: 1s}\n";

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("d{number}")).collect()
    }

    #[test]
    fn workers_are_dealt_exactly_and_what_is_left_goes_round() {
        let work = |name: &str| format!("<work name=\"{name}\" workers=\"5\" runtime=\"9\">{READ}</work>");
        let assigned = assign(&stage(&(work("a") + &work("b"))), &names(4), &[true; 4], &registry()).unwrap();
        for assignments in &assigned.works {
            assert_eq!(assignments.iter().map(|assignments| assignments.count).sum::<u32>(), 5);
        }
        let per_driver: Vec<u32> = (0..4)
            .map(|driver| {
                assigned.works.iter().flatten().filter(|s| s.driver == driver).map(|s| s.count).sum()
            })
            .collect();
        assert_eq!(per_driver.iter().max(), Some(&3), "{per_driver:?}: no driver has both of what was left");
    }

    #[test]
    fn a_pinned_work_is_on_its_driver_whole() {
        let text = format!("<work name=\"a\" workers=\"5\" runtime=\"9\" driver=\"d3\">{READ}</work>");
        let assigned = assign(&stage(&text), &names(4), &[true; 4], &registry()).unwrap();
        assert_eq!(assigned.works, [vec![Assignment { driver: 2, first: 0, count: 5 }]]);
        let error = assign(&stage(&text), &names(2), &[true; 2], &registry()).err().unwrap();
        assert_eq!(error, "work `a` is pinned to driver d3, which does not take part");
    }

    #[test]
    fn the_lost_get_nothing_and_what_has_its_place_there_cannot_be_done() {
        let text = format!("<work name=\"a\" workers=\"5\" runtime=\"9\">{READ}</work>");
        let assigned = assign(&stage(&text), &names(3), &[true, false, true], &registry()).unwrap();
        let assignments: Vec<_> = assigned.works[0]
            .iter()
            .map(|assignments| (assignments.driver, assignments.first, assignments.count))
            .collect();
        assert_eq!(assignments, [(0, 0, 3), (2, 3, 2)]);
        assert_eq!(
            assign(&stage(&text), &names(1), &[false], &registry()).err().unwrap(),
            "all drivers are lost"
        );
        let text = format!("<work name=\"a\" workers=\"5\" runtime=\"9\" driver=\"d2\">{READ}</work>");
        let error = assign(&stage(&text), &names(3), &[true, false, true], &registry()).err().unwrap();
        assert_eq!(error, "work `a` can run only on driver d2, which is lost");
        let mut plan = document::read(VOLUMES, &Environment::process(&registry())).unwrap().plan;
        let error = assign(&plan.stages[0], &names(3), &[false, true, true], &registry()).err().unwrap();
        assert_eq!(
            error, "work `prepare` can run only on driver d1, which is lost",
            "nobody else has the volumes"
        );
        assert_eq!(elsewhere(&plan, &names(2), 0, &registry()), Ok(vec![]));
        assert_eq!(elsewhere(&plan, &names(2), 1, &registry()), Ok(vec![(0, 0), (1, 0)]));
        plan.stages[1].works[0].driver = Some("d2".into());
        assert_eq!(elsewhere(&plan, &names(2), 1, &registry()), Ok(vec![(0, 0)]));
    }

    #[test]
    fn what_every_driver_has_is_done_by_each_and_ends_together() {
        let text = VOLUMES
            .replace("size: 1MiB", "size: 1MiB, per_driver: true")
            .replace("for: 1s", "total_operations: 90")
            + "- precondition: {passes: 1}\n- cleanup: {}\n";
        let mut plan = document::read(&text, &Environment::process(&registry())).unwrap().plan;
        let alone = plan.clone();
        fit(&mut plan, &names(3), &registry()).unwrap();
        let load = |plan: &Plan, stage: usize| plan.stages[stage].works[0].load.clone();
        for stage in 0..4 {
            assert_eq!(
                (load(&plan, stage).workers, load(&plan, stage).copies),
                (3 * load(&alone, stage).workers, 3)
            );
        }
        assert_eq!(load(&plan, 1).stop.operations, Some(90), "of all together");
        assert_eq!(load(&plan, 2).stop.bytes, Some(3 << 20), "each writes the capacity of its own");
        let of = |stage: usize, there: [bool; 3]| {
            assign(&plan.stages[stage], &names(3), &there, &registry()).unwrap()
        };
        let all = |count| {
            (0..3)
                .map(|driver| Assignment { driver, first: driver as u32 * count, count })
                .collect::<Vec<_>>()
        };
        let lost = [true, false, true];
        assert_eq!(of(1, lost).works, [all(1)], "what a lost driver should have done is missing");
        let cleanup = of(3, lost);
        assert_eq!(cleanup.works[0].iter().map(|one| one.driver).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((cleanup.left, cleanup.notes), ([1].into(), vec![]));
        assert_eq!(elsewhere(&plan, &names(3), 1, &registry()), Ok(vec![]));
        plan.stages[1].works[0].driver = Some("d3".into());
        assert_eq!(elsewhere(&plan, &names(3), 1, &registry()), Ok(vec![(1, 0)]));
    }

    #[test]
    fn each_driver_needs_files_for_its_own_workers() {
        let work = |workers: u32, pin: &str| {
            format!("<work name=\"a\" workers=\"{workers}\" runtime=\"9\" {pin}>{READ}</work>")
        };
        let mut plan = document::read(VOLUMES, &Environment::process(&registry())).unwrap().plan;
        plan.stages = vec![stage(&work(7, "")), stage(&(work(4, "") + &work(2, "driver=\"d2\"")))];
        assert_eq!(open_files(&plan, &names(2), &registry()), Ok(vec![4, 4]));
        plan.stages.push(Stage { works: Vec::new(), ..plan.stages[0].clone() });
        assert_eq!(open_files(&plan, &names(3), &registry()), Ok(vec![3, 3, 2]));
    }

    #[test]
    fn fewer_workers_than_drivers_leave_some_without() {
        let text = format!("<work name=\"a\" workers=\"2\" runtime=\"9\">{READ}</work>");
        let assigned = assign(&stage(&text), &names(4), &[true; 4], &registry()).unwrap();
        assert_eq!(assigned.works[0].len(), 2);
    }
}
