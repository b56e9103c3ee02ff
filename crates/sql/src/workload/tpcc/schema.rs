//! The nine tables, clause 1.3. Names are those of HammerDB; dates have microseconds.

use super::{CUSTOMERS, DISTRICTS, FIRST_NEW, ITEMS, ORDERS};
use crate::schema::{Column, Index, Kind, Table};

/// The places of tables in the list, which is the order in which they are loaded.
pub(super) const ITEM: usize = 0;
pub(super) const WAREHOUSE: usize = 1;
pub(super) const STOCK: usize = 2;
pub(super) const DISTRICT: usize = 3;
pub(super) const CUSTOMER: usize = 4;
pub(super) const HISTORY: usize = 5;
pub(super) const ORDER: usize = 6;
pub(super) const NEW_ORDERS: usize = 7;

/// Rows of a unit of items and of stock.
pub(super) const ITEMS_PER_UNIT: u64 = 1000;

const MONEY: Kind = Kind::Decimal(12, 2);
const RATE: Kind = Kind::Decimal(4, 4);

fn int(name: &'static str) -> Column {
    Column::new(name, Kind::Int)
}

fn of(kind: Kind, name: &'static str) -> Column {
    Column::new(name, kind)
}

/// Name, street, city, state and postcode under a prefix's names.
fn address(names: [&'static str; 5]) -> impl Iterator<Item = Column> {
    let kinds = [Kind::Varchar(20), Kind::Varchar(20), Kind::Varchar(20), Kind::Char(2), Kind::Char(9)];
    names.into_iter().zip(kinds).map(|(name, kind)| of(kind, name))
}

fn table(
    name: &str,
    key: &[&'static str],
    row_bytes: u64,
    columns: Vec<Column>,
    units: u64,
    rows_per_unit: f64,
) -> Table {
    Table { key: key.to_vec(), row_bytes, rows_per_unit, ..Table::new(name, columns, units) }
}

/// All of them, for so many warehouses.
pub(super) fn tables(warehouses: u64) -> Vec<Table> {
    let districts = warehouses * DISTRICTS;
    let item = vec![
        int("i_id"),
        int("i_im_id"),
        of(Kind::Varchar(24), "i_name"),
        of(Kind::Decimal(5, 2), "i_price"),
        of(Kind::Varchar(50), "i_data"),
    ];
    let mut warehouse = vec![int("w_id"), of(Kind::Varchar(10), "w_name")];
    warehouse.extend(address(["w_street_1", "w_street_2", "w_city", "w_state", "w_zip"]));
    warehouse.extend([of(RATE, "w_tax"), of(MONEY, "w_ytd")]);
    let mut stock = vec![int("s_i_id"), int("s_w_id"), int("s_quantity")];
    stock.extend(
        [
            "s_dist_01",
            "s_dist_02",
            "s_dist_03",
            "s_dist_04",
            "s_dist_05",
            "s_dist_06",
            "s_dist_07",
            "s_dist_08",
            "s_dist_09",
            "s_dist_10",
        ]
        .map(|name| of(Kind::Char(24), name)),
    );
    stock.extend([
        of(Kind::BigInt, "s_ytd"),
        int("s_order_cnt"),
        int("s_remote_cnt"),
        of(Kind::Varchar(50), "s_data"),
    ]);
    let mut district = vec![int("d_id"), int("d_w_id"), of(Kind::Varchar(10), "d_name")];
    district.extend(address(["d_street_1", "d_street_2", "d_city", "d_state", "d_zip"]));
    district.extend([of(RATE, "d_tax"), of(MONEY, "d_ytd"), int("d_next_o_id")]);
    let mut customer = vec![
        int("c_id"),
        int("c_d_id"),
        int("c_w_id"),
        of(Kind::Varchar(16), "c_first"),
        of(Kind::Char(2), "c_middle"),
        of(Kind::Varchar(16), "c_last"),
    ];
    customer.extend(address(["c_street_1", "c_street_2", "c_city", "c_state", "c_zip"]));
    customer.extend([
        of(Kind::Char(16), "c_phone"),
        of(Kind::Time, "c_since"),
        of(Kind::Char(2), "c_credit"),
        of(MONEY, "c_credit_lim"),
        of(RATE, "c_discount"),
        of(MONEY, "c_balance"),
        of(MONEY, "c_ytd_payment"),
        int("c_payment_cnt"),
        int("c_delivery_cnt"),
        of(Kind::Varchar(500), "c_data"),
    ]);
    let history = vec![
        int("h_c_id"),
        int("h_c_d_id"),
        int("h_c_w_id"),
        int("h_d_id"),
        int("h_w_id"),
        of(Kind::Time, "h_date"),
        of(Kind::Decimal(6, 2), "h_amount"),
        of(Kind::Varchar(24), "h_data"),
    ];
    let orders = vec![
        int("o_id"),
        int("o_d_id"),
        int("o_w_id"),
        int("o_c_id"),
        of(Kind::Time, "o_entry_d"),
        int("o_carrier_id").nullable(),
        int("o_ol_cnt"),
        int("o_all_local"),
    ];
    let new_order = vec![int("no_o_id"), int("no_d_id"), int("no_w_id")];
    let order_line = vec![
        int("ol_o_id"),
        int("ol_d_id"),
        int("ol_w_id"),
        int("ol_number"),
        int("ol_i_id"),
        int("ol_supply_w_id"),
        of(Kind::Time, "ol_delivery_d").nullable(),
        int("ol_quantity"),
        of(Kind::Decimal(6, 2), "ol_amount"),
        of(Kind::Char(24), "ol_dist_info"),
    ];
    let index = |name: &str, columns: &[&'static str]| Index {
        name: name.into(),
        columns: columns.to_vec(),
        unique: false,
    };
    let per_unit = ITEMS_PER_UNIT as f64;
    let mut all = vec![
        table("item", &["i_id"], 90, item, ITEMS / ITEMS_PER_UNIT, per_unit),
        table("warehouse", &["w_id"], 120, warehouse, warehouses, 1.0),
        table("stock", &["s_w_id", "s_i_id"], 350, stock, warehouses * ITEMS / ITEMS_PER_UNIT, per_unit),
        table("district", &["d_w_id", "d_id"], 130, district, districts, 1.0),
        table("customer", &["c_w_id", "c_d_id", "c_id"], 600, customer, districts, CUSTOMERS as f64),
        table("history", &[], 90, history, districts, CUSTOMERS as f64),
        table("orders", &["o_w_id", "o_d_id", "o_id"], 70, orders, districts, ORDERS as f64),
        table(
            "new_order",
            &["no_w_id", "no_d_id", "no_o_id"],
            40,
            new_order,
            districts,
            (ORDERS + 1 - FIRST_NEW) as f64,
        ),
        table(
            "order_line",
            &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
            100,
            order_line,
            districts,
            ORDERS as f64 * 10.0,
        ),
    ];
    all[CUSTOMER].indexes.push(index("customer_by_name", &["c_w_id", "c_d_id", "c_last", "c_first"]));
    all[ORDER].indexes.push(index("orders_by_customer", &["o_w_id", "o_d_id", "o_c_id", "o_id"]));
    all
}
