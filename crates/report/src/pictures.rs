//! Pictures as PNG and PDF, converted from SVG. They use built-in fonts, so that they look the same
//! on every system.

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

/// Family of the built-in font, DejaVu Sans Condensed. It is about as wide as the first fonts in
/// the SVG.
const FAMILY: &str = "DejaVu Sans";
/// Pixels of a PNG per pixel of the picture, for printers and high-resolution screens.
const SCALE: f32 = 2.0;

fn tree(svg: &str) -> Result<Tree, String> {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans_condensed::regular().to_vec());
    fonts.load_font_data(dejavu::sans_condensed::bold().to_vec());
    fonts.set_sans_serif_family(FAMILY);
    let options = Options { font_family: FAMILY.to_owned(), fontdb: Arc::new(fonts), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| error.to_string())
}

/// Converts a picture of [`plot_svg`](crate::plot_svg) to PNG, at twice its width and height. The
/// same SVG gives the same bytes.
///
/// # Errors
/// The SVG is not valid, or the picture is empty or too large.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = tree(svg)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("it is empty")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

/// Converts a picture to PDF, with selectable text. The same SVG gives the same picture, but not
/// the same bytes, because the order of a page's resources is random in `svg2pdf` 0.13.
///
/// # Errors
/// The SVG is not valid.
pub fn pdf(svg: &str) -> Result<Vec<u8>, String> {
    let (options, page) = (svg2pdf::ConversionOptions::default(), svg2pdf::PageOptions::default());
    svg2pdf::to_pdf(&tree(svg)?, options, page).map_err(|error| error.to_string())
}
