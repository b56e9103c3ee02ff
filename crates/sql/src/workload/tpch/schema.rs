//! The eight tables, clause 1.4.

use super::rows;
use crate::schema::{Column, Index, Kind, Table};

/// The places of tables in the list, which is the order in which they are loaded.
pub(super) const REGION: usize = 0;
pub(super) const NATION: usize = 1;
pub(super) const SUPPLIER: usize = 2;
pub(super) const PART: usize = 3;
pub(super) const PARTSUPP: usize = 4;
pub(super) const CUSTOMER: usize = 5;
pub(super) const ORDERS: usize = 6;
pub(super) const LINEITEM: usize = 7;

const MONEY: Kind = Kind::Decimal(15, 2);

fn of(kind: Kind, names: &[&'static str]) -> Vec<Column> {
    names.iter().map(|name| Column::new(name, kind)).collect()
}

fn table(
    name: &str,
    place: usize,
    scale: f64,
    key: &[&'static str],
    row_bytes: u64,
    columns: [Vec<Column>; 3],
) -> Table {
    let (units, rows_per_unit) = rows::units(scale, place);
    Table {
        key: key.to_vec(),
        row_bytes,
        rows_per_unit,
        ..Table::new(name, columns.into_iter().flatten().collect(), units)
    }
}

fn indexed(table: Table, indexes: &[(&str, &[&'static str])]) -> Table {
    let index = |(name, columns): &(&str, &[&'static str])| Index {
        name: (*name).to_owned(),
        columns: columns.to_vec(),
        unique: false,
    };
    Table { indexes: indexes.iter().map(index).collect(), ..table }
}

/// All of them at a scale.
pub(super) fn tables(scale: f64) -> Vec<Table> {
    use Kind::{BigInt, Char, Int, Varchar};
    let comment = |name, length| of(Varchar(length), &[name]);
    vec![
        table(
            "region",
            REGION,
            scale,
            &["r_regionkey"],
            110,
            [of(Int, &["r_regionkey"]), of(Char(25), &["r_name"]), comment("r_comment", 152)],
        ),
        table(
            "nation",
            NATION,
            scale,
            &["n_nationkey"],
            130,
            [
                [of(Int, &["n_nationkey"]), of(Char(25), &["n_name"])].concat(),
                of(Int, &["n_regionkey"]),
                comment("n_comment", 152),
            ],
        ),
        indexed(
            table(
                "supplier",
                SUPPLIER,
                scale,
                &["s_suppkey"],
                170,
                [
                    [of(Int, &["s_suppkey"]), of(Char(25), &["s_name"]), of(Varchar(40), &["s_address"])]
                        .concat(),
                    [of(Int, &["s_nationkey"]), of(Char(15), &["s_phone"]), of(MONEY, &["s_acctbal"])]
                        .concat(),
                    comment("s_comment", 101),
                ],
            ),
            &[("s_nation", &["s_nationkey"])],
        ),
        table(
            "part",
            PART,
            scale,
            &["p_partkey"],
            160,
            [
                [of(Int, &["p_partkey"]), of(Varchar(55), &["p_name"]), of(Char(25), &["p_mfgr"])].concat(),
                [
                    of(Char(10), &["p_brand"]),
                    of(Varchar(25), &["p_type"]),
                    of(Int, &["p_size"]),
                    of(Char(10), &["p_container"]),
                ]
                .concat(),
                [of(MONEY, &["p_retailprice"]), comment("p_comment", 23)].concat(),
            ],
        ),
        indexed(
            table(
                "partsupp",
                PARTSUPP,
                scale,
                &["ps_partkey", "ps_suppkey"],
                170,
                [
                    of(Int, &["ps_partkey", "ps_suppkey", "ps_availqty"]),
                    of(MONEY, &["ps_supplycost"]),
                    comment("ps_comment", 199),
                ],
            ),
            &[("ps_supplier", &["ps_suppkey"])],
        ),
        indexed(
            table(
                "customer",
                CUSTOMER,
                scale,
                &["c_custkey"],
                190,
                [
                    [of(Int, &["c_custkey"]), of(Varchar(25), &["c_name"]), of(Varchar(40), &["c_address"])]
                        .concat(),
                    [of(Int, &["c_nationkey"]), of(Char(15), &["c_phone"]), of(MONEY, &["c_acctbal"])]
                        .concat(),
                    [of(Char(10), &["c_mktsegment"]), comment("c_comment", 117)].concat(),
                ],
            ),
            &[("c_nation", &["c_nationkey"])],
        ),
        indexed(
            table(
                "orders",
                ORDERS,
                scale,
                &["o_orderkey"],
                130,
                [
                    [of(BigInt, &["o_orderkey"]), of(Int, &["o_custkey"]), of(Char(1), &["o_orderstatus"])]
                        .concat(),
                    [
                        of(MONEY, &["o_totalprice"]),
                        of(Kind::Date, &["o_orderdate"]),
                        of(Char(15), &["o_orderpriority", "o_clerk"]),
                    ]
                    .concat(),
                    [of(Int, &["o_shippriority"]), comment("o_comment", 79)].concat(),
                ],
            ),
            &[("o_customer", &["o_custkey"]), ("o_date", &["o_orderdate"])],
        ),
        indexed(
            table(
                "lineitem",
                LINEITEM,
                scale,
                &["l_orderkey", "l_linenumber"],
                140,
                [
                    [of(BigInt, &["l_orderkey"]), of(Int, &["l_partkey", "l_suppkey", "l_linenumber"])]
                        .concat(),
                    [
                        of(MONEY, &["l_quantity", "l_extendedprice", "l_discount", "l_tax"]),
                        of(Char(1), &["l_returnflag", "l_linestatus"]),
                    ]
                    .concat(),
                    [
                        of(Kind::Date, &["l_shipdate", "l_commitdate", "l_receiptdate"]),
                        of(Char(25), &["l_shipinstruct"]),
                        of(Char(10), &["l_shipmode"]),
                        comment("l_comment", 44),
                    ]
                    .concat(),
                ],
            ),
            &[("l_part_supplier", &["l_partkey", "l_suppkey"]), ("l_date", &["l_shipdate"])],
        ),
    ]
}

/// Those that the refresh functions change: orders and their lines.
pub(super) fn refreshed(scale: f64) -> [Table; 2] {
    let mut all = tables(scale);
    let lines = all.swap_remove(LINEITEM);
    [all.swap_remove(ORDERS), lines]
}
