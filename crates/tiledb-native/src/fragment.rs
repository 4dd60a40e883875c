//! Fragments: the footer of their metadata, which says what they hold and where the rest of the
//! metadata is.
//!
//! Specification: `format_spec/fragment.md`. From format 10 on the footer's length is the last u64
//! of the file; before, the length follows from the version and the schema. The bounding rectangles
//! and the offsets of tiles ([`Tiles`]) are read when a read first touches the fragment.

mod field;
mod footer;
mod tiles;
mod tree;

use std::sync::{Arc, OnceLock};

use storage::Files;

use crate::deletes::Concerning;
use crate::directory::FragmentFolder;
use crate::error::{Error, Fault};
use crate::schema::Layout;
pub(crate) use field::Field;
pub(crate) use footer::{Footer, FooterFields, RawFooter, metadata_file, n_cells, position_range};
pub(crate) use tiles::{Tiles, last_level, tile_numbers, var_tile_offsets};

/// The names of the files of times, and of times of deletion, without their ending.
pub(crate) const TIMES_STEM: &str = "t";
pub(crate) const DELETE_TIMES_STEM: &str = "dt";
/// Fragments whose tiles are read together.
const AT_ONCE: usize = 32;

/// A fragment that counts at the time the array is opened.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) folder: FragmentFolder,
    pub(crate) footer: Footer,
    pub(crate) layout: Arc<Layout>,
    /// Paths of the files of [`Field::ALL`], from the array.
    pub(crate) files: [String; Field::N],
    /// The deletes that concern its cells.
    pub(crate) deletes: Concerning,
    tiles: OnceLock<Tiles>,
}

impl Fragment {
    pub(crate) fn new(
        folder: FragmentFolder,
        footer: Footer,
        layout: Arc<Layout>,
        deletes: Concerning,
    ) -> Self {
        let files = file_paths(&folder.path, footer.version, &layout);
        Self { folder, footer, layout, files, deletes, tiles: OnceLock::new() }
    }

    /// Cells in tile `tile`.
    pub(crate) fn tile_cells(&self, tile: usize) -> usize {
        let last = self.footer.n_tiles.saturating_sub(1);
        if tile as u64 == last {
            self.footer.last_tile_cells as usize
        } else {
            self.layout.capacity as usize
        }
    }

    /// All cells of the fragment.
    pub(crate) fn n_cells(&self) -> u64 {
        self.footer.n_cells(self.layout.capacity).unwrap_or(u64::MAX)
    }

    /// The tiles' places and bounds, read when first asked for.
    pub(crate) fn tiles(&self, files: &Files) -> Result<&Tiles, Error> {
        if let Some(tiles) = self.tiles.get() {
            return Ok(tiles);
        }
        Self::load_tiles(files, &[self])?;
        self.tiles.get().ok_or_else(|| {
            let what = "its tiles were read and are not there";
            Fault::new(what).in_file(files.name(&self.folder.path), 0)
        })
    }

    /// Whether the tiles' places and bounds were read.
    pub(crate) fn knows_tiles(&self) -> bool {
        self.tiles.get().is_some()
    }

    /// Reads the tiles of those of `fragments` that are without, with few calls of the storage for
    /// all.
    pub(crate) fn load_tiles(files: &Files, fragments: &[&Self]) -> Result<(), Error> {
        let missing: Vec<_> =
            fragments.iter().copied().filter(|fragment| fragment.tiles.get().is_none()).collect();
        for fragments in missing.chunks(AT_ONCE) {
            for (fragment, tiles) in fragments.iter().zip(Tiles::load_all(files, fragments)?) {
                // Two threads may both have read them; either result serves.
                fragment.tiles.get_or_init(|| tiles);
            }
        }
        Ok(())
    }

    /// Whether cells of the fragment may be later than `timestamp`, so that each one's own time has
    /// to be looked at.
    pub(crate) fn is_partly_after(&self, timestamp: u64) -> bool {
        self.footer.has_timestamps && self.folder.times.end > timestamp
    }
}

fn file_paths(folder: &str, version: u32, layout: &Layout) -> [String; Field::N] {
    let path = |name: String| format!("{folder}/{name}.tdb");
    let [row, column] = layout.dimensions();
    let attribute = format!("a{}", layout.attribute_idx);
    [
        path(file_stem(version, "d0", &row.name)),
        path(file_stem(version, "d1", &column.name)),
        path(file_stem(version, &attribute, &layout.attribute.0)),
        path(TIMES_STEM.into()),
        path(DELETE_TIMES_STEM.into()),
    ]
}

/// The name of a field's file without its ending: before format 9 the field's own name, from then
/// on `number`, its kind and index.
pub(crate) fn file_stem(version: u32, number: &str, name: &str) -> String {
    match version {
        9.. => number.to_owned(),
        8 => percent_encode(name),
        _ => name.to_owned(),
    }
}

/// The encoding of format 8, with the codes that its writer used for the last five, which are not
/// those of the standard.
fn percent_encode(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        let code = match character {
            '!' | '#' | '$' | '%' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | '/' | ':' | ';'
            | '=' | '?' | '@' | '[' | ']' | '"' => u32::from(character),
            '<' => 0x20,
            '>' => 0x2d,
            '\\' => 0x30,
            '|' => 0x3c,
            _ => {
                out.push(character);
                continue;
            }
        };
        out.push('%');
        out.extend(
            [code >> 4, code & 15]
                .map(|digit| char::from_digit(digit, 16).unwrap_or('0').to_ascii_uppercase()),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_format_8() {
        assert_eq!(percent_encode("soma_data"), "soma_data");
        assert_eq!(percent_encode("a/b %\"<"), "a%2Fb %25%22%20");
    }
}
