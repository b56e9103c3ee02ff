//! Figures as PNG, for slides and documents that take no SVG.
//!
//! Text is set in DejaVu Sans Condensed, which is part of the program: a figure looks the same on every machine, also
//! on one without fonts. Its licence (Bitstream Vera) allows embedding.

use super::Figure;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Source};
use resvg::usvg::{Options, Tree};
use std::sync::{Arc, OnceLock};

/// The only family that there is.
const FAMILY: &str = "DejaVu Sans";

/// Widths that are drawn, in pixels.
const WIDTHS: std::ops::RangeInclusive<u32> = 16..=8_192;

/// A figure could not be drawn as PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The width is not one of those that can be drawn.
    #[error("a figure cannot be {0} pixels wide; take {min} to {max}", min = WIDTHS.start(), max = WIDTHS.end())]
    Width(u32),
    /// The drawing was not understood, or the image not written.
    #[error("the figure {name} could not be drawn: {reason}")]
    Drawing {
        /// The figure's name.
        name: String,
        /// What the drawing library says.
        reason: String,
    },
}

/// The figure as a PNG image, `width` pixels wide, on white.
///
/// # Errors
/// Widths below 16 and above 8192 pixels, and what the drawing library refuses.
pub fn png(figure: &Figure, width: u32) -> Result<Vec<u8>, PngError> {
    if !WIDTHS.contains(&width) {
        return Err(PngError::Width(width));
    }
    let failed = |reason: String| PngError::Drawing { name: figure.name.clone(), reason };
    let options = Options { fontdb: fonts(), font_family: FAMILY.into(), ..Options::default() };
    let tree = Tree::from_str(&figure.standalone(), &options).map_err(|error| failed(error.to_string()))?;
    let scale = width as f32 / tree.size().width();
    let height = (tree.size().height() * scale).ceil() as u32;
    let mut image = Pixmap::new(width, height).ok_or_else(|| failed("it is too large".into()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut image.as_mut());
    image.encode_png().map_err(|error| failed(error.to_string()))
}

fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        for font in [dejavu::sans_condensed::regular(), dejavu::sans_condensed::bold()] {
            fonts.load_font_source(Source::Binary(Arc::new(font)));
        }
        fonts.set_serif_family(FAMILY);
        fonts.set_sans_serif_family(FAMILY);
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_figure_has_ink_in_its_colours_and_text() {
        let run = sample::healthy(5);
        let figure = crate::figures::throughput_over_time(&run.stages[2].works[0], 100).unwrap();
        let image = Pixmap::decode_png(&png(&figure, 1_128).unwrap()).unwrap();
        assert_eq!(image.width(), 1_128);
        let count = |red: u8, green: u8, blue: u8| {
            let same = |pixel: &&resvg::tiny_skia::PremultipliedColorU8| {
                (pixel.red(), pixel.green(), pixel.blue()) == (red, green, blue)
            };
            image.pixels().iter().filter(same).count()
        };
        assert!(count(255, 255, 255) > 100_000, "the paper is white");
        assert!(count(0x00, 0x67, 0xa5) > 500, "the first line has its colour");
        assert!(count(0x1b, 0x1f, 0x24) > 200, "the headline is written");
    }

    #[test]
    fn widths_beyond_all_reason_are_refused() {
        let run = sample::healthy(2);
        let figure = crate::figures::throughput_over_time(&run.stages[2].works[0], 100).unwrap();
        for width in [0, 15, 8_193, u32::MAX] {
            assert!(matches!(png(&figure, width), Err(PngError::Width(_))), "{width}");
        }
    }
}
