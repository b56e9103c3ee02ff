//! The statements of a workload, prepared once on every connection and referred to by number.

/// A statement's number: its place in what [`crate::workload::Workload::statements`] gives.
pub type StatementId = usize;

/// A statement. Its parameters are `$1`, `$2` ... in every dialect; where a protocol has other placeholders, its connection
/// rewrites them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text.
    pub sql: String,
}

impl Statement {
    /// A statement with this text.
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into() }
    }
}

/// What the engine itself says around transactions; these come before a workload's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of statements are their documentation")]
pub enum Control {
    Begin,
    Commit,
    Rollback,
    /// CockroachDB's retry protocol: where a transaction that conflicts begins again.
    Savepoint,
    Release,
    RollbackToSavepoint,
}

impl Control {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// Its number among all statements of a connection.
    pub fn number(self) -> usize {
        self as usize
    }
}

/// All statements of a work's connections: the engine's own, then the workload's.
#[derive(Clone, Debug)]
pub struct Statements {
    all: Vec<Statement>,
}

impl Statements {
    /// The workload's statements behind the engine's, which begin transactions with `begin`.
    pub fn new(begin: &str, own: Vec<Statement>) -> Self {
        let control = [
            begin,
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT cockroach_restart",
            "RELEASE SAVEPOINT cockroach_restart",
            "ROLLBACK TO SAVEPOINT cockroach_restart",
        ];
        let control: [&str; Control::COUNT] = control;
        Self { all: control.into_iter().map(Statement::new).chain(own).collect() }
    }

    /// The text of a statement by its number among all.
    pub fn sql(&self, number: usize) -> &str {
        &self.all[number].sql
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}
