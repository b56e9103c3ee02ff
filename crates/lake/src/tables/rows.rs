//! Where the rows of tables come from, and how many there are.

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatchIterator, RecordBatchReader};
use tidemark_analytics::sets::Set;
use tpcdsgen::config::{CompatMode, Session, SessionBuilder};
use tpcdsgen_arrow as ds;
use tpchgen::generators as rows;
use tpchgen_arrow as h;

/// Rows on their way into a file.
pub type Batches = Box<dyn RecordBatchReader + Send>;

/// How many rows a table has at a scale, where its definition says so exactly.
pub fn exact_rows(set: Set, table: &str, scale: f64) -> Option<u64> {
    match set {
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
pub fn schema(set: Set, table: &str) -> Option<SchemaRef> {
    Some(batches(set, table, 1.0, 1, 1)?.schema())
}

/// The rows of one of the parts into which a table is cut, from 1; `None` of a table that it has not.
pub fn batches(set: Set, table: &str, scale: f64, part: u32, of: u32) -> Option<Batches> {
    match set {
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
        let parts = (1..=of).flat_map(|part| batches(set, table, scale, part, of).unwrap());
        parts.map(|batch| batch.unwrap().num_rows() as u64).sum()
    }

    #[test]
    fn tables_have_the_rows_of_their_definition_however_they_are_cut() {
        for set in [Set::Tpch, Set::Tpcds] {
            for table in set.tables() {
                let exact = exact_rows(set, table.name, 0.01);
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
        assert!(batches(Set::Tpch, "store_sales", 1.0, 1, 1).is_none());
    }
}
