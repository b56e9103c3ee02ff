//! What a document refers to outside itself: environment variables, files that hold secrets, other documents, sizes of devices.
//!
//! Nothing else of the machine is touched while a document is read, whatever its format.

use super::table::{Problem, Table};
use crate::diagnostic::Code;
use crate::registry::Registry;
use crate::secret::Secret;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// A file with a secret is not larger than this; bytes.
const LARGEST_SECRET: u64 = 64 << 10;

/// A document that another one refers to is not larger than this; bytes.
const LARGEST_DOCUMENT: u64 = 8 << 20;

/// Where environment variables, secret files, documents and devices are looked up. What comes over a network is read with
/// one that refuses; its errors are shown to the document's author.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// The engines and formats that the document may use.
    pub registry: &'a Registry,
    /// The value of an environment variable, if it is set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The content of a file.
    pub file: &'a dyn Fn(&Path) -> std::io::Result<String>,
    /// The text of a document that another one refers to.
    pub document: &'a dyn Fn(&Path) -> std::io::Result<String>,
    /// The size of a block device, bytes.
    pub device_size: &'a dyn Fn(&Path) -> std::io::Result<u64>,
}

impl<'a> Environment<'a> {
    /// This process's environment and file system: the one place that reads them.
    pub fn process(registry: &'a Registry) -> Self {
        Self {
            registry,
            variable: &|name| std::env::var(name).ok(),
            file: &read_file,
            document: &read_document,
            device_size: &device_size,
        }
    }
}

fn device_size(path: &Path) -> std::io::Result<u64> {
    // Asked before it is opened: opening a pipe waits for its other end.
    if !std::fs::metadata(path)?.file_type().is_block_device() {
        return Err(std::io::Error::other("it is not a block device"));
    }
    std::fs::File::open(path)?.seek(SeekFrom::End(0))
}

fn read_document(path: &Path) -> std::io::Result<String> {
    // Asked before it is opened, as above.
    let found = std::fs::metadata(path)?;
    match found.is_file() && found.len() <= LARGEST_DOCUMENT {
        true => std::fs::read_to_string(path),
        false => Err(std::io::Error::other("it is not a file of at most 8 MiB")),
    }
}

fn read_file(path: &Path) -> std::io::Result<String> {
    let mut content = String::new();
    std::fs::File::open(path)?.take(LARGEST_SECRET).read_to_string(&mut content)?;
    Ok(content)
}

impl Environment<'_> {
    /// The text with every `${NAME}` replaced by the variable's value; placeholders are refused. Problems name
    /// variables and placeholders, never values.
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

    /// A text with references to the environment.
    pub fn text(&self, table: &mut Table<'_>, key: &'static str) -> Option<String> {
        table.read(key, |text| self.expand(&super::table::text(text)?))
    }

    /// A text with references to the environment, or the content of the file that `file_key` names.
    pub fn text_or_file(
        &self,
        table: &mut Table<'_>,
        key: &'static str,
        file_key: &'static str,
    ) -> Option<String> {
        table.contradiction(key, file_key, "both set the same value");
        let from_file = table.read(file_key, |path| {
            let path = self.expand(path)?;
            let content = (self.file)(Path::new(&path)).map_err(|error| {
                Problem::new(format!("{path} cannot be read: {error}"), "check the path and its permissions")
            })?;
            match content.trim_end_matches(['\n', '\r']) {
                "" => Err(Problem::new(format!("{path} is empty"), "put the value into the file")),
                value => Ok(value.to_owned()),
            }
        });
        from_file.or_else(|| self.text(table, key))
    }

    /// The same, kept from being printed.
    pub fn secret(&self, table: &mut Table<'_>, key: &'static str, file_key: &'static str) -> Option<Secret> {
        self.text_or_file(table, key, file_key).map(Secret::new)
    }

    /// The same, required.
    pub fn required_secret(
        &self,
        table: &mut Table<'_>,
        key: &'static str,
        file_key: &'static str,
    ) -> Secret {
        if !table.has(key) && !table.has(file_key) {
            table.missing(key, &format!("write it, or a reference such as ${{NAME}}, or `{file_key}: path`"));
        }
        self.secret(table, key, file_key).unwrap_or_default()
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
        let registry = Registry::default();
        let environment = Environment { variable: &variable, ..Environment::process(&registry) };
        let expand = |text| environment.expand(text).map_err(|problem| problem.message);
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
