//! Labels and valid pixels of an image, in a blosc file of two arrays.

use arrays::ElementType;
use images::files::{CubeFile, DecodeScratch, FileFormat, StoredArray, blosc};

use crate::Error;
use crate::form_folder::FormFolder;
use crate::generate::Segmentation;
use bench_run::Cause;

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

/// Reads a segmentation of an image of this shape from the bytes of its file.
pub(crate) fn read_segmentation(
    bytes: &[u8],
    [height, width, _]: [usize; 3],
    scratch: &mut DecodeScratch,
) -> Result<Segmentation, Cause> {
    let file = CubeFile::parse(FileFormat::Blosc, bytes)?;
    let mut read = |name: &str, element: ElementType| -> Result<Vec<u8>, Cause> {
        let idx = file.index(name).ok_or_else(|| format!("it has no array called {name}"))?;
        let array = &file.arrays()[idx];
        if array.shape != [height, width] || array.element != element {
            let StoredArray { shape, element: found, .. } = array;
            let expected = format!("{element:?} of shape {:?}", [height, width]);
            return Err(
                format!("{name} are {found:?} of shape {shape:?}; expected {expected}").into()
            );
        }
        let mut values = vec![0; height * width];
        file.decode(idx, &mut values, scratch)?;
        Ok(values)
    };
    let labels = read(LABELS, ElementType::U8)?;
    let valid_pixels = read(VALID_PIXELS, ElementType::Bool)?;
    let valid_pixels = valid_pixels.into_iter().map(|valid| valid != 0).collect();
    Ok(Segmentation { labels, valid_pixels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let place = FormFolder::whole(folder.path().to_owned()).unwrap();
        let labels = vec![0, 7, 255, 1, 2, 3];
        let valid_pixels = vec![true, false, true, true, false, false];
        let segmentation = Segmentation { labels, valid_pixels };
        write_segmentation(&place, "a", [2, 3, 4], &segmentation).unwrap();
        let bytes = std::fs::read(folder.path().join("a.blosc")).unwrap();
        let mut scratch = DecodeScratch::new();
        let read = read_segmentation(&bytes, [2, 3, 9], &mut scratch).unwrap();
        assert_eq!(read.labels, segmentation.labels);
        assert_eq!(read.valid_pixels, segmentation.valid_pixels);
        for (bytes, shape) in [(&bytes[..], [3, 2, 4]), (&bytes[..20], [2, 3, 4])] {
            read_segmentation(bytes, shape, &mut scratch).unwrap_err();
        }
    }
}
