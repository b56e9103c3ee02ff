//! Why something failed: a class, and its words.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;
use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use tidemark_load::engine::Outcome;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;
use tidemark_object::store::StoreError;

use crate::tables::tasks::Ended;

/// A failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Its class.
    pub fault: Fault,
    /// What happened, where.
    pub words: String,
}

impl Failure {
    /// A failure of this class.
    pub fn new(fault: Fault, words: impl Into<String>) -> Self {
        Self { fault, words: words.into() }
    }

    /// The same, with what was tried before its words.
    #[must_use]
    pub fn of(self, what: &str) -> Self {
        Self { words: format!("{what}: {}", self.words), ..self }
    }

    /// The same, unless it only says that something could not be read which storage failed to give: libraries turn some failures of
    /// storage into words.
    #[must_use]
    pub fn or_of_storage(self, storage: Option<Failure>) -> Self {
        match storage {
            Some(storage) if self.fault == Fault::WrongContent => storage,
            _ => self,
        }
    }

    /// The end of an operation that it is.
    pub(crate) fn ended(self) -> Ended {
        let example = Example { fault: self.fault, text: self.words };
        Ended { outcome: Outcome::failure(self.fault), example: Some(example), ..Ended::default() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}

/// Longest words of a failure: plans and statements that libraries quote are left out.
const WORDS: usize = 500;

/// The first line of an error's words, without the rest of a plan or a statement.
fn words(error: &dyn Error) -> String {
    first_line(&error.to_string())
}

/// The first line of a text, cut where it is too long.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(WORDS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// What an error says in its innermost cause that is known here, wherever a library has wrapped it.
fn innermost(error: &(dyn Error + 'static)) -> Option<Failure> {
    let mut next = Some(error);
    let mut found = None;
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<StoreError>() {
            found = Some(Failure::new(error.fault, error.words.clone()));
        } else if let Some(error) = error.downcast_ref::<std::io::Error>() {
            found = Some(Failure::new(of_file(error.kind()), words(error)));
        } else if let Some(error) = error.downcast_ref::<object_store::Error>()
            && let Some(fault) = of_store(error)
        {
            found = Some(Failure::new(fault, words(error)));
        }
        next = error.source();
    }
    found
}

fn of_file(kind: ErrorKind) -> Fault {
    match kind {
        ErrorKind::NotFound => Fault::NotFound,
        // Files are made on the condition that there is none.
        ErrorKind::AlreadyExists => Fault::Precondition,
        ErrorKind::PermissionDenied => Fault::Denied,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Fault::NoSpace,
        ErrorKind::UnexpectedEof => Fault::ShortTransfer,
        ErrorKind::TimedOut => Fault::Timeout,
        _ => Fault::Io,
    }
}

fn of_store(error: &object_store::Error) -> Option<Fault> {
    Some(match error {
        object_store::Error::NotFound { .. } => Fault::NotFound,
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
            Fault::Precondition
        }
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            Fault::Denied
        }
        _ => return None,
    })
}

/// Arrow reads column chunks, and computes what the statement asks for.
fn of_arrow(error: &ArrowError) -> Fault {
    match error {
        ArrowError::ParquetError(_) => Fault::WrongContent,
        ArrowError::CastError(_)
        | ArrowError::ParseError(_)
        | ArrowError::SchemaError(_)
        | ArrowError::ComputeError(_)
        | ArrowError::DivideByZero
        | ArrowError::ArithmeticOverflow(_)
        | ArrowError::InvalidArgumentError(_)
        | ArrowError::NotYetImplemented(_) => Fault::Sql,
        _ => Fault::Local,
    }
}

impl From<&object_store::Error> for Failure {
    fn from(error: &object_store::Error) -> Self {
        innermost(error).unwrap_or_else(|| Self::new(Fault::Io, words(error)))
    }
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        Self::from(&error)
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        innermost(&error).unwrap_or_else(|| Self::new(Fault::WrongContent, words(&error)))
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        if let Some(failure) = innermost(&error) {
            return failure;
        }
        let fault = match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Fault::Overloaded,
            DataFusionError::ParquetError(_) => Fault::WrongContent,
            DataFusionError::ArrowError(error, _) => of_arrow(error),
            // A function that does not take what it is given, for example.
            DataFusionError::Execution(_)
            | DataFusionError::SQL(..)
            | DataFusionError::Plan(_)
            | DataFusionError::SchemaError(..)
            | DataFusionError::NotImplemented(_) => Fault::Sql,
            _ => Fault::Local,
        };
        let reason = words(error.find_root());
        match fault {
            Fault::Overloaded => {
                Self::new(fault, format!("the query needs more than the target's `memory`: {reason}"))
            }
            _ => Self::new(fault, reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_counts_however_it_was_wrapped() {
        let full = std::io::Error::from(ErrorKind::StorageFull);
        let store = object_store::Error::Generic { store: "file", source: Box::new(full) };
        let wrapped = DataFusionError::External(Box::new(store));
        assert_eq!(Failure::from(wrapped).fault, Fault::NoSpace);
        let memory = DataFusionError::ResourcesExhausted("pool".into()).context("while it sorted");
        let failure = Failure::from(memory);
        assert_eq!(failure.fault, Fault::Overloaded);
        assert!(
            failure.words.starts_with("the query needs more than the target's `memory`: "),
            "{}",
            failure.words
        );
        for (error, fault) in [
            (ArrowError::ParquetError("dictionary index out of bounds".into()), Fault::WrongContent),
            (ArrowError::DivideByZero, Fault::Sql),
        ] {
            let wrapped = DataFusionError::ArrowError(Box::new(error), None).context("while it read");
            assert_eq!(Failure::from(wrapped).fault, fault);
        }
        let plan = DataFusionError::Plan(format!("no such column\nSELECT {}", "x".repeat(9_000)));
        let failure = Failure::from(plan);
        assert_eq!(failure.fault, Fault::Sql);
        assert!(failure.words.ends_with("no such column"), "{failure}");
    }
}
