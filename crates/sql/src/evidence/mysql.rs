//! What MySQL and MariaDB say of themselves: InnoDB's counters and settings (manuals, *Server Status Variables*, *InnoDB System
//! Variables*).

use crate::admin::Admin;
use crate::databases::{DatabaseSetting, DatabaseUse};
use crate::failure::Failure;
use std::collections::BTreeMap;

/// Our names of counters, and theirs. A `COMMIT` is counted, and a statement that is a transaction of its own is not.
const COUNTERS: [(&str, &str); 9] = [
    ("commits", "Com_commit"),
    ("rollbacks", "Com_rollback"),
    ("deadlocks", "Innodb_deadlocks"),
    ("lock_waits", "Innodb_row_lock_waits"),
    ("blocks_read", "Innodb_buffer_pool_reads"),
    ("blocks_asked", "Innodb_buffer_pool_read_requests"),
    ("wal_bytes", "Innodb_os_log_written"),
    ("buffers_checkpoint", "Innodb_buffer_pool_pages_flushed"),
    (UPTIME, "Uptime"),
];

/// Our name of the seconds since the server was started.
pub(super) const UPTIME: &str = "uptime";

/// Settings that decide whether a commit survives a crash, each with the values that let it.
const DURABILITY: [(&str, &[&str]); 3] = [
    // MariaDB's 3 syncs when a transaction is prepared as well.
    ("innodb_flush_log_at_trx_commit", &["1", "3"]),
    ("innodb_doublewrite", &["ON", "DETECT_AND_RECOVER", "fast"]),
    ("innodb_flush_method", &["fsync", "O_DSYNC", "O_DIRECT", "O_DIRECT_NO_FSYNC", "normal", "unbuffered"]),
];

/// The binary log's: it decides what survives where there is such a log.
const SYNC_BINLOG: &str = "sync_binlog";
const LOG_BIN: &str = "log_bin";

/// Settings that decide what storage sees. Isolation has a name in each product.
const SHOWN: [&str; 9] = [
    LOG_BIN,
    "binlog_format",
    "innodb_buffer_pool_size",
    "innodb_io_capacity",
    "innodb_log_file_size",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "transaction_isolation",
    "tx_isolation",
];

/// Reads the counters; those that the server lacks, or does not show to this user, are left out.
pub(super) fn counters(admin: &mut Admin) -> BTreeMap<String, u64> {
    let names: Vec<String> = COUNTERS.iter().map(|(_, theirs)| format!("'{theirs}'")).collect();
    let sql = format!("SHOW GLOBAL STATUS WHERE variable_name IN ({})", names.join(", "));
    let mut counters = BTreeMap::new();
    for row in admin.query(&sql).unwrap_or_default() {
        let [Some(name), Some(value)] = row.as_slice() else { continue };
        let ours = COUNTERS.iter().find(|(_, theirs)| theirs.eq_ignore_ascii_case(name));
        if let (Some((ours, _)), Ok(number)) = (ours, value.parse::<u64>()) {
            counters.insert((*ours).to_owned(), number);
        }
    }
    if !counters.contains_key("deadlocks") {
        let sql = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'";
        let count = admin.value(sql).ok().flatten().and_then(|count| count.parse().ok());
        counters.extend(count.map(|count| ("deadlocks".to_owned(), count)));
    }
    if let (Some(read), Some(asked)) = (counters.get("blocks_read"), counters.get("blocks_asked")) {
        counters.insert("blocks_hit".to_owned(), asked.saturating_sub(*read));
    }
    counters
}

/// Adds what the database is and how it is set.
///
/// # Errors
/// The server's refusal.
pub(super) fn describe(admin: &mut Admin, used: &mut DatabaseUse) -> Result<(), Failure> {
    // Without a `COMMIT`, commits were there, and were not counted. Whose they are of several databases, nobody counts.
    used.commits = used.commits.filter(|commits| *commits > 0 && !used.shares_server);
    used.rollbacks = used.rollbacks.filter(|_| !used.shares_server);
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    used.block_bytes = number(admin.value("SELECT @@global.innodb_page_size")?);
    used.cache_bytes = number(admin.value("SELECT @@global.innodb_buffer_pool_size")?);
    // MySQL shows sizes as they were up to a day ago, unless this is 0; MariaDB has no such setting.
    if !admin.query("SHOW VARIABLES LIKE 'information_schema_stats_expiry'")?.is_empty() {
        admin.run("SET SESSION information_schema_stats_expiry = 0")?;
    }
    used.data_bytes = number(admin.value(
        "SELECT CAST(sum(data_length + index_length) AS unsigned) FROM information_schema.tables WHERE table_schema = database()",
    )?);
    let names: Vec<String> = DURABILITY
        .iter()
        .map(|(name, _)| *name)
        .chain(SHOWN)
        .chain([SYNC_BINLOG])
        .map(|name| format!("'{name}'"))
        .collect();
    let shown =
        admin.query(&format!("SHOW GLOBAL VARIABLES WHERE variable_name IN ({})", names.join(", ")))?;
    let rows: Vec<(&str, &str)> = shown
        .iter()
        .filter_map(|row| match row.as_slice() {
            [Some(name), Some(value)] => Some((name.as_str(), value.as_str())),
            _ => None,
        })
        .collect();
    let logs = rows.contains(&(LOG_BIN, "ON"));
    used.settings.extend(rows.into_iter().map(|(name, value)| DatabaseSetting {
        name: name.to_owned(),
        value: value.to_owned(),
        durable: is_durable(name, value, logs),
    }));
    Ok(())
}

/// Whether commits survive a crash with this value; `None`: it decides something else.
fn is_durable(name: &str, value: &str, has_binary_log: bool) -> Option<bool> {
    if name == SYNC_BINLOG {
        return has_binary_log.then_some(value == "1");
    }
    let (_, values) = DURABILITY.iter().find(|(known, _)| *known == name)?;
    Some(values.iter().any(|known| known.eq_ignore_ascii_case(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_judged_by_what_survives_a_crash() {
        for (name, value, logs, expected) in [
            ("innodb_flush_log_at_trx_commit", "1", false, Some(true)),
            ("innodb_flush_log_at_trx_commit", "2", false, Some(false)),
            ("innodb_doublewrite", "OFF", false, Some(false)),
            ("innodb_flush_method", "O_DIRECT", false, Some(true)),
            ("innodb_flush_method", "nosync", false, Some(false)),
            ("sync_binlog", "0", false, None),
            ("sync_binlog", "0", true, Some(false)),
            ("sync_binlog", "1", true, Some(true)),
            ("binlog_format", "ROW", true, None),
        ] {
            assert_eq!(is_durable(name, value, logs), expected, "{name} = {value}");
        }
    }
}
