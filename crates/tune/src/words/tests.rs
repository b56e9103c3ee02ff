//! What is said of conclusions that were made up.

use super::*;
use tidemark_measure::tuning::{Domain, Scale, Setting, Space};

#[test]
fn what_a_proof_came_to_is_told_with_its_counts_and_for_each_objective() {
    let tuning =
        Tuning { objective: Objective::Throughput, second: Some(Objective::P95), ..Tuning::default() };
    let compared = |interval| Compared {
        winner: vec![8.0; 4],
        baseline: vec![9.0; 3],
        ratio: Some(1.0),
        interval: Some(interval),
        p: None,
    };
    let outside =
        Proof { compared: compared((0.9, 1.1)), other: None, winner_outside: 1, baseline_outside: 2 };
    assert_eq!(
        came(&tuning, 0, End::Outside, &outside),
        "runs were outside the service level or failed: 1 of its 5, and 2 of the baseline's 5"
    );
    let end = |objective, end, other| Extreme {
        objective,
        end: Some(end),
        winner: Some(Configuration(Vec::new())),
        proof: Some(Proof {
            compared: compared((0.9, 1.1)),
            other: Some(compared(other)),
            winner_outside: 0,
            baseline_outside: 0,
        }),
    };
    let told = |other| {
        let ends = vec![end(0, End::Better, other), end(1, End::CannotTell, (0.9, 1.1))];
        let front = crate::conclusion::Front { ends, ..Default::default() };
        let conclusion = Conclusion {
            end: Some(End::Better),
            winner: Some(Configuration(Vec::new())),
            front: Some(front),
            ..Conclusion::default()
        };
        super::front(&tuning, &conclusion).join(" ")
    };
    // Less of a response time is better.
    assert!(told((0.8, 0.9)).contains("what was proven for the other objective is better by this one too"));
    assert!(told((0.8, 1.1)).contains("Nothing better was found by p95"), "{}", told((0.8, 1.1)));
}

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
    let told = |end, verdict| {
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
            end: Some(end),
            effects: vec![effect],
            detectable: Some(0.2),
            ..Conclusion::default()
        };
        sentences(&tuning, &conclusion).join(" ")
    };
    assert!(told(End::NothingMatters, Verdict::Equal).starts_with(
        "No setting matters: from one end of its range to the other, none has an effect of more than 5.0 % by itself."
    ));
    let open = told(End::NothingShown, Verdict::CannotTell);
    assert!(
        open.starts_with(
            "No setting is shown to matter by itself. None seems more likely to help than not, so nothing was measured afresh. What these \
             do by themselves cannot be told: cache; an effect of 20 %"
        ),
        "{open}"
    );
}
