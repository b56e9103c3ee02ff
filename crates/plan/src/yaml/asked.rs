//! For tests: which keys the reader reads, and how editors see a document.

use super::tree::{Node, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    static ASKED: RefCell<BTreeSet<(String, &'static str)>> = RefCell::default();
}

/// Records a mapping, as messages call it, and a key that was read from it.
pub fn note(what: &str, key: &'static str) {
    ASKED.with_borrow_mut(|asked| asked.insert((what.to_owned(), key)));
}

/// All keys that this thread has read so far.
pub fn all() -> BTreeSet<(String, &'static str)> {
    ASKED.with_borrow(Clone::clone)
}

/// A document as JSON, as editors see it: numbers and flags where YAML 1.2 has them.
pub fn json(text: &str) -> serde_json::Value {
    super::tree::parse(text).map_or(serde_json::Value::Null, |root| value(&root))
}

fn value(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Nothing => serde_json::Value::Null,
        Value::Scalar(text) => match text.parse::<f64>() {
            Ok(_) | Err(_) if matches!(text.as_str(), "true" | "false") => (text == "true").into(),
            Ok(_) => {
                text.parse::<u64>().map_or_else(|_| text.parse::<f64>().unwrap_or(0.0).into(), Into::into)
            }
            Err(_) => text.as_str().into(),
        },
        Value::List(nodes) => nodes.iter().map(value).collect(),
        Value::Map(entries) => entries.iter().map(|entry| (entry.key.clone(), value(&entry.node))).collect(),
    }
}
