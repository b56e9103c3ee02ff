//! The sets of tables: which tables there are, and about how large they are.

use serde::{Deserialize, Serialize};

/// A set of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// Eight tables of orders and parts, after TPC-H.
    Tpch,
    /// 24 tables of sales over three channels, after TPC-DS.
    Tpcds,
}

/// A table of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// About how many bytes its Parquet files have at scale 1, compressed: decides over the number of files.
    bytes: u64,
    /// Whether it grows with the scale factor, more or less in proportion.
    pub grows: bool,
}

const fn grows(name: &'static str, bytes: u64) -> Table {
    Table { name, bytes, grows: true }
}

const fn fixed(name: &'static str, bytes: u64) -> Table {
    Table { name, bytes, grows: false }
}

const MB: u64 = 1_000_000;

/// Sizes as they came out at scale 1 with zstd.
static TPCH: [Table; 8] = [
    fixed("nation", 3_000),
    fixed("region", 1_000),
    grows("part", 6 * MB),
    grows("supplier", MB),
    grows("partsupp", 42 * MB),
    grows("customer", 12 * MB),
    grows("orders", 55 * MB),
    grows("lineitem", 205 * MB),
];

static TPCDS: [Table; 24] = [
    fixed("call_center", 12_000),
    fixed("catalog_page", MB),
    grows("catalog_returns", 11 * MB),
    grows("catalog_sales", 105 * MB),
    grows("customer", 6 * MB),
    grows("customer_address", 2 * MB),
    fixed("customer_demographics", 8 * MB),
    fixed("date_dim", 2 * MB),
    fixed("household_demographics", 40_000),
    fixed("income_band", 1_000),
    grows("inventory", 25 * MB),
    grows("item", 2 * MB),
    fixed("promotion", 25_000),
    fixed("reason", 2_000),
    fixed("ship_mode", 3_000),
    fixed("store", 20_000),
    grows("store_returns", 18 * MB),
    grows("store_sales", 140 * MB),
    fixed("time_dim", MB),
    fixed("warehouse", 7_000),
    fixed("web_page", 12_000),
    grows("web_returns", 6 * MB),
    grows("web_sales", 53 * MB),
    fixed("web_site", 15_000),
];

impl Set {
    /// Its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Set::Tpch => "tpch",
            Set::Tpcds => "tpcds",
        }
    }

    /// What people call it: it is not the benchmark of that name, whose results are audited.
    pub const fn title(self) -> &'static str {
        match self {
            Set::Tpch => "TPC-H-like",
            Set::Tpcds => "TPC-DS-like",
        }
    }

    /// Its tables.
    pub fn tables(self) -> &'static [Table] {
        match self {
            Set::Tpch => &TPCH,
            Set::Tpcds => &TPCDS,
        }
    }

    /// About how many bytes all its files have at a scale.
    pub fn bytes(self, scale: f64) -> u64 {
        self.tables().iter().map(|table| table.bytes_at(scale)).fold(0, u64::saturating_add)
    }
}

impl Table {
    /// About how many bytes its files have at a scale.
    pub fn bytes_at(&self, scale: f64) -> u64 {
        if self.grows { (self.bytes as f64 * scale) as u64 } else { self.bytes }
    }

    /// Into how many files it is cut, if they are to have about so many bytes.
    pub fn files(&self, scale: f64, file_bytes: u64) -> u32 {
        if !self.grows {
            return 1;
        }
        u32::try_from(self.bytes_at(scale).div_ceil(file_bytes.max(1))).unwrap_or(u32::MAX).clamp(1, 100_000)
    }
}
