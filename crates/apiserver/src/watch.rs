//! A watch: what happens to the objects of a kind, as it happens.

use crate::client::Failure;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, ErrorKind, Read};
use std::marker::PhantomData;

/// The longest line, in bytes: etcd keeps no object of more than 1.5 MiB.
const LONGEST: u64 = 16 << 20;

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// It was made.
    Added(T),
    /// It has changed.
    Modified(T),
    /// It is gone; this is what it was last.
    Deleted(T),
}

impl<T> Change<T> {
    /// The object.
    pub fn object(&self) -> &T {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => object,
        }
    }
}

/// Changes, in the order in which they happened, until the API server ends the watch. Then it is begun again at its
/// [`version`](Watch::version), and nothing is missed.
pub struct Watch<T> {
    lines: BufReader<Box<dyn Read + Send>>,
    line: String,
    version: String,
    kind: PhantomData<T>,
}

/// A line of a watch (<https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>).
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

impl<T: DeserializeOwned> Watch<T> {
    pub(crate) fn new(lines: impl Read + Send + 'static, version: &str) -> Self {
        let lines = BufReader::new(Box::new(lines) as Box<dyn Read + Send>);
        Self { lines, line: String::new(), version: version.to_owned(), kind: PhantomData }
    }

    /// The version up to which changes have been seen.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn change(&mut self) -> Result<Option<Change<T>>, Failure> {
        loop {
            self.line.clear();
            match (&mut self.lines).take(LONGEST).read_line(&mut self.line) {
                Ok(0) => return Ok(None),
                Ok(length) if length as u64 == LONGEST => {
                    return Err(Failure::Away(format!("an event of a watch is longer than {LONGEST} bytes")));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(None),
                Err(error) => return Err(Failure::Away(error.to_string())),
            }
            let unreadable = |error: serde_json::Error| {
                Failure::Away(format!("an event of a watch cannot be read: {error}"))
            };
            let Line { kind, object } = serde_json::from_str(&self.line).map_err(unreadable)?;
            if kind == "ERROR" {
                let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok());
                let message = object["message"].as_str().unwrap_or("the watch has failed");
                return Err(Failure::Status(code.unwrap_or(500), message.to_owned()));
            }
            if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
                version.clone_into(&mut self.version);
            }
            let wrap = match kind.as_str() {
                "ADDED" => Change::Added,
                "MODIFIED" => Change::Modified,
                "DELETED" => Change::Deleted,
                // A bookmark only has a version; other kinds are of a later API.
                _ => continue,
            };
            return serde_json::from_value(object).map(|object| Some(wrap(object))).map_err(unreadable);
        }
    }
}

impl<T: DeserializeOwned> Iterator for Watch<T> {
    type Item = Result<Change<T>, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.change().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(text: &str) -> Watch<Value> {
        Watch::new(std::io::Cursor::new(text.to_owned()), "1")
    }

    #[test]
    fn changes_come_in_their_order_and_bookmarks_only_move_the_version() {
        let mut watch = watch(
            "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}}\n\
             {\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n\
             {\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"10\"}}}\n",
        );
        assert!(matches!(watch.next(), Some(Ok(Change::Added(_)))));
        assert_eq!(watch.version(), "5");
        let Some(Ok(Change::Deleted(object))) = watch.next() else { panic!("deleted") };
        assert_eq!(object["metadata"]["name"], "a");
        assert!(watch.next().is_none());
        assert_eq!(watch.version(), "10");
    }

    #[test]
    fn an_error_of_the_api_server_is_one_and_so_is_a_line_that_is_cut() {
        let gone = "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}\n";
        let Some(Err(Failure::Status(410, message))) = watch(gone).next() else { panic!("410") };
        assert_eq!(message, "too old");
        assert!(matches!(watch("{\"type\":\"ADDED\",\"obj").next(), Some(Err(Failure::Away(_)))));
        let endless = watch(&"x".repeat(LONGEST as usize + 1)).next();
        assert!(matches!(endless, Some(Err(Failure::Away(why))) if why.contains("longer than")));
    }
}
