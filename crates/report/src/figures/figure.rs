//! A figure: a drawing with a name, a title and the same in words.

use crate::text::{escape, plain_name};

/// Width of figures, in pixels: two fit side by side.
pub(super) const WIDTH: u32 = 540;

/// Width of figures that have a page's whole width, in pixels.
pub(super) const WHOLE_WIDTH: u32 = 1112;

/// Height of the title and width of the margin that only a stand-alone figure has: a page has its own.
const TITLE_HEIGHT: u32 = 34;
const MARGIN: u32 = 12;

/// Colours and strokes of figures, for the page that inlines them.
///
/// The hues are those of Okabe and Ito (Color Universal Design, 2008), darkened or lightened until text in them
/// has a contrast of 4.5 to 1 on the paper.
pub(crate) const STYLE: &str = include_str!("figure.css");

/// A figure: what it shows, in words and as a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// A short stable name for files and links: `throughput`, `latency-read`.
    pub name: String,
    /// What it shows: its caption.
    pub title: String,
    /// The same in words and numbers, for those who do not see it.
    pub description: String,
    /// The stage of a run that it is about, by its id; empty: all of it.
    pub stage: String,
    /// The work that it is about, by its name; empty: all of the stage.
    pub work: String,
    width: u32,
    height: u32,
    body: String,
}

impl Figure {
    /// A drawing of the usual width and this height, in pixels; its name is made fit for files.
    pub(super) fn new(name: &str, title: &str, description: &str, height: u32, body: String) -> Self {
        Self {
            name: plain_name(name),
            title: title.into(),
            description: description.into(),
            stage: String::new(),
            work: String::new(),
            width: WIDTH,
            height: height.max(1),
            body,
        }
    }

    /// The same drawing, which has a page's whole width.
    pub(super) fn whole_width(self) -> Self {
        Self { width: WHOLE_WIDTH, ..self }
    }

    /// Whether it has a page's whole width.
    pub(crate) fn has_whole_width(&self) -> bool {
        self.width == WHOLE_WIDTH
    }

    /// The same figure under another name.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: plain_name(name), ..self }
    }

    /// The same figure, known to be about a stage and one of its works, or all of them.
    pub(crate) fn placed(self, stage: &str, work: &str) -> Self {
        Self { stage: stage.into(), work: work.into(), ..self }
    }

    /// The same figure with another title.
    pub(crate) fn titled(self, title: &str) -> Self {
        Self { title: title.into(), ..self }
    }

    /// The figure as an element of a page that has [`STYLE`]; `id` must be unique in that page.
    pub(crate) fn inline(&self, id: &str) -> String {
        let id = plain_name(id);
        format!(
            "<svg class=\"fig\" role=\"img\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            self.width,
            self.height,
            escape(&self.title),
            escape(&self.description),
            self.body
        )
    }

    /// Width and height of the stand-alone figure, in pixels.
    pub(super) fn size(&self) -> (u32, u32) {
        (self.width + 2 * MARGIN, self.height + TITLE_HEIGHT + MARGIN)
    }

    /// The figure as a complete SVG document on white paper that any program can show: its style has plain values, for
    /// variables and media queries are understood by browsers only.
    pub fn standalone(&self) -> String {
        let (left, top) = (-f64::from(MARGIN), -f64::from(TITLE_HEIGHT));
        let (width, height) = self.size();
        let (title, description, style) = (escape(&self.title), escape(&self.description), plain_style());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" role=\"img\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{left} {top} {width} {height}\" aria-labelledby=\"t d\">\n<title id=\"t\">{title}</title>\n\
             <desc id=\"d\">{description}</desc>\n<style>{style}</style>\n\
             <rect class=\"paper\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>\n\
             <text class=\"headline\" x=\"0\" y=\"-8\">{title}</text>\n{}\n</svg>\n",
            self.body
        )
    }
}

/// [`STYLE`] in the light theme, each variable replaced by its value.
///
/// The first rule of the style sheet holds the light theme's variables, the media queries follow, a line each; then
/// come the rules.
fn plain_style() -> String {
    let mut lines = STYLE.lines();
    let theme = lines.next().unwrap_or_default();
    let theme = theme.split_once('{').map_or("", |(_, rest)| rest.trim_end_matches('}'));
    let rules: Vec<&str> = lines.filter(|line| !line.starts_with('@')).collect();
    let variables = theme.split(';').filter_map(|variable| variable.split_once(':'));
    variables.fold(rules.join("\n"), |style, (name, value)| style.replace(&format!("var({name})"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_plain_values_only() {
        let style = plain_style();
        assert!(style.contains(".fig .c0{stroke:#0067a5}"), "{style}");
        for foreign in ["var(", "@media", "--", ":root"] {
            assert!(!style.contains(foreign), "{foreign} in {style}");
        }
    }
}
