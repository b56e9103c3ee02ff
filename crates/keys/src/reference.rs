//! Declarations as tables in Markdown, for people.

use crate::key::{Absent, AnyKey, Mapping};

/// The mark before what is generated.
const BEGIN: &str = "<!-- keys: ";

/// The mark after it.
const END: &str = "<!-- end of keys -->\n";

/// The tables of all mappings.
#[derive(Default)]
pub struct Reference {
    /// Names and tables.
    tables: Vec<(String, String)>,
    keys: Vec<&'static AnyKey>,
    /// Kinds that stand in a table.
    kinds: Vec<&'static Mapping>,
}

impl Reference {
    /// Adds a table of keys, and those of the mappings that they hold.
    pub fn keys(&mut self, name: &str, keys: &[&'static AnyKey]) {
        if self.tables.iter().any(|(known, _)| known == name) {
            return;
        }
        let rows: String = keys.iter().map(|key| format!("| {} |\n", row(key))).collect();
        self.tables
            .push((name.to_owned(), format!("| key | value | default | |\n|---|---|---|---|\n{rows}")));
        self.below(keys);
    }

    /// Adds the table of a mapping.
    pub fn mapping(&mut self, mapping: &'static Mapping) {
        self.keys(mapping.name, mapping.keys);
        mapping.with.iter().for_each(|other| self.mapping(other));
    }

    /// Adds a table of several mappings, which are kinds of one thing. What some of them share comes last; what a single one
    /// shares with others elsewhere has a table of its own, as has what is shared by what they share. Kinds that stand in an earlier
    /// table are only named.
    pub fn kinds(&mut self, name: &str, kinds: &[&'static Mapping]) {
        let mut rows = String::new();
        let is_known = |kind: &&'static Mapping| self.kinds.iter().any(|known| std::ptr::eq(*known, *kind));
        if self.table(name).is_some() && kinds.iter().all(is_known) {
            return;
        }
        let (known, kinds): (Vec<&'static Mapping>, Vec<_>) = kinds.iter().copied().partition(is_known);
        for kind in known {
            rows += &format!("| `{}` | | | | {}: with the keys above |\n", kind.name, kind.about);
        }
        self.kinds.extend(&kinds);
        for kind in &kinds {
            rows += &format!("| `{}` | | | | {} |\n", kind.name, kind.about);
            kind.keys.iter().for_each(|key| rows += &format!("| | {} |\n", row(key)));
        }
        let mut shared: Vec<&'static Mapping> = Vec::new();
        for other in kinds.iter().flat_map(|kind| kind.with).copied() {
            if !shared.iter().any(|known| known.name == other.name) {
                shared.push(other);
            }
        }
        shared.retain(|other| !kinds.iter().any(|kind| kind.name == other.name));
        for other in &shared {
            let has = |kind: &&&'static Mapping| kind.with.iter().any(|known| known.name == other.name);
            let names: Vec<_> = kinds.iter().filter(has).map(|kind| format!("`{}`", kind.name)).collect();
            if names.len() == 1 {
                self.mapping(other);
                continue;
            }
            let all = names.len() == kinds.len();
            let names = if all { "all".to_owned() } else { names.join(", ") };
            rows += &format!("| {names} | | | | |\n");
            other.keys.iter().for_each(|key| rows += &format!("| | {} |\n", row(key)));
            self.below(other.keys);
            other.with.iter().for_each(|further| self.mapping(further));
        }
        self.tables
            .push((name.to_owned(), format!("| | key | value | default | |\n|---|---|---|---|---|\n{rows}")));
        kinds.iter().for_each(|kind| self.below(kind.keys));
    }

    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&str> {
        self.tables.iter().find(|(known, _)| known == name).map(|(_, table)| table.as_str())
    }

    /// All keys in it.
    pub fn declared(&self) -> &[&'static AnyKey] {
        &self.keys
    }

    fn below(&mut self, keys: &[&'static AnyKey]) {
        self.keys.extend(keys);
        for key in keys {
            match key.shape.mappings()[..] {
                [] => {}
                [mapping] if !mapping.is_kind => self.mapping(mapping),
                ref kinds => self.kinds(key.name, kinds),
            }
        }
    }

    /// A text with what is generated renewed, between its marks.
    ///
    /// # Errors
    /// The tables that the text lacks, and those that it has although there is nothing of their name.
    pub fn renew(&self, text: &str) -> Result<String, Vec<String>> {
        let (mut out, mut rest) = (String::new(), text);
        let (mut wrong, mut left) = (Vec::new(), self.tables.iter().collect::<Vec<_>>());
        while let Some((before, after)) = rest.split_once(BEGIN) {
            let (name, inside) = after.split_once(" -->\n").unwrap_or((after, ""));
            rest = inside.split_once(END).map_or("", |(_, behind)| behind);
            match left.iter().position(|(known, _)| known == name) {
                Some(place) => out += &format!("{before}{BEGIN}{name} -->\n{}{END}", left.remove(place).1),
                None => wrong.push(format!("there are no keys `{name}`, or twice")),
            }
        }
        wrong.extend(left.iter().map(|(name, _)| format!("the keys `{name}` are missing")));
        if wrong.is_empty() { Ok(out + rest) } else { Err(wrong) }
    }
}

/// A key's cells.
fn row(key: &AnyKey) -> String {
    let variable = if key.expands { " with `${NAME}`" } else { "" };
    let value = format!("{}{variable}", key.shape.words());
    let absent = match key.absent {
        Absent::Required(_) => "required".to_owned(),
        Absent::Default(text) => format!("`{text}`"),
        Absent::Otherwise("") => "none".to_owned(),
        Absent::Otherwise(words) => words.to_owned(),
    };
    let example = if key.example.is_empty() { String::new() } else { format!(", such as `{}`", key.example) };
    let cells = [format!("`{}`", key.name), value, absent, format!("{}{example}", key.about)];
    cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
}
