//! `tidemark token`: access to the controller of this store.

use crate::cli::{Token, TokenRole};
use crate::commands::outcome::open_store;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::PathBuf;

/// Creates, lists and revokes tokens in the result store. A running controller applies changes within seconds.
pub(crate) fn token(arguments: &Token, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    let mut store = open_store(store)?;
    match arguments {
        Token::Add { name, role } => {
            let text = store.add_token(name, role.name()).map_err(Stop::not_ready)?;
            terminal.remark(&format!("token for {name}, role {}; it cannot be shown again:", role.name()));
            terminal.print(&text);
        }
        Token::List => {
            let tokens = store.tokens().map_err(Stop::not_ready)?;
            if tokens.is_empty() {
                terminal.remark("no tokens");
            }
            for token in tokens {
                let state = if token.revoked_unix_ns.is_some() { "revoked" } else { "active" };
                terminal.print(&format!("{:<24} {:<10} {state}", token.name, token.role));
            }
        }
        Token::Revoke { name } => {
            store.revoke_token(name).map_err(Stop::usage)?;
            terminal.remark(&format!("the token of {name} is revoked"));
        }
    }
    Ok(Exit::Done)
}

impl TokenRole {
    /// Its name in the store and in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TokenRole::Viewer => "viewer",
            TokenRole::Operator => "operator",
            TokenRole::Driver => "driver",
        }
    }
}
