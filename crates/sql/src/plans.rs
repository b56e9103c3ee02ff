//! What a database's planner makes of a load's statements: a plan that changes while the load is on changes what is measured.
//!
//! A plan is known by its shape: its nodes with their tables and indexes, in one line. Costs and estimates are no part of it,
//! so that it is the same until the planner decides otherwise. It is the generic plan, which depends on no parameter.

use crate::admin::Admin;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::server::Server;
use serde_json::Value;
use std::collections::BTreeMap;
use tidemark_measure::record::StatementPlan;

/// The limit of statements that are looked at: with hundreds of tables, all have the same few.
const MOST: usize = 200;

/// Statements, each with its plan's shape; nothing where it has none, because it is no query, or the server refuses it.
pub(crate) type Plans = BTreeMap<String, Option<String>>;

/// What the planner said of statements.
#[derive(Default)]
pub(crate) struct Planned {
    /// Their plans.
    pub(crate) plans: Plans,
    /// The first statement that is wrong, and the server's words: its syntax, what it names, or a privilege that the user lacks.
    pub(crate) wrong: Option<(String, Failure)>,
}

/// The plans of these statements now. A connection of its own asks for them, so that what it costs is in nobody's counters.
pub(crate) fn read<'a>(server: &Server, statements: impl Iterator<Item = &'a String>) -> Planned {
    let statements: Vec<&String> = statements.take(MOST).collect();
    if server.target.dialect != Dialect::Postgres || statements.is_empty() {
        return Planned::default();
    }
    let Ok(mut admin) = Admin::connect(server) else { return Planned::default() };
    let mut wrong = None;
    let plans = statements.into_iter().map(|sql| {
        let planned = planned(&mut admin, sql);
        if let Err(failure) = &planned
            && wrong.is_none()
            && failure.code.is_some_and(|code| code.starts_with(WRONG))
        {
            wrong = Some((sql.clone(), failure.clone()));
        }
        (sql.clone(), planned.ok().flatten())
    });
    let plans = plans.collect();
    Planned { plans, wrong }
}

/// The class of codes of statements that are wrong (PostgreSQL, *Error Codes*: syntax error or access rule violation).
const WRONG: &[u8] = b"42";

/// Whether a statement is one that can be prepared in SQL, as all can that are planned.
pub(crate) fn can_be_planned(sql: &str) -> bool {
    let word: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let all = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES", "MERGE", "TABLE"];
    all.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// What became of plans from one time to another: of all statements that had one.
pub(crate) fn compared(before: &Plans, mut after: Plans) -> Vec<StatementPlan> {
    let one = |(statement, plan): (&String, &Option<String>)| {
        let (plan, now) = (plan.clone()?, after.remove(statement).flatten());
        let changed_to = (now.as_ref() != Some(&plan)).then(|| now.unwrap_or_default());
        Some(StatementPlan { statement: statement.clone(), plan, changed_to })
    };
    before.iter().filter_map(one).collect()
}

/// The shape of a statement's generic plan. `EXPLAIN (GENERIC_PLAN)` is of PostgreSQL 16; this does the same from 12 on. All is
/// in one transaction, so that a pool does not tear it apart.
fn planned(admin: &mut Admin, sql: &str) -> Result<Option<String>, Failure> {
    admin.run("BEGIN")?;
    let plan = prepared(admin, sql);
    // It has failed if a statement has.
    admin.run("COMMIT")?;
    plan.map(|text| text.and_then(|text| shape_of(&text)))
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

    #[test]
    fn only_what_had_a_plan_can_change_it() {
        let plans = |all: &[(&str, Option<&str>)]| -> Plans {
            all.iter().map(|(sql, plan)| ((*sql).to_owned(), plan.map(str::to_owned))).collect()
        };
        let before =
            plans(&[("a", Some("Seq Scan")), ("b", Some("Index Scan")), ("c", None), ("d", Some("Sort"))]);
        let after =
            plans(&[("a", Some("Seq Scan")), ("b", Some("Seq Scan")), ("c", Some("Sort")), ("d", None)]);
        let found = compared(&before, after);
        let changed: Vec<_> =
            found.iter().map(|one| (one.statement.as_str(), one.changed_to.as_deref())).collect();
        assert_eq!(changed, [("a", None), ("b", Some("Seq Scan")), ("d", Some(""))]);
    }
}
