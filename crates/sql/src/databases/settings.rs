//! What settings of databases mean for a commit that has been acknowledged: PostgreSQL's and MySQL's and MariaDB's, after their
//! documentation (PostgreSQL, *Write Ahead Log*; MySQL, *InnoDB Startup Options and System Variables*).

/// What a setting with this value means, as a clause; nothing where it decides nothing about commits, or is not known here.
pub(super) fn meaning(name: &str, value: &str) -> Option<&'static str> {
    let is_on = matches!(value, "on" | "ON" | "1");
    Some(match (name, value) {
        ("fsync", _) if is_on => "writes are synced where a commit needs it",
        ("fsync", _) => "nothing is synced: a crash of the machine may lose commits and damage the data",
        ("synchronous_commit", "off") => {
            "a commit is acknowledged before its log is synced: a crash loses the last ones"
        }
        ("synchronous_commit", "local") => "a commit waits until its log is synced here, for no standby",
        ("synchronous_commit", "remote_write") => {
            "a commit waits for the log here, and until standbys have written it"
        }
        ("synchronous_commit", "remote_apply") => "a commit waits until synchronous standbys show it",
        ("synchronous_commit", _) => {
            "a commit waits until its log is synced, here and at synchronous standbys"
        }
        ("full_page_writes", _) if is_on => "the log has whole pages: a page that a crash tears is repaired",
        ("full_page_writes", _) => {
            "a page that a crash tears is not repaired, unless storage writes pages as a whole"
        }
        ("wal_sync_method", _) => "how the log is synced",
        ("commit_delay", "0") => "commits do not wait for one another",
        ("commit_delay", _) => "commits wait for others, in microseconds, to share a sync",
        ("data_checksums", _) if is_on => "a damaged page is noticed when it is read",
        ("data_checksums", _) => "a damaged page is not noticed",
        ("innodb_flush_log_at_trx_commit", "1") => "a commit waits until its log is synced",
        ("innodb_flush_log_at_trx_commit", "2") => {
            "a commit waits until its log is written, not synced: a crash of the machine loses the last ones"
        }
        ("innodb_flush_log_at_trx_commit", "3") => {
            "a commit waits until its log is synced, as before group commit"
        }
        ("innodb_flush_log_at_trx_commit", _) => {
            "a commit does not wait for its log: a crash of the server loses the last ones"
        }
        ("sync_binlog", "0") => "the binary log is not synced",
        ("sync_binlog", "1") => "a commit waits until the binary log is synced",
        ("sync_binlog", _) => "the binary log is synced once in so many commits",
        ("innodb_flush_method", "nosync" | "littlesync") => {
            "not all is synced: a crash of the machine may lose commits and damage the data"
        }
        ("innodb_doublewrite", "OFF" | "0" | "off") => {
            "a page that a crash tears is not repaired, unless storage writes pages as a whole"
        }
        ("innodb_doublewrite", _) => "a page that a crash tears is repaired",
        _ => return None,
    })
}
