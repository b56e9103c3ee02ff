//! The rows of tables, as the TPC's generator makes them, and those of the refresh functions.

use super::schema::{CUSTOMER, LINEITEM, NATION, ORDERS, PART, PARTSUPP, REGION, SUPPLIER};
use crate::bulk::Bulk;
use crate::value::Value::{Date, Decimal, Int, Text};
use std::ops::Range;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators as tpc;

/// Rows of a unit, about: those of orders in a unit of their lines.
const UNIT: u64 = 2_500;

/// Into so many sets the orders are cut, each of which a refresh function can insert again: a thousandth of them (clause 5.1.1).
const SETS: i32 = 1_000;

/// The generator leaves out keys whose remainder by 32 is this or more.
pub(super) const FREE: i64 = 8;

/// How many units a table has at a scale, and how many rows a unit, on average.
pub(super) fn units(scale: f64, table: usize) -> (u64, f64) {
    let (rows, each) = match table {
        REGION => (5, 1.0),
        NATION => (25, 1.0),
        SUPPLIER => (tpc::SupplierGenerator::calculate_row_count(scale, 1, 1), 1.0),
        PART => (tpc::PartGenerator::calculate_row_count(scale, 1, 1), 1.0),
        // Four suppliers for a part.
        PARTSUPP => (tpc::PartGenerator::calculate_row_count(scale, 1, 1), 4.0),
        CUSTOMER => (tpc::CustomerGenerator::calculate_row_count(scale, 1, 1), 1.0),
        ORDERS => (tpc::OrderGenerator::calculate_row_count(scale, 1, 1), 1.0),
        // One to seven lines for an order.
        _ => (tpc::OrderGenerator::calculate_row_count(scale, 1, 1), 4.0),
    };
    let rows = u64::try_from(rows).unwrap_or(0).max(1);
    let units = if matches!(table, REGION | NATION) { 1 } else { rows.div_ceil(UNIT) };
    (units, rows as f64 * each / units as f64)
}

fn money(value: TPCHDecimal) -> crate::value::Value<'static> {
    Decimal(value.into_inner(), 2)
}

/// Adds the rows of some units of a table: parts of the generator's, which are cut alike.
pub(super) fn generate(scale: f64, table: usize, which: Range<u64>, bulk: &mut Bulk<'_>) {
    let of = i32::try_from(units(scale, table).0).unwrap_or(i32::MAX);
    for unit in which {
        part(scale, table, unit as i32 + 1, of, 0, bulk);
    }
}

/// Adds the orders that a stream's refresh function inserts, from 1, and their lines.
pub(super) fn refresh(scale: f64, stream: u64, orders: &mut Bulk<'_>, lines: &mut Bulk<'_>) {
    let set = set(stream);
    part(scale, ORDERS, set, SETS, FREE, orders);
    part(scale, LINEITEM, set, SETS, FREE, lines);
}

/// The lowest and the highest key of these orders. Of the keys between them, the generator's own have another remainder.
pub(super) fn keys(scale: f64, stream: u64) -> (i64, i64) {
    let keys = tpc::OrderGenerator::new(scale, set(stream), SETS).iter().map(|order| order.o_orderkey + FREE);
    keys.fold((i64::MAX, i64::MIN), |(low, high), key| (low.min(key), high.max(key)))
}

/// The set of a stream; with more streams than sets they would meet.
fn set(stream: u64) -> i32 {
    (stream.saturating_sub(1) % SETS as u64) as i32 + 1
}

/// Adds the rows of one of so many parts of a table; `shift` is added to the keys of orders.
fn part(scale: f64, table: usize, part: i32, of: i32, shift: i64, bulk: &mut Bulk<'_>) {
    match table {
        REGION => tpc::RegionGenerator::new(scale, part, of)
            .iter()
            .for_each(|row| bulk.row(&[Int(row.r_regionkey), Text(row.r_name), Text(row.r_comment)])),
        NATION => tpc::NationGenerator::new(scale, part, of).iter().for_each(|row| {
            bulk.row(&[Int(row.n_nationkey), Text(row.n_name), Int(row.n_regionkey), Text(row.n_comment)]);
        }),
        SUPPLIER => tpc::SupplierGenerator::new(scale, part, of).iter().for_each(|row| {
            let [name, address, phone] =
                [row.s_name.to_string(), row.s_address.to_string(), row.s_phone.to_string()];
            bulk.row(&[
                Int(row.s_suppkey),
                Text(&name),
                Text(&address),
                Int(row.s_nationkey),
                Text(&phone),
                money(row.s_acctbal),
                Text(&row.s_comment),
            ]);
        }),
        PART => tpc::PartGenerator::new(scale, part, of).iter().for_each(|row| {
            let [name, maker, brand] =
                [row.p_name.to_string(), row.p_mfgr.to_string(), row.p_brand.to_string()];
            bulk.row(&[
                Int(row.p_partkey),
                Text(&name),
                Text(&maker),
                Text(&brand),
                Text(row.p_type),
                Int(row.p_size.into()),
                Text(row.p_container),
                money(row.p_retailprice),
                Text(row.p_comment),
            ]);
        }),
        PARTSUPP => tpc::PartSuppGenerator::new(scale, part, of).iter().for_each(|row| {
            bulk.row(&[
                Int(row.ps_partkey),
                Int(row.ps_suppkey),
                Int(row.ps_availqty.into()),
                money(row.ps_supplycost),
                Text(row.ps_comment),
            ]);
        }),
        CUSTOMER => tpc::CustomerGenerator::new(scale, part, of).iter().for_each(|row| {
            let [name, address, phone] =
                [row.c_name.to_string(), row.c_address.to_string(), row.c_phone.to_string()];
            bulk.row(&[
                Int(row.c_custkey),
                Text(&name),
                Text(&address),
                Int(row.c_nationkey),
                Text(&phone),
                money(row.c_acctbal),
                Text(row.c_mktsegment),
                Text(row.c_comment),
            ]);
        }),
        ORDERS => tpc::OrderGenerator::new(scale, part, of).iter().for_each(|row| {
            let [status, clerk] = [row.o_orderstatus.to_string(), row.o_clerk.to_string()];
            bulk.row(&[
                Int(row.o_orderkey + shift),
                Int(row.o_custkey),
                Text(&status),
                money(row.o_totalprice),
                Date(row.o_orderdate.to_unix_epoch()),
                Text(row.o_orderpriority),
                Text(&clerk),
                Int(row.o_shippriority.into()),
                Text(row.o_comment),
            ]);
        }),
        _ => tpc::LineItemGenerator::new(scale, part, of).iter().for_each(|row| {
            let dates =
                [row.l_shipdate, row.l_commitdate, row.l_receiptdate].map(|date| Date(date.to_unix_epoch()));
            bulk.row(&[
                Int(row.l_orderkey + shift),
                Int(row.l_partkey),
                Int(row.l_suppkey),
                Int(row.l_linenumber.into()),
                Int(row.l_quantity),
                money(row.l_extendedprice),
                money(row.l_discount),
                money(row.l_tax),
                Text(row.l_returnflag),
                Text(row.l_linestatus),
                dates[0],
                dates[1],
                dates[2],
                Text(row.l_shipinstruct),
                Text(row.l_shipmode),
                Text(row.l_comment),
            ]);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::workload::tpch::schema;

    #[test]
    fn units_make_all_rows_and_none_twice() {
        for (place, table) in schema::tables(0.01).iter().enumerate() {
            let mut whole = Bulk::new(table, Dialect::Mysql);
            generate(0.01, place, 0..table.units, &mut whole);
            let near = (whole.rows() as f64 / table.rows() as f64 - 1.0).abs();
            assert!(near < 0.01, "{}: {} rows, {} expected", table.name, whole.rows(), table.rows());
            let mut once = Bulk::new(table, Dialect::Mysql);
            part(0.01, place, 1, 1, 0, &mut once);
            assert!(whole.bytes() == once.bytes(), "{} is the same however it is cut", table.name);
        }
    }

    #[test]
    fn refresh_functions_have_keys_of_their_own() {
        let own: std::collections::HashSet<i64> =
            tpc::OrderGenerator::new(0.01, 1, 1).iter().map(|order| order.o_orderkey).collect();
        for stream in [1, 2, 500] {
            let (low, high) = keys(0.01, stream);
            let new = || {
                tpc::OrderGenerator::new(0.01, set(stream), SETS).iter().map(|order| order.o_orderkey + FREE)
            };
            assert!(
                new().count() >= 14 && new().all(|key| !own.contains(&key) && (low..=high).contains(&key))
            );
            assert!(own.iter().filter(|key| (low..=high).contains(*key)).all(|key| key % 32 < FREE));
        }
        let (_, end) = keys(0.01, 1);
        assert!(keys(0.01, 2).0 > end, "sets do not meet");
    }
}
