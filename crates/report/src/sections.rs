//! What engines show of their evidence, in HTML and in Markdown.

use crate::figures::{self, Figure};
use crate::html::parts::{charts, maybe_folded, paragraph};
use crate::table::{Forms as _, Table, markdown as plain};
use maud::{Markup, html};
use tidemark_judge::evidence;
use tidemark_judge::section::{Block, Section};
use tidemark_measure::record::Run;

/// The sections of a run: those that have something to show.
pub(crate) fn of_run(run: &Run) -> Vec<Section> {
    let mut sections = evidence::sections(run);
    sections.iter_mut().for_each(|section| section.blocks = shown(std::mem::take(&mut section.blocks)));
    sections.retain(|section| !section.blocks.is_empty());
    sections
}

/// What the end of a run shows on a terminal, as rows of texts below their headings; each with the number of columns of words.
pub fn in_short(run: &Run) -> Vec<(Vec<Vec<String>>, usize)> {
    let tables = evidence::sections(run).into_iter().filter_map(|section| section.in_short);
    let of = |table: Table| {
        let words = table.columns.iter().filter(|column| !column.is_number).count();
        (table.texts(), words)
    };
    tables.filter(|table| !table.is_empty()).map(of).collect()
}

/// Every figure of them.
pub(crate) fn figures(run: &Run, most_points: usize) -> Vec<Figure> {
    let blocks = of_run(run).into_iter().flat_map(|section| section.blocks);
    let lines = blocks.filter_map(|block| match block {
        Block::Lines(lines) => figures::by_step(&lines, most_points),
        _ => None,
    });
    lines.collect()
}

/// Leaves out what is empty, the legends of it, and headings that nothing follows.
fn shown(blocks: Vec<Block>) -> Vec<Block> {
    let (mut shown, mut heading, mut is_empty) = (Vec::new(), None, false);
    for block in blocks {
        match block {
            Block::Heading(_) => heading = Some(block),
            Block::Legend(_) if is_empty => {}
            _ => {
                is_empty = match &block {
                    Block::Table(table) | Block::Folded(table, _) => table.is_empty(),
                    Block::Lines(lines) => figures::by_step(lines, figures::MOST_POINTS).is_none(),
                    Block::Heading(_) | Block::Legend(_) => false,
                };
                if !is_empty {
                    shown.extend(heading.take());
                    shown.push(block);
                }
            }
        }
    }
    shown
}

/// A section of a page; lines of its charts have no more points than these.
pub(crate) fn html(section: &Section, most_points: usize) -> Markup {
    let is_chart = |block: &&Block| matches!(block, Block::Lines(_));
    html! {
        section id=(section.id) {
            h2 { (section.title) } "\n"
            @for group in section.blocks.chunk_by(|one, other| is_chart(&one) && is_chart(&other)) {
                @match &group[0] {
                    Block::Heading(text) => h3 { (text) },
                    Block::Legend(text) => (paragraph("legend", text)),
                    Block::Table(table) => (table.html()),
                    Block::Folded(table, most) => (maybe_folded(&table.caption, table, *most)),
                    Block::Lines(_) => (charts(section.id, &drawn(group, most_points))),
                }
            }
        }
        "\n"
    }
}

fn drawn(group: &[Block], most_points: usize) -> Vec<Figure> {
    let lines = group.iter().filter_map(|block| match block {
        Block::Lines(lines) => figures::by_step(lines, most_points),
        _ => None,
    });
    lines.collect()
}

/// A section in GitHub's Markdown, without its charts.
pub(crate) fn markdown(section: &Section) -> String {
    let mut text = format!("## {}\n\n", plain(section.title));
    for block in &section.blocks {
        text += &match block {
            Block::Heading(words) => format!("### {}\n\n", plain(words)),
            Block::Legend(words) => format!("{}\n\n", plain(words)),
            Block::Table(table) | Block::Folded(table, _) => Table::markdown(table),
            Block::Lines(_) => String::new(),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Tone;
    use tidemark_judge::section::{Lines, Unit};

    fn table(rows: &[&str]) -> Block {
        let mut table = Table::new("naps").words(["Bed"]);
        rows.iter().for_each(|row| table.row(Tone::Plain, vec![(*row).to_owned()]));
        Block::Table(table)
    }

    fn lines(steps: u32) -> Block {
        let points = (1..=steps).map(|step| (step, f64::from(step) * 1e6)).collect();
        Block::Lines(Lines {
            name: "nap-by-night",
            title: "Naps by night",
            steps: "night",
            unit: Unit::Time,
            lines: vec![("<soft>".into(), points)],
        })
    }

    fn words(blocks: Vec<Block>) -> Vec<String> {
        let word = |block: &Block| match block {
            Block::Heading(text) | Block::Legend(text) => text.clone(),
            Block::Table(_) => "table".into(),
            _ => "lines".into(),
        };
        shown(blocks).iter().map(word).collect()
    }

    #[test]
    fn what_is_empty_goes_with_its_heading_and_its_legend() {
        let heading = |text: &str| Block::Heading(text.into());
        let legend = |text: &str| Block::Legend(text.into());
        let blocks =
            vec![heading("a"), table(&[]), legend("of a"), heading("b"), table(&["x"]), legend("of b")];
        assert_eq!(words(blocks), ["b", "table", "of b"]);
        assert!(words(vec![heading("a"), lines(1)]).is_empty(), "a line needs two points");
        assert_eq!(words(vec![heading("a"), lines(2)]), ["a", "lines"]);
    }

    #[test]
    fn both_forms_have_the_same_and_names_cannot_leave_their_cells() {
        let blocks = vec![lines(3), table(&["<b>|"])];
        let section = Section { id: "naps", title: "Naps", blocks, in_short: None };
        let page = html(&section, 100).into_string();
        assert!(
            page.contains("id=\"naps\"") && page.contains("&lt;b&gt;|") && !page.contains("<soft>"),
            "{page}"
        );
        assert!(page.contains("&lt;soft&gt;: 1.00 ms in night 1, 3.00 ms in night 3."), "{page}");
        let text = markdown(&section);
        assert!(text.starts_with("## Naps\n\n| Bed |") && text.contains("&lt;b&gt;\\|"), "{text}");
    }
}
