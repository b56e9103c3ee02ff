//! The built binary on searches for better settings. Targets are embedded servers that serve so many requests a second and no more.

#![allow(clippy::unwrap_used, reason = "a failed test may panic")]

mod common;

use common::{Output, Place};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A search over the limit of a server, which is planted, and the size of objects, which does nothing below the limit.
fn document(arm: &str, settings: &str, runs: u32) -> String {
    format!(
        "name: planted\nseed: 3\narms:\n  - name: now\n{arm}loads:\n  - name: reads\n    stages:\n      - init: {{containers: 1}}\n      \
         - prepare: {{workers: 4, containers: 1, objects: 1-20, sizes: \"${{kib}}KiB\"}}\n      \
         - load: {{workers: 4, warm_up: 200ms, for: 500ms, containers: 1, operations: [{{get: {{objects: 1-20}}}}]}}\n      \
         - cleanup: {{workers: 4, containers: 1, objects: 1-20}}\n      - dispose: {{containers: 1}}\n\
         tune:\n  runs: {runs}\n  settings:\n{settings}    - {{name: kib, integer: 1-4, baseline: 2}}\n"
    )
}

const LIMITED: &str = "    target: {kind: embedded, limit: \"${limit}/s\"}\n";
const LIMIT: &str = "    - {name: limit, integer: 50-200, scale: log, baseline: 50}\n";

fn event(output: &Output) -> Value {
    let last = output.stdout.lines().last().unwrap_or_else(|| panic!("no output: {}", output.stderr));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}\n{}", output.stderr))
}

/// Runs that this start has done.
fn started(output: &Output) -> usize {
    output.stdout.lines().filter(|line| line.contains("\"event\":\"run_started\"")).count()
}

#[test]
fn a_planted_setting_is_found_and_quantified_and_proven_afresh() {
    let place = Place::new();
    let file = place.write("planted.yaml", &document(LIMITED, LIMIT, 36));
    let file = file.to_str().unwrap();
    let output = place.tidemark(&["tune", file, "--json"]);
    let found = event(&output);
    let search = &found["evaluation"]["search"];
    assert_eq!(search["end"], "better", "{search:#}\n{}", output.stderr);
    assert!(started(&output) <= 36);
    let effects = search["effects"].as_array().unwrap();
    let limit = effects.iter().find(|effect| effect["setting"] == 0).unwrap();
    assert_eq!(limit["verdict"], "better");
    // A busy machine may keep the faster one from its rate.
    let ratio = search["proof"]["ratio"].as_f64().unwrap();
    assert!((2.0..4.5).contains(&ratio), "{search:#}");
    assert_eq!(found["evaluation"]["assessment"]["outcome"], "better");
    let compared = found["evaluation"]["assessment"]["comparisons"].as_array().unwrap();
    assert!(
        compared.iter().all(|one| one["arm"].as_str().unwrap().starts_with("proof: limit")),
        "{compared:?}"
    );
    let page = std::fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    assert!(page.contains("What each setting does") && page.contains("Measured afresh"));
    let settings = std::fs::read_to_string(found["settings"].as_str().unwrap()).unwrap();
    assert!(
        settings.contains("apply:\n  limit: \"") && settings.contains("undo:\n  limit: \"50\""),
        "{settings}"
    );

    let again = place.tidemark(&["tune", file, "--json"]);
    assert_eq!(started(&again), 0, "all of it is there already");
    assert_eq!(event(&again)["evaluation"]["search"], *search);
    let words = place.tidemark(&["report", "last", "--format", "md"]);
    assert!(
        words.stdout.contains("## Settings") && words.stdout.contains("Better: limit"),
        "{}",
        words.stdout
    );
    let shown = place.tidemark(&["tune", file, "--no-report"]);
    assert!(shown.stdout.contains("These settings matter: limit"), "{}", shown.stdout);
}

#[test]
fn killed_in_the_middle_a_search_goes_on() {
    let place = Place::new();
    let file = place.write("killed.yaml", &document(LIMITED, LIMIT, 30));
    let file = file.to_str().unwrap();
    let mut child = place.start(&["tune", file, "--json"]);
    let began = Instant::now();
    let stored = || {
        let runs = place.tidemark(&["runs", "--all", "--json"]);
        runs.stdout.matches("\"completed\"").count()
    };
    while stored() < 3 {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing is measured");
        assert!(child.try_wait().unwrap().is_none(), "there is a middle to be killed in");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let output = place.tidemark(&["tune", file, "--json"]);
    let search = &event(&output)["evaluation"]["search"];
    let runs: u64 = search["runs"].as_array().unwrap().iter().map(|step| step[1].as_u64().unwrap()).sum();
    assert!(search["end"].is_string(), "{search:#}");
    assert!((started(&output) as u64) < runs, "{} of {runs} runs", started(&output));
}

#[test]
fn commands_apply_what_was_found_and_undo_it() {
    let place = Place::new();
    let conf = place.path("server.conf");
    // The server's configuration is a file that set_up writes and tear_down restores.
    let arm = format!(
        "    set_up: [\"cp {0} {0}.before && echo limit $limit > {0}; echo LIMIT=$limit\"]\n    \
         tear_down: [\"mv {0}.before {0}\"]\n    target: {{kind: embedded, limit: \"${{limit}}/s\"}}\n",
        conf.display()
    );
    std::fs::write(&conf, "limit 50\n").unwrap();
    let file = place.write("commands.yaml", &document(&arm, LIMIT, 30));
    let file = file.to_str().unwrap();
    let refused = place.tidemark(&["tune", file]);
    assert!(refused.code == 3 && refused.stderr.contains("--run-commands"), "{}", refused.stderr);
    let dry = place.tidemark(&["tune", file, "--dry-run"]);
    assert!(
        dry.code == 0 && dry.stdout.contains("by the arm's set_up commands"),
        "{}{}",
        dry.stdout,
        dry.stderr
    );
    let output = place.tidemark(&["tune", file, "--json", "--run-commands"]);
    let found = event(&output);
    assert_eq!(found["evaluation"]["search"]["end"], "better", "{}", output.stderr);
    assert_eq!(
        std::fs::read_to_string(&conf).unwrap(),
        "limit 50\n",
        "the search has left everything as it was"
    );
    let settings = found["settings"].as_str().unwrap();
    let applied = place.tidemark(&["tune", file, "--run-commands", "--apply", settings]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    let now = std::fs::read_to_string(&conf).unwrap();
    assert!(now != "limit 50\n" && now.starts_with("limit "), "{now}");
    assert_eq!(place.tidemark(&["tune", file, "--run-commands", "--undo", settings]).code, 0);
    assert_eq!(std::fs::read_to_string(&conf).unwrap(), "limit 50\n");
}

#[test]
fn settings_that_cannot_be_set_up_are_named_and_do_not_win() {
    let place = Place::new();
    let arm = "    set_up: [\"[ $limit -lt 150 ] || { echo too much; exit 1; }\"]\n    \
               target: {kind: embedded, limit: \"${limit}/s\"}\n";
    let file = place.write("refused.yaml", &document(arm, LIMIT, 36));
    let output = place.tidemark(&["tune", file.to_str().unwrap(), "--json", "--run-commands"]);
    let found = event(&output);
    let search = &found["evaluation"]["search"];
    let winner = search["winner"][0].as_f64();
    assert!(winner.is_none_or(|limit| limit < 150.0), "{search:#}");
    let tried = found["evaluation"]["evaluation"]["tuning"]["tried"].as_array().unwrap();
    let refused = |one: &&Value| !one["refused"].as_str().unwrap().is_empty();
    for one in tried.iter().filter(refused) {
        assert!(one["refused"].as_str().unwrap().contains("too much"), "{one}");
        assert!(one["configuration"][0].as_f64().unwrap() >= 150.0, "{one}");
    }
    assert!(tried.iter().any(|one| refused(&one)), "{tried:?}");
    let words = place.tidemark(&["report", "last", "--format", "md"]);
    assert!(words.stdout.contains("could not be set up"), "{}", words.stdout);
}

#[test]
fn what_cannot_be_searched_is_refused_with_its_line() {
    let place = Place::new();
    let refused = |arm: &str, settings: &str, runs: u32| {
        let file = place.write("wrong.yaml", &document(arm, settings, runs));
        let output = place.tidemark(&["tune", file.to_str().unwrap(), "--dry-run"]);
        assert_eq!(output.code, 2, "{}", output.stdout);
        output.stderr
    };
    let never = "    - {name: fsync, choice: [\"on\", \"off\"], baseline: \"on\"}\n";
    assert!(
        refused(LIMITED, &(LIMIT.to_owned() + never), 60).contains("keeps data safe and is never searched")
    );
    let word =
        "    - {name: flags, choice: [\"-c fsync=on\", \"-c fsync=off\"], baseline: \"-c fsync=on\"}\n";
    assert!(refused(LIMITED, &(LIMIT.to_owned() + word), 60).contains("keeps data safe"));
    let hidden = "    set_up: [\"echo synchronous_commit=$limit\"]\n    target: {kind: embedded, limit: \"${limit}/s\"}\n";
    assert!(refused(hidden, LIMIT, 60).contains("`synchronous_commit` keeps data safe"));
    let idle = "    - {name: idle, integer: 1-9, baseline: 2}\n";
    assert!(refused(LIMITED, &(LIMIT.to_owned() + idle), 60).contains("nothing uses the setting `idle`"));
    let outside = "    - {name: limit, integer: 50-200, baseline: 20}\n";
    assert!(refused(LIMITED, outside, 60).contains("'20' is no value of `limit`"));
    let zero = "    - {name: limit, integer: 0-200, baseline: 50}\n";
    assert!(
        !refused(LIMITED, zero, 60).is_empty(),
        "a value that the target does not take is found before anything runs"
    );
    assert!(refused(LIMITED, LIMIT, 18).contains("take at least 21 runs"));
}
