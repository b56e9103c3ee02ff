//! Reading and forecasting a document of ten times as many stages costs ten times as much.
//!
//! The allocator counts the whole process, so this program holds one test.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;
use tidemark_cosbench::Cosbench;
use tidemark_object::Objects;
use tidemark_plan::document;
use tidemark_plan::forecast::forecast;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Five stages with a data set of their own, `alike` in all fives or called by their number.
fn five(number: usize, alike: bool) -> String {
    let prefix = if alike { "w".to_owned() } else { format!("w{number}x") };
    let all = format!("cprefix={prefix};containers=r(1,4);objects=r(1,200)");
    let mix = |objects: &str| format!("cprefix={prefix};containers=u(1,4);objects={objects}");
    let (reads, writes) = (mix("u(1,100)"), mix("u(101,200);sizes=u(1,9)KB"));
    let works = [
        format!("<work type=\"init\" workers=\"1\" config=\"{all}\"/>"),
        format!("<work type=\"prepare\" workers=\"4\" config=\"{all};sizes=c(4)KB\"/>"),
        format!(
            "<work name=\"m\" workers=\"8\" runtime=\"10\"><operation type=\"read\" ratio=\"70\" config=\"{reads}\"/>\
             <operation type=\"write\" ratio=\"30\" config=\"{writes}\"/></work>"
        ),
        // It leaves some, so that what is stored grows.
        format!("<work type=\"cleanup\" workers=\"4\" config=\"{}\"/>", all.replace("200", "150")),
        format!("<work type=\"dispose\" workers=\"1\" config=\"{all}\"/>"),
    ];
    let stage = |work: &String| format!("<workstage name=\"s\">{work}</workstage>\n");
    works.iter().map(stage).collect()
}

/// Bytes that are allocated for a document of so many stages.
fn cost(stages: usize, alike: bool) -> f64 {
    let storage = "<storage type=\"s3\" config=\"accesskey=a;secretkey=s;endpoint=http://127.0.0.1:9\"/>";
    let inside: String = (0..stages / 5).map(|number| five(number, alike)).collect();
    let text = format!("<workload name=\"long\">{storage}<workflow>{inside}</workflow></workload>");
    let registry = Registry::new(vec![Arc::new(Objects)], vec![Arc::new(Cosbench)]);
    let region = Region::new(ALLOCATOR);
    let plan = document::read(&text, &Environment::process(&registry)).unwrap().plan;
    let forecast = forecast(&plan, &registry);
    assert_eq!(forecast.stages.len(), stages);
    region.change().bytes_allocated as f64
}

#[test]
fn long_documents_cost_what_their_length_costs() {
    for alike in [true, false] {
        let (few, many) = (cost(300, alike), cost(3_000, alike));
        assert!((5.0..15.0).contains(&(many / few)), "alike: {alike}; {few} and {many} bytes");
    }
}
