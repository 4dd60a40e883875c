//! The Zarr store of a data set: features, labels and valid pixels, one chunk per cube.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::sync::Arc;

use half::f16;
use serde_json::{Value, json};
use zarrs::array::{Array, ArrayMetadata, CodecOptions, Element};
use zarrs::filesystem::FilesystemStore;

use crate::Error;
use crate::form_folder::FormFolder;
use crate::forms::FormSpec;
use crate::generate::Segmentation;
use bench_run::Cause;

/// The compression of Zarr's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZarrCodec {
    /// None.
    None,
    /// Zstandard with a level of 1 to 22.
    Zstd(u8),
    /// Blosc: Zstandard after a byte shuffle, like the blosc files. Its level of 0 to 9 is theirs.
    #[default]
    Blosc,
}

impl fmt::Display for ZarrCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Blosc => f.write_str("blosc"),
        }
    }
}

impl FromStr for ZarrCodec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("zstd")) {
            ("none", _) => Ok(Self::None),
            ("blosc", _) => Ok(Self::Blosc),
            (_, Some("")) => Ok(Self::Zstd(3)),
            (_, Some(level)) => {
                let level = level.strip_prefix(':').and_then(|level| level.parse().ok());
                level
                    .filter(|level| (1..=22).contains(level))
                    .map(Self::Zstd)
                    .ok_or_else(|| "the level of zstd is a number from 1 to 22".to_owned())
            }
            _ => Err("expected none, blosc, or zstd with a level like zstd:3".to_owned()),
        }
    }
}

/// What a store contains and how it is compressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZarrSpec {
    pub(crate) n_images: u64,
    /// Height, width and channels of a cube.
    pub(crate) shape: [usize; 3],
    pub(crate) codec: ZarrCodec,
    /// Level of blosc.
    pub(crate) level: u8,
    /// Whether there are labels and valid pixels.
    pub(crate) has_labels: bool,
}

impl ZarrSpec {
    /// The store of a data set.
    pub(crate) fn new(
        n_images: u64,
        shape: [usize; 3],
        forms: &FormSpec,
        has_labels: bool,
    ) -> Self {
        Self { n_images, shape, codec: forms.zarr_codec, level: forms.level, has_labels }
    }
}

/// A Zarr store that is being written.
#[derive(Debug)]
pub(crate) struct ZarrStore {
    place: FormFolder,
    features: ChunkedArray,
    labels: Option<[ChunkedArray; 2]>,
}

#[derive(Debug)]
struct ChunkedArray {
    name: &'static str,
    array: Array<FilesystemStore>,
}

/// Names and types of arrays, with the fill value: what a reader gets for an image that was never
/// written is not a number, and has no valid pixel.
const FEATURES: (&str, &str) = ("features", "float16");
const LABELS: (&str, &str) = ("labels", "uint8");
const VALID_PIXELS: (&str, &str) = ("valid_pixels", "bool");

impl ZarrStore {
    /// Writes the metadata of a store, or opens a store with the same metadata.
    pub(crate) fn open(place: FormFolder, spec: &ZarrSpec) -> Result<Self, Error> {
        write_metadata(&place, "zarr.json", &json!({ "zarr_format": 3, "node_type": "group" }))?;
        let features = ChunkedArray::open(&place, spec, FEATURES)?;
        let labels = if spec.has_labels {
            let labels = ChunkedArray::open(&place, spec, LABELS)?;
            Some([labels, ChunkedArray::open(&place, spec, VALID_PIXELS)?])
        } else {
            None
        };
        Ok(Self { place, features, labels })
    }

    /// The marked folder of a killed run that was removed.
    pub(crate) fn place(&self) -> &FormFolder {
        &self.place
    }

    /// Whether all chunks of an image are there.
    pub(crate) fn has(&self, image: u64) -> Result<bool, Error> {
        for array in self.arrays() {
            if !self.place.has(&array.chunk(image))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the chunks of an image and returns their size in bytes. `segmentation` is needed if
    /// the store has labels.
    pub(crate) fn write(
        &self,
        image: u64,
        features: &[f16],
        segmentation: Option<&Segmentation>,
    ) -> Result<u64, Error> {
        let mut n_bytes = self.features.write(&self.place, image, features)?;
        if let (Some([labels, valid_pixels]), Some(values)) = (&self.labels, segmentation) {
            n_bytes += labels.write(&self.place, image, &values.labels)?;
            n_bytes += valid_pixels.write(&self.place, image, &values.valid_pixels)?;
        }
        Ok(n_bytes)
    }

    fn arrays(&self) -> impl Iterator<Item = &ChunkedArray> {
        std::iter::once(&self.features).chain(self.labels.iter().flatten())
    }
}

impl ChunkedArray {
    fn open(
        place: &FormFolder,
        spec: &ZarrSpec,
        (name, element): (&'static str, &'static str),
    ) -> Result<Self, Error> {
        let metadata = array_metadata(spec, name, element);
        write_metadata(place, &format!("{name}/zarr.json"), &metadata)?;
        let open = || -> Result<_, Cause> {
            let files = Arc::new(FilesystemStore::new(place.making())?);
            let metadata = ArrayMetadata::try_from(metadata.to_string().as_str())?;
            Ok(Array::new_with_metadata(files, &format!("/{name}"), metadata)?)
        };
        let failed = |error| Error::write(&place.folder().join(name), error);
        Ok(Self { name, array: open().map_err(failed)? })
    }

    /// Indices of an image's chunk.
    fn indices(&self, image: u64) -> Vec<u64> {
        let mut indices = vec![0; self.array.dimensionality()];
        if let Some(first) = indices.first_mut() {
            *first = image;
        }
        indices
    }

    /// Name of an image's chunk in the store.
    fn chunk(&self, image: u64) -> String {
        let indices: Vec<String> = self.indices(image).iter().map(u64::to_string).collect();
        format!("{}/c/{}", self.name, indices.join("/"))
    }

    fn write<T: Element>(
        &self,
        place: &FormFolder,
        image: u64,
        values: &[T],
    ) -> Result<u64, Error> {
        let name = self.chunk(image);
        // On the calling thread alone: there is a thread for each processor already. A chunk of
        // zeros is written, too, because a missing one means that the image was not written.
        let options =
            CodecOptions::default().with_concurrent_target(1).with_store_empty_chunks(true);
        let path = place.making().join(&name);
        self.array
            .store_chunk_opt(&self.indices(image), values, &options)
            .map_err(|error| Error::write(&path, error))?;
        let n_bytes = fs::metadata(&path).map_err(|error| Error::write(&path, error))?.len();
        place.finish(&name)?;
        Ok(n_bytes)
    }
}

/// Writes a file of metadata, unless it is there. Fails if it is there with another content.
fn write_metadata(place: &FormFolder, name: &str, metadata: &Value) -> Result<(), Error> {
    if !place.has(name)? {
        if let Some(parent) = place.making().join(name).parent() {
            fs::create_dir_all(parent).map_err(|error| Error::write(parent, error))?;
        }
        return place.write(name, format!("{metadata:#}\n").as_bytes());
    }
    let path = place.folder().join(name);
    let found = || -> Result<Value, Cause> { Ok(serde_json::from_slice(&fs::read(&path)?)?) };
    if found().map_err(|error| Error::bad_file(&path, error))? == *metadata {
        return Ok(());
    }
    let store = place.folder().display();
    Err(Error::Settings {
        problem: format!(
            "{store} was written for other images or with other settings: use the same, or remove it"
        ),
    })
}

/// The metadata of an array with one chunk per image.
fn array_metadata(spec: &ZarrSpec, name: &str, element: &str) -> Value {
    let [height, width, n_channels] = spec.shape;
    let is_features = name == FEATURES.0;
    let mut shape = vec![spec.n_images, height as u64, width as u64];
    let mut dimensions = vec!["image", "height", "width"];
    if is_features {
        shape.push(n_channels as u64);
        dimensions.push("channel");
    }
    let mut chunk_shape = shape.clone();
    if let Some(first) = chunk_shape.first_mut() {
        *first = 1;
    }
    let typesize = if is_features { size_of::<f16>() } else { 1 };
    let fill_value = match element {
        "float16" => json!("NaN"),
        "bool" => json!(false),
        _ => json!(0),
    };
    let mut codecs = vec![if is_features {
        json!({ "name": "bytes", "configuration": { "endian": "little" } })
    } else {
        json!({ "name": "bytes" })
    }];
    codecs.extend(match spec.codec {
        ZarrCodec::None => None,
        ZarrCodec::Zstd(level) => Some(json!({
            "name": "zstd", "configuration": { "level": level, "checksum": false },
        })),
        ZarrCodec::Blosc => Some(json!({
            "name": "blosc",
            "configuration": {
                "cname": "zstd",
                "clevel": spec.level,
                "shuffle": "shuffle",
                "typesize": typesize,
                "blocksize": 0,
            },
        })),
    });
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": element,
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk_shape } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": fill_value,
        "codecs": codecs,
        "attributes": {},
        "dimension_names": dimensions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_written_as_they_are_parsed() {
        for (text, expect) in [
            ("none", ZarrCodec::None),
            ("blosc", ZarrCodec::Blosc),
            ("zstd", ZarrCodec::Zstd(3)),
            ("zstd:22", ZarrCodec::Zstd(22)),
        ] {
            let codec: ZarrCodec = text.parse().unwrap();
            assert_eq!(codec, expect);
            assert_eq!(codec.to_string().parse(), Ok(codec));
        }
        for text in ["", "lz4", "zstd:", "zstd:0", "zstd:23", "zstd3", "blosc:5", "none:1"] {
            text.parse::<ZarrCodec>().unwrap_err();
        }
    }
}
