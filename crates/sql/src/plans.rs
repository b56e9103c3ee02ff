//! What a database's planner makes of a load's statements: a plan that changes while the load is on changes what is measured.
//!
//! A plan is known by its shape: its nodes with their tables and indexes, in one line. Costs and estimates are no part of it,
//! so that it is the same until the planner decides otherwise.

mod mysql;
mod postgres;

use crate::admin::Admin;
use crate::databases::StatementPlan;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::server::Server;
use std::collections::BTreeMap;

/// The limit of statements that are looked at: with hundreds of tables, all have the same few.
const MOST: usize = 200;

/// What the planner makes of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The server has none for it, because it is no query, or refuses it.
    Nothing,
    /// For the parameters with which it was asked the server saw that there is nothing to do: it has a plan, which did not show.
    Unseen,
    /// Its shape.
    Shape(String),
}

/// Statements, each with its plan.
pub(crate) type Plans = BTreeMap<String, Plan>;

/// What the planner said of statements.
#[derive(Default)]
pub(crate) struct Planned {
    /// Their plans.
    pub(crate) plans: Plans,
    /// The statements that are wrong, and the server's words: their syntax, what they name, or a privilege that the user lacks.
    pub(crate) wrong: Vec<(String, Failure)>,
}

/// The plans of these statements now. A connection of its own asks for them, so that what it costs is in nobody's counters.
pub(crate) fn read<'a>(server: &Server, statements: impl Iterator<Item = &'a String>) -> Planned {
    let statements: Vec<&String> = statements.take(MOST).collect();
    let planned = match server.target.dialect {
        Dialect::Postgres => postgres::planned,
        Dialect::Mysql => mysql::planned,
        Dialect::Cockroach => return Planned::default(),
    };
    if statements.is_empty() {
        return Planned::default();
    }
    let Ok(mut admin) = Admin::connect(server) else { return Planned::default() };
    let mut wrong = Vec::new();
    let plans = statements.into_iter().map(|sql| {
        let planned = planned(&mut admin, sql);
        if let Err(failure) = &planned
            && failure.code.is_some_and(|code| code.starts_with(WRONG))
        {
            wrong.push((sql.clone(), failure.clone()));
        }
        (sql.clone(), planned.unwrap_or(Plan::Nothing))
    });
    let plans = plans.collect();
    Planned { plans, wrong }
}

/// The class of codes of statements that are wrong (SQL standard, as in PostgreSQL's *Error Codes* and MySQL's SQLSTATE values: syntax error
/// or access rule violation).
const WRONG: &[u8] = b"42";

/// Whether a statement is one that can be prepared in SQL, as all can that are planned.
pub(crate) fn can_be_planned(sql: &str) -> bool {
    let word: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let all = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "VALUES", "MERGE", "TABLE"];
    all.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// What became of plans from one time to another: of all statements that had one, and whose plans were seen both times.
pub(crate) fn compared(before: &Plans, after: &Plans) -> Vec<StatementPlan> {
    let one = |(statement, plan): (&String, &Plan)| {
        let Plan::Shape(plan) = plan else { return None };
        let changed_to = match after.get(statement) {
            Some(Plan::Unseen) => return None,
            Some(Plan::Shape(now)) => (now != plan).then(|| now.clone()),
            Some(Plan::Nothing) | None => Some(String::new()),
        };
        Some(StatementPlan { statement: statement.clone(), plan: plan.clone(), changed_to })
    };
    before.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_had_a_plan_can_change_it() {
        let plans = |all: &[(&str, Plan)]| -> Plans {
            all.iter().map(|(sql, plan)| ((*sql).to_owned(), plan.clone())).collect()
        };
        let shape = |text: &str| Plan::Shape(text.to_owned());
        let before = plans(&[
            ("a", shape("Seq Scan")),
            ("b", shape("Index Scan")),
            ("c", Plan::Nothing),
            ("d", shape("Sort")),
            ("e", shape("const on t")),
            ("f", Plan::Unseen),
        ]);
        let after = plans(&[
            ("a", shape("Seq Scan")),
            ("b", shape("Seq Scan")),
            ("c", shape("Sort")),
            ("d", Plan::Nothing),
            ("e", Plan::Unseen),
            ("f", shape("const on t")),
        ]);
        let found = compared(&before, &after);
        let changed: Vec<_> =
            found.iter().map(|one| (one.statement.as_str(), one.changed_to.as_deref())).collect();
        assert_eq!(changed, [("a", None), ("b", Some("Seq Scan")), ("d", Some(""))]);
    }
}
