//! The built binary on searches for better settings. Targets are embedded servers that serve so many requests a second and no more.

use crate::common::{Output, Place};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
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

    let read = place.tidemark(&["tune", file, "--apply", found["settings"].as_str().unwrap()]);
    assert!(read.code == 3 && read.stderr.contains("the arm has no commands"), "{}", read.stderr);

    // What an hour costs is another question's.
    let priced = document(LIMITED, LIMIT, 36).replace("tune:\n", "tune:\n  price: {hour: 1}\n");
    std::fs::write(file, priced).unwrap();
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
fn the_front_of_throughput_and_price_is_found_and_shown() {
    let place = Place::new();
    // Each request a second costs less the more there are of them: 0.03 of an hour's price with 50, 0.015 with 200.
    let price = "tune:\n  objective: [throughput, price]\n  price: {hour: 1, each: {limit: 0.01}}\n";
    let text = document(LIMITED, LIMIT, 36).replace("tune:\n", price);
    let file = place.write("front.yaml", &text);
    let file = file.to_str().unwrap();
    let dry = place.tidemark(&["tune", file, "--dry-run"]);
    assert!(dry.stdout.contains("throughput and price of a million operations"), "{}", dry.stdout);
    assert!(dry.stdout.contains("1.5 an hour now"), "{}", dry.stdout);
    let output = place.tidemark(&["tune", file, "--json"]);
    let found = event(&output);
    let search = &found["evaluation"]["search"];
    assert_eq!(search["end"], "better", "{search:#}\n{}", output.stderr);
    let front = &search["front"];
    let cheaper = front["effects"].as_array().unwrap().iter().find(|effect| effect["setting"] == 0).unwrap();
    assert_eq!(cheaper["verdict"], "better", "{front:#}");
    let points = front["points"].as_array().unwrap();
    assert!(points.iter().any(|point| point["place"] == "front"), "{front:#}");
    for point in points {
        let [limit, rate, price] =
            [&point["configuration"][0], &point["values"][0]["mean"], &point["values"][1]["mean"]]
                .map(|value| value.as_f64().unwrap());
        // Means of a rate and of its inverse are not quite each other's.
        let expected = (1.0 + 0.01 * limit) / (rate * 3600.0) * 1e6;
        assert!((price / expected - 1.0).abs() < 0.02, "{point}: {expected}");
    }
    let proof = &front["ends"][0]["proof"];
    assert!(proof["other"]["ratio"].as_f64().unwrap() < 1.0, "more of them are cheaper, too: {front:#}");
    let page = std::fs::read_to_string(found["report"].as_str().unwrap()).unwrap();
    assert!(page.contains("The front of throughput and price of a million operations"));
    let shown = place.tidemark(&["tune", file, "--no-report"]);
    assert!(
        shown.stdout.contains("not dominated") && shown.stdout.contains("Better by throughput: limit"),
        "{}",
        shown.stdout
    );
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
        "    set_up: [\"cp {0} {0}.before && sed -i s/limit.*/limit=$limit/ {0}; echo LIMIT=$limit\"]\n    \
         tear_down: [\"mv {0}.before {0}\"]\n    show: cat {0}\n    target: {{kind: embedded, limit: \"${{limit}}/s\"}}\n",
        conf.display()
    );
    let original = "limit=50\nother=1\nserver_password=abc\n";
    std::fs::write(&conf, original).unwrap();
    // What it finds in this time, if anything, does not matter: the settings to apply are written below.
    let text = document(&arm, LIMIT, 30).replace("tune:\n", "tune:\n  budget: 2s\n");
    let file = place.write("commands.yaml", &text);
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
    assert!(started(&output) > 0, "{}", output.stderr);
    let now = || std::fs::read_to_string(&conf).unwrap();
    assert_eq!(now(), original, "the search has left everything as it was");
    let better =
        "of: planted\nsearch: e1, begun then\napply: {limit: 200, kib: 3}\nundo: {limit: 50, kib: 2}\n";
    let settings = place.write("better.yaml", better);
    let settings = settings.to_str().unwrap();
    let tune = |arguments: &[&str]| place.tidemark(&[&["tune", file, "--run-commands"], arguments].concat());
    let others = place.write("others.yaml", &better.replace("of: ", "of: another-"));
    let refused = tune(&["--apply", others.to_str().unwrap()]);
    assert!(refused.code == 2 && refused.stderr.contains("the settings of `another-"), "{}", refused.stderr);
    assert_eq!(now(), original);
    let applied = tune(&["--apply", settings, "--json"]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_ne!(now(), original);
    let applied = event(&applied);
    let change = &applied["changes"][0];
    assert!(applied["changes"].as_array().unwrap().len() == 1 && applied["in_effect"] == 3, "{applied}");
    assert_eq!((&change["before"], &change["after"]), (&"50".into(), &"200".into()), "{applied}");
    let kept = std::fs::read_to_string(applied["before"].as_str().unwrap()).unwrap();
    assert!(kept.contains("\"limit\": \"50\"") && !kept.contains("abc"), "{kept}");

    // Another search's settings in the same file do not change what an undo leads to.
    std::fs::write(settings, better.replace("begun then", "begun later")).unwrap();
    for what in ["--apply", "--undo"] {
        let refused = tune(&[what, settings]);
        let whose = "it belongs to another search, `planted` (e1, begun then)";
        assert!(refused.code == 2 && refused.stderr.contains(whose), "{}", refused.stderr);
    }
    std::fs::write(settings, better).unwrap();

    // Somebody else changes something meanwhile: that is not as it was.
    std::fs::write(&conf, now().replace("other=1", "other=2")).unwrap();
    let undone = tune(&["--undo", settings]);
    assert!(undone.code == 1 && undone.stdout.contains("NOT UNDONE: 1 settings"), "{}", undone.stdout);
    let secret = "not compared: server_password, whose value is a secret";
    assert!(undone.stdout.contains(secret), "{}", undone.stdout);
    std::fs::write(&conf, now().replace("other=2", "other=1")).unwrap();
    let undone = tune(&["--undo", settings, "--json"]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    let proof = &event(&undone)["proof"];
    assert!(proof["is_as_before"] == true && proof["compared"] == 2, "{proof}");
    assert_eq!(proof["not_compared"], serde_json::json!(["server_password"]));
    assert_eq!(now(), original);
    assert!(!std::path::Path::new(applied["before"].as_str().unwrap()).exists());
    let again = tune(&["--undo", settings]);
    assert!(again.code == 1 && again.stdout.contains("NOT PROVEN"), "{}{}", again.stdout, again.stderr);
    assert!(again.stderr.contains("before.json is missing"), "{}{}", again.stdout, again.stderr);
}

#[test]
fn settings_with_which_the_storage_is_not_well_are_dropped_and_data_at_risk_end_the_search() {
    let with = |health: &str| {
        let place = Place::new();
        let arm = format!("    health: '{health}'\n{LIMITED}");
        let file = place.write("ill.yaml", &document(&arm, LIMIT, 36));
        place.tidemark(&["tune", file.to_str().unwrap(), "--json", "--run-commands"])
    };
    let output = with("[ $limit -lt 150 ] || { echo swapping; exit 1; }");
    let found = event(&output);
    let search = &found["evaluation"]["search"];
    assert!(search["winner"][0].as_f64().is_none_or(|limit| limit < 150.0), "{search:#}");
    let tried = found["evaluation"]["evaluation"]["tuning"]["tried"].as_array().unwrap();
    let dropped: Vec<_> = tried.iter().filter(|one| one["refused"] == "swapping").collect();
    assert!(!dropped.is_empty(), "{tried:?}");
    assert!(dropped.iter().all(|one| one["configuration"][0].as_f64().unwrap() >= 150.0), "{dropped:?}");
    let output = with("[ $limit -lt 150 ] || { echo one copy is left; exit 3; }");
    assert_eq!(output.code, 3, "{}", output.stdout);
    assert!(output.stderr.contains("data are at risk") && output.stderr.contains("one copy is left"));
    let output = with("echo always; exit 1");
    assert!(
        output.code == 3 && output.stderr.contains("the baseline does not work: always"),
        "{}",
        output.stderr
    );
}

#[test]
fn settings_that_would_outlive_a_search_are_the_baselines_at_its_end() {
    let place = Place::new();
    let log = place.path("log");
    // What is set stays set, and is the last line of the log.
    let text = |more: &str, tune: &str| {
        let arm = format!("    set_up: '{more} echo limit=$limit >> {}'\n{LIMITED}", log.display());
        document(&arm, LIMIT, 36).replace("tune:\n", &format!("tune:\n{tune}"))
    };
    let tune = |text: &str| {
        let _ = std::fs::remove_file(&log);
        place.tidemark(&["tune", place.write("outside.yaml", text).to_str().unwrap(), "--run-commands"])
    };
    let last = || std::fs::read_to_string(&log).unwrap_or_default().lines().last().map(str::to_owned);
    let now = || last().unwrap_or_default();
    let at_risk = "health: '[ $limit -lt 150 ] || exit 3'\n    set_up";

    let output = tune(&text("", "  budget: 2s\n"));
    assert_eq!(now(), "limit=50", "{}", output.stderr);
    let output = tune(&text("", "").replace("set_up", at_risk));
    assert_eq!((output.code, now().as_str()), (3, "limit=50"), "{}", output.stderr);
    assert!(output.stderr.contains("back to the baseline's settings: limit 50, kib 2"), "{}", output.stderr);
    let own = text("", "").replace("set_up", &at_risk.replace("set_up", "tear_down: 'true'\n    set_up"));
    assert_eq!(tune(&own).code, 3);
    assert_ne!(now(), "limit=50", "an arm that takes back by itself what it has set is not set up once more");
    let stuck = format!("if grep -q limit=[12] {}; then echo stuck; exit 1; fi;", log.display());
    let output = tune(&text(&stuck, "").replace("set_up", at_risk));
    assert!(output.code == 3 && output.stderr.contains("data are at risk"), "{}", output.stderr);
    assert!(output.stderr.contains("stuck\nput them back by hand: limit 50, kib 2"), "{}", output.stderr);

    let _ = std::fs::remove_file(&log);
    let file = place.write("stopped.yaml", &text("", ""));
    let mut child = place.start(&["tune", file.to_str().unwrap(), "--run-commands"]);
    let began = Instant::now();
    while now().is_empty() || now() == "limit=50" {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing else is tried");
        assert!(child.try_wait().unwrap().is_none(), "there is a trial to be stopped in");
        std::thread::sleep(Duration::from_millis(20));
    }
    let stopped = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(stopped.unwrap().success());
    child.wait().unwrap();
    assert_eq!(now(), "limit=50");
}

#[test]
fn settings_with_which_the_storage_takes_too_long_to_recover_are_dropped_with_their_time() {
    let place = Place::new();
    let search = |wait: &str| {
        let arm = format!("    recover: '{wait}'\n{LIMITED}");
        let text = document(&arm, LIMIT, 36).replace("tune:\n", "tune:\n  recovery: 10s\n");
        let file = place.write("recovery.yaml", &text);
        place.tidemark(&["tune", file.to_str().unwrap(), "--json", "--run-commands"])
    };
    let output = search("[ $limit -lt 150 ] || sleep 11");
    let found = event(&output);
    let search_of = &found["evaluation"]["search"];
    assert!(search_of["winner"][0].as_f64().is_none_or(|limit| limit < 150.0), "{search_of:#}");
    let tried = found["evaluation"]["evaluation"]["tuning"]["tried"].as_array().unwrap();
    let is_slow = |one: &&Value| one["configuration"][0].as_f64().unwrap() >= 150.0;
    assert!(tried.iter().any(|one| is_slow(&one)), "{tried:?}");
    for one in tried {
        let (refused, took_ns) = (one["refused"].as_str().unwrap(), one["recovery_ns"].as_u64().unwrap());
        assert_eq!(refused.contains("to recover, and may take 10.0 s"), is_slow(&one), "{one}");
        assert_eq!(took_ns > 10_000_000_000, is_slow(&one), "{one}");
    }
    let words = place.tidemark(&["report", "last", "--format", "md"]);
    assert!(words.stdout.contains("Recovery, at most") && words.stdout.contains("storage had recovered"));
    let output = search("echo the disk is gone; exit 1");
    assert_eq!(output.code, 3, "{}", output.stdout);
    assert!(
        output.stderr.contains("did not recover") && output.stderr.contains("the disk is gone"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_search_keeps_to_its_time() {
    let place = Place::new();
    let timed = |budget: &str| {
        let text =
            document(LIMITED, LIMIT, 400).replace("  runs: 400", &format!("  budget: {budget}\n  runs: 400"));
        let file = place.write("timed.yaml", &text);
        place.tidemark(&["tune", file.to_str().unwrap(), "--json", "--seed", "4"])
    };
    let short = event(&timed("2s"));
    assert_eq!(short["evaluation"]["search"]["end"], "no_time", "{short:#}");
    // Its second trial said so, or its first took all of it.
    let runs = short["evaluation"]["search"]["runs"][0][1].as_u64().unwrap();
    assert!((1..=2).contains(&runs), "{runs} runs");
    assert!(short["evaluation"]["evaluation"]["tuning"]["affords"].as_u64().unwrap() < 21, "{short:#}");
    let output = timed("1m");
    let found = event(&output);
    let tuning = &found["evaluation"]["evaluation"]["tuning"];
    let affords = tuning["affords"].as_u64().unwrap();
    assert!((started(&output) as u64) <= affords && affords < 400, "{tuning:#}");
    assert!(found["evaluation"]["search"]["end"].is_string(), "it has come to an end by itself");
}

#[test]
fn settings_that_cannot_be_set_up_or_reset_are_named_and_do_not_win() {
    for (key, runs) in [("set_up", 36), ("reset", 30)] {
        let place = Place::new();
        let arm = format!(
            "    {key}: [\"[ $limit -lt 150 ] || {{ echo too much; exit 1; }}\"]\n    \
             target: {{kind: embedded, limit: \"${{limit}}/s\"}}\n"
        );
        let file = place.write("refused.yaml", &document(&arm, LIMIT, runs));
        let output = place.tidemark(&["tune", file.to_str().unwrap(), "--json", "--run-commands"]);
        let found = event(&output);
        let search = &found["evaluation"]["search"];
        let winner = search["winner"][0].as_f64();
        assert!(winner.is_none_or(|limit| limit < 150.0), "{search:#}");
        let tried = found["evaluation"]["evaluation"]["tuning"]["tried"].as_array().unwrap();
        let refused = |one: &&Value| !one["refused"].as_str().unwrap().is_empty();
        for one in tried.iter().filter(refused) {
            let why = one["refused"].as_str().unwrap();
            assert!(why.contains("too much") && why.contains(&format!("{key}: ")), "{one}");
            assert!(one["configuration"][0].as_f64().unwrap() >= 150.0, "{one}");
        }
        assert!(tried.iter().any(|one| refused(&one)), "{tried:?}");
        let words = place.tidemark(&["report", "last", "--format", "md"]);
        let told =
            ["dropped", "it could not be set up"].iter().all(|words_of| words.stdout.contains(words_of));
        assert!(told, "{}", words.stdout);
    }
    let place = Place::new();
    let file = place.write("never.yaml", &document(&format!("    reset: 'false'\n{LIMITED}"), LIMIT, 30));
    let output = place.tidemark(&["tune", file.to_str().unwrap(), "--run-commands"]);
    let why = "the baseline does not work: it could not be set up: arm `now`: reset: `false` failed";
    assert!(output.code == 3 && output.stderr.contains(why), "{}", output.stderr);
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
    let priced = |keys: &str| {
        let text = document(LIMITED, LIMIT, 60).replace("tune:\n", &format!("tune:\n{keys}"));
        let output =
            place.tidemark(&["tune", place.write("price.yaml", &text).to_str().unwrap(), "--dry-run"]);
        assert_eq!(output.code, 2, "{}", output.stdout);
        output.stderr
    };
    assert!(priced("  objective: price\n").contains("has no `price`"));
    assert!(priced("  price: {each: {cpus: 1}}\n").contains("there is no setting `cpus`"));
    assert!(priced("  price: {hour: 0}\n").contains("an hour may cost nothing"));
    let much = priced("  price: {hour: 1.7e308}\n");
    assert!(much.contains("`hour`: '1.7e308' is too much") && much.contains("at most 1e9"), "{much}");
    assert!(priced("  price: {each: {limit: 1e10}}\n").contains("`each`: `limit`: '1e10' is too much"));
    assert!(
        priced("  price: {hour: 1, each: {limit: 1e9}}\n")
            .contains("more than 1e9 with the most of everything")
    );
    assert!(priced("  objective: []\n").contains("`objective` names nothing"));
    assert!(priced("  objective: [p99, p99]\n").contains("one or two different objectives"));
    assert!(priced("  recovery: 10s\n").contains("`recover` and `recovery` belong together"));
    let twice = "    - {name: kind, choice: [a, b, a], baseline: a}\n";
    assert!(refused(LIMITED, &(LIMIT.to_owned() + twice), 60).contains("`choice` of `kind` has 'a' twice"));
    assert!(refused(LIMITED, LIMIT, 20).contains("`runs`"), "no search does with less than 21");
    let four = "    - {name: a, choice: [\"1\", \"2\"], baseline: \"1\"}\n    - {name: b, choice: [\"1\", \"2\"], baseline: \"1\"}\n";
    let arm = format!("    set_up: 'echo $a $b'\n{LIMITED}");
    assert!(refused(&arm, &(LIMIT.to_owned() + four), 29).contains("4 settings take at least 30 runs"));
}

#[test]
#[ignore = "needs PostgreSQL; run by make test"]
fn settings_are_applied_to_the_servers_that_run_and_taken_back() {
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    let place = Place::new();
    std::fs::set_permissions(place.path(""), std::fs::Permissions::from_mode(0o711)).unwrap();
    let lab = place.path("servers");
    let lab = lab.to_str().unwrap();
    let ran = |arguments: &[&str]| {
        let output = place.tidemark(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {}{}", output.stdout, output.stderr);
        output
    };
    let file = place.write("postgres.yaml", POSTGRES);
    let file = file.to_str().unwrap();
    let better = "apply: {buffers: 24MB, wal: 512MB}\nundo: {buffers: 128MB, wal: 1024MB}\n";
    let settings = place.write("settings.yaml", better);
    let settings = settings.to_str().unwrap();
    let none = place.tidemark(&["tune", file, "--apply", settings, "--to", lab]);
    assert!(none.code == 3 && none.stderr.contains("tidemark lab up postgres"), "{}", none.stderr);
    ran(&["lab", "up", "postgres", "--dir", lab]);
    let applied = event(&ran(&["tune", file, "--apply", settings, "--to", lab, "--json"]));
    let changes = applied["changes"].as_array().unwrap();
    let of = |name: &str| changes.iter().find(|change| change["name"] == name).unwrap();
    assert_eq!(
        (&of("shared_buffers")["before"], &of("shared_buffers")["after"]),
        (&"128MB".into(), &"24MB".into())
    );
    assert_eq!(
        (&of("max_wal_size")["before"], &of("max_wal_size")["after"]),
        (&"1GB".into(), &"512MB".into())
    );
    let undone = ran(&["tune", file, "--undo", settings, "--to", lab]);
    assert!(undone.stdout.contains("UNDONE: all "), "{}", undone.stdout);
    ran(&["lab", "down", "postgres", "--dir", lab]);
}

const POSTGRES: &str = r#"name: postgres
arms:
  - name: now
    lab: {postgres: {settings: {shared_buffers: "${buffers}", max_wal_size: "${wal}"}}}
loads:
  - name: reads
    target: {kind: postgres, instances: "${TIDEMARK_LAB_ENDPOINTS}", user: "${TIDEMARK_LAB_USER}", password: "${TIDEMARK_LAB_PASSWORD}", database: "${TIDEMARK_LAB_DATABASE}"}
    stages: [{load: {workload: connect, clients: 1, for: 1s}}]
tune:
  settings:
    - {name: buffers, integer: 16-256, unit: MB, baseline: 128}
    - {name: wal, integer: 64-1024, unit: MB, baseline: 1024}
"#;
