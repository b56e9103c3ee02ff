//! `docs/layouts.md` is made of what the readers declare, and its examples are documents.

use std::path::PathBuf;
use tidemark_keys::reference::Reference;
use tidemark_kubernetes::LAYOUT;

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/layouts.md")
}

/// After a change of declarations: `TIDEMARK_UPDATE=1 cargo test -p tidemark-kubernetes the_reference`.
#[test]
fn the_reference_has_all_keys() {
    let mut reference = Reference::default();
    reference.mapping(&LAYOUT);
    let text = std::fs::read_to_string(docs()).unwrap();
    let renewed = reference.renew(&text).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        return std::fs::write(docs(), &renewed).unwrap();
    }
    assert!(text == renewed, "docs/layouts.md is stale; renew it with TIDEMARK_UPDATE=1");
}

#[test]
fn its_examples_are_documents() {
    let text = std::fs::read_to_string(docs()).unwrap();
    let blocks: Vec<_> =
        text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    blocks.into_iter().for_each(|block| drop(super::layout(block)));
}
