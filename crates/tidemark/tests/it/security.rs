//! Each statement of `docs/security.md` has a test, and `docs/security-tests.md` says which: neither page may forget the other, or name a
//! test that is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of each section of a page that begin with one of these marks, without it.
fn lines(page: &str, marks: &[&str]) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let (mut section, mut found) = ("Who is trusted with what".to_owned(), BTreeMap::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut section);
        }
        if let Some(rest) = marks.iter().find_map(|mark| line.strip_prefix(mark)) {
            found.entry(section.clone()).or_insert_with(Vec::new).push(rest.to_owned());
        }
    }
    found
}

/// What a row of a table or a point of a list begins with: its bold words, its first cell, or its first two words.
fn beginning(line: &str) -> String {
    let cell = line.split(" | ").next().unwrap_or(line);
    let text = match cell.strip_prefix("**").and_then(|rest| rest.split("**").next()) {
        Some(bold) => bold.to_owned(),
        None if cell != line => cell.split(" (").next().unwrap_or(cell).to_owned(),
        None => line.split_whitespace().take(2).collect::<Vec<_>>().join(" "),
    };
    text.trim_matches(['`', ',', ':', '.', ';']).to_owned()
}

/// Rows of tables, without their headings.
fn is_row(line: &str) -> bool {
    let headings = ["who |", "`tls` |", "reader |", "statement |"];
    !headings.iter().any(|heading| line.starts_with(heading))
}

#[test]
fn every_statement_of_the_page_has_a_line_about_its_tests() {
    let (statements, tested) = (lines("security.md", &["| ", "- "]), lines("security-tests.md", &["| "]));
    let mut missing = Vec::new();
    for (section, statements) in &statements {
        let none = Vec::new();
        let tested = tested.get(section).unwrap_or(&none);
        for statement in statements.iter().filter(|line| is_row(line)) {
            let beginning = beginning(statement);
            if !tested.iter().any(|line| line.trim_start_matches('`').starts_with(&beginning)) {
                missing.push(format!("{section}: {beginning}"));
            }
        }
    }
    assert!(
        statements.len() > 6 && missing.is_empty(),
        "docs/security-tests.md has no line for {missing:#?}"
    );
    let known: BTreeSet<_> = statements.keys().collect();
    assert!(tested.keys().all(|section| known.contains(section)), "{:?}, and not {known:?}", tested.keys());
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let mut count = 0;
    for line in lines("security-tests.md", &["| "]).values().flatten().filter(|line| is_row(line)) {
        let (_, tests) = line.split_once(" | ").unwrap();
        let tests = tests.trim_end_matches(" |");
        if tests.starts_with("not tested: ") {
            continue;
        }
        for test in tests.split("; ") {
            let (file, name) = test.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{line}"));
            let text = std::fs::read_to_string(root().join("crates").join(file)).unwrap_or_default();
            let attribute = text.find(&format!("fn {name}(")).map(|at| &text[..at]);
            let is_test = attribute.is_some_and(|before| {
                let since = before.rfind("\n\n").map_or(before, |at| &before[at..]);
                since.contains("#[test]") || since.contains("#[tokio::test]") || since.contains("proptest!")
            });
            assert!(is_test, "docs/security-tests.md names `{test}`, which is no test: {line}");
            count += 1;
        }
    }
    assert!(count > 80, "{count} tests were found");
}
