//! What values refer to outside their document: environment variables, and files that hold secrets.
//!
//! A variable that holds a secret, as its name says, is put into a [`Secret`] and nowhere else: whatever is read from other
//! values may be quoted, shown and stored.

use crate::diagnostic::Code;
use crate::kinds::Problem;
use crate::secret::{Binding, Secret, is_secret_variable};
use std::path::Path;

/// Where variables and files are looked up.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// The value of an environment variable, if it is set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The content of a file.
    pub file: &'a dyn Fn(&Path) -> std::io::Result<String>,
    /// The addresses to which a variable's value or a file's content may be sent; `None`: to any.
    pub bound: &'a dyn Fn(&str) -> Option<Vec<String>>,
}

/// A text with the values of variables in it.
#[derive(Debug, Default)]
pub struct Expanded {
    /// It.
    pub text: String,
    /// The text as the document has it.
    written: String,
    /// The variables in it, and their values.
    variables: Vec<(String, String)>,
}

/// Values of variables that are shorter than this may stand in a message by chance, characters.
const SHORTEST: usize = 4;

impl Expanded {
    /// A problem with it in the words of the document: variables stand by their names.
    pub(crate) fn as_written(&self, problem: Problem) -> Problem {
        if self.variables.is_empty() {
            return problem;
        }
        let restore = |text: String| {
            let text = text.replace(&self.text, &self.written);
            let long = self.variables.iter().filter(|(_, value)| value.chars().count() >= SHORTEST);
            long.fold(text, |text, (name, value)| text.replace(value, &format!("${{{name}}}")))
        };
        let (message, help) = (restore(problem.message), restore(problem.help));
        Problem { message, help, span: None, code: problem.code }
    }
}

impl Outside<'_> {
    /// The text with every `${NAME}` replaced by the variable's value, for all but secrets; placeholders are refused.
    /// Problems name variables and placeholders, never values.
    ///
    /// # Errors
    /// When a variable is not set or holds a secret, or something stands where a value was to be filled in.
    pub fn expand(&self, text: &str) -> Result<Expanded, Problem> {
        if is_placeholder(text) {
            let message = format!("`{}` is a placeholder", text.trim());
            return Err(Problem::new(message, INSTEAD_OF_PLACEHOLDER));
        }
        self.fill(text, false)
    }

    /// The same for a secret.
    ///
    /// # Errors
    /// When a variable is not set, or something stands where a value was to be filled in.
    pub fn secret(&self, text: &str) -> Result<Secret, Problem> {
        if is_placeholder(text) {
            // Not quoted: it may be the secret all the same.
            return Err(Problem::new("the value is a placeholder", INSTEAD_OF_PLACEHOLDER));
        }
        let filled = self.fill(text, true)?;
        if filled.text.trim().is_empty() {
            return Err(Problem::new("the text is empty", "write something, or leave the key out"));
        }
        let bindings = filled.variables.iter().filter_map(|(name, _)| self.binding(name));
        Ok(Secret::new(filled.text).bound(bindings.reduce(Binding::and)))
    }

    fn fill(&self, text: &str, into_secret: bool) -> Result<Expanded, Problem> {
        let mut filled = Expanded { written: text.to_owned(), ..Expanded::default() };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else {
                return Err(Problem::new("`${` has no closing `}`", "write ${NAME}"));
            };
            if !into_secret && is_secret_variable(name) {
                let message = format!("the environment variable {name} holds a secret, as its name says");
                return Err(Problem::new(message, ONLY_IN_SECRETS));
            }
            let Some(value) = (self.variable)(name).filter(|value| !value.is_empty()) else {
                let message = format!("the environment variable {name} is not set");
                let problem = Problem::new(message, format!("set it before the run: export {name}=..."));
                return Err(problem.about(Code::UnsetVariable(name.to_owned())));
            };
            if is_placeholder(&value) {
                let message = format!("the environment variable {name} holds a placeholder");
                return Err(Problem::new(message, "set it to the real value"));
            }
            filled.text += before;
            filled.text += &value;
            filled.variables.push((name.to_owned(), value));
            rest = behind;
        }
        filled.text += rest;
        Ok(filled)
    }

    /// What a file holds, without line breaks at its end.
    ///
    /// # Errors
    /// When it cannot be read, or holds nothing.
    pub fn content(&self, path: &str) -> Result<Secret, Problem> {
        let content = (self.file)(Path::new(path)).map_err(|error| {
            Problem::new(format!("{path} cannot be read: {error}"), "check the path and its permissions")
        })?;
        match content.trim_end_matches(['\n', '\r']) {
            "" => Err(Problem::new(format!("{path} is empty"), "put the value into the file")),
            value => Ok(Secret::new(value).bound(self.binding(path))),
        }
    }

    /// The addresses to which a variable or a file is bound, if it is.
    pub fn binding(&self, name: &str) -> Option<Binding> {
        Some(Binding { name: name.to_owned(), addresses: (self.bound)(name)? })
    }
}

const INSTEAD_OF_PLACEHOLDER: &str = "replace it with the real value, or with ${NAME} for a variable";

/// What to do with a variable that holds a secret and stands elsewhere.
pub const ONLY_IN_SECRETS: &str = "use it only as an access key, secret key, password or token; write other values out, or rename the variable";

/// Whether a text stands where a value was to be filled in: `<accesskey>`, `CHANGE_ME`, `your-key-here`.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let bracketed = text.starts_with('<') && text.ends_with('>') && text.len() > 2;
    let yours = ["your-", "your_", "my-secret", "insert-"];
    bracketed
        || ["changeme", "changeit", "todo", "fixme", "replaceme", "xxx", "xxxx"].contains(&plain.as_str())
        || yours.iter().any(|start| text.to_lowercase().starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_and_placeholders_refused() {
        let variable = |name: &str| match name {
            "HOST" => Some("10.0.0.1".to_owned()),
            "STALE" => Some("<secret>".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let file = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let outside = Outside { variable: &variable, file: &file, bound: &|_| None };
        let expand =
            |text| outside.expand(text).map(|expanded| expanded.text).map_err(|problem| problem.message);
        assert_eq!(expand("http://${HOST}:80/${HOST}"), Ok("http://10.0.0.1:80/10.0.0.1".into()));
        assert_eq!(expand("pa$$word {x}"), Ok("pa$$word {x}".into()));
        assert_eq!(expand("${NOT_SET}"), Err("the environment variable NOT_SET is not set".into()));
        assert_eq!(expand("${EMPTY}"), Err("the environment variable EMPTY is not set".into()));
        assert_eq!(expand("${STALE}"), Err("the environment variable STALE holds a placeholder".into()));
        for placeholder in ["<accesskey>", "CHANGE_ME", "changeme", "your-secret-key", "XXXX"] {
            assert_eq!(expand(placeholder), Err(format!("`{placeholder}` is a placeholder")));
        }
        assert!(expand("${HOST").is_err());
        assert!(expand("<").is_ok());
    }
    #[test]
    fn variables_with_secrets_are_put_into_secrets_only() {
        let variable = |name: &str| Some(format!("hunter2-of-{}", name.len()));
        let bound =
            |name: &str| (name != "DB_PASS").then(|| vec![format!("http://{name}"), "http://h".to_owned()]);
        let outside = Outside { variable: &variable, file: &|_| Ok("hunter2".into()), bound: &bound };
        let long = format!("TIDEMARK_SECRET_{}", "X".repeat(60));
        for name in ["TIDEMARK_SECRET_S3", &long, "AWS_SECRET_ACCESS_KEY", "DB_PASS", "LAB_SWIFT_KEY"] {
            let text = format!("http://${{{name}}}");
            let refused = outside.expand(&text).unwrap_err();
            assert!(
                refused.message.contains(name) && refused.message.contains("holds a secret"),
                "{refused:?}"
            );
            assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
            assert!(outside.secret(&text).unwrap().reveal().starts_with("http://hunter2"));
        }
        let addresses = |text: &str| outside.secret(text).unwrap().binding().map(|one| one.addresses.clone());
        assert_eq!(addresses("plain"), None);
        assert_eq!(addresses("${DB_PASS}"), None);
        assert_eq!(addresses("${A_KEY}${B_KEY}"), Some(vec!["http://h".to_owned()]), "what both allow");
        assert_eq!(outside.content("key").unwrap().binding().unwrap().addresses, ["http://key", "http://h"]);
        assert!(!format!("{:?}", outside.secret("<hunter2>").unwrap_err()).contains("hunter2"));
    }

    #[test]
    fn problems_quote_what_the_document_says() {
        let outside = Outside {
            variable: &|_| Some("db:hunter2@h".into()),
            file: &|_| Ok(String::new()),
            bound: &|_| None,
        };
        let expanded = outside.expand("x${HOST}").unwrap();
        let problem = Problem::new("'xdb:hunter2@h' is no address", "did you mean db:hunter2@h?");
        let problem = expanded.as_written(problem);
        assert_eq!(
            (&*problem.message, &*problem.help),
            ("'x${HOST}' is no address", "did you mean ${HOST}?")
        );
    }
}
