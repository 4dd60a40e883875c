//! Converts an SVG picture to PNG. The font is built into the program, so the same picture gives
//! the same pixels everywhere.

use std::sync::{Arc, LazyLock};

use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb::Database},
};

use crate::Error;

/// Pixels per picture unit: 300 dpi for a picture 17 cm wide.
const SCALE: f32 = 3.0;

/// Renders an SVG drawn by plotters as PNG, at three times its size.
///
/// # Errors
/// The text is not an SVG, or has no size.
pub fn to_png(svg: &str) -> Result<Vec<u8>, Error> {
    static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        let family = fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone()));
        fonts.set_sans_serif_family(family.unwrap_or_default());
        Arc::new(fonts)
    });
    let options = Options { fontdb: Arc::clone(&FONTS), ..Options::default() };
    let failed = |message: String| Error::Draw { message };
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(error.to_string()))?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let mut pixels = size
        .and_then(|size| Pixmap::new(size.width(), size.height()))
        .ok_or_else(|| failed("a picture without size".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_pixels() {
        let svg = |text: &str| {
            format!(
                "<svg width=\"80\" height=\"20\" viewBox=\"0 0 80 20\" xmlns=\"http://www.w3.org/2000/svg\">\
                 <rect width=\"80\" height=\"20\" fill=\"#FFFFFF\"/>\
                 <text x=\"2\" y=\"15\" font-family=\"sans-serif\" font-size=\"14\">{text}</text></svg>"
            )
        };
        let [empty, words] = ["", "µs × 7"].map(|text| {
            let png = to_png(&svg(text)).unwrap();
            Pixmap::decode_png(&png).unwrap()
        });
        assert_eq!((words.width(), words.height()), (240, 60));
        let dark =
            |pixels: &Pixmap| pixels.pixels().iter().filter(|pixel| pixel.red() < 128).count();
        assert_eq!(dark(&empty), 0);
        assert!(dark(&words) > 100, "{}", dark(&words));
    }

    #[test]
    fn what_is_no_picture_is_an_error() {
        assert!(to_png("<svg").unwrap_err().to_string().starts_with("cannot draw the picture"));
    }
}
