//! What values refer to outside their document: environment variables, and files that hold secrets.

use crate::diagnostic::Code;
use crate::kinds::Problem;
use std::path::Path;

/// Where variables and files are looked up.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// The value of an environment variable, if it is set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The content of a file.
    pub file: &'a dyn Fn(&Path) -> std::io::Result<String>,
}

impl Outside<'_> {
    /// The text with every `${NAME}` replaced by the variable's value; placeholders are refused. Problems name
    /// variables and placeholders, never values.
    ///
    /// # Errors
    /// When a variable is not set, or something stands where a value was to be filled in.
    pub fn expand(&self, text: &str) -> Result<String, Problem> {
        if is_placeholder(text) {
            let message = format!("`{}` is a placeholder", text.trim());
            return Err(Problem::new(
                message,
                "replace it with the real value, or with ${NAME} for a variable",
            ));
        }
        let (mut expanded, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else {
                return Err(Problem::new("`${` has no closing `}`", "write ${NAME}"));
            };
            let Some(value) = (self.variable)(name).filter(|value| !value.is_empty()) else {
                let message = format!("the environment variable {name} is not set");
                let problem = Problem::new(message, format!("set it before the run: export {name}=..."));
                return Err(problem.about(Code::UnsetVariable(name.to_owned())));
            };
            if is_placeholder(&value) {
                let message = format!("the environment variable {name} holds a placeholder");
                return Err(Problem::new(message, "set it to the real value"));
            }
            expanded += before;
            expanded += &value;
            rest = behind;
        }
        Ok(expanded + rest)
    }

    /// What a file holds, without line breaks at its end.
    ///
    /// # Errors
    /// When it cannot be read, or holds nothing.
    pub fn content(&self, path: &str) -> Result<String, Problem> {
        let content = (self.file)(Path::new(path)).map_err(|error| {
            Problem::new(format!("{path} cannot be read: {error}"), "check the path and its permissions")
        })?;
        match content.trim_end_matches(['\n', '\r']) {
            "" => Err(Problem::new(format!("{path} is empty"), "put the value into the file")),
            value => Ok(value.to_owned()),
        }
    }
}

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
        let outside = Outside { variable: &variable, file: &|_| Err(std::io::ErrorKind::NotFound.into()) };
        let expand = |text| outside.expand(text).map_err(|problem| problem.message);
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
}
