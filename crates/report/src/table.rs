//! How a table looks in HTML and in Markdown: the same content in both.

use maud::{Markup, html};
use tidemark_judge::section::{Column, Row};
pub(crate) use tidemark_judge::section::{Table, Tone};

/// The forms of a table.
pub(crate) trait Forms {
    /// As an HTML table with headers for rows and columns, in a box that scrolls when the screen is narrow.
    fn html(&self) -> Markup;
    /// As a table of GitHub's Markdown.
    fn markdown(&self) -> String;
}

impl Forms for Table {
    fn html(&self) -> Markup {
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
                        tr { @for column in &self.columns { th scope="col" class=[alignment(column)] { (column.title) } } }
                    }
                    @for group in groups {
                        "\n"
                        tbody {
                            @for (number, row) in group.iter().enumerate() {
                                "\n" (row_html(self, row, number, group.len()))
                            }
                        }
                    }
                }
            }
            "\n"
        }
    }

    fn markdown(&self) -> String {
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

/// A row, and which one of how many in its group it is.
fn row_html(table: &Table, row: &Row, number: usize, of: usize) -> Markup {
    let class = match row.tone {
        Tone::Plain => None,
        Tone::Total => Some("total"),
        Tone::Bad => Some("bad"),
    };
    html! {
        tr class=[class] {
            @for (index, (cell, column)) in row.cells.iter().zip(&table.columns).enumerate() {
                @match (table.is_grouped, index) {
                    (true, 0) if number > 0 => {},
                    (true, 0) => th scope="rowgroup" rowspan=(of) class=[alignment(column)] { (lines_html(cell)) },
                    (false, 0) | (true, 1) => th scope="row" class=[alignment(column)] { (lines_html(cell)) },
                    _ => td class=[alignment(column)] { (lines_html(cell)) },
                }
            }
        }
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

fn alignment(column: &Column) -> Option<&'static str> {
    column.is_number.then_some("n")
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
