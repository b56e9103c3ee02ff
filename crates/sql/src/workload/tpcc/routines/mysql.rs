//! The routines as stored procedures of MySQL and MariaDB. Each is a transaction of its own: outside of one, every statement of a
//! procedure is committed by itself.

use super::super::DISTRICTS;

/// The names of all of them.
pub(super) const NAMES: [&str; 6] =
    ["customer", "new_order", "payment", "order_status", "delivery", "stock_level"];

/// What makes them.
pub(super) fn create() -> Vec<String> {
    vec![find(), new_order(), payment(), order_status(), delivery(), stock_level()]
}

/// They do what their caller may do, whoever made them.
fn procedure(name: &str, parameters: &str, body: &str) -> String {
    format!("CREATE PROCEDURE tidemark_{name}({parameters}) SQL SECURITY INVOKER\nBEGIN\n{body}\nEND")
}

/// A procedure that is one transaction, which a failure rolls back as a whole.
fn transaction(name: &str, parameters: &str, variables: &str, body: &str) -> String {
    let body = format!(
        "{variables}
         DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
         START TRANSACTION;
         {body}
         COMMIT;"
    );
    procedure(name, parameters, &body)
}

/// Fails where a condition holds: what was not found is null, and is no failure by itself.
fn fail_if(condition: &str, words: &str) -> String {
    format!("IF {condition} THEN SIGNAL SQLSTATE 'TM002' SET MESSAGE_TEXT = '{words}'; END IF;")
}

/// A text that is compared as those in the tables are.
const NAME: &str = "VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

/// The customer of a number, or of a last name: then the one in the middle, rounded up (clause 2.5.2.2).
fn find() -> String {
    let body = format!(
        "DECLARE skipped INT;
         SET chosen = NULL;
         IF called IS NULL THEN
           SELECT c_id INTO chosen FROM customer WHERE c_w_id = of_w AND c_d_id = of_d AND c_id = given;
         ELSE
           SELECT greatest(count(*) - 1, 0) DIV 2 INTO skipped FROM customer
             WHERE c_w_id = of_w AND c_d_id = of_d AND c_last = called;
           SELECT c_id INTO chosen FROM customer WHERE c_w_id = of_w AND c_d_id = of_d AND c_last = called
             ORDER BY c_first LIMIT 1 OFFSET skipped;
         END IF;
         {}",
        fail_if("chosen IS NULL", "a customer that must be there is not")
    );
    procedure("customer", &format!("of_w INT, of_d INT, given INT, called {NAME}, OUT chosen INT"), &body)
}

/// Clause 2.4. There are no lists as parameters: they are texts, `{1,2,3}`.
fn new_order() -> String {
    let info: String =
        (1..=DISTRICTS).map(|number| format!(" WHEN {number} THEN s_dist_{number:02}")).collect();
    let without = |list: &str| format!("SET {list} = substr({list}, 2, char_length({list}) - 2);");
    let nth =
        |list: &str| format!("CAST(substring_index(substring_index({list}, ',', place), ',', -1) AS SIGNED)");
    let body = format!(
        "{} {} {}
         SET lines_all = 1 + char_length(items) - char_length(replace(items, ',', ''));
         SELECT w_tax INTO tax FROM warehouse WHERE w_id = of_w;
         SELECT d_next_o_id INTO number FROM district WHERE d_w_id = of_w AND d_id = of_d FOR UPDATE;
         {}
         UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = of_w AND d_id = of_d;
         SELECT c_discount INTO tax FROM customer WHERE c_w_id = of_w AND c_d_id = of_d AND c_id = buyer;
         INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
           VALUES (number, of_d, of_w, buyer, CURRENT_TIMESTAMP, lines_all,
             replace(concat(',', replace(supplies, ',', ',,'), ','), concat(',', of_w, ','), '') = '');
         INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (number, of_d, of_w);
         WHILE place < lines_all DO
           SET place = place + 1, thing = {}, supply = {}, many = {}, price = NULL, info = NULL;
           SELECT i_price INTO price FROM item WHERE i_id = thing;
           IF price IS NULL THEN
             SIGNAL SQLSTATE 'TM001' SET MESSAGE_TEXT = 'an order of an item that does not exist is rolled back';
           END IF;
           SELECT CASE of_d{info} END INTO info FROM stock WHERE s_w_id = supply AND s_i_id = thing FOR UPDATE;
           {}
           UPDATE stock SET s_quantity = CASE WHEN s_quantity >= many + 10 THEN s_quantity - many
               ELSE s_quantity - many + 91 END,
             s_ytd = s_ytd + many, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (supply <> of_w)
             WHERE s_w_id = supply AND s_i_id = thing;
           INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
             ol_dist_info) VALUES (number, of_d, of_w, place, thing, supply, many, price * many, info);
         END WHILE;",
        without("items"),
        without("supplies"),
        without("quantities"),
        fail_if("number IS NULL", "the district of an order is not there"),
        nth("items"),
        nth("supplies"),
        nth("quantities"),
        fail_if("info IS NULL", "the stock of an item is not there"),
    );
    let lists = "items VARCHAR(200), supplies VARCHAR(200), quantities VARCHAR(200)";
    transaction(
        "new_order",
        &format!("of_w INT, of_d INT, buyer INT, {lists}"),
        "DECLARE number, lines_all, thing, supply, many INT; DECLARE place INT DEFAULT 0;
         DECLARE tax DECIMAL(4, 4); DECLARE price DECIMAL(5, 2); DECLARE info CHAR(24) CHARACTER SET utf8mb4;",
        &body,
    )
}

/// Clause 2.5.
fn payment() -> String {
    let body = format!(
        "UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = of_w;
         SELECT w_name INTO w_text FROM warehouse WHERE w_id = of_w;
         UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = of_w AND d_id = of_d;
         SELECT d_name INTO d_text FROM district WHERE d_w_id = of_w AND d_id = of_d;
         {}
         CALL tidemark_customer(payer_w, payer_d, given, called, payer);
         INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
           VALUES (payer, payer_d, payer_w, of_d, of_w, CURRENT_TIMESTAMP, amount, concat(w_text, '    ', d_text));
         UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount,
           c_payment_cnt = c_payment_cnt + 1,
           c_data = CASE c_credit WHEN 'BC'
             THEN substr(concat(concat_ws(' ', payer, payer_d, payer_w, of_d, of_w, amount, ''), c_data), 1, 500)
             ELSE c_data END
           WHERE c_w_id = payer_w AND c_d_id = payer_d AND c_id = payer;",
        fail_if("w_text IS NULL OR d_text IS NULL", "the warehouse or the district of a payment is not there"),
    );
    transaction(
        "payment",
        &format!(
            "of_w INT, of_d INT, payer_w INT, payer_d INT, given INT, called {NAME}, amount DECIMAL(6, 2)"
        ),
        "DECLARE payer INT; DECLARE w_text, d_text VARCHAR(10) CHARACTER SET utf8mb4;",
        &body,
    )
}

/// Clause 2.6.
fn order_status() -> String {
    let body = format!(
        "CALL tidemark_customer(of_w, of_d, given, called, buyer);
         SELECT o_id INTO number FROM orders WHERE o_w_id = of_w AND o_d_id = of_d AND o_c_id = buyer
           ORDER BY o_id DESC LIMIT 1;
         SELECT count(ol_i_id), sum(ol_supply_w_id), sum(ol_quantity), sum(ol_amount), max(ol_delivery_d)
           INTO many, supplies, quantity, amount, delivered FROM order_line
           WHERE ol_w_id = of_w AND ol_d_id = of_d AND ol_o_id = number;
         {}",
        fail_if("many = 0", "an order has no lines"),
    );
    transaction(
        "order_status",
        &format!("of_w INT, of_d INT, given INT, called {NAME}"),
        "DECLARE buyer, number INT; DECLARE many, supplies, quantity BIGINT DEFAULT 0; DECLARE amount DECIMAL(12, 2);
         DECLARE delivered DATETIME(6);",
        &body,
    )
}

/// Clause 2.7. What it has changed, a transaction sees, however old its view of the others' changes is.
fn delivery() -> String {
    let body = format!(
        "WHILE place < {DISTRICTS} DO
           SET place = place + 1, number = NULL;
           SELECT no_o_id INTO number FROM new_order WHERE no_w_id = of_w AND no_d_id = place
             ORDER BY no_o_id LIMIT 1 FOR UPDATE;
           IF number IS NOT NULL THEN
             DELETE FROM new_order WHERE no_w_id = of_w AND no_d_id = place AND no_o_id = number;
             UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = of_w AND o_d_id = place AND o_id = number;
             SELECT o_c_id INTO buyer FROM orders WHERE o_w_id = of_w AND o_d_id = place AND o_id = number;
             UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP
               WHERE ol_w_id = of_w AND ol_d_id = place AND ol_o_id = number;
             SELECT sum(ol_amount) INTO amount FROM order_line
               WHERE ol_w_id = of_w AND ol_d_id = place AND ol_o_id = number;
             UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
               WHERE c_w_id = of_w AND c_d_id = place AND c_id = buyer;
             {}
           END IF;
         END WHILE;",
        fail_if("row_count() <> 1", "the customer of an order is not there"),
    );
    transaction(
        "delivery",
        "of_w INT, carrier INT",
        "DECLARE number, buyer INT; DECLARE place INT DEFAULT 0; DECLARE amount DECIMAL(12, 2);",
        &body,
    )
}

/// Clause 2.8.
fn stock_level() -> String {
    let body = format!(
        "SELECT d_next_o_id INTO upto FROM district WHERE d_w_id = of_w AND d_id = of_d;
         {}
         SELECT count(DISTINCT s_i_id) INTO low FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
           WHERE ol_w_id = of_w AND ol_d_id = of_d AND ol_o_id >= upto - 20 AND ol_o_id < upto AND s_quantity < threshold;",
        fail_if("upto IS NULL", "a district that must be there is not"),
    );
    transaction(
        "stock_level",
        "of_w INT, of_d INT, threshold INT",
        "DECLARE upto INT; DECLARE low BIGINT;",
        &body,
    )
}
