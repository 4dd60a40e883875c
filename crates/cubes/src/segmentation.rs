//! Labels and valid pixels of an image, in a blosc file of two arrays.

use arrays::ElementType;
use images::files::{StoredArray, blosc};

use crate::Error;
use crate::form_folder::FormFolder;
use crate::generate::Segmentation;

/// Folder of the segmentations in the folder of the data.
pub(crate) const SEGMENTATIONS: &str = "segmentations";

/// Names of the arrays.
const LABELS: &str = "labels";
const VALID_PIXELS: &str = "valid_pixels";

/// Level of blosc. Labels compress to almost nothing, whatever the level.
const LEVEL: u8 = 9;

/// Name of an image's file.
pub(crate) fn file_name(image: &str) -> String {
    format!("{image}.blosc")
}

/// Writes the segmentation of an image.
pub(crate) fn write_segmentation(
    place: &FormFolder,
    image: &str,
    [height, width, _]: [usize; 3],
    segmentation: &Segmentation,
) -> Result<(), Error> {
    let array = |name: &str, element| StoredArray {
        name: name.to_owned(),
        shape: vec![height, width],
        element,
    };
    let (labels, valid_pixels) =
        (array(LABELS, ElementType::U8), array(VALID_PIXELS, ElementType::Bool));
    let valid: Vec<u8> = segmentation.valid_pixels.iter().map(|valid| u8::from(*valid)).collect();
    let arrays = [(&labels, segmentation.labels.as_slice()), (&valid_pixels, &valid)];
    let name = file_name(image);
    let file = blosc::write_dictionary(&arrays, LEVEL)
        .map_err(|error| Error::write(&place.folder().join(&name), error))?;
    place.write(&name, &file)
}
