//! Where an evaluation stands, for those who watch it: arms, loads and levels, and the cells that were measured so far.

use crate::api::{LiveBoard, LiveCell, LiveLoad, LivePlace};
use tidemark_control::evaluate::EvaluationEvent;
use tidemark_judge::evaluation::{Cell, estimates};
use tidemark_measure::evaluation::{Evaluation, Member, level_label};
use tidemark_measure::record::Run;

/// Whether an event changes the board.
pub(crate) fn concerns(event: &EvaluationEvent<'_>) -> bool {
    !matches!(event, EvaluationEvent::Output(_) | EvaluationEvent::RunEnded(_))
}

/// Takes an event in.
pub(crate) fn take(board: &mut LiveBoard, event: &EvaluationEvent<'_>) {
    match event {
        EvaluationEvent::Started { done, .. } => board.done = *done as u64,
        EvaluationEvent::SettingUp(arm) => board.phase = format!("setting up {arm}"),
        EvaluationEvent::GoingBack(_) => board.phase = "going back to the baseline's settings".into(),
        EvaluationEvent::TakingDown(arm) => {
            (board.phase, board.now) = (format!("taking down {arm}"), None);
        }
        EvaluationEvent::RunStarted { member, number, of } => {
            board.phase.clear();
            board.now = Some(place(member));
            (board.done, board.of) = (number.saturating_sub(1) as u64, of.map(|of| of as u64));
        }
        EvaluationEvent::Standing { evaluation, runs } => stand(board, evaluation, runs),
        EvaluationEvent::Output(_) | EvaluationEvent::RunEnded(_) => {}
    }
}

fn stand(board: &mut LiveBoard, evaluation: &Evaluation, runs: &[Run]) {
    board.evaluation = Some(evaluation.id).filter(|id| *id != 0);
    board.done = runs.len() as u64;
    board.now = None;
    board.repeats = evaluation.repeats;
    board.arms = evaluation.arms.iter().map(|arm| arm.name.clone()).collect();
    let load = |load: &tidemark_measure::evaluation::Load| LiveLoad {
        name: load.name.clone(),
        levels: load.levels.iter().map(level_label).collect(),
        searched: load.search.is_some(),
    };
    board.loads = evaluation.loads.iter().map(load).collect();
    board.cells = estimates(evaluation, runs).iter().map(cell).collect();
}

fn place(member: &Member) -> LivePlace {
    LivePlace {
        arm: member.arm.clone(),
        load: member.load.clone(),
        level: level_label(&member.level),
        repeat: member.repeat,
    }
}

fn cell(cell: &Cell) -> LiveCell {
    let us = |ns: f64| ns / 1e3;
    LiveCell {
        arm: cell.arm.clone(),
        load: cell.load.clone(),
        subject: cell.subject.clone(),
        level: level_label(&cell.level),
        runs: cell.runs.clone(),
        throughput: cell.throughput.mean,
        throughput_interval: cell.throughput.interval,
        p99_us: cell.p99_ns.as_ref().map(|estimate| us(estimate.mean)),
        p99_interval_us: cell
            .p99_ns
            .as_ref()
            .and_then(|estimate| estimate.interval)
            .map(|(low, high)| (us(low), us(high))),
        failed: cell.failed,
        meets: cell.meets,
        objection: cell.objection().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::axis::Axis;
    use tidemark_measure::evaluation::{Arm, Load};
    use tidemark_measure::kind::OperationClass;
    use tidemark_measure::record::{Operation, Stage, State, Work};
    use tidemark_measure::tally::Tally;

    fn run(arm: &str, repeat: u32, ok: u64) -> Run {
        let mut tally = Tally { ok, ..Tally::default() };
        tally.response.record_many(2_000_000, ok);
        let operation =
            Operation { class: OperationClass::Read, label: "read".into(), tally, ..Operation::default() };
        let work = Work {
            workers: 8,
            window_end_ns: 10_000_000_000,
            operations: vec![operation],
            ..Work::default()
        };
        Run {
            state: State::Completed,
            stages: vec![Stage { state: State::Completed, works: vec![work], ..Stage::default() }],
            member: Some(Member {
                arm: arm.into(),
                load: "web".into(),
                level: vec![Axis::count("workers", 8)],
                repeat,
                turn: repeat,
                ..Member::default()
            }),
            ..Run::default()
        }
    }

    #[test]
    fn a_board_fills_in_with_intervals() {
        let named = |name: &str| Arm { name: name.into(), ..Arm::default() };
        let evaluation = Evaluation {
            id: 5,
            repeats: 2,
            arms: vec![named("disk"), named("memory")],
            loads: vec![Load {
                name: "web".into(),
                levels: vec![vec![Axis::count("workers", 8)]],
                ..Load::default()
            }],
            ..Evaluation::default()
        };
        let mut board = LiveBoard::default();
        take(&mut board, &EvaluationEvent::Standing { evaluation: &evaluation, runs: &[] });
        assert_eq!((board.arms.len(), board.loads[0].levels[0].as_str()), (2, "workers 8"));
        assert!(board.cells.is_empty());
        let runs = [run("disk", 1, 1000), run("disk", 2, 1200), run("memory", 1, 5000)];
        let member = runs[0].member.clone().unwrap();
        take(&mut board, &EvaluationEvent::RunStarted { member: &member, number: 4, of: Some(4) });
        assert_eq!((board.done, board.of, board.now.as_ref().unwrap().arm.as_str()), (3, Some(4), "disk"));
        take(&mut board, &EvaluationEvent::Standing { evaluation: &evaluation, runs: &runs });
        let cell = |arm: &str| board.cells.iter().find(|cell| cell.arm == arm).unwrap();
        assert_eq!((cell("disk").runs.len(), cell("disk").throughput), (2, 110.0));
        let (low, high) = cell("disk").throughput_interval.unwrap();
        assert!(low < 110.0 && high > 110.0);
        assert_eq!((cell("memory").throughput, cell("memory").throughput_interval), (500.0, None));
        assert_eq!((board.done, board.now), (3, None));
    }
}
