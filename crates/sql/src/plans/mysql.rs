//! Plans of MySQL and MariaDB. They have no generic plan: a statement is planned for the parameters that it is given, here `'1'` each, which
//! both numbers and texts can be compared with. These servers count what they explain with what they do (`Com_update`).

use super::Plan;
use crate::admin::Admin;
use crate::failure::Failure;
use crate::mysql::Template;
use crate::value::Value as Parameter;
use serde_json::Value;

/// The shape of a statement's plan. That it can be prepared is established first: what `EXPLAIN` refuses may be its parameters.
pub(super) fn planned(admin: &mut Admin, sql: &str) -> Result<Plan, Failure> {
    let template = Template::new(sql);
    let prepared = template.sql();
    admin.run(&Template::new("PREPARE tidemark_plan FROM $1").text(&[Parameter::Text(&prepared)])?)?;
    admin.run("DEALLOCATE PREPARE tidemark_plan")?;
    let explained = template.text(&vec![Parameter::Text("1"); template.given()])?;
    let json = admin.value(&format!("EXPLAIN FORMAT=JSON {explained}")).ok().flatten();
    Ok(json.map_or(Plan::Nothing, |json| plan_of(&json)))
}

/// The plan that the server has described.
fn plan_of(json: &str) -> Plan {
    let Ok(explained) = serde_json::from_str::<Value>(json) else { return Plan::Nothing };
    if has_message(&explained) {
        return Plan::Unseen;
    }
    match steps(&explained) {
        steps if steps.is_empty() => Plan::Nothing,
        steps => Plan::Shape(steps),
    }
}

/// Whether a part of it says why there is nothing to do: `Impossible WHERE noticed after reading const tables`.
fn has_message(plan: &Value) -> bool {
    match plan {
        Value::Object(fields) => fields.iter().any(|(name, value)| name == "message" || has_message(value)),
        Value::Array(items) => items.iter().any(has_message),
        _ => false,
    }
}

/// What it does to tables, and what is around that: `filesort (ref on customer by idx_customer)`. Estimates, conditions and lists of
/// keys that would be possible are left out.
fn steps(plan: &Value) -> String {
    match plan {
        Value::Array(items) => {
            let all = items.iter().map(steps).filter(|steps| !steps.is_empty());
            all.collect::<Vec<_>>().join(", ")
        }
        Value::Object(fields) => {
            let all = fields.iter().filter_map(|(name, value)| step(name, value)).collect::<Vec<_>>();
            all.join(", ")
        }
        _ => String::new(),
    }
}

/// A named part of a plan; nothing where it says nothing of how tables are read.
fn step(name: &str, value: &Value) -> Option<String> {
    if let Value::Bool(true) = value {
        return name.starts_with("using_").then(|| name.replace('_', " "));
    }
    let below = steps(value);
    if name == "table" {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let mut table = format!("{} on {}", text("access_type").unwrap_or("insert"), text("table_name")?);
        table += &text("key").map_or_else(String::new, |key| format!(" by {key}"));
        return Some(if below.is_empty() { table } else { format!("{table} ({below})") });
    }
    let named = !matches!(name, "query_block" | "nested_loop" | "query_specifications");
    match (below.is_empty(), named) {
        (true, _) => None,
        (false, true) => Some(format!("{} ({below})", name.replace('_', " "))),
        (false, false) => Some(below),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shape_has_steps_tables_and_keys_and_no_estimates() {
        // MariaDB 10.11.
        let json = r#"{"query_block": {"select_id": 1, "nested_loop": [{"read_sorted_file": {"filesort": {"sort_key": "t.b",
            "table": {"table_name": "t", "access_type": "range", "possible_keys": ["PRIMARY"], "key": "PRIMARY", "rows": 7,
            "filtered": 100, "attached_condition": "t.a between 1 and 1"}}}},
            {"table": {"table_name": "u", "access_type": "ALL", "rows": 3}}]}}"#;
        let shape = "read sorted file (filesort (range on t by PRIMARY)), ALL on u";
        assert_eq!(plan_of(json), Plan::Shape(shape.to_owned()));
        assert_eq!(plan_of(&json.replace("\"rows\": 7", "\"rows\": 70000")), Plan::Shape(shape.to_owned()));
        // MySQL 8.
        let json = r#"{"query_block": {"select_id": 1, "cost_info": {"query_cost": "1.00"}, "ordering_operation": {"using_filesort": true,
            "table": {"table_name": "t", "access_type": "const", "key": "PRIMARY", "used_columns": ["a"]}}}}"#;
        let shape = "ordering operation (const on t by PRIMARY, using filesort)";
        assert_eq!(plan_of(json), Plan::Shape(shape.to_owned()));
        let unseen = r#"{"query_block": {"select_id": 1, "table": {"message": "Impossible WHERE noticed after reading const tables"}}}"#;
        assert_eq!(plan_of(unseen), Plan::Unseen);
        for nothing in ["", "[]", "[{}]", "{}", r#"{"query_block": 7}"#, r#"{"query_block": {"table": {}}}"#]
        {
            assert_eq!(plan_of(nothing), Plan::Nothing, "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(json: String) {
            plan_of(&json);
        }
    }
}
