//! Forecasts of whole documents, with exact numbers.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::{forecast, process};
use tidemark_plan::forecast::{Amount, Forecast};
use tidemark_plan::yaml::Environment;

fn topics(forecast: &Forecast) -> Vec<&str> {
    forecast.notes.iter().map(|note| note.topic.as_str()).collect()
}

const SMALL: u64 = 4_000;

#[test]
fn the_whitepaper_in_cosbench_s_dialect_is_forecast_the_same_way() {
    for text in [
        include_str!("../../../../examples/whitepaper-4k-s3.xml"),
        include_str!("../../../../examples/whitepaper-4k-swift.xml"),
    ] {
        let value = |name: &str| {
            let address = [("TIDEMARK_LAB_S3", "http://h:1"), ("TIDEMARK_LAB_SWIFT", "http://h:1/auth/v1.0")];
            let address = address.iter().find(|(known, _)| *known == name);
            Some(address.map_or("mine", |(_, value)| value).to_owned())
        };
        let environment = Environment { variable: &value, ..process() };
        let read = tidemark_plan::document::read(text, &environment).unwrap();
        let (plan, warnings) = (read.plan, read.warnings);
        assert_eq!(warnings, []);
        let workers: Vec<_> = plan.stages.iter().map(|stage| stage.works[0].load.workers).collect();
        assert_eq!(workers, [1, 10, 32, 18, 18]);
        let forecast = forecast(&plan);
        let counts: Vec<_> = forecast.stages.iter().map(|stage| stage.works[0].actions[0].count).collect();
        let (few, all) = (Amount::Exactly(4), Amount::Exactly(400));
        assert_eq!(counts, [few, all, Amount::UpTo(200), all, few]);
        assert_eq!((forecast.stored_bytes, forecast.time.planned_ns), (400 * SMALL, 22_000_000_000));
        assert_eq!(topics(&forecast), ["idle-workers"], "18 workers delete 4 containers");
    }
}
