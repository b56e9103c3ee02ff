//! What would fail every operation on S3, found before the load.

use super::request::{Address, Request, Sender};
use super::{resolve, xml};
use crate::client::{Client, Reply};
use crate::failure::Failure;
use crate::http::{Head, Sink};
use crate::job::S3;
use crate::preflight::{patient, unanswered};
use crate::text::decode;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tidemark_load::budget::Budget;
use tidemark_load::engine::{Clock, OpenError};
use tidemark_measure::units::duration_ns;
use tidemark_reactor::Reactor;

/// How much of a reply's body is kept.
const BODY_MOST: usize = 64 << 10;

/// How far a server's clock may be off before we call that the reason of a refusal: S3 allows 15 minutes.
const SKEW_MOST_S: u64 = 300;

/// Asks every endpoint of a target; `bucket` is the percent-encoded name of one that must exist.
pub(crate) fn preflight(target: &S3, bucket: Option<&[u8]>) -> Result<String, OpenError> {
    let target = Arc::new(S3 { http: patient(&target.http), ..target.clone() });
    let clock = Clock::starting_at(Instant::now());
    let reactor = Reactor::within(clock, target.http.timeout_ns, &Budget::preflight())?;
    let sender = Sender::new(&target, &reactor)?;
    let mut software = Vec::new();
    for endpoint in resolve(&target)? {
        let mut client = Client::new(&reactor, &endpoint, &target.http);
        let mut address = Address::default();
        let request = match bucket {
            Some(bucket) => {
                address.begin(&sender, &client, |name| name.extend_from_slice(bucket));
                Request::get().query(b"list-type=2&max-keys=1")
            }
            None => {
                address.service(&client);
                Request::get()
            }
        };
        let mut witness = Witness::default();
        let now = reactor.now();
        let reply = reactor.block_on(sender.exchange(&mut client, &address, &request, &mut witness, now));
        let question =
            Question { url: endpoint.url(), target: &target, bucket: bucket.map(decode), witness: &witness };
        question.judge(reply)?;
        let own = witness.server.unwrap_or_default();
        if !own.is_empty() && !software.contains(&own) {
            software.push(own);
        }
    }
    Ok(software.join(", "))
}

/// The part of a reply that matters here.
#[derive(Default)]
struct Witness {
    server: Option<String>,
    date: Option<String>,
    region: Option<String>,
    body: Vec<u8>,
}

impl Sink for Witness {
    fn head(&mut self, head: &Head<'_>) {
        let get = |name| head.get(name).map(str::to_owned);
        (self.server, self.date, self.region) = (get("server"), get("date"), get("x-amz-bucket-region"));
    }

    fn body(&mut self, piece: &[u8]) {
        let room = BODY_MOST.saturating_sub(self.body.len());
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

/// A request and its reply.
struct Question<'a> {
    url: String,
    target: &'a S3,
    bucket: Option<String>,
    witness: &'a Witness,
}

impl Question<'_> {
    fn judge(&self, reply: Result<Reply, Failure>) -> Result<(), OpenError> {
        let url = &self.url;
        let reply =
            reply.map_err(|failure| OpenError(unanswered(url, self.target.http.timeout_ns, &failure)))?;
        let error = xml::error(&self.witness.body);
        let code = error.as_ref().map_or("", |error| error.code.as_str());
        let wrong = |text: String| Err(OpenError(text));
        match (reply.status, code) {
            (200, _) if !self.is_listing() => wrong(format!(
                "{url} responds, but not as an S3 server: check the endpoint (its S3 port, without a path)"
            )),
            (200, _) => Ok(()),
            (_, "InvalidAccessKeyId") => wrong(format!("{url} rejects the access key as unknown: check it")),
            (_, "RequestTimeTooSkewed") => wrong(self.skewed()),
            (_, "SignatureDoesNotMatch") if self.skew_s().unsigned_abs() > SKEW_MOST_S => {
                wrong(self.skewed())
            }
            (_, "SignatureDoesNotMatch") => {
                wrong(format!("{url} accepts the access key, but not the secret key: check the secret key"))
            }
            (_, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
                wrong(self.elsewhere())
            }
            (301 | 307, _) => wrong(self.elsewhere()),
            (_, "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired") => {
                wrong(format!("{url} rejects the session token ({code}): get a new one"))
            }
            (_, "NoSuchBucket") => {
                let bucket = self.bucket.as_deref().unwrap_or_default();
                wrong(format!(
                    "the bucket '{bucket}' does not exist at {url}: create it, or add an init stage to the workload"
                ))
            }
            // The key is right: it just may not list.
            (403, "AccessDenied") if self.target.access_key.is_empty() && self.bucket.is_none() => Ok(()),
            (403, "AccessDenied") if !self.target.access_key.is_empty() => Ok(()),
            (501 | 405, code) if !code.is_empty() => Ok(()),
            (403 | 401, _) => wrong(format!(
                "{url} denies access ({} {code}): check the keys and permissions",
                reply.status
            )),
            (status, "") => wrong(format!(
                "{url} returns {status}, but not as an S3 server: check the endpoint (its S3 port, without a path)"
            )),
            (status, code) => {
                let message = error.as_ref().map_or("", |error| error.message.as_str());
                wrong(format!("{url} rejects the first request: {status} {code}: {message}"))
            }
        }
    }

    /// Whether the body is what was requested.
    fn is_listing(&self) -> bool {
        let body = String::from_utf8_lossy(&self.witness.body);
        body.contains(if self.bucket.is_some() { "<ListBucketResult" } else { "<ListAllMyBucketsResult" })
    }

    fn elsewhere(&self) -> String {
        let region = self.witness.region.clone().or_else(|| xml::text_of(&self.witness.body, "Region"));
        let right = region.map_or(String::new(), |region| format!(": the server reports '{region}'"));
        format!(
            "the region '{}' is not that of {} {}{right}: set the region and its endpoint",
            self.target.region,
            self.url,
            if self.bucket.is_some() { "or of the bucket" } else { "" },
        )
    }

    fn skewed(&self) -> String {
        let skew = self.skew_s();
        let by = duration_ns(skew.unsigned_abs().saturating_mul(1_000_000_000));
        let how = match skew {
            0 => "too far apart from".to_owned(),
            ahead if ahead > 0 => format!("{by} ahead of"),
            _ => format!("{by} behind"),
        };
        format!(
            "this machine's clock is {how} that of {}, so signatures are rejected: set the clock (NTP)",
            self.url
        )
    }

    /// Seconds by which this machine's clock is ahead of the server's, as far as is known.
    fn skew_s(&self) -> i64 {
        let Some(theirs) = self.witness.date.as_deref().and_then(unix_s_of_date) else { return 0 };
        let ours = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        ours as i64 - theirs
    }
}

/// Seconds since 1970 of a `Date` header: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
fn unix_s_of_date(date: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = date.split_once(", ")?.1.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year: i64 = words.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let mut time = words.next()?.split(':').map(|part| part.parse::<i64>().ok());
    let mut next = || time.next().flatten().filter(|part| (0..=60).contains(part));
    let second = next()? * 3600 + next()? * 60 + next()?;
    // H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`, for years after 1.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + day_of_year;
    let days = year / 400 * 146_097 + day_of_era - 719_468;
    Some(days * 86_400 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        assert_eq!(unix_s_of_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(unix_s_of_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(unix_s_of_date("Tue, 29 Feb 2000 23:59:59 GMT"), Some(951_868_799));
        for wrong in ["", "yesterday", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(unix_s_of_date(wrong), None, "{wrong}");
        }
    }
}
