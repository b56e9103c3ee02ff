//! The secrets of a target: where they may be sent, and how they are kept out of what servers say.

use crate::job::{Encryption, S3, Swift, SwiftAuth, Target};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use tidemark_load::engine::OpenError;
use tidemark_plan::secret::Secret;
use url::Url;

/// A secret that is shorter than this would mask words that only look like it, bytes.
const SHORTEST: usize = 4;

impl Target {
    /// What keeps its secrets out of what servers say.
    pub(crate) fn mask(&self) -> Mask {
        Mask::new(self.secrets())
    }

    /// Its secrets.
    fn secrets(&self) -> Vec<&Secret> {
        match self {
            Target::S3(s3) => s3.secrets(),
            Target::Swift(swift) => vec![swift.secret()],
            Target::Mock(_) | Target::Nothing | Target::Embedded(_) => Vec::new(),
        }
    }

    /// The addresses to which requests go that prove who sends them.
    fn destinations(&self) -> Vec<&str> {
        match self {
            Target::S3(s3) => s3.http.endpoints.iter().map(String::as_str).collect(),
            Target::Swift(swift) => {
                let own = swift.http.endpoints.iter().map(String::as_str);
                own.chain([swift.auth.address()]).collect()
            }
            Target::Mock(_) | Target::Nothing | Target::Embedded(_) => Vec::new(),
        }
    }

    /// Which of its secrets is bound to other addresses than the target's, in a sentence without a full stop.
    pub fn misdirected(&self) -> Option<String> {
        misdirected(self.secrets(), &self.destinations())
    }
}

/// Which of some secrets is bound to other addresses than these, to which it would be sent, in a sentence without a full stop.
pub fn misdirected<'s>(
    secrets: impl IntoIterator<Item = &'s Secret>,
    destinations: &[&str],
) -> Option<String> {
    secrets.into_iter().filter_map(Secret::binding).find_map(|binding| {
        let fits = |to: &str| binding.addresses.iter().any(|known| origin(known) == origin(to));
        let wrong = destinations.iter().find(|to| !fits(to))?;
        Some(format!("{} is bound to other addresses than {wrong}", binding.name))
    })
}

/// What to do about a target that is [misdirected](Target::misdirected).
pub const MISDIRECTED: &str =
    "use the address that the secret is for; the controller's owner binds secrets with --bind-secret";

/// Scheme, host and port of an address; what is no address is only like itself.
fn origin(address: &str) -> Cow<'_, str> {
    match Url::parse(address) {
        Ok(url) => url.origin().ascii_serialization().into(),
        Err(_) => address.into(),
    }
}

impl S3 {
    fn secrets(&self) -> Vec<&Secret> {
        let key = match &self.encryption {
            Some(Encryption::Customer { key }) => key.as_ref(),
            _ => None,
        };
        [&self.access_key, &self.secret_key].into_iter().chain(&self.session_token).chain(key).collect()
    }

    /// What keeps its secrets out of what servers say. The access key is one: a document may have put any secret there.
    pub(crate) fn mask(&self) -> Mask {
        Mask::new(self.secrets())
    }
}

impl Swift {
    fn secret(&self) -> &Secret {
        match &self.auth {
            SwiftAuth::Token { token, .. } => token,
            SwiftAuth::TempAuth { key, .. } => key,
            SwiftAuth::KeystoneV2 { password, .. } | SwiftAuth::KeystoneV3 { password, .. } => password,
        }
    }

    /// What keeps its secret out of what servers say.
    pub(crate) fn mask(&self) -> Mask {
        Mask::new([self.secret()])
    }
}

/// Replaces secrets in texts that servers wrote.
#[derive(Clone, Default)]
pub struct Mask(Vec<String>);

impl Mask {
    /// Knows some secrets.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let mut mask = Self::default();
        secrets.into_iter().for_each(|secret| mask.add(secret));
        mask
    }

    /// Knows another secret from now on.
    pub(crate) fn add(&mut self, secret: &Secret) {
        let text = secret.reveal();
        if text.len() < SHORTEST {
            return;
        }
        self.0.extend(spellings(text));
        // One may be a part of another.
        self.0.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        self.0.dedup();
    }

    /// An error without the secrets.
    pub(crate) fn error(&self, error: OpenError) -> OpenError {
        OpenError(self.apply(error.0).into_owned())
    }

    /// A text without the secrets, nor the beginning of one where it was [`cut`].
    pub fn apply<'t>(&self, text: impl Into<Cow<'t, str>>) -> Cow<'t, str> {
        let whole = self.0.iter().fold(text.into(), |text, secret| match text.contains(secret) {
            true => text.replace(secret, "***").into(),
            false => text,
        });
        let Some((before, behind)) = whole.rsplit_once(CUT) else { return whole };
        let begun = self.0.iter().filter_map(|secret| beginning_at_end(before, secret)).max();
        match begun {
            Some(length) => format!("{}***{CUT}{behind}", &before[..before.len() - length]).into(),
            None => whole,
        }
    }
}

/// Stands where a text was cut.
const CUT: char = '…';

/// At most so many characters of what a server says. Secrets are masked later, so where it was cut is marked.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        // Another mark would hide ours.
        Some((at, _)) => format!("{}{CUT}", text[..at].replace(CUT, "...")),
        None => text.to_owned(),
    }
}

/// How many bytes at a text's end are the beginning of a secret, if they tell something of it.
fn beginning_at_end(text: &str, secret: &str) -> Option<usize> {
    let lengths = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= SHORTEST).rev();
    lengths.into_iter().find(|length| text.ends_with(&secret[..*length]))
}

/// How a server may repeat a text.
fn spellings(text: &str) -> Vec<String> {
    let percent = |kept: &dyn Fn(u8) -> bool| -> String {
        let one = |byte: u8| match kept(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        text.bytes().map(one).collect()
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let quoted = serde_json::Value::from(text).to_string();
    let mut all = vec![
        text.to_owned(),
        percent(&plain),
        percent(&plain).to_lowercase(),
        percent(&|byte| plain(byte) || byte == b'/'),
        escaped.replace('"', "&quot;"),
        escaped,
        quoted.trim_matches('"').to_owned(),
        STANDARD.encode(text),
    ];
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Http;
    use tidemark_plan::secret::Binding;

    fn bound(address: &str) -> Secret {
        let binding = Binding { name: "TIDEMARK_SECRET_S3".into(), addresses: vec![address.into()] };
        Secret::new("hunter2").bound(Some(binding))
    }

    fn http(endpoints: &[&str]) -> Http {
        Http { endpoints: endpoints.iter().map(|one| (*one).to_owned()).collect(), ..Http::default() }
    }

    #[test]
    fn a_bound_secret_goes_to_its_address_only() {
        let s3 = |endpoints: &[&str]| {
            Target::S3(S3 {
                http: http(endpoints),
                access_key: "AK".into(),
                secret_key: bound("http://10.0.0.1:8000/"),
                session_token: None,
                region: String::new(),
                path_style: true,
                sign_payload: false,
                storage_class: None,
                encryption: None,
            })
        };
        assert_eq!(s3(&["http://10.0.0.1:8000"]).misdirected(), None);
        for others in [
            &["http://10.0.0.1:8001"][..],
            &["https://10.0.0.1:8000"],
            &["http://10.0.0.1:8000", "http://evil:8000"],
            &["http://10.0.0.1:8000.evil.example"],
        ] {
            let said = s3(others).misdirected().unwrap();
            assert!(said.contains("TIDEMARK_SECRET_S3") && !said.contains("hunter2"), "{said}");
        }
        let swift = |url: &str, endpoints: &[&str]| {
            let key = bound("https://auth:443");
            let auth = SwiftAuth::TempAuth { url: url.into(), user: "u".into(), key };
            Target::Swift(Swift { http: http(endpoints), auth, policy: None })
        };
        assert_eq!(swift("https://auth/v1.0", &[]).misdirected(), None);
        assert!(swift("https://evil/v1.0", &[]).misdirected().is_some());
        assert!(
            swift("https://auth/v1.0", &["https://evil"]).misdirected().is_some(),
            "the token goes there"
        );
    }

    #[test]
    fn secrets_are_masked_however_a_server_spells_them() {
        let mask = Mask::new([&Secret::new("a/b+c&\"d<e"), &Secret::new("ab")]);
        for said in [
            "key a/b+c&\"d<e is wrong",
            "key=a%2Fb%2Bc%26%22d%3Ce is wrong",
            "key=a%2fb%2bc%26%22d%3ce is wrong",
            "<Key>a/b+c&amp;&quot;d&lt;e</Key>",
            "<Key>a/b+c&amp;\"d&lt;e</Key>",
            "{\"key\": \"a/b+c&\\\"d<e\"}",
            &format!("Basic {}", STANDARD.encode("a/b+c&\"d<e")),
        ] {
            let masked = mask.apply(said);
            assert!(masked.contains("***") && !masked.contains("b+c") && !masked.contains("%2"), "{masked}");
        }
        assert_eq!(mask.apply("about"), "about", "two letters are no secret");
    }

    #[test]
    fn no_part_of_a_secret_is_left_where_a_text_was_cut() {
        let mask = Mask::new([&Secret::new("wJalrXUtnFEMI/K7MDENG")]);
        let said = "… the key wJalrXUtnFEMI/K7MDENG is wrong";
        for most in 0..said.chars().count() {
            let masked = mask.apply(cut(said, most)).into_owned();
            assert!(!masked.contains("wJal"), "{most}: {masked}");
        }
        assert_eq!(mask.apply(cut(said, 20)), "... the key ***…");
        assert_eq!(mask.apply(cut("it is long", 5)), "it is…");
        assert_eq!(cut("short", 5), "short");
    }
}
