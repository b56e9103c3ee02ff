//! Settings that the user wants, checked against the server's own list before anything is made.

use tidemark_keys::nearest::nearest;

use super::DatabaseOptions;
use super::server::Server;
use crate::command::Programs;
use crate::error::LabError;

/// Fails if a setting is unknown to the server, is made by the lab, or has a value that no file can hold. Values are
/// checked by the server when it starts.
pub(super) fn check(options: &DatabaseOptions, programs: &Programs) -> Result<(), LabError> {
    if options.settings.is_empty() {
        return Ok(());
    }
    let server = options.database.server();
    let known = server.known(programs)?;
    options.settings.iter().try_for_each(|(name, value)| check_one(server, &known, name, value))
}

fn check_one(server: &dyn Server, known: &[String], name: &str, value: &str) -> Result<(), LabError> {
    let bad = |why: String| LabError::BadSetting { name: name.to_owned(), why };
    let spelt = server.spelt(name);
    if server.own().contains(&spelt.as_str()) {
        return Err(bad("the lab sets it itself; leave it out".into()));
    }
    // Those of extensions are known only to a server that has loaded them.
    let of_extension =
        name.contains('.') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte));
    if !known.contains(&spelt) && !of_extension {
        let near = nearest(&spelt, known.iter().map(String::as_str));
        let help = near.map_or_else(
            || "it is not in the server's own list".into(),
            |near| format!("did you mean {near}?"),
        );
        return Err(bad(format!("{} has no such setting; {help}", server.name())));
    }
    if value.contains(char::is_control) {
        return Err(bad("its value has a line feed or another control character".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;

    #[test]
    fn a_slip_is_named_and_what_the_lab_sets_is_refused() {
        let known = ["shared_buffers", "fsync", "port", "sync-binlog"].map(String::from);
        let said = |database: Database, name: &str, value: &str| {
            check_one(database.server(), &known, name, value).map_err(|error| error.to_string())
        };
        let postgres = |name, value| said(Database::Postgres, name, value);
        assert_eq!(postgres("shared_buffers", "1GB"), Ok(()));
        assert_eq!(postgres("Fsync", "off"), Ok(()));
        assert_eq!(postgres("pg_stat_statements.max", "1000"), Ok(()));
        let error = postgres("shared_bufers", "1GB").unwrap_err();
        assert!(
            error.contains("`shared_bufers`") && error.contains("did you mean shared_buffers?"),
            "{error}"
        );
        assert!(postgres("port", "1").unwrap_err().contains("the lab sets it itself"));
        assert!(postgres("fsync", "on\nport = 1").unwrap_err().contains("line feed"));
        assert!(postgres("a.b\nport", "1").unwrap_err().contains("no such setting"));
        assert_eq!(said(Database::Mariadb, "sync_binlog", "1"), Ok(()));
        assert!(
            said(Database::Mariadb, "bind_address", "0.0.0.0")
                .unwrap_err()
                .contains("the lab sets it itself")
        );
    }
}
