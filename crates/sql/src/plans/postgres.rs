//! Plans of PostgreSQL: the generic plan of a prepared statement, which depends on no parameter.

use super::Plan;
use crate::admin::Admin;
use crate::failure::Failure;
use serde_json::Value;

/// The shape of a statement's generic plan. `EXPLAIN (GENERIC_PLAN)` is of PostgreSQL 16; this does the same from 12 on. All is
/// in one transaction, so that a pool does not tear it apart.
pub(super) fn planned(admin: &mut Admin, sql: &str) -> Result<Plan, Failure> {
    admin.run("BEGIN")?;
    let plan = prepared(admin, sql);
    // It has failed if a statement has.
    admin.run("COMMIT")?;
    Ok(plan?.and_then(|text| shape_of(&text)).map_or(Plan::Nothing, Plan::Shape))
}

fn prepared(admin: &mut Admin, sql: &str) -> Result<Option<String>, Failure> {
    admin.run("SET LOCAL plan_cache_mode = force_generic_plan")?;
    // Otherwise pg_stat_statements knows the load's statement by this text from then on. Not every user may set it.
    admin.run("SAVEPOINT unseen")?;
    if admin.run("SET LOCAL pg_stat_statements.track = 'none'").is_err() {
        admin.run("ROLLBACK TO SAVEPOINT unseen")?;
    }
    admin.run(&format!("PREPARE tidemark_plan AS {sql}"))?;
    admin.run("SAVEPOINT prepared")?;
    let plan = explained(admin);
    if plan.is_err() {
        admin.run("ROLLBACK TO SAVEPOINT prepared")?;
    }
    // A statement outlives the transaction that prepared it, and a pool's connection has other clients then.
    admin.run("DEALLOCATE tidemark_plan")?;
    plan
}

fn explained(admin: &mut Admin) -> Result<Option<String>, Failure> {
    let count =
        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'tidemark_plan'";
    let parameters = admin.value(count)?.and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    let arguments = match parameters {
        0 => String::new(),
        // A generic plan does not look at them.
        several => format!("({})", vec!["NULL"; several].join(", ")),
    };
    admin.value(&format!("EXPLAIN (FORMAT JSON) EXECUTE tidemark_plan{arguments}"))
}

/// The shape of a plan that the server has described: `Update on bank (Index Scan on bank by bank_pkey)`.
fn shape_of(json: &str) -> Option<String> {
    let explained: Value = serde_json::from_str(json).ok()?;
    let shape = node(explained.get(0)?.get("Plan")?);
    (!shape.is_empty()).then_some(shape)
}

/// A node and those below it. The depth is that of the server's own recursion, and of the reader's limit.
fn node(plan: &Value) -> String {
    let text = |key: &str| plan.get(key).and_then(Value::as_str).unwrap_or_default();
    // What it does tells more than that it modifies a table.
    let mut shape = match (text("Operation"), text("Node Type")) {
        ("", kind) => kind.to_owned(),
        (operation, _) => operation.to_owned(),
    };
    for key in ["Strategy", "Join Type", "Scan Direction"] {
        let usual = matches!(text(key), "" | "Plain" | "Inner" | "Forward");
        shape += &if usual { String::new() } else { format!(" {}", text(key).to_lowercase()) };
    }
    for (word, keys) in [("on", &["Relation Name", "CTE Name", "Function Name"][..]), ("by", &["Index Name"])]
    {
        let name = keys.iter().map(|key| text(key)).find(|name| !name.is_empty());
        shape += &name.map_or_else(String::new, |name| format!(" {word} {name}"));
    }
    let below = plan.get("Plans").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if !below.is_empty() {
        let below: Vec<String> = below.iter().map(node).collect();
        shape += &format!(" ({})", below.join(", "));
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_nodes_tables_and_indexes_and_no_costs() {
        let json = r#"[{"Plan": {"Node Type": "ModifyTable", "Operation": "Update", "Relation Name": "t", "Total Cost": 8.2,
            "Plans": [{"Node Type": "Nested Loop", "Join Type": "Left", "Plans": [
                {"Node Type": "Index Scan", "Scan Direction": "Backward", "Relation Name": "t", "Index Name": "t_pkey"},
                {"Node Type": "Seq Scan", "Relation Name": "u", "Plan Rows": 7}]}]}}]"#;
        let shape = "Update on t (Nested Loop left (Index Scan backward on t by t_pkey, Seq Scan on u))";
        assert_eq!(shape_of(json).as_deref(), Some(shape));
        assert_eq!(shape_of(&json.replace("8.2", "9000")).as_deref(), Some(shape));
        for nothing in ["", "[]", "[{}]", "{}", r#"[{"Plan": 7}]"#] {
            assert_eq!(shape_of(nothing), None, "{nothing}");
        }
    }
}
