//! Logging in and out: tokens and the codes of login addresses are exchanged for sessions, and sessions for tickets.
//!
//! A browser shows its session's key as a program shows its token, in the header `Authorization`. It keeps the key where only pages of
//! the same scheme, host and port reach it, and only such a page can send it. A cookie would go to every port of the host.

use super::passes::Passes;
use super::{Caller, Guard, Peer, token_of};
use crate::answer::ApiError;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use std::time::{Duration, Instant};
use tidemark_controller::api::{Login, Role};

/// How long a session lasts.
const SESSION: Duration = Duration::from_secs(12 * 3600);

/// How long a login address is good.
const CODE: Duration = Duration::from_secs(3600);

/// How long a ticket is good: the browser uses it at once.
const TICKET: Duration = Duration::from_secs(30);

/// What the keys of sessions begin with. One that has ended is no token that somebody guessed.
const KEY: &str = "session-";

/// Characters of a key after its beginning.
const KEY_LENGTH: usize = 64;

/// What the address of a ticket ends with, before the ticket.
const PARAMETER: &str = "ticket=";

/// What stands for a token for a while.
pub(super) struct Logins {
    sessions: Passes,
    codes: Passes,
    tickets: Passes,
}

impl Default for Logins {
    fn default() -> Self {
        Self {
            sessions: Passes::lasting(SESSION),
            codes: Passes::lasting(CODE),
            tickets: Passes::lasting(TICKET),
        }
    }
}

impl Logins {
    /// The token behind what a header showed: itself, or the one that the session of this key stands for.
    pub(super) fn behind(&self, shown: String) -> Behind {
        match session_of(&shown) {
            None => Behind::Token(shown),
            Some(session) => match self.sessions.holder(session, Instant::now()) {
                Some(token) => Behind::Session(token),
                None => Behind::Nothing,
            },
        }
    }

    /// What the ticket of an address stands for, which is used up.
    pub(super) fn by_ticket(&self, parts: &Parts) -> Option<String> {
        let address = parts.uri.path_and_query()?.as_str();
        let (address, ticket) = address.rsplit_once(PARAMETER)?;
        let address = address.strip_suffix(['?', '&'])?;
        (parts.method == Method::GET).then(|| self.tickets.take(ticket, address, Instant::now()))?
    }
}

/// What is behind what a header showed.
pub(super) enum Behind {
    /// A token, good or not.
    Token(String),
    /// The token of a session.
    Session(String),
    /// A session that has ended.
    Nothing,
}

/// The secret within the key of a session.
fn session_of(shown: &str) -> Option<&str> {
    let is_secret =
        |text: &&str| text.len() == KEY_LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    shown.strip_prefix(KEY).filter(is_secret)
}

impl Guard {
    /// Logs in: who it is, and the key of the session. A code is used up.
    pub(crate) async fn log_in(&self, login: &Login, peer: Peer) -> Result<(Caller, String), ApiError> {
        let (caller, token) =
            self.person(login, peer, |code| self.logins.codes.take(code, "", Instant::now())).await?;
        let secret = self.logins.sessions.begin(&token, "", Instant::now())?;
        Ok((caller, format!("{KEY}{secret}")))
    }

    /// Whom this would log in. A code stays good.
    pub(crate) async fn whose(&self, login: &Login, peer: Peer) -> Result<Caller, ApiError> {
        let (caller, _) =
            self.person(login, peer, |code| self.logins.codes.holder(code, Instant::now())).await?;
        Ok(caller)
    }

    async fn person(
        &self,
        login: &Login,
        peer: Peer,
        of_code: impl FnOnce(&str) -> Option<String>,
    ) -> Result<(Caller, String), ApiError> {
        if self.open {
            return Err(nobody_logs_in());
        }
        let token = match login {
            Login::Token(token) => token.trim().to_owned(),
            Login::Code(code) => match of_code(code) {
                Some(token) => token,
                None => {
                    self.wrong(peer)?;
                    let message = "this login address was used already, or has expired: `tidemark login` prints another";
                    return Err(ApiError::new(StatusCode::UNAUTHORIZED, message));
                }
            },
        };
        let caller = self.owner(&token, peer).await?;
        match caller.role {
            Role::Driver => Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "this is a driver's token: log in with a viewer's or operator's token",
            )),
            Role::Viewer | Role::Operator => Ok((caller, token)),
        }
    }

    /// Ends the session whose key these headers show; its tickets end with it.
    pub(crate) fn log_out(&self, headers: &HeaderMap) {
        let shown = token_of(headers).ok().flatten();
        if let Some(session) = shown.as_deref().and_then(session_of) {
            self.logins.sessions.end(session);
        }
    }

    /// Makes the code of a login address for whoever sends these headers.
    pub(crate) fn invite(&self, headers: &HeaderMap) -> Result<String, ApiError> {
        match self.token_behind(headers) {
            Some(token) if !self.open => self.code(&token),
            _ => Err(nobody_logs_in()),
        }
    }

    /// The code of a login address that stands for this token.
    pub(crate) fn code(&self, token: &str) -> Result<String, ApiError> {
        self.logins.codes.begin(token, "", Instant::now())
    }

    /// Makes a ticket for whoever sends these headers, good for one GET of this address: the address with it.
    pub(crate) fn ticket(&self, headers: &HeaderMap, address: &str) -> Result<String, ApiError> {
        let shown = token_of(headers)?.filter(|_| !self.open).ok_or_else(nobody_logs_in)?;
        let ticket = self.logins.tickets.begin(&shown, address, Instant::now())?;
        let joint = if address.contains('?') { '&' } else { '?' };
        Ok(format!("{address}{joint}{PARAMETER}{ticket}"))
    }
}

fn nobody_logs_in() -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "this controller asks nobody to log in: open its address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_address_lasts_an_hour_a_session_twelve_and_a_ticket_half_a_minute() {
        let (logins, now) = (Logins::default(), Instant::now());
        for (passes, seconds) in
            [(&logins.codes, 3_600), (&logins.sessions, 12 * 3_600), (&logins.tickets, 30)]
        {
            let secret = passes.begin("olga's", "", now).unwrap();
            let after = |seconds| passes.holder(&secret, now + Duration::from_secs(seconds));
            assert_eq!(after(seconds - 1).as_deref(), Some("olga's"), "{seconds} s");
            assert_eq!(after(seconds), None, "{seconds} s");
        }
    }
}
