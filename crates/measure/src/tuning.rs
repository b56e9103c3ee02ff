//! Settings, the values that they may have, the configurations that they make together, and the record of a search for better ones.
//! Plain data, as [`crate::evaluation`]; `tidemark_tune` searches.

mod objective;

pub use objective::{OBJECTIVES, Objective, Price};

use serde::{Deserialize, Serialize};

/// The most settings of a search: to tell more of them apart takes more runs than anybody has.
pub const MOST_SETTINGS: usize = 15;

/// What keeps data safe: a setting of one of these names is never searched, for the fastest value is always the one that loses data.
const NAMES: [&str; 8] =
    ["durability", "replica", "replicas", "replication", "copies", "size", "replica_size", "end_fsync"];

/// The same, where even a value or a command that has the word in it is refused: it means nothing else.
const WORDS: [&str; 12] = [
    "min_size",
    "pool_default_size",
    "osd_pool_default_size",
    "osd_pool_default_min_size",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "wal_sync_method",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "innodb_flush_method",
    "sync_binlog",
];

/// The word for which a name, a value or a command must not be searched, if it is one of those that keep data safe: hyphens and
/// spaces count as underscores.
pub fn refused(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    let plain = lower.trim().replace(['-', ' '], "_");
    if let Some(word) = NAMES.into_iter().chain(WORDS).find(|word| *word == plain) {
        return Some(word);
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut parts = lower.split(|letter| !is_name(letter));
    parts.find_map(|part| WORDS.into_iter().find(|word| *word == part))
}

/// How the values of a number are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences count as equal.
    #[default]
    Linear,
    /// Equal ratios count as equal.
    Log,
}

/// The values that a setting may have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// Whole numbers from the first to the second.
    Integer(f64, f64, Scale),
    /// Numbers from the first to the second.
    Real(f64, f64, Scale),
    /// One of these words.
    Choice(Vec<String>),
}

/// What it takes until another value of a setting is in effect, the cheapest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// Nothing but the run itself: the load, its target and the arm's `reset` commands have the value.
    Run,
    /// The arm's `tear_down` and `set_up` commands, and a restart of servers, whose data stay.
    Restart,
    /// Everything that the arm brings up, from the beginning.
    #[default]
    Rebuild,
}

/// On what a setting depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct When {
    /// The place of a choice among the settings, before this one.
    pub setting: usize,
    /// The places of its options with which this setting means something.
    pub options: Vec<usize>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// The values that are tried.
    pub domain: Domain,
    /// The baseline's value, one of these: a number, or the place of a word.
    pub baseline: f64,
    /// What follows its numbers: `MB`; or empty.
    pub unit: String,
    /// What it takes until another value is in effect.
    pub takes_effect: TakesEffect,
    /// With which values of another one it means something; `None`: always.
    pub when: Option<When>,
}

impl Setting {
    /// A value as documents and commands have it: `128MB`, `lz4`.
    pub fn text(&self, value: f64) -> String {
        match &self.domain {
            Domain::Integer(..) => format!("{value:.0}{}", self.unit),
            Domain::Real(..) => format!("{value}{}", self.unit),
            Domain::Choice(words) => words.get(value as usize).cloned().unwrap_or_default(),
        }
    }

    /// The value that a text stands for, with or without the unit; `None` if it is none of those that are tried.
    pub fn value(&self, text: &str) -> Option<f64> {
        let number = || text.strip_suffix(self.unit.as_str()).unwrap_or(text).trim().parse::<f64>().ok();
        match &self.domain {
            Domain::Choice(words) => words.iter().position(|word| word == text).map(|word| word as f64),
            Domain::Integer(from, to, _) => {
                number().filter(|number| number.fract() == 0.0 && (*from..=*to).contains(number))
            }
            Domain::Real(from, to, _) => number().filter(|number| (*from..=*to).contains(number)),
        }
    }

    /// The value at a place from 0 to 1, rounded to what can be written.
    pub fn at(&self, place: f64) -> f64 {
        let place = place.clamp(0.0, 1.0);
        let between = |from: f64, to: f64, scale| match scale {
            Scale::Linear => from + (to - from) * place,
            Scale::Log => from * (to / from).powf(place),
        };
        match &self.domain {
            Domain::Integer(from, to, scale) => between(*from, *to, *scale).round().clamp(*from, *to),
            Domain::Real(from, to, scale) => rounded(between(*from, *to, *scale)).clamp(*from, *to),
            Domain::Choice(words) => (place * words.len() as f64).floor().min(words.len() as f64 - 1.0),
        }
    }

    /// A value as a number without its unit: of a word what it says, if that is a number; `None` if it is none.
    pub fn number(&self, value: f64) -> Option<f64> {
        match &self.domain {
            Domain::Choice(_) => {
                let text = self.text(value);
                let number = text.strip_suffix(self.unit.as_str()).unwrap_or(&text).trim().parse::<f64>();
                number.ok().filter(|number| number.is_finite() && *number >= 0.0)
            }
            _ => Some(value),
        }
    }

    /// The place of a number from 0 to 1; of a word its number.
    pub fn place(&self, value: f64) -> f64 {
        match &self.domain {
            Domain::Integer(from, to, scale) | Domain::Real(from, to, scale) => match scale {
                Scale::Linear => (value - from) / (to - from),
                Scale::Log => (value / from).ln() / (to / from).ln(),
            },
            Domain::Choice(_) => value,
        }
    }

    /// The two or more values that the screening compares: both ends of a range, or all words, the baseline's first.
    pub fn levels(&self) -> Vec<f64> {
        match &self.domain {
            Domain::Integer(from, to, _) | Domain::Real(from, to, _) => vec![*from, *to],
            Domain::Choice(words) => {
                let others = (0..words.len()).map(|word| word as f64).filter(|word| *word != self.baseline);
                std::iter::once(self.baseline).chain(others).collect()
            }
        }
    }
}

/// A number with four significant digits.
fn rounded(number: f64) -> f64 {
    if number == 0.0 {
        return number;
    }
    let digits = 10f64.powi(3 - number.abs().log10().floor() as i32);
    (number * digits).round() / digits
}

/// A value for every setting of a space, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration(pub Vec<f64>);

/// All settings of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// The settings.
    pub settings: Vec<Setting>,
}

impl Space {
    /// The configuration that the others are compared with.
    pub fn baseline(&self) -> Configuration {
        Configuration(self.settings.iter().map(|setting| setting.baseline).collect())
    }

    /// The same configuration with the baseline's value wherever a setting means nothing, so that what is the same is equal.
    pub fn settled(&self, mut configuration: Configuration) -> Configuration {
        for (index, setting) in self.settings.iter().enumerate() {
            if !self.is_active(index, &configuration) {
                configuration.0[index] = setting.baseline;
            }
        }
        configuration
    }

    /// Whether a setting means something beside the others.
    pub fn is_active(&self, index: usize, configuration: &Configuration) -> bool {
        let Some(when) = &self.settings[index].when else { return true };
        when.options.contains(&(configuration.0[when.setting] as usize))
            && self.is_active(when.setting, configuration)
    }

    /// The configuration at places from 0 to 1 for some settings; the others are the baseline's.
    pub fn at(&self, places: &[(usize, f64)]) -> Configuration {
        let mut configuration = self.baseline();
        for (setting, place) in places {
            configuration.0[*setting] = self.settings[*setting].at(*place);
        }
        self.settled(configuration)
    }

    /// The place of a configuration's value from 0 to 1, so that [`Space::at`] gives it back.
    pub fn place(&self, index: usize, configuration: &Configuration) -> f64 {
        let setting = &self.settings[index];
        match &setting.domain {
            Domain::Choice(words) => (configuration.0[index] + 0.5) / words.len() as f64,
            _ => setting.place(configuration.0[index]),
        }
    }

    /// How far two configurations are apart in each of these settings: as a share of the range; words are 1 apart.
    pub fn apart(&self, settings: &[usize], one: &Configuration, other: &Configuration) -> Vec<f64> {
        let apart = |index: &usize| {
            let setting = &self.settings[*index];
            let (one, other) = (setting.place(one.0[*index]), setting.place(other.0[*index]));
            (one - other).abs().min(1.0)
        };
        settings.iter().map(apart).collect()
    }

    /// What it takes to go from one configuration to another.
    pub fn change(&self, from: &Configuration, to: &Configuration) -> TakesEffect {
        let pairs = self.settings.iter().zip(from.0.iter().zip(&to.0));
        let changed = pairs.filter(|(_, (from, to))| from != to);
        changed.map(|(setting, _)| setting.takes_effect).max().unwrap_or(TakesEffect::Run)
    }

    /// The values that differ from the baseline: `cache 512MB, workers 8`; `baseline` if none does.
    pub fn label(&self, configuration: &Configuration) -> String {
        let pairs = self.settings.iter().zip(&configuration.0);
        let changed = pairs.filter(|(setting, value)| setting.baseline != **value);
        let parts: Vec<String> =
            changed.map(|(setting, value)| format!("{} {}", setting.name, setting.text(*value))).collect();
        if parts.is_empty() { "baseline".to_owned() } else { parts.join(", ") }
    }

    /// All names and values, as documents have them.
    pub fn pairs(&self, configuration: &Configuration) -> Vec<(String, String)> {
        let pairs = self.settings.iter().zip(&configuration.0);
        pairs.map(|(setting, value)| (setting.name.clone(), setting.text(*value))).collect()
    }
}

/// A search for better settings: part of the record of an evaluation whose arms are what it tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// What may be set.
    pub space: Space,
    /// What is to become better.
    pub objective: Objective,
    /// What is to become better besides: the search is for the front of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<Objective>,
    /// What an hour of the arm costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How many runs it may take, those of its proof included.
    pub runs: u32,
    /// How long it may take, nanoseconds; `None`: as long as its runs take.
    pub time_ns: Option<u64>,
    /// The most memory that the processes of the storage may take together, bytes.
    pub memory_bytes: Option<u64>,
    /// How long storage may take to recover after a run, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_ns: Option<u64>,
    /// An effect within this share does not matter.
    pub margin: f64,
    /// What the arms were, in their order.
    pub tried: Vec<Tried>,
    /// How long its trials have taken so far, with what brought their settings into effect, nanoseconds.
    pub spent_ns: u64,
    /// What the first of them took, which builds everything.
    pub first_ns: u64,
    /// How many runs its time is enough for, as the second trial tells; `None` before it, and without such a budget.
    pub affords: Option<u32>,
    /// Whether what is left of its time is needed for the proof: nothing else is measured any more.
    pub is_closed: bool,
}

/// What an arm of a search is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The arm's name.
    pub arm: String,
    /// Its settings.
    pub configuration: Configuration,
    /// Whether it is the winner or the baseline of the proof, which is set up afresh.
    pub proves: bool,
    /// Why it could not be set up; empty if it could.
    #[serde(default)]
    pub refused: String,
    /// How long its storage took to recover after a run, at most, nanoseconds; `None` where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_ns: Option<u64>,
}

impl Tuning {
    /// Whether another search asks the same, whatever they have tried. What an hour costs matters if the price is to become better: it then
    /// decides which settings are tried and proven, and a proof compares neighbours.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        let asked = |one: &Self| {
            (one.objective, one.second, one.runs, one.time_ns, one.memory_bytes, one.recovery_ns)
        };
        asked(self) == asked(other)
            && self.space == other.space
            && self.margin == other.margin
            && (self.price == other.price || !self.objectives().contains(&Objective::Price))
    }

    /// What is to become better: one objective, or two.
    pub fn objectives(&self) -> Vec<Objective> {
        std::iter::once(self.objective).chain(self.second).collect()
    }

    /// How many runs it may take: as many as were allowed, or as its time is enough for.
    pub fn budget(&self) -> u32 {
        self.affords.map_or(self.runs, |runs| runs.min(self.runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, domain: Domain, baseline: f64) -> Setting {
        Setting {
            name: name.into(),
            domain,
            baseline,
            unit: String::new(),
            takes_effect: TakesEffect::Run,
            when: None,
        }
    }

    #[test]
    fn what_keeps_data_safe_is_refused_by_any_spelling() {
        for text in ["fsync", "synchronous-commit", "min_size", "Replica Size", "size", "copies"] {
            assert!(refused(text).is_some(), "{text}");
        }
        for text in ["fsync=off", "-c synchronous_commit=off", "osd_pool_default_min_size = 1"] {
            assert!(refused(text).is_some(), "{text}");
        }
        for text in ["shared_buffers", "wal_buffers", "part_size", "max_wal_size", "lz4", "cache size"] {
            assert_eq!(refused(text), None, "{text}");
        }
    }

    #[test]
    fn places_and_values_belong_together() {
        let log = setting("cache", Domain::Integer(1.0, 1024.0, Scale::Log), 1.0);
        assert_eq!([0.0, 0.5, 1.0].map(|place| log.at(place)), [1.0, 32.0, 1024.0]);
        assert!((log.place(32.0) - 0.5).abs() < 1e-9);
        let real = setting("target", Domain::Real(0.1, 0.9, Scale::Linear), 0.5);
        assert_eq!(real.text(real.at(1.0 / 3.0)), "0.3667");
        let words = setting("codec", Domain::Choice(vec!["none".into(), "lz4".into(), "zstd".into()]), 1.0);
        assert_eq!([0.0, 0.4, 1.0].map(|place| words.text(words.at(place))), ["none", "lz4", "zstd"]);
        assert_eq!(words.levels(), [1.0, 0.0, 2.0]);
        let size = Setting { unit: "MB".into(), ..log };
        assert_eq!(
            ["32MB", "32", "32kB", "2000", "1.5"].map(|text| size.value(text)),
            [Some(32.0), Some(32.0), None, None, None]
        );
        assert_eq!((words.value("lz4"), words.value("br")), (Some(1.0), None));
    }

    #[test]
    fn a_setting_that_means_nothing_has_the_baselines_value() {
        let mut level = setting("level", Domain::Integer(1.0, 9.0, Scale::Linear), 3.0);
        level.when = Some(When { setting: 0, options: vec![1] });
        let codec = setting("codec", Domain::Choice(vec!["none".into(), "zstd".into()]), 0.0);
        let space = Space { settings: vec![codec, level] };
        assert_eq!(space.settled(Configuration(vec![0.0, 9.0])).0, [0.0, 3.0]);
        assert_eq!(space.settled(Configuration(vec![1.0, 9.0])).0, [1.0, 9.0]);
        assert_eq!(space.label(&Configuration(vec![1.0, 9.0])), "codec zstd, level 9");
        assert_eq!(space.label(&space.baseline()), "baseline");
    }

    #[test]
    fn a_price_makes_another_search_if_it_is_an_objective() {
        let priced = |hour: f64, second| Tuning {
            second,
            price: Some(Price { hour, each: Vec::new() }),
            ..Tuning::default()
        };
        let front = Some(Objective::Price);
        assert!(priced(1.0, None).asks_the_same(&priced(2.0, None)));
        assert!(priced(1.0, front).asks_the_same(&priced(1.0, front)));
        assert!(!priced(1.0, front).asks_the_same(&priced(2.0, front)));
    }
}
