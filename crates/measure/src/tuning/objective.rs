//! What a search for better settings is to make better, and what an hour of an arm costs.

use super::{Configuration, Space, rounded};
use crate::units;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// What is to become better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Operations per second: more is better.
    #[default]
    Throughput,
    /// The mean response time: less is better.
    MeanLatency,
    /// The 95th percentile of the response time: less is better.
    P95,
    /// The 99th percentile of the response time: less is better.
    P99,
    /// The price of a million operations, in the currency of the [`Price`]: less is better.
    Price,
}

/// The objectives, as documents call them.
pub const OBJECTIVES: [(&str, Objective); 5] = [
    ("throughput", Objective::Throughput),
    ("mean", Objective::MeanLatency),
    ("p95", Objective::P95),
    ("p99", Objective::P99),
    ("price", Objective::Price),
];

impl Objective {
    /// Whether less of it is better.
    pub const fn is_less_better(self) -> bool {
        !matches!(self, Objective::Throughput)
    }

    /// What it is called in sentences.
    pub const fn words(self) -> &'static str {
        match self {
            Objective::Throughput => "throughput",
            Objective::MeanLatency => "mean response time",
            Objective::P95 => "p95 of the response time",
            Objective::P99 => "p99 of the response time",
            Objective::Price => "price of a million operations",
        }
    }

    /// Which percentile it is, as a fraction; `None` if it is none.
    pub const fn percentile(self) -> Option<f64> {
        match self {
            Objective::P95 => Some(0.95),
            Objective::P99 => Some(0.99),
            Objective::Throughput | Objective::MeanLatency | Objective::Price => None,
        }
    }

    /// A value of it for people. A price has no currency: the document's prices have it.
    pub fn value(self, value: f64) -> String {
        match self {
            Objective::Throughput => units::rate(value),
            Objective::Price => format!("{}", rounded(value)),
            _ => units::duration_ns(value as u64),
        }
    }
}

/// What an hour of an arm costs, in any currency: so much whatever is set, and so much for each unit of some settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// What it costs whatever is set.
    pub hour: f64,
    /// Places of settings, and what one of their units costs an hour.
    pub each: Vec<(usize, f64)>,
}

impl Price {
    /// What an hour costs with a configuration. A setting without a number costs nothing; documents have none.
    pub fn of_hour(&self, space: &Space, configuration: &Configuration) -> f64 {
        let cost = |(index, each): &(usize, f64)| {
            each * space.settings[*index].number(configuration.0[*index]).unwrap_or_default()
        };
        self.hour + self.each.iter().map(cost).sum::<f64>()
    }

    /// What an hour costs with the least of all settings, and with the most.
    pub fn hours(&self, space: &Space) -> RangeInclusive<f64> {
        let of = |pick: fn(f64, f64) -> f64| {
            let cost = |(index, each): &(usize, f64)| {
                let setting = &space.settings[*index];
                let numbers = setting.levels().into_iter().filter_map(|level| setting.number(level));
                each * numbers.reduce(pick).unwrap_or_default()
            };
            self.hour + self.each.iter().map(cost).sum::<f64>()
        };
        of(f64::min)..=of(f64::max)
    }

    /// What a million operations cost with a configuration that does so many a second.
    pub fn of_million(&self, space: &Space, configuration: &Configuration, operations_per_s: f64) -> f64 {
        self.of_hour(space, configuration) / (operations_per_s * 3600.0) * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Domain, Scale, Setting, TakesEffect};
    use super::*;

    #[test]
    fn a_million_operations_cost_what_their_share_of_the_hour_costs() {
        let setting = |name: &str, domain, unit: &str| Setting {
            name: name.into(),
            domain,
            baseline: 1.0,
            unit: unit.into(),
            takes_effect: TakesEffect::Run,
            when: None,
        };
        let words = Domain::Choice(vec!["4GB".into(), "16GB".into(), "most".into()]);
        let cpus = setting("cpus", Domain::Integer(1.0, 8.0, Scale::Linear), "");
        let space = Space { settings: vec![cpus, setting("memory", words, "GB")] };
        let price = Price { hour: 0.1, each: vec![(0, 0.05), (1, 0.01)] };
        let configuration = Configuration(vec![4.0, 1.0]);
        let hour = price.of_hour(&space, &configuration);
        assert!((hour - 0.46).abs() < 1e-12, "0.1 + 4 x 0.05 + 16 x 0.01 is {hour}");
        // 1 000 a second are 3.6 millions an hour.
        let million = price.of_million(&space, &configuration, 1000.0);
        assert!((million - 0.46 / 3.6).abs() < 1e-12, "{million}");
        assert_eq!(space.settings[1].number(2.0), None, "a word is no number");
        assert_eq!(Objective::Price.value(million), "0.1278");
        // 1 to 8 processors and 4 or 16 GB.
        let hours = price.hours(&space);
        assert!((hours.start() - 0.19).abs() < 1e-12 && (hours.end() - 0.66).abs() < 1e-12, "{hours:?}");
    }
}
