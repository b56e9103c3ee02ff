//! Its statements, by the places that transactions name them by.

use super::DISTRICTS;
use crate::dialect::Dialect;
use crate::statement::{Statement, StatementId};

pub(super) const WAREHOUSE_TAX: StatementId = 0;
pub(super) const DISTRICT_OF_ORDER: StatementId = 1;
pub(super) const NEXT_ORDER: StatementId = 2;
pub(super) const CUSTOMER_DISCOUNT: StatementId = 3;
pub(super) const ITEM: StatementId = 4;
pub(super) const ADD_ORDER: StatementId = 5;
pub(super) const ADD_NEW_ORDER: StatementId = 6;
pub(super) const TAKE_STOCK: StatementId = 7;
pub(super) const ADD_LINE: StatementId = 8;
pub(super) const PAY_WAREHOUSE: StatementId = 9;
pub(super) const WAREHOUSE_NAME: StatementId = 10;
pub(super) const PAY_DISTRICT: StatementId = 11;
pub(super) const DISTRICT_NAME: StatementId = 12;
pub(super) const CUSTOMER_BY_ID: StatementId = 13;
pub(super) const CUSTOMERS_BY_NAME: StatementId = 14;
pub(super) const PAY_CUSTOMER: StatementId = 15;
pub(super) const PAY_BAD_CUSTOMER: StatementId = 16;
pub(super) const ADD_HISTORY: StatementId = 17;
pub(super) const LAST_ORDER: StatementId = 18;
pub(super) const LINES: StatementId = 19;
pub(super) const OLDEST_NEW_ORDER: StatementId = 20;
pub(super) const REMOVE_NEW_ORDER: StatementId = 21;
pub(super) const CUSTOMER_OF_ORDER: StatementId = 22;
pub(super) const DELIVER_ORDER: StatementId = 23;
pub(super) const DELIVER_LINES: StatementId = 24;
pub(super) const AMOUNT_OF_LINES: StatementId = 25;
pub(super) const DELIVER_TO_CUSTOMER: StatementId = 26;
pub(super) const LAST_ORDER_NUMBER: StatementId = 27;
pub(super) const LOW_STOCK: StatementId = 28;
/// One for each district: what is read of the stock differs by a column.
pub(super) const STOCK: StatementId = 29;

pub(super) fn all(dialect: Dialect) -> Vec<Statement> {
    let note = dialect.text("$5");
    let pay_bad_customer = format!(
        "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, c_payment_cnt = c_payment_cnt + 1, \
         c_data = substr(concat({note}, c_data), 1, 500) WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4"
    );
    let fixed: [&str; STOCK] = [
        "SELECT w_tax FROM warehouse WHERE w_id = $1",
        "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2",
        "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1",
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP, $5, $6)",
        "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)",
        // In one statement, so that an order with two lines of an item takes both.
        "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= $1 + 10 THEN s_quantity - $1 ELSE s_quantity - $1 + 91 END, \
         s_ytd = s_ytd + $1, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $2 WHERE s_w_id = $3 AND s_i_id = $4",
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
         ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        "UPDATE warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2",
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = $1",
        "UPDATE district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3",
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = $1 AND d_id = $2",
        "SELECT c_id, c_credit, c_first, c_middle, c_last, c_balance FROM customer \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        "SELECT c_id, c_credit, c_first, c_middle, c_last, c_balance FROM customer \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first",
        "UPDATE customer SET c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, c_payment_cnt = c_payment_cnt + 1 \
         WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
        &pay_bad_customer,
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ($1, $2, $3, $4, $5, CURRENT_TIMESTAMP, $6, $7)",
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
         ORDER BY o_id DESC LIMIT 1",
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
        "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 FOR UPDATE",
        "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
        "SELECT o_c_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3",
        "UPDATE orders SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4",
        "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
        "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
        "UPDATE customer SET c_balance = c_balance + $1, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
        "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
        "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4 AND s_quantity < $5",
    ];
    let stock = |district: u64| {
        Statement::new(format!(
            "SELECT s_dist_{district:02}, s_quantity, s_data FROM stock WHERE s_w_id = $1 AND s_i_id = $2 FOR UPDATE"
        ))
    };
    fixed.into_iter().map(Statement::new).chain((1..=DISTRICTS).map(stock)).collect()
}
