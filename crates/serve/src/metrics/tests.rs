//! The page, and the dashboard that is drawn from it.

use super::Metrics;
use axum::http::StatusCode;
use std::collections::BTreeSet;
use tidemark_controller::api::{
    Driver, DriverState, Live, LiveOperation, LiveSecond, LiveStage, LiveWork, Overview, Submission,
};
use tidemark_controller::controller::Event;
use tidemark_measure::host::Utilization;

fn event(live: Live) -> Event {
    Event { id: 1, submission: Some(7), live }
}

fn second(ok: u64, failed: u64) -> Live {
    let operation = LiveOperation { ok, failed, bytes: ok * 10, p99_us: 1500.0, ..LiveOperation::default() };
    Live::Second(Box::new(LiveSecond { operations: vec![operation], ..LiveSecond::default() }))
}

fn overview() -> Overview {
    let driver = Driver {
        name: "d\"1".into(),
        state: DriverState::Busy,
        utilization: Utilization { cpu_busy: 0.5, ..Utilization::default() },
        ..Driver::default()
    };
    Overview { drivers: vec![driver], active: vec![Submission::default()], ..Overview::default() }
}

/// The page while a run goes on.
fn page() -> (Metrics, String) {
    let metrics = Metrics::new();
    metrics.answered(StatusCode::OK);
    {
        let mut running = metrics.running.lock().unwrap();
        let work = LiveWork {
            name: "main".into(),
            workers: 4,
            operations: vec!["read".into()],
            ..LiveWork::default()
        };
        let stage = LiveStage { id: "s1-main".into(), works: vec![work], ..LiveStage::default() };
        running.hear(&event(Live::Stages(vec![stage])));
        running.hear(&event(second(10, 1)));
        running.hear(&event(second(20, 2)));
    }
    let text = metrics.page(&overview()).unwrap();
    (metrics, text)
}

#[test]
fn seconds_are_added_up_until_the_run_ends() {
    let (metrics, text) = page();
    let labels = "submission=\"w7\",stage=\"s1-main\",work=\"main\",operation=\"read\"";
    for line in [
        format!("tidemark_operations_total{{{labels}}} 33"),
        format!("tidemark_failures_total{{{labels}}} 3"),
        format!("tidemark_operation_bytes_total{{{labels}}} 300"),
        format!("tidemark_response_time_seconds{{{labels},quantile=\"0.99\"}} 0.0015"),
        "tidemark_drivers{state=\"busy\"} 1".into(),
        "tidemark_drivers{state=\"gone\"} 0".into(),
        "tidemark_driver_cpu_busy_ratio{driver=\"d\\\"1\"} 0.5".into(),
        "tidemark_submissions_active 1".into(),
        "tidemark_http_requests_total{status=\"200\"} 1".into(),
    ] {
        assert!(text.lines().any(|own| own == line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    let ended = Live::Ended(Box::default());
    metrics.running.lock().unwrap().hear(&event(ended));
    assert!(!metrics.page(&overview()).unwrap().contains("w7"));
}

#[test]
fn the_dashboard_shows_what_is_there_and_all_of_it() {
    let (_, text) = page();
    let names_in = |text: &str| -> BTreeSet<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.split(|c| !is_part(c)).filter(|word| word.starts_with("tidemark_")).map(str::to_owned).collect()
    };
    let samples: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let dashboard = include_str!("../../../../docs/grafana-dashboard.json");
    assert_eq!(names_in(dashboard), names_in(&samples));
}
