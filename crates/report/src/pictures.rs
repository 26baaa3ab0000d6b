//! Pictures as PNG and PDF, made of SVG: with fonts of their own, so that they are the same wherever they are made.

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// The family of the font that is built in, DejaVu Sans Condensed: about as wide as the fonts that SVG asks for first.
const FAMILY: &str = "DejaVu Sans";
/// Pixels of a PNG for one of the picture: as printers and sharp screens want it.
const SCALE: f32 = 2.0;

fn tree(svg: &str) -> Result<Tree, String> {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans_condensed::regular().to_vec());
    fonts.load_font_data(dejavu::sans_condensed::bold().to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let options = Options { font_family: FAMILY.to_owned(), fontdb: Arc::new(fonts), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| error.to_string())
}

/// A picture of [`plot_svg`](crate::plot_svg) as PNG, two pixels for one. The same SVG gives the same bytes.
///
/// # Errors
/// What is wrong with it, or that it is too large.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = tree(svg)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("it is empty")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

/// The same as PDF, with text that can be selected. The same SVG gives the same picture, not the same bytes: the order
/// of a page's resources is chance's in `svg2pdf` 0.13.
///
/// # Errors
/// What is wrong with it.
pub fn pdf(svg: &str) -> Result<Vec<u8>, String> {
    let (options, page) = (svg2pdf::ConversionOptions::default(), svg2pdf::PageOptions::default());
    svg2pdf::to_pdf(&tree(svg)?, options, page).map_err(|error| error.to_string())
}
