//! A table, and how it looks in HTML and in Markdown: the same content in both.

use maud::{Markup, html};

/// A table whose first column names its rows.
pub(crate) struct Table {
    /// What it holds, for screen readers and for those who jump from table to table.
    pub(crate) caption: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// Whether rows with the same first cell are a group, which names it once.
    is_grouped: bool,
    /// A class of its own for the page's style.
    class: Option<&'static str>,
}

struct Column {
    title: String,
    is_number: bool,
}

struct Row {
    /// Each with its lines: the value, and what is said of it below in smaller type.
    cells: Vec<Vec<String>>,
    tone: Tone,
}

/// How a row stands out; its words must say the same, for colour and weight are lost on some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// The sum of the rows above.
    Total,
    /// Something that must not be overlooked.
    Bad,
}

impl Table {
    /// A table without columns and rows.
    pub(crate) fn new(caption: impl Into<String>) -> Self {
        Self {
            caption: caption.into(),
            columns: Vec::new(),
            rows: Vec::new(),
            is_grouped: false,
            class: None,
        }
    }

    /// Adds columns of words.
    pub(crate) fn words<const N: usize>(mut self, titles: [&str; N]) -> Self {
        self.columns.extend(titles.map(|title| Column { title: title.into(), is_number: false }));
        self
    }

    /// Adds columns of numbers, which are set flush right.
    pub(crate) fn numbers(mut self, titles: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns.extend(titles.into_iter().map(|title| Column { title: title.into(), is_number: true }));
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, tone: Tone, cells: Vec<String>) {
        self.lines(tone, cells.into_iter().map(|cell| vec![cell]).collect());
    }

    /// Adds a row whose cells have several lines. A line that begins with ✓ or ✕ has the colour of that mark.
    pub(crate) fn lines(&mut self, tone: Tone, cells: Vec<Vec<String>>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.caption);
        self.rows.push(Row { cells, tone });
    }

    /// Makes groups of the rows that follow each other and have the same first cell; the second cell names the row.
    pub(crate) fn grouped(mut self) -> Self {
        self.is_grouped = true;
        self
    }

    /// Gives it a class of its own.
    pub(crate) fn classed(mut self, class: &'static str) -> Self {
        self.class = Some(class);
        self
    }

    /// Leaves out a column that says the same in every row, the total aside.
    pub(crate) fn without_if_same(self, title: &str) -> Self {
        self.without_if(title, |cells| cells.iter().all(|cell| Some(cell) == cells.first()))
    }

    /// Leaves out a column that says this in every row, the total aside.
    pub(crate) fn without_if_all(self, title: &str, text: &str) -> Self {
        self.without_if(title, |cells| cells.iter().all(|cell| matches!(cell, [only] if only == text)))
    }

    fn without_if(mut self, title: &str, is_idle: impl Fn(&[&[String]]) -> bool) -> Self {
        if let Some(index) = self.columns.iter().position(|column| column.title == title) {
            let rows = self.rows.iter().filter(|row| row.tone != Tone::Total);
            let cells: Vec<&[String]> = rows.map(|row| row.cells[index].as_slice()).collect();
            if is_idle(&cells) {
                self.columns.remove(index);
                self.rows.iter_mut().for_each(|row| drop(row.cells.remove(index)));
            }
        }
        self
    }

    /// Its headings and rows as plain texts; the lines of a cell are joined.
    pub(crate) fn texts(&self) -> Vec<Vec<String>> {
        self.rows_of(|lines| lines.join(", "))
    }

    /// The same with the first line of each cell, and nothing of what is said below it.
    pub(crate) fn first_lines(&self) -> Vec<Vec<String>> {
        self.rows_of(|lines| lines.first().cloned().unwrap_or_default())
    }

    fn rows_of(&self, cell: impl Fn(&[String]) -> String) -> Vec<Vec<String>> {
        let headings = self.columns.iter().map(|column| column.title.clone()).collect();
        let cells = |row: &Row| row.cells.iter().map(|lines| cell(lines)).collect();
        [headings].into_iter().chain(self.rows.iter().map(cells)).collect()
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many rows it has.
    pub(crate) fn length(&self) -> usize {
        self.rows.len()
    }

    /// As an HTML table with headers for rows and columns, in a box that scrolls when the screen is narrow.
    pub(crate) fn html(&self) -> Markup {
        let class = match (self.is_grouped, self.columns.iter().any(|column| column.is_number)) {
            (true, _) => Some("grouped"),
            (false, true) => None,
            (false, false) => Some("facts"),
        };
        let class: Vec<&str> = class.into_iter().chain(self.class).collect();
        let class = Some(class.join(" ")).filter(|class| !class.is_empty());
        let groups = self.rows.chunk_by(|one, next| !self.is_grouped || one.cells[..1] == next.cells[..1]);
        html! {
            div class="scroll" role="region" aria-label=(self.caption) tabindex="0" {
                table class=[class] {
                    caption { (self.caption) }
                    thead {
                        tr { @for column in &self.columns { th scope="col" class=[column.class()] { (column.title) } } }
                    }
                    @for group in groups {
                        "\n"
                        tbody {
                            @for (number, row) in group.iter().enumerate() {
                                "\n" (self.row_html(row, number, group.len()))
                            }
                        }
                    }
                }
            }
            "\n"
        }
    }

    /// A row, and which one of how many in its group it is.
    fn row_html(&self, row: &Row, number: usize, of: usize) -> Markup {
        let class = match row.tone {
            Tone::Plain => None,
            Tone::Total => Some("total"),
            Tone::Bad => Some("bad"),
        };
        html! {
            tr class=[class] {
                @for (index, (cell, column)) in row.cells.iter().zip(&self.columns).enumerate() {
                    @match (self.is_grouped, index) {
                        (true, 0) if number > 0 => {},
                        (true, 0) => th scope="rowgroup" rowspan=(of) class=[column.class()] { (lines_html(cell)) },
                        (false, 0) | (true, 1) => th scope="row" class=[column.class()] { (lines_html(cell)) },
                        _ => td class=[column.class()] { (lines_html(cell)) },
                    }
                }
            }
        }
    }

    /// As a table of GitHub's Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.iter().map(|column| markdown(&column.title)).collect());
        let rule = |column: &Column| if column.is_number { "---:".to_string() } else { "---".into() };
        text += &line(self.columns.iter().map(rule).collect());
        for row in &self.rows {
            let strong = |cell: &Vec<String>| match (row.tone, cell.iter().all(String::is_empty)) {
                (Tone::Plain, _) | (_, true) => markdown(&cell.join("; ")),
                _ => format!("**{}**", markdown(&cell.join("; "))),
            };
            text += &line(row.cells.iter().map(strong).collect());
        }
        text + "\n"
    }
}

fn lines_html(lines: &[String]) -> Markup {
    html! {
        @for (index, line) in lines.iter().enumerate() {
            @let class = match line.chars().next() {
                Some('✓') => Some("good"),
                Some('✕') => Some("bad"),
                _ => None,
            };
            @if index == 0 { (line) } @else if !line.is_empty() { small class=[class] { (line) } }
        }
    }
}

impl Column {
    fn class(&self) -> Option<&'static str> {
        self.is_number.then_some("n")
    }
}

/// Text made safe for one line of Markdown: no markup, no HTML, no line breaks.
pub(crate) fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' => safe.extend(['\\', character]),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            control if control.is_control() => safe.push(' '),
            plain => safe.push(plain),
        }
    }
    safe
}

/// Text as a fenced block of Markdown that it cannot close.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_table_in_two_forms() {
        let mut table = Table::new("c").words(["Op"]).numbers(["Count"]);
        table.row(Tone::Plain, vec!["a|<b>".into(), "1".into()]);
        table.row(Tone::Total, vec!["all".into(), "".into()]);
        assert_eq!(
            table.markdown(),
            "| Op | Count |\n| --- | ---: |\n| a\\|&lt;b&gt; | 1 |\n| **all** |  |\n\n"
        );
        let html = table.html().into_string();
        assert!(html.contains("<th scope=\"row\">a|&lt;b&gt;</th><td class=\"n\">1</td>"), "{html}");
        assert!(html.contains("<tr class=\"total\">"));
    }

    #[test]
    fn a_group_names_itself_once() {
        let mut table = Table::new("c").words(["Load", "Number"]).numbers(["disk"]).grouped();
        for (load, number) in [("a", "p50"), ("a", "p99"), ("b", "p50")] {
            let value = vec!["1 ms".to_string(), "✓ better".into()];
            table.lines(Tone::Plain, vec![vec![load.into()], vec![number.into()], value]);
        }
        let html = table.html().into_string();
        assert_eq!((html.matches("<tbody>").count(), html.matches("scope=\"rowgroup\"").count()), (2, 2));
        assert!(
            html.contains("<th scope=\"rowgroup\" rowspan=\"2\">a</th><th scope=\"row\">p50</th>"),
            "{html}"
        );
        assert!(html.contains("1 ms<small class=\"good\">✓ better</small></td>"), "{html}");
        assert!(table.markdown().contains("| a | p99 | 1 ms; ✓ better |"), "{}", table.markdown());
    }

    #[test]
    fn a_document_cannot_leave_its_block() {
        assert_eq!(fenced("xml", "a\n````\n<b>\n"), "`````xml\na\n````\n<b>\n`````\n");
        assert_eq!(markdown("a\n# b [c](javascript:d)"), "a \\# b \\[c\\](javascript:d)");
    }
}
