//! A ledger of acknowledged commits: what clients know, compared with what the database holds.
//!
//! Each client has a row of its own, in which each of its transactions adds one, in the statement before its `COMMIT` and in
//! the same round trip. So the row says how many of the client's transactions are there, and the client knows how many must
//! be: those that were acknowledged, and those of which it was found out later that they were committed. A commit whose
//! answer was lost is open until the row is read again: when the client has a new connection, and when the load is over. A
//! row that nobody else writes costs no wait, and one that is updated in place (`fillfactor`) no growth.

use crate::admin::Admin;
use crate::connection::Connection;
use crate::databases::LedgerUse;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::server::Server;
use crate::statement::Statement;
use crate::value::Value::Int;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::{Duration, Instant};
use tidemark_measure::fault::Fault;

/// For how long a server that does not answer is waited for when the load is over: one that was killed recovers first.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often it is asked meanwhile.
const ASKED_EVERY: Duration = Duration::from_millis(200);

/// The statements of a client, by their places behind the workload's.
#[derive(Clone, Copy)]
enum Own {
    Mark,
    Find,
    Enter,
}

/// What the clients of a work need to keep a ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    /// Which load it is: no other has this number.
    run: i64,
    /// The number of the first of the ledger's statements.
    first_statement: usize,
}

impl Keeping {
    /// That of a new load, whose statements so far are these many.
    pub(crate) fn new(statements: usize) -> Self {
        Self { run: unused_number(), first_statement: statements }
    }

    fn number(self, own: Own) -> usize {
        self.first_statement + own as usize
    }
}

/// A number that nobody else has: from the process's own source of randomness, not from the run's seed.
pub(crate) fn unused_number() -> i64 {
    (std::collections::hash_map::RandomState::new().build_hasher().finish() >> 1) as i64
}

/// The ledger's statements, in the order of [`Own`].
pub(crate) fn statements() -> [Statement; 3] {
    [
        "UPDATE tidemark_ledger SET commits = commits + 1 WHERE run = $1 AND client = $2",
        // What an earlier connection has sent and the server has not done yet is waited for.
        "SELECT commits FROM tidemark_ledger WHERE run = $1 AND client = $2 FOR UPDATE",
        "INSERT INTO tidemark_ledger (run, client, commits) VALUES ($1, $2, 0)",
    ]
    .map(Statement::new)
}

/// Makes the ledger's table, unless it is there.
///
/// # Errors
/// The server's refusal.
pub(crate) fn create(admin: &mut Admin, dialect: Dialect) -> Result<(), Failure> {
    // Rows that are updated in place, by index whatever statistics say of so small a table: a scan of it would read, and under
    // SERIALIZABLE conflict with, the rows of others.
    let storage = match dialect {
        Dialect::Postgres => " WITH (fillfactor = 10, autovacuum_enabled = false)".into(),
        Dialect::Cockroach | Dialect::Mysql => dialect.storage(100),
    };
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS tidemark_ledger (run bigint NOT NULL, client bigint NOT NULL, commits bigint NOT NULL, \
         PRIMARY KEY (run, client)){storage}"
    );
    // Two that make the same table at the same time get in each other's way once.
    admin.run(&sql).or_else(|_| admin.run(&sql))
}

/// What one client knows of its commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    run: i64,
    client: i64,
    /// Commits that were acknowledged.
    acknowledged: u64,
    /// Commits that must be in its row.
    known: u64,
    /// Whether a commit is under way, or its answer was lost.
    open: bool,
    /// Commits whose answer was lost, and how many of them were found in the row.
    ambiguous: u64,
    committed: u64,
    /// Commits that were known and are not there, and some that are there and that nobody was told of.
    missing: u64,
    unexpected: u64,
}

impl Account {
    fn new(run: i64, client: i64) -> Self {
        let (acknowledged, known, open, ambiguous, committed) = (0, 0, false, 0, 0);
        Self { run, client, acknowledged, known, open, ambiguous, committed, missing: 0, unexpected: 0 }
    }

    /// Its row has so many commits: what was open is settled, and what is missing is counted, once.
    fn settle(&mut self, held: u64) {
        let was_open = std::mem::take(&mut self.open);
        self.ambiguous += u64::from(was_open);
        let mut more = held.saturating_sub(self.known);
        self.missing += self.known.saturating_sub(held);
        // One whose answer was lost may have come later than the row was last read.
        let late = more.min(self.ambiguous - self.committed);
        self.committed += late;
        more -= late;
        self.unexpected += more;
        self.known = held;
    }
}

/// A client's account, with its connection's place in the ledger.
pub(crate) struct Client {
    keeping: Keeping,
    account: Account,
    /// Whether its row has been read on the connection that it has.
    settled: bool,
}

impl Client {
    /// The client with this number among those of its load.
    pub(crate) fn new(keeping: Keeping, number: u32) -> Self {
        Self { keeping, account: Account::new(keeping.run, number.into()), settled: false }
    }

    /// It has another connection now.
    pub(crate) fn reconnected(&mut self) {
        self.settled = false;
    }

    /// Whether its row must be read before the next transaction.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.settled || self.account.open
    }

    /// Reads its row, and makes it where it is not there; settles what was open.
    ///
    /// # Errors
    /// The server's refusal.
    #[cold]
    pub(crate) async fn settle(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let key = [Int(self.account.run), Int(self.account.client)];
        connection.set_pipeline(false);
        connection.add(self.keeping.number(Own::Find), &key)?;
        connection.run().await?;
        let row = connection.rows(0).iter().next().map(|row| row.number(0));
        let held = match row.transpose()? {
            Some(commits) => commits,
            None => {
                connection.add(self.keeping.number(Own::Enter), &key)?;
                connection.run().await?;
                0
            }
        };
        self.account.settle(held);
        self.settled = true;
        Ok(())
    }

    /// Adds the statement that goes before a commit, which from now on is open.
    ///
    /// # Errors
    /// None that a number could cause.
    #[inline]
    pub(crate) fn mark(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        connection.set_pipeline(true);
        let key = [Int(self.account.run), Int(self.account.client)];
        connection.add(self.keeping.number(Own::Mark), &key)?;
        self.account.open = true;
        Ok(())
    }

    /// The commit ended, and how if it failed.
    #[inline]
    pub(crate) fn ended(&mut self, failure: Option<&Failure>) {
        let account = &mut self.account;
        match failure {
            None => {
                account.open = false;
                account.acknowledged += 1;
                account.known += 1;
            }
            // Whether it was committed, the row says.
            Some(failure) if failure.lost || failure.fault == Fault::Ambiguous => {}
            Some(_) => account.open = false,
        }
    }

    /// Its account, when it is over.
    pub(crate) fn account(&self) -> Account {
        self.account.clone()
    }
}

/// Compares accounts with what a database holds when the load is over, and forgets their rows if they agree. A server that
/// does not answer is waited for.
pub(crate) fn compare(server: &Server, mut accounts: Vec<Account>) -> LedgerUse {
    let held = rows(server, &accounts);
    let sum =
        |accounts: &[Account], of: fn(&Account) -> u64| accounts.iter().map(of).fold(0, u64::saturating_add);
    let mut found = LedgerUse {
        server: server.target.describe(),
        clients: accounts.len() as u64,
        ..LedgerUse::default()
    };
    found.acknowledged = sum(&accounts, |account| account.acknowledged);
    let Ok((mut admin, held)) = held else {
        found.ambiguous = sum(&accounts, |account| account.ambiguous + u64::from(account.open));
        found.ambiguous_committed = sum(&accounts, |account| account.committed);
        return found;
    };
    for account in &mut accounts {
        account.settle(held.get(&(account.run, account.client)).copied().unwrap_or(0));
    }
    found.ambiguous = sum(&accounts, |account| account.ambiguous);
    found.ambiguous_committed = sum(&accounts, |account| account.committed);
    found.missing = Some(sum(&accounts, |account| account.missing));
    found.unexpected = Some(sum(&accounts, |account| account.unexpected));
    found.clients_missing = accounts.iter().filter(|account| account.missing > 0).count() as u64;
    if found.missing == Some(0) && found.unexpected == Some(0) {
        // What cannot be tidied up is a few rows that nobody reads.
        let _ = admin.run(&format!("DELETE FROM tidemark_ledger WHERE run IN ({})", runs(&accounts)));
    }
    found
}

/// The loads that accounts are of, with commas.
fn runs(accounts: &[Account]) -> String {
    let mut runs: Vec<i64> = accounts.iter().map(|account| account.run).collect();
    runs.dedup();
    runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Commits by load and client.
type Held = BTreeMap<(i64, i64), u64>;

/// The rows of accounts, as soon as the server answers; with the connection that read them.
fn rows(server: &Server, accounts: &[Account]) -> Result<(Admin, Held), String> {
    let begun = Instant::now();
    loop {
        let read = Admin::connect(server).and_then(|mut admin| {
            // What the load's last connections have sent is done first.
            crate::evidence::wait_for_the_last(&mut admin, server.target.dialect);
            let sql = format!(
                "SELECT run, client, commits FROM tidemark_ledger WHERE run IN ({}) FOR UPDATE",
                runs(accounts)
            );
            let rows = admin.query(&sql).map_err(|failure| failure.to_string())?;
            Ok((admin, rows))
        });
        match read {
            Ok((admin, rows)) => {
                let number = |row: &[Option<String>], column: usize| -> Option<i64> {
                    row.get(column)?.as_ref()?.parse().ok()
                };
                let one = |row: Vec<Option<String>>| {
                    Some(((number(&row, 0)?, number(&row, 1)?), u64::try_from(number(&row, 2)?).ok()?))
                };
                return Ok((admin, rows.into_iter().filter_map(one).collect()));
            }
            Err(why) if begun.elapsed() > PATIENCE => return Err(why),
            Err(_) => std::thread::sleep(ASKED_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account with these commits, the last of which is open or not.
    fn account(known: u64, open: bool) -> Account {
        Account { acknowledged: known, known, open, ..Account::new(1, 1) }
    }

    /// What an account says after its row had these commits, one after the other: ambiguous, committed, missing, unexpected.
    fn settled(mut account: Account, held: &[u64]) -> [u64; 4] {
        held.iter().for_each(|held| account.settle(*held));
        [account.ambiguous, account.committed, account.missing, account.unexpected]
    }

    #[test]
    fn what_is_in_the_row_settles_what_was_open() {
        assert_eq!(settled(account(7, false), &[7]), [0, 0, 0, 0]);
        assert_eq!(settled(account(7, true), &[7]), [1, 0, 0, 0], "the open one was not committed");
        assert_eq!(settled(account(7, true), &[8]), [1, 1, 0, 0], "it was");
        assert_eq!(
            settled(account(7, true), &[7, 8]),
            [1, 1, 0, 0],
            "it was, but later than the row was read"
        );
    }

    #[test]
    fn what_is_missing_and_what_nobody_was_told_of_is_counted_once() {
        assert_eq!(settled(account(7, true), &[4, 4]), [1, 0, 3, 0]);
        assert_eq!(settled(account(7, false), &[0]), [0, 0, 7, 0], "the row itself is gone");
        assert_eq!(settled(account(7, false), &[9]), [0, 0, 0, 2]);
        assert_eq!(settled(account(7, true), &[9]), [1, 1, 0, 1]);
        let mut lost_twice = account(7, false);
        lost_twice.settle(5);
        lost_twice.known += 3;
        assert_eq!(settled(lost_twice, &[6]), [0, 0, 4, 0]);
    }
}
