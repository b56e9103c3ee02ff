//! Tables, and the queries on them.

use super::Facts;
use super::phrase::{Phrase, bytes, count, percent, phrase};
use serde::Serialize;
use tidemark_measure::units;

/// Tables that are listed, at most.
const LISTED_MOST: usize = 10;

/// A table that has other rows than its definition gives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct WrongTable {
    pub table: String,
    pub rows: u64,
    pub expected: u64,
}

/// What limited the making of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MadeBy {
    /// Generating and encoding rows.
    Generator,
    /// Storage.
    Storage,
    /// Neither took most of the time.
    Neither,
}

/// A memory, and what it can hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Layer {
    pub layer: String,
    pub bytes: u64,
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Tables {
    Rows {
        tables: u64,
        rows: u64,
        wrong: Vec<WrongTable>,
        /// Tables whose number of rows nobody knows beforehand.
        unknown: u64,
    },
    Making {
        by: MadeBy,
        generating_ns: u64,
        encoding_ns: u64,
        storing_ns: u64,
    },
    Answers {
        known: u64,
        others: u64,
        unchecked: u64,
        /// Those that differ.
        wrong: u64,
    },
    Memory {
        layer: Layer,
        data_bytes: u64,
        times: u64,
        declared: String,
    },
    MemoryUnknown {
        layers: Vec<String>,
    },
    OwnCost {
        own_ns: u64,
        queries_ns: u64,
        share: f64,
    },
}

impl Facts for Tables {
    fn rule(&self) -> &'static str {
        match self {
            Tables::Rows { tables, wrong, unknown, .. } if wrong.is_empty() => match unknown == tables {
                true => "rows-unknown",
                false => "rows-whole",
            },
            Tables::Rows { .. } => "rows-differ",
            Tables::Making { .. } => "making",
            Tables::Answers { .. } => "answers",
            Tables::Memory { .. } => "measured-memory",
            Tables::MemoryUnknown { .. } => "memory-unknown",
            Tables::OwnCost { .. } => "own-cost",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Tables::Rows { tables, rows, wrong, unknown } if wrong.is_empty() => {
                let rows = count(*rows);
                match unknown {
                    0 => phrase!["the ", count(*tables), " tables hold ", rows, " rows, as they should"],
                    unknown if unknown == tables => phrase![
                        "the ",
                        count(*tables),
                        " tables hold ",
                        rows,
                        " rows; how many they should hold is not known"
                    ],
                    unknown => phrase![
                        count(tables - unknown),
                        " of ",
                        count(*tables),
                        " tables hold the rows that they should; of the others that is not known"
                    ],
                }
            }
            Tables::Rows { tables, wrong, .. } => {
                let wrong = count(wrong.len() as u64);
                phrase![wrong, " of ", count(*tables), " tables do not hold the rows that they should"]
            }
            Tables::Making { by, .. } => match by {
                MadeBy::Generator => {
                    phrase![
                        "the making of the tables was limited by generating and encoding rows, not by storage"
                    ]
                }
                MadeBy::Storage => phrase!["the making of the tables was limited by storage"],
                MadeBy::Neither => {
                    phrase![
                        "neither the generating of rows nor storage alone limited the making of the tables"
                    ]
                }
            },
            Tables::Answers { known, others, unchecked, wrong } => match (known + others, *wrong) {
                (0, 0) => phrase!["no answer was compared with anything"],
                (right, 0) => {
                    let all = right + unchecked;
                    phrase![count(right), " of ", count(all), " answers were compared, and are right"]
                }
                (right, wrong) => {
                    let all = right + wrong + unchecked;
                    let (compared, right) = (count(right + wrong), count(right));
                    phrase![
                        compared,
                        " of ",
                        count(all),
                        " answers were compared: ",
                        right,
                        " right, ",
                        count(wrong),
                        " wrong"
                    ]
                }
            },
            Tables::Memory { layer, data_bytes, .. } => {
                phrase![
                    "what was read may have come from memory: the tables have ",
                    bytes(*data_bytes as f64),
                    ", and the ",
                    &layer.layer,
                    " can hold ",
                    bytes(layer.bytes as f64)
                ]
            }
            Tables::MemoryUnknown { layers } => {
                phrase!["how much was read from this memory is not known: ", layers.join("; ")]
            }
            Tables::OwnCost { share, .. } => {
                phrase!["the load generator took ", percent(*share), " of the queries' time for itself"]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Tables::Rows { wrong, .. } if !wrong.is_empty() => {
                "Rows were counted after the work: from the files' footers, or by the engine that made the tables. Files may be missing or be of something else: make the \
                 tables anew with `fresh: true`, and see whether the storage lost any."
                    .into()
            }
            Tables::Making { by: MadeBy::Storage, .. } => {
                "Encoders waited for storage for most of their time.".into()
            }
            Tables::Answers { unchecked, .. } if *unchecked > 0 => {
                "Answers are compared with known ones where the set has any at this scale, else with the first execution of the same \
                 query: one that is run once is compared with nothing."
                    .into()
            }
            Tables::Memory { times, declared, .. } => {
                let declared = match declared.as_str() {
                    "warm" => " The document declares it warm.",
                    _ => "",
                };
                format!(
                    "Tables of at least {times} times that size, or a limit of the memory (a cgroup), make sure that storage is \
                     measured. With files, `cache: cold` drops them from the page cache before every query.{declared}"
                )
            }
            Tables::MemoryUnknown { .. } => {
                "Nothing here can see what a server keeps in memory: tables much larger than its memory make sure.".into()
            }
            _ => String::new(),
        }
    }

    fn proves(&self) -> bool {
        matches!(self, Tables::Answers { known, wrong, .. } if *known > 0 && *wrong == 0)
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Tables::Rows { wrong, unknown, .. } => {
                let told = |wrong: &WrongTable| {
                    let [rows, expected] = [wrong.rows, wrong.expected].map(units::count);
                    format!("{}: {rows} rows instead of {expected}", wrong.table)
                };
                let mut lines: Vec<_> = wrong.iter().take(LISTED_MOST).map(told).collect();
                if *unknown > 0 {
                    lines.push(format!(
                        "of {unknown} tables, some of whose files were there already, the number is not known"
                    ));
                }
                lines
            }
            Tables::Making { generating_ns, encoding_ns, storing_ns, .. } => {
                let [generating, encoding, storing] =
                    [*generating_ns, *encoding_ns, *storing_ns].map(units::duration_ns);
                vec![format!(
                    "all writers together: {generating} generating rows, {encoding} encoding them, {storing} waiting for storage"
                )]
            }
            Tables::Answers { known, others, unchecked, .. } => {
                let [known, others, unchecked] = [*known, *others, *unchecked].map(units::count);
                vec![format!(
                    "right: {known} by known answers, {others} by the first execution of the same query; {unchecked} compared with nothing"
                )]
            }
            Tables::OwnCost { own_ns, queries_ns, .. } => {
                let [own, queries] = [*own_ns, *queries_ns].map(units::duration_ns);
                vec![format!("{own} comparing answers, beside {queries} in queries")]
            }
            Tables::Memory { .. } | Tables::MemoryUnknown { .. } => Vec::new(),
        }
    }
}
