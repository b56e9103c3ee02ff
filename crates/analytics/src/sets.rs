//! The sets of tables: which tables there are, how many rows they have, and where their rows come from.

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatchIterator, RecordBatchReader};
use serde::{Deserialize, Serialize};
use tpcdsgen::config::{CompatMode, Session, SessionBuilder};
use tpcdsgen_arrow as ds;
use tpchgen::generators as rows;
use tpchgen_arrow as h;

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
    grows: bool,
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

/// Rows on their way into a file.
pub type Batches = Box<dyn RecordBatchReader + Send>;

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

    /// How many rows a table has at a scale, where its definition says so exactly.
    pub fn exact_rows(self, table: &str, scale: f64) -> Option<u64> {
        match self {
            Set::Tpch => {
                let rows = match table {
                    "nation" => 25,
                    "region" => 5,
                    "part" => rows::PartGenerator::calculate_row_count(scale, 1, 1),
                    "supplier" => rows::SupplierGenerator::calculate_row_count(scale, 1, 1),
                    // Four suppliers for each part.
                    "partsupp" => 4 * rows::PartGenerator::calculate_row_count(scale, 1, 1),
                    "customer" => rows::CustomerGenerator::calculate_row_count(scale, 1, 1),
                    "orders" => rows::OrderGenerator::calculate_row_count(scale, 1, 1),
                    // An order has one to seven lines.
                    _ => return None,
                };
                u64::try_from(rows).ok()
            }
            Set::Tpcds => {
                let known: tpcdsgen::config::Table = table.parse().ok()?;
                // A sale has several lines, and some of them are returned: their numbers are of orders.
                let has_lines = table.ends_with("_sales") || table.ends_with("_returns");
                let session = tpcds_session(scale).build().ok()?;
                (!has_lines).then(|| session.get_scaling().get_row_count(known))
            }
        }
    }

    /// The columns of a table; `None` of one that it has not.
    pub fn schema(self, table: &str) -> Option<SchemaRef> {
        Some(self.batches(table, 1.0, 1, 1)?.schema())
    }

    /// The rows of one of the parts into which a table is cut, from 1; `None` of a table that it has not.
    pub fn batches(self, table: &str, scale: f64, part: u32, of: u32) -> Option<Batches> {
        match self {
            Set::Tpch => tpch(table, scale, part as i32, of as i32),
            Set::Tpcds => {
                let session = tpcds_session(scale)
                    .with_table(table.parse().ok()?)
                    .with_chunk_number(part as i32)
                    .with_total_chunks(of as i32)
                    .with_partitioned(of > 1)
                    .build();
                tpcds(table, session.ok()?)
            }
        }
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

fn tpch(table: &str, scale: f64, part: i32, of: i32) -> Option<Batches> {
    Some(match table {
        "nation" => Box::new(h::NationArrow::new(rows::NationGenerator::new(scale, part, of))),
        "region" => Box::new(h::RegionArrow::new(rows::RegionGenerator::new(scale, part, of))),
        "part" => Box::new(h::PartArrow::new(rows::PartGenerator::new(scale, part, of))),
        "supplier" => Box::new(h::SupplierArrow::new(rows::SupplierGenerator::new(scale, part, of))),
        "partsupp" => Box::new(h::PartSuppArrow::new(rows::PartSuppGenerator::new(scale, part, of))),
        "customer" => Box::new(h::CustomerArrow::new(rows::CustomerGenerator::new(scale, part, of))),
        "orders" => Box::new(h::OrderArrow::new(rows::OrderGenerator::new(scale, part, of))),
        "lineitem" => Box::new(h::LineItemArrow::new(rows::LineItemGenerator::new(scale, part, of))),
        _ => return None,
    })
}

/// What generators of TPC-DS begin with. The other mode has 75 reasons of returns at any scale; the specification (table 3-2) scales
/// them, from 35 at scale 1, and so do Trino and DuckDB.
fn tpcds_session(scale: f64) -> SessionBuilder {
    SessionBuilder::new().with_scale_factor(scale).with_compat_mode(CompatMode::Trino)
}

fn tpcds(table: &str, session: Session) -> Option<Batches> {
    let known: tpcdsgen::config::Table = table.parse().ok()?;
    let rows = session.get_source_row_range(known);
    macro_rules! rows_of {
        ($($name:literal => $generator:ident,)*) => {
            match table {
                $($name => match rows.is_empty() {
                    // Of a short table some parts have no rows, and their files are there all the same.
                    true => Box::new(RecordBatchIterator::new([], ds::$generator::schema_ref())),
                    false => Box::new(ds::$generator::new(session).with_source_row_range(*rows.start(), *rows.end())),
                },)*
                _ => return None,
            }
        };
    }
    Some(rows_of! {
        "call_center" => CallCenterArrow,
        "catalog_page" => CatalogPageArrow,
        "catalog_returns" => CatalogReturnsArrow,
        "catalog_sales" => CatalogSalesArrow,
        "customer" => CustomerArrow,
        "customer_address" => CustomerAddressArrow,
        "customer_demographics" => CustomerDemographicsArrow,
        "date_dim" => DateDimArrow,
        "household_demographics" => HouseholdDemographicsArrow,
        "income_band" => IncomeBandArrow,
        "inventory" => InventoryArrow,
        "item" => ItemArrow,
        "promotion" => PromotionArrow,
        "reason" => ReasonArrow,
        "ship_mode" => ShipModeArrow,
        "store" => StoreArrow,
        "store_returns" => StoreReturnsArrow,
        "store_sales" => StoreSalesArrow,
        "time_dim" => TimeDimArrow,
        "warehouse" => WarehouseArrow,
        "web_page" => WebPageArrow,
        "web_returns" => WebReturnsArrow,
        "web_sales" => WebSalesArrow,
        "web_site" => WebSiteArrow,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(set: Set, table: &str, scale: f64, of: u32) -> u64 {
        let parts = (1..=of).flat_map(|part| set.batches(table, scale, part, of).unwrap());
        parts.map(|batch| batch.unwrap().num_rows() as u64).sum()
    }

    #[test]
    fn tables_have_the_rows_of_their_definition_however_they_are_cut() {
        for set in [Set::Tpch, Set::Tpcds] {
            for table in set.tables() {
                let exact = set.exact_rows(table.name, 0.01);
                let whole = count(set, table.name, 0.01, 1);
                assert!(
                    whole > 0 && exact.is_none_or(|exact| exact == whole),
                    "{}: {whole} of {exact:?}",
                    table.name
                );
                if table.grows {
                    assert_eq!(count(set, table.name, 0.01, 3), whole, "{} in three parts", table.name);
                }
            }
        }
        assert_eq!(count(Set::Tpch, "lineitem", 0.01, 1), 60_175, "dbgen's own number");
        assert_eq!(count(Set::Tpcds, "reason", 1.0, 1), 35, "as the specification has it");
        assert!(Set::Tpch.batches("store_sales", 1.0, 1, 1).is_none());
    }
}
