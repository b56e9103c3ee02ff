//! The five transactions as routines of the database, one round trip each: functions in PL/pgSQL, or MySQL's procedures. They do
//! what `transactions` does with statements, with the same choices, and leave the same rows.

mod mysql;

use super::DISTRICTS;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::statement::{Statement, StatementId};
use crate::transaction::{End, Transaction};
use crate::value::Value;

pub(super) const NEW_ORDER: StatementId = 0;
pub(super) const PAYMENT: StatementId = 1;
pub(super) const ORDER_STATUS: StatementId = 2;
pub(super) const DELIVERY: StatementId = 3;
pub(super) const STOCK_LEVEL: StatementId = 4;

/// The calls, in the order of their places.
pub(super) fn calls(dialect: Dialect) -> Vec<Statement> {
    let verb = match dialect {
        Dialect::Postgres | Dialect::Cockroach => "SELECT",
        Dialect::Mysql => "CALL",
    };
    let calls = [
        "new_order($1, $2, $3, $4, $5, $6)",
        "payment($1, $2, $3, $4, $5, $6, $7)",
        "order_status($1, $2, $3, $4)",
        "delivery($1, $2)",
        "stock_level($1, $2, $3)",
    ];
    calls.map(|call| Statement::new(format!("{verb} tidemark_{call}"))).to_vec()
}

/// What an order is rolled back with on purpose: an SQLSTATE that no server uses.
const ROLLED_BACK: [u8; 5] = *b"TM001";

/// Calls a routine. The one that is to roll an order back does so by failing.
pub(super) async fn call(
    transaction: &mut Transaction<'_>,
    routine: StatementId,
    parameters: &[Value<'_>],
) -> Result<End, Failure> {
    match transaction.query(routine, parameters).await {
        Ok(_) => Ok(End::Commit),
        Err(failure) if failure.code == Some(ROLLED_BACK) => Ok(End::Rollback),
        Err(failure) => Err(failure),
    }
}

/// What makes the routines; nothing where there are none in this dialect.
pub(super) fn create(dialect: Dialect) -> Vec<String> {
    match dialect {
        Dialect::Postgres => vec![find(), new_order(), payment(), order_status(), delivery(), stock_level()],
        Dialect::Cockroach => Vec::new(),
        Dialect::Mysql => mysql::create(),
    }
}

/// What removes them, if they are there.
pub(super) fn drop(dialect: Dialect) -> Vec<String> {
    match dialect {
        Dialect::Postgres => {
            let names = ["new_order", "payment", "order_status", "delivery", "stock_level", "customer"];
            names.map(|name| format!("DROP FUNCTION IF EXISTS tidemark_{name}")).to_vec()
        }
        Dialect::Cockroach => Vec::new(),
        Dialect::Mysql => {
            mysql::NAMES.map(|name| format!("DROP PROCEDURE IF EXISTS tidemark_{name}")).to_vec()
        }
    }
}

fn function(name: &str, parameters: &str, returns: &str, variables: &str, body: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION tidemark_{name}({parameters}) RETURNS {returns} LANGUAGE plpgsql AS $tidemark$\n\
         DECLARE\n{variables}\nBEGIN\n{body}\nEND $tidemark$"
    )
}

/// The customer of a number, or of a last name: then the one in the middle, rounded up (clause 2.5.2.2).
fn find() -> String {
    function(
        "customer",
        "of_w int, of_d int, number int, name text",
        "int",
        "many bigint; found int;",
        "IF name IS NULL THEN
           SELECT c_id INTO STRICT found FROM customer WHERE c_w_id = of_w AND c_d_id = of_d AND c_id = number;
         ELSE
           SELECT count(*) INTO many FROM customer WHERE c_w_id = of_w AND c_d_id = of_d AND c_last = name;
           SELECT c_id INTO STRICT found FROM customer WHERE c_w_id = of_w AND c_d_id = of_d AND c_last = name
             ORDER BY c_first LIMIT 1 OFFSET greatest(many - 1, 0) / 2;
         END IF;
         RETURN found;",
    )
}

/// Clause 2.4.
fn new_order() -> String {
    let stock: String =
        (1..=DISTRICTS).map(|number| format!(" WHEN {number} THEN s_dist_{number:02}")).collect();
    let body = format!(
        "PERFORM w_tax FROM warehouse WHERE w_id = of_w;
         SELECT d_next_o_id INTO STRICT number FROM district WHERE d_w_id = of_w AND d_id = of_d FOR UPDATE;
         UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = of_w AND d_id = of_d;
         PERFORM c_discount FROM customer WHERE c_w_id = of_w AND c_d_id = of_d AND c_id = buyer;
         INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
           VALUES (number, of_d, of_w, buyer, CURRENT_TIMESTAMP, cardinality(items), (of_w = ALL (supplies))::int);
         INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (number, of_d, of_w);
         FOR line IN 1 .. cardinality(items) LOOP
           SELECT i_price INTO price FROM item WHERE i_id = items[line];
           IF NOT FOUND THEN
             RAISE EXCEPTION 'an order of an item that does not exist is rolled back' USING ERRCODE = 'TM001';
           END IF;
           UPDATE stock SET s_quantity = CASE WHEN s_quantity >= quantities[line] + 10 THEN s_quantity - quantities[line]
               ELSE s_quantity - quantities[line] + 91 END,
             s_ytd = s_ytd + quantities[line], s_order_cnt = s_order_cnt + 1,
             s_remote_cnt = s_remote_cnt + (supplies[line] <> of_w)::int
             WHERE s_w_id = supplies[line] AND s_i_id = items[line] RETURNING CASE of_d{stock} END INTO STRICT info;
           INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
             ol_dist_info) VALUES (number, of_d, of_w, line, items[line], supplies[line], quantities[line],
             price * quantities[line], info);
         END LOOP;
         RETURN number;"
    );
    function(
        "new_order",
        "of_w int, of_d int, buyer int, items int[], supplies int[], quantities int[]",
        "int",
        "number int; price numeric; info text;",
        &body,
    )
}

/// Clause 2.5.
fn payment() -> String {
    function(
        "payment",
        "of_w int, of_d int, payer_w int, payer_d int, given int, name text, amount numeric",
        "int",
        "w_text text; d_text text; payer int; credit text;",
        "UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = of_w RETURNING w_name INTO STRICT w_text;
         UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = of_w AND d_id = of_d RETURNING d_name INTO STRICT d_text;
         payer := tidemark_customer(payer_w, payer_d, given, name);
         INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
           VALUES (payer, payer_d, payer_w, of_d, of_w, CURRENT_TIMESTAMP, amount, w_text || '    ' || d_text);
         UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
           c_payment_cnt = c_payment_cnt + 1,
           c_data = CASE c_credit WHEN 'BC' THEN substr(format('%s %s %s %s %s %s ', payer, payer_d, payer_w, of_d, of_w, amount)
             || c_data, 1, 500) ELSE c_data END
           WHERE c_w_id = payer_w AND c_d_id = payer_d AND c_id = payer RETURNING c_credit INTO STRICT credit;
         RETURN payer;",
    )
}

/// Clause 2.6.
fn order_status() -> String {
    function(
        "order_status",
        "of_w int, of_d int, given int, name text",
        "int",
        "buyer int; number int;",
        "buyer := tidemark_customer(of_w, of_d, given, name);
         SELECT o_id INTO STRICT number FROM orders WHERE o_w_id = of_w AND o_d_id = of_d AND o_c_id = buyer
           ORDER BY o_id DESC LIMIT 1;
         PERFORM ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
           WHERE ol_w_id = of_w AND ol_d_id = of_d AND ol_o_id = number;
         IF NOT FOUND THEN
           RAISE EXCEPTION 'order % has no lines', number;
         END IF;
         RETURN number;",
    )
}

/// Clause 2.7.
fn delivery() -> String {
    function(
        "delivery",
        "of_w int, carrier int",
        "int",
        "number int; buyer int; amount numeric; delivered int := 0;",
        &format!(
            "FOR district IN 1 .. {DISTRICTS} LOOP
               SELECT no_o_id INTO number FROM new_order WHERE no_w_id = of_w AND no_d_id = district
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE;
               CONTINUE WHEN NOT FOUND;
               DELETE FROM new_order WHERE no_w_id = of_w AND no_d_id = district AND no_o_id = number;
               UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = of_w AND o_d_id = district AND o_id = number
                 RETURNING o_c_id INTO STRICT buyer;
               UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
                 WHERE ol_w_id = of_w AND ol_d_id = district AND ol_o_id = number;
               SELECT sum(ol_amount) INTO STRICT amount FROM order_line
                 WHERE ol_w_id = of_w AND ol_d_id = district AND ol_o_id = number;
               UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
                 WHERE c_w_id = of_w AND c_d_id = district AND c_id = buyer;
               IF NOT FOUND THEN
                 RAISE EXCEPTION 'the customer of order % is not there', number;
               END IF;
               delivered := delivered + 1;
             END LOOP;
             RETURN delivered;"
        ),
    )
}

/// Clause 2.8.
fn stock_level() -> String {
    function(
        "stock_level",
        "of_w int, of_d int, threshold int",
        "bigint",
        "next int; low bigint;",
        "SELECT d_next_o_id INTO STRICT next FROM district WHERE d_w_id = of_w AND d_id = of_d;
         SELECT count(DISTINCT s_i_id) INTO low FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
           WHERE ol_w_id = of_w AND ol_d_id = of_d AND ol_o_id >= next - 20 AND ol_o_id < next AND s_quantity < threshold;
         RETURN low;",
    )
}
