//! The consistency conditions of clause 3.3.2. Condition 11 is left out: it holds for the initial population only.

use crate::workload::Check;

/// Per district: how much of something a table has.
fn per_district(table: &str, prefix: &str, what: &str) -> String {
    format!(
        "(SELECT {prefix}_w_id AS w, {prefix}_d_id AS d, {what} AS n FROM {table} GROUP BY {prefix}_w_id, {prefix}_d_id)"
    )
}

pub(super) fn all() -> Vec<Check> {
    let check = |holds: &str, broken_rows: String, scans| Check { holds: holds.into(), broken_rows, scans };
    let delivered = "(SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(ol_amount) AS n FROM orders JOIN order_line \
        ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
        GROUP BY o_w_id, o_d_id, o_c_id) delivered ON delivered.w = c_w_id AND delivered.d = c_d_id AND delivered.c = c_id";
    let payments = "(SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, sum(h_amount) AS n FROM history \
        GROUP BY h_c_w_id, h_c_d_id, h_c_id) paid ON paid.w = c_w_id AND paid.d = c_d_id AND paid.c = c_id";
    vec![
        check(
            "1: a warehouse's payments are those of its districts",
            "SELECT w_id FROM warehouse JOIN (SELECT d_w_id AS w, sum(d_ytd) AS n FROM district GROUP BY d_w_id) own \
             ON own.w = w_id WHERE w_ytd <> own.n"
                .into(),
            false,
        ),
        check(
            "2: a district's next order follows its last order and its last new order",
            format!(
                "SELECT d_w_id, d_id FROM district LEFT JOIN {} placed ON placed.w = d_w_id AND placed.d = d_id \
                 LEFT JOIN {} waiting ON waiting.w = d_w_id AND waiting.d = d_id \
                 WHERE d_next_o_id - 1 <> coalesce(placed.n, 0) OR d_next_o_id - 1 <> coalesce(waiting.n, d_next_o_id - 1)",
                per_district("orders", "o", "max(o_id)"),
                per_district("new_order", "no", "max(no_o_id)")
            ),
            true,
        ),
        check(
            "3: the new orders of a district have no gap",
            "SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id \
             HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)"
                .into(),
            true,
        ),
        check(
            "4: a district has as many lines as its orders say",
            format!(
                "SELECT placed.w, placed.d FROM {} placed LEFT JOIN {} written ON written.w = placed.w AND written.d = placed.d \
                 WHERE placed.n <> coalesce(written.n, 0)",
                per_district("orders", "o", "sum(o_ol_cnt)"),
                per_district("order_line", "ol", "count(*)")
            ),
            true,
        ),
        check(
            "5: an order without a carrier is a new order, and no other is",
            "SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
             WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)"
                .into(),
            true,
        ),
        check(
            "6: an order has as many lines as it says",
            "SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN (SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS n \
             FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) written ON written.w = o_w_id AND written.d = o_d_id AND written.o = o_id \
             WHERE o_ol_cnt <> coalesce(written.n, 0)"
                .into(),
            true,
        ),
        check(
            "7: a line is delivered when its order has a carrier",
            "SELECT ol_w_id, ol_d_id, ol_o_id FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
             WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)"
                .into(),
            true,
        ),
        check(
            "8: a warehouse's payments are those of its history",
            "SELECT w_id FROM warehouse LEFT JOIN (SELECT h_w_id AS w, sum(h_amount) AS n FROM history GROUP BY h_w_id) paid \
             ON paid.w = w_id WHERE w_ytd <> coalesce(paid.n, 0)"
                .into(),
            true,
        ),
        check(
            "9: a district's payments are those of its history",
            format!(
                "SELECT d_w_id, d_id FROM district LEFT JOIN {} paid ON paid.w = d_w_id AND paid.d = d_id \
                 WHERE d_ytd <> coalesce(paid.n, 0)",
                per_district("history", "h", "sum(h_amount)")
            ),
            true,
        ),
        check(
            "10: a customer owes what was delivered less what was paid",
            format!(
                "SELECT c_w_id, c_d_id, c_id FROM customer LEFT JOIN {delivered} LEFT JOIN {payments} \
                 WHERE c_balance <> coalesce(delivered.n, 0) - coalesce(paid.n, 0)"
            ),
            true,
        ),
        check(
            "12: a customer's balance and payments are what was delivered",
            format!(
                "SELECT c_w_id, c_d_id, c_id FROM customer LEFT JOIN {delivered} \
                 WHERE c_balance + c_ytd_payment <> coalesce(delivered.n, 0)"
            ),
            true,
        ),
    ]
}
