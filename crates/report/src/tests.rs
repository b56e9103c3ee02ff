//! What every form of the report must hold, whatever the run.

use crate::figures::{self, MOST_POINTS};
use crate::{cosbench_archive, csv, csv_series, html, json, markdown, sample};
use tidemark_judge::{Judgement, judge};
use tidemark_measure::axis::Axis;
use tidemark_measure::fault::Fault;
use tidemark_measure::host::Host;
use tidemark_measure::kind::{Cache, OperationClass, WorkKind};
use tidemark_measure::record::{
    Cell, DeviceUse, Driver, Example, LongestGap, Lost, Note, Operation, Proof, Reported, Run, Second,
    SecondOfOperation, Share, ShareSecond, Stage, State, Work, WorkerCount,
};

const NASTY: &str =
    "</title></svg><script>alert(1)</script><img src=x onerror=alert(2)>\"'&|`\u{0}\u{1b}[31m\r\n# h";

/// A run whose every text is an attack.
fn nasty() -> Run {
    let mut run = sample::outage();
    let text = || NASTY.to_string();
    (run.name, run.description) = (text(), text());
    run.notes = vec![Note { topic: text(), text: text() }];
    let source = &mut run.provenance;
    for field in [
        &mut source.tidemark,
        &mut source.command,
        &mut source.path,
        &mut source.format,
        &mut source.document,
        &mut source.host.name,
        &mut source.host.kernel,
        &mut source.host.cpu,
    ] {
        *field = text();
    }
    source.targets = vec![text()];
    let driver = Driver {
        name: text(),
        host: Host { name: text(), ..Host::default() },
        lost: Some(Lost { at_ns: 1, reason: text() }),
        ..Driver::default()
    };
    run.drivers = vec![driver];
    let seconds =
        vec![ShareSecond { index: u32::MAX, ok: u64::MAX, busy: f64::NAN, ..ShareSecond::default() }];
    let share = Share {
        workers: u32::MAX,
        ok: u64::MAX,
        first_sent_ns: Some(u64::MAX),
        series: seconds,
        ..Share::default()
    };
    run.stages[2].shares =
        vec![Share { driver: 7, ..share.clone() }, Share { work: 7, ..share.clone() }, share];
    for (index, stage) in run.stages.iter_mut().enumerate() {
        // One stage is part of a sweep, the others are not.
        let axes = vec![Axis::word(text(), text()), Axis::word(text(), text())];
        stage.cell = (index == 2).then(|| Cell { sweep: text(), axes, engine: text(), ..Cell::default() });
        let device = DeviceUse { device: text(), volumes: vec![text()], ..DeviceUse::default() };
        let (setup, unchecked) = (vec![text()], vec![text()]);
        stage.proof = Some(Proof {
            setup,
            cache: Some(Cache::Warm),
            devices: vec![device],
            unchecked,
            ..Proof::default()
        });
        (stage.id, stage.name, stage.reason, stage.state) = (text(), text(), text(), State::Failed);
        for work in &mut stage.works {
            (work.name, work.given_up) = (text(), text());
            work.examples = vec![Example { fault: Fault::Local, text: text() }];
            for operation in &mut work.operations {
                (operation.label, operation.kind, operation.class, operation.config) =
                    (text(), text(), OperationClass::named(&text()), text());
            }
        }
    }
    run
}

/// One second of constant numbers, for texts that must never change.
fn tiny() -> Stage {
    let mut operation = Operation {
        label: "read".into(),
        kind: "read".into(),
        class: OperationClass::Read,
        ..Operation::default()
    };
    operation.weight = 100.0;
    operation.tally.ok = 2_000;
    operation.tally.bytes = 8_192_000;
    operation.tally.response.record_many(1_000_000, 1_990);
    operation.tally.response.record_many(250_000_000, 10);
    operation.tally.first_byte.record_many(900_000, 2_000);
    operation.tally.faults.count(Fault::Timeout);
    operation.tally.failure.record(30_000_000_000);
    let second = |index, ok| {
        let numbers = SecondOfOperation {
            ok,
            bytes: ok * 4096,
            p50_ns: 1_000_000,
            p95_ns: 1_000_000,
            ..Default::default()
        };
        let numbers = SecondOfOperation { p99_ns: 2_000_000, max_ns: 250_000_000, ..numbers };
        Second { index, operations: vec![numbers], in_flight: 4, ..Second::default() }
    };
    let work = Work {
        name: "w".into(),
        workers: 4,
        threads: 1,
        window_end_ns: 3_000_000_000,
        last_done_ns: 3_000_000_000,
        operations: vec![operation],
        series: vec![second(0, 1_000), second(1, 0), second(2, 1_000)],
        longest_gap: Some(LongestGap { from_ns: 990_000_000, to_ns: 2_001_000_000 }),
        examples: vec![Example { fault: Fault::Timeout, text: "GET b1/o7: no reply within 30 s".into() }],
        workers_counts: vec![WorkerCount {
            ok: 2_000,
            failed: 1,
            last_done_ns: 2_999_000_000,
            ..Default::default()
        }],
        ..Work::default()
    };
    Stage {
        id: "s1-main".into(),
        name: "main".into(),
        state: State::Completed,
        works: vec![work],
        ended_ns: 3_000_000_000,
        ..Stage::default()
    }
}

fn every_text(run: &Run) -> Vec<String> {
    let judgement = judge(run);
    let figures =
        run.stages.iter().flat_map(|stage| &stage.works).flat_map(|work| figures::all(work, MOST_POINTS));
    let mut texts = vec![
        html(run, &judgement),
        markdown(run, &judgement),
        csv(run),
        csv_series(run),
        json(run, &judgement),
    ];
    texts.extend(figures.map(|figure| figure.standalone()));
    texts
}

#[test]
fn text_from_documents_is_never_markup() {
    let run = nasty();
    let judgement = judge(&run);
    let page = html(&run, &judgement);
    for markup in ["<script", "<img", "\u{1b}", "\u{0}"] {
        assert!(!page.contains(markup), "{markup:?} at {:?}", page.find(markup));
    }
    assert_eq!(page.matches("</title>").count(), 1 + page.matches("<title id=").count());
    for figure in figures::all(&run.stages[2].works[0], MOST_POINTS) {
        let text = figure.standalone();
        assert!(!text.contains("<script") && !text.contains("<img"), "{}", figure.name);
        assert_eq!(text.matches("</svg>").count(), 1, "{}", figure.name);
        assert!(figure.name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)), "{}", figure.name);
    }
    let text = markdown(&run, &judgement);
    let outside: String = text.split("\n```").step_by(2).collect();
    assert!(!outside.contains("<script") && !outside.contains("\n# h"), "{outside}");
}

#[test]
fn a_page_needs_nothing_but_itself() {
    let run = sample::matrix();
    let page = html(&run, &judge(&run));
    for outside in ["<link", "<script", "@import", "url(", "src=", "href=\"http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "every id is unique");
    for reference in
        page.split("aria-labelledby=\"").skip(1).flat_map(|rest| rest.split('"').next().unwrap().split(' '))
    {
        assert!(ids.binary_search(&reference).is_ok(), "{reference}");
    }
}

#[test]
fn a_twenty_minute_run_stays_small() {
    let mut run = sample::healthy(1);
    let work = &mut run.stages[2].works[0];
    work.window_end_ns = 1_200_000_000_000;
    let numbers = |index: u64| SecondOfOperation {
        ok: 5_000 + index * 7_919 % 3_000,
        bytes: 1 << 20,
        p50_ns: 1_000_000 + index * 104_729 % 900_000,
        p95_ns: 3_000_000 + index * 7_919 % 900_000,
        p99_ns: 9_000_000 + index * 611_953 % 9_000_000,
        max_ns: 20_000_000 + index * 15_485_863 % 90_000_000,
        failed: index * 31 % 7,
        ..Default::default()
    };
    work.series = (0..1_200)
        .map(|index| Second {
            index,
            operations: vec![numbers(index.into()), numbers(u64::from(index) + 77)],
            in_flight: 60 + index % 5,
            oldest_in_flight_ns: u64::from(index) * 32_452_843 % 90_000_000,
            ..Second::default()
        })
        .collect();
    let page = html(&run, &judge(&run));
    assert!(page.len() < 500_000, "{}", page.len());
    assert!(page.len() > 100_000, "the charts are there: {}", page.len());
}

#[test]
fn a_sweep_of_sixty_long_stages_stays_readable_and_small() {
    let run = sample::sweeps(60);
    assert_eq!(run.stages.len(), 62);
    let judgement = judge(&run);
    let page = html(&run, &judgement);
    assert!(page.len() < 5_000_000, "{}", page.len());
    let top = &page[..page.find("<h2>Sweep points").unwrap()];
    assert!(top.len() < 60_000, "the summary is one: {}", top.len());
    assert!(top.contains("points, randread: peak 9"), "{}", &top[top.find("verdict").unwrap()..]);
    assert!(page.contains("11 % of the bytes read") || page.contains("of the bytes read came from memory"));
    for text in [
        "Bandwidth by block size",
        "p99 of the response time by clients",
        "Stage by stage: 62",
        ">INVALID<",
        "Before every load: page cache",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let opened = page.matches("<details").count();
    assert_eq!(opened, page.matches("</details>").count());
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "every id is unique");
    let text = markdown(&run, &judgement);
    assert!(text.contains("## Sweep scaling") && text.contains("## Proof"), "{text}");
}

#[test]
fn an_outage_is_said_at_the_top() {
    let run = sample::outage();
    let page = html(&run, &judge(&run));
    let top = &page[page.find("class=\"verdict").unwrap()..page.find("<h3>Problems</h3>").unwrap()];
    assert!(top.starts_with("class=\"verdict bad\""));
    assert!(top.contains("no operation succeeded for 10.0 s"), "{top}");
    assert!(
        top.contains("<dt>Longest without success</dt><dd>10.0 s</dd><dd class=\"more\">of 20.0 s</dd>"),
        "{top}"
    );
    assert!(page.contains(">no success for 10.0 s</text>"), "the charts say it too");
}

#[test]
fn a_failed_stage_never_looks_completed() {
    let mut run = sample::all_failed();
    for state in [State::Failed, State::Interrupted, State::Waiting] {
        run.stages[2].state = state;
        let judgement = judge(&run);
        let page = html(&run, &judgement);
        let stage = &page[page.find("<h2>s3-main").unwrap()..];
        assert!(!stage[..stage.find("<h3>").unwrap()].contains("completed"), "{state:?}");
        assert!(page.contains("class=\"verdict bad\"") && !page.contains("✓ COMPLETED"), "{state:?}");
        let text = markdown(&run, &judgement);
        assert!(
            text.contains(&format!("## s3-main ({})", state.name())) && !text.contains("✓ COMPLETED"),
            "{state:?}"
        );
    }
    let page = html(&run, &judge(&run));
    assert!(page.contains("No operation succeeded: there are no response times.") && page.contains(">0 %<"));
}

#[test]
fn an_open_loop_shows_what_waiting_hides() {
    let run = sample::invalid();
    let page = html(&run, &judge(&run));
    for row in ["<td>response</td>", "<td>service</td>", "<td>sent late by</td>"] {
        assert!(page.contains(row), "{row}");
    }
    let names: Vec<String> =
        figures::all(&run.stages[2].works[0], MOST_POINTS).into_iter().map(|figure| figure.name).collect();
    assert!(names.contains(&"overdue".to_string()), "{names:?}");
}

#[test]
fn nothing_at_all_is_reported_too() {
    let mut run = Run::default();
    assert!(every_text(&run).iter().all(|text| !text.is_empty()));
    run.stages =
        vec![Stage { works: vec![Work { kind: WorkKind::Normal, ..Work::default() }], ..Stage::default() }];
    every_text(&run);
    cosbench_archive(&run, "", tempfile::tempdir().unwrap().path()).unwrap();
}

#[test]
fn numbers_beyond_all_reason_do_no_harm() {
    let mut run =
        Run { stages: vec![tiny()], started_unix_ns: u64::MAX, elapsed_ns: u64::MAX, ..Run::default() };
    let stage = &mut run.stages[0];
    (stage.started_ns, stage.ended_ns) = (u64::MAX, 0);
    let work = &mut stage.works[0];
    work.window_start_ns = u64::MAX;
    work.offered_rate = Some(f64::NAN);
    (work.unsent, work.undone, work.workers, work.threads) = (u64::MAX, u64::MAX, u32::MAX, u32::MAX);
    work.longest_gap = Some(LongestGap { from_ns: u64::MAX, to_ns: 0 });
    let tally = &mut work.operations[0].tally;
    (tally.ok, tally.bytes, tally.retries) = (u64::MAX / 4, u64::MAX, u64::MAX);
    (tally.late, tally.late_bytes) = (u64::MAX, u64::MAX);
    tally.response.record(u64::MAX);
    work.series.push(Second {
        index: 50_000,
        operations: vec![SecondOfOperation { ok: u64::MAX, max_ns: u64::MAX, ..Default::default() }],
        oldest_in_flight_ns: u64::MAX,
        backlog: u64::MAX,
        busy: f64::INFINITY,
        ..Second::default()
    });
    let judgement = Judgement { validity: tidemark_judge::Validity::Valid, findings: Vec::new() };
    let page = html(&run, &judgement);
    assert!(!page.contains("NaN") && page.len() < 500_000);
    json(&run, &judgement);
    csv(&run);
    csv_series(&run);
    cosbench_archive(&run, "", tempfile::tempdir().unwrap().path()).unwrap();
}

#[test]
fn a_stage_in_markdown() {
    insta::assert_snapshot!(crate::markdown::main_stage(&Run::default(), &tiny()));
}

/// The prose of reports, so that a change of it is read by somebody: verdicts and findings of sample runs.
#[test]
fn the_words_of_reports() {
    let samples = [
        ("healthy", sample::healthy(60)),
        ("outage", sample::outage()),
        ("invalid", sample::invalid()),
        ("all_failed", sample::all_failed()),
        ("sweeps", sample::sweeps(60)),
        ("drivers", sample::by_drivers(4, 60)),
    ];
    for (name, run) in samples {
        let text = markdown(&run, &judge(&run));
        let summary: Vec<&str> = text.split("\n## ").take(2).collect();
        insta::assert_snapshot!(format!("words_{name}"), summary.join("\n## "));
    }
    let (evaluation, runs) = sample::evaluation(&sample::usual());
    let verdict = tidemark_judge::evaluation::assess(&evaluation, &runs).verdict;
    insta::assert_snapshot!("words_evaluation", verdict.join("\n"));
}

#[test]
fn figures_as_files() {
    let stage = tiny();
    insta::assert_snapshot!(
        "throughput",
        figures::throughput_over_time(&stage.works[0], 100).unwrap().standalone()
    );
    let names: Vec<String> =
        figures::all(&stage.works[0], 100).into_iter().map(|figure| figure.name).collect();
    assert_eq!(
        names,
        ["throughput", "bandwidth", "latency-read", "percentiles", "distribution", "in-flight"]
    );
}

#[test]
fn numbers_that_another_tool_says_are_shown_and_others_are_dashes() {
    let mut run = sample::healthy(3);
    run.stages.truncate(3);
    let work = &mut run.stages[2].works[0];
    work.series.clear();
    for operation in &mut work.operations {
        operation.tally = tidemark_measure::tally::Tally::default();
        operation.reported = Some(Reported {
            throughput: Some(5019.85),
            mean_ns: Some(63.7e6),
            percentiles: vec![(0.95, 106.67e6)],
            ..Reported::default()
        });
    }
    let judgement = judge(&run);
    let page = html(&run, &judgement);
    let stage = &page[page.find("<h2>s3-main").unwrap()..];
    for known in ["5\u{202f}020 op/s", "63.7 ms", "<td class=\"n\">107 ms</td>"] {
        assert!(stage.contains(known), "{known}");
    }
    assert!(!stage.contains("No operation succeeded") && stage.contains("<td class=\"n\">–</td>"));
    assert!(csv(&run).contains(",63700000,") && json(&run, &judgement).contains("5019.85"));
}

#[test]
fn drivers_have_a_section_where_there_are_any() {
    let run = sample::by_drivers(4, 30);
    let judgement = judge(&run);
    let (page, text) = (html(&run, &judgement), markdown(&run, &judgement));
    let section =
        &page[page.find("<section id=\"drivers\"").unwrap()..page.find("<section id=\"stages\"").unwrap()];
    for wanted in
        ["d-4", "loadgen-4", "✕ lost 40.0 s into the run: it said nothing for 10 s", "✓ complete", "<svg"]
    {
        assert!(section.contains(wanted), "{wanted} in {section}");
    }
    assert!(page.contains("load from 4 drivers") && page.contains("<a href=\"#drivers\">Drivers</a>"));
    assert!(text.contains("## Drivers\n") && text.contains("d-3"), "{text}");
    let value: serde_json::Value = serde_json::from_str(&json(&run, &judgement)).unwrap();
    assert_eq!(value["drivers"][2]["lost"]["at_ns"], 40_000_000_000u64);
    assert_eq!(value["stages"][2]["shares"][3]["workers"], 16);
    let names: Vec<String> = figures::of_run(&run).into_iter().map(|figure| figure.name).collect();
    assert!(names.contains(&"s3-main-drivers".to_owned()), "{names:?}");
    let local = sample::healthy(3);
    let judgement = judge(&local);
    let value: serde_json::Value = serde_json::from_str(&json(&local, &judgement)).unwrap();
    let none = serde_json::json!([]);
    assert!(value["drivers"] == none && value["stages"][2]["shares"] == none);
    assert!(
        !html(&local, &judgement).contains("id=\"drivers\"")
            && !markdown(&local, &judgement).contains("## Drivers")
    );
}

#[test]
fn nodes_are_shown_under_the_load() {
    let (_, runs) =
        sample::evaluation(&sample::Shape { arms: 1, levels: 1, repeats: 1, seconds: 5, times: 1 });
    let page = html(&runs[0], &judge(&runs[0]));
    for text in
        ["<section id=\"nodes\">", "Node storage-1", "The load: throughput", "loop3 of 500/s", "Not observed"]
    {
        assert!(page.contains(text), "{text}");
    }
    let text = markdown(&runs[0], &judge(&runs[0]));
    let (_, nodes) = text.split_once("## Nodes\n\n").unwrap();
    let names: Vec<_> = runs[0].nodes.iter().map(|node| node.name.as_str()).collect();
    let (observed, rest) = nodes.split_once('\n').unwrap();
    assert_eq!(observed, format!("Observed: {}.", names.join(", ")));
    assert!(rest.contains("- storage-1: The kernel has no pressure of interrupts"), "{rest}");
}

#[test]
fn what_is_left_of_a_second_after_the_window_does_not_say_how_busy_a_generator_was() {
    let mut run = sample::healthy(3);
    let work = &mut run.stages[2].works[0];
    work.series.iter_mut().for_each(|second| second.busy = 0.2);
    let last = work.series.last().unwrap();
    let index = (work.window_end_ns / 1_000_000_000) as u32;
    let fragment = Second { index, busy: 0.96, ..last.clone() };
    work.series.push(fragment);
    let text = html(&run, &judge(&run));
    assert!(text.contains("at most 20 % busy in any second of the window"));
    assert!(!text.contains("96 % busy"));
}

#[test]
fn tiles_have_the_numbers_of_all_operations_and_of_each() {
    let run = sample::healthy(10);
    let page = html(&run, &judge(&run));
    let stage = run.stages.iter().find(|stage| crate::content::is_main(stage)).unwrap();
    let mut all = tidemark_measure::histogram::Histogram::new();
    stage.works[0].operations.iter().for_each(|one| all.add(&one.tally.response));
    let median = tidemark_measure::units::duration_ns(all.quantile(0.5));
    let tile = &page[page.find("<dt>Median response</dt>").unwrap()..];
    let tile = &tile[..tile.find("</div>").unwrap()];
    assert!(tile.contains(&format!("<dd>{median}</dd><dd class=\"more\">read ")), "{tile}");
    assert!(tile.contains("<dd class=\"more\">write "), "{tile}");
}

#[test]
fn of_many_targets_the_first_stand_at_the_top_and_all_at_the_end() {
    let mut run = sample::outage();
    run.provenance.targets = (1..=10).map(|number| format!("volume {number}!")).collect();
    let text = markdown(&run, &judge(&run));
    let (top, end) = text.split_once("## How to reproduce").unwrap();
    assert!(top.contains("volume 8!; 2 more, named under “How to reproduce”"), "{top}");
    assert!(!top.contains("volume 9!") && end.contains("volume 10!"), "{end}");
    assert!(html(&run, &judge(&run)).contains("Target: 2 more, named under “How to reproduce”"));
}
