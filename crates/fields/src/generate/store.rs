//! The Zarr store: its group, its arrays and their coordinates.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use zarrs::array::{Array, ArrayMetadata, CodecOptions, Element};
use zarrs::filesystem::FilesystemStore;

use super::GenerateSpec;
use super::element::Packing;
use super::layout::Codec;
use super::metadata::{self, ElementType, Variable};
use super::pattern::channel_name;
use super::spec::FieldSpec;
use crate::Error;

/// The error of zarrs, of the system, or of JSON.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A new store in a folder.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    files: Arc<FilesystemStore>,
}

/// The inputs or the targets.
#[derive(Debug)]
pub(crate) struct FieldArray {
    name: &'static str,
    folder: PathBuf,
    array: Array<FilesystemStore>,
    pub(crate) packing: Option<Packing>,
    pub(crate) n_channels: usize,
    /// Channels in a file. The last file of a sample may have fewer, and the rest is padding.
    pub(crate) file_channels: usize,
    /// Time of a sample's values, counted from the sample's own time.
    pub(crate) later: u64,
}

impl Store {
    /// Creates the folder of the store.
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        let failed = |source: Cause| write_error("the store", folder, source);
        fs::create_dir_all(folder).map_err(|error| failed(error.into()))?;
        let files = FilesystemStore::new(folder).map_err(|error| failed(error.into()))?;
        Ok(Self { folder: folder.to_owned(), files: Arc::new(files) })
    }

    /// Writes all metadata and coordinates. Returns the inputs and the targets, which are still
    /// empty.
    pub(crate) fn define(&self, spec: &GenerateSpec) -> Result<[FieldArray; 2], Error> {
        let zarr = spec.layout.zarr;
        let [inputs, targets] = Kind::BOTH.map(|kind| kind.variable(spec));
        let [sample, lat, lon] = coordinates(&spec.fields);
        let channels = Kind::BOTH.map(|kind| kind.coordinate(&spec.fields));
        let [input_channels, target_channels] = channels;
        let variables = [inputs, targets, sample, lat, lon, input_channels, target_channels];
        for (name, content) in metadata::files(zarr, attributes(&spec.fields), &variables) {
            self.write_json(&name, &content)?;
        }
        let [inputs, targets, sample, lat, lon, channels @ ..] = &variables;
        let FieldSpec { n_samples, n_lat, n_lon, .. } = spec.fields;
        let numbers: Vec<i64> = (0..n_samples as i64).collect();
        self.write_coordinate(spec, sample, &numbers)?;
        self.write_coordinate(spec, lat, &latitudes(n_lat))?;
        self.write_coordinate(spec, lon, &longitudes(n_lon))?;
        for (kind, variable) in Kind::BOTH.into_iter().zip(channels) {
            let n_channels = kind.n_channels(&spec.fields) as usize;
            let names: Vec<String> = (0..n_channels).map(channel_name).collect();
            self.write_coordinate(spec, variable, &names)?;
        }
        Ok([
            self.field_array(spec, Kind::Inputs, inputs)?,
            self.field_array(spec, Kind::Targets, targets)?,
        ])
    }

    fn write_json(&self, name: &str, content: &Value) -> Result<(), Error> {
        let path = self.folder.join(name);
        let write = || -> Result<(), Cause> {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            Ok(fs::write(&path, serde_json::to_vec_pretty(content)?)?)
        };
        write().map_err(|error| write_error(name, &self.folder, error))
    }

    fn write_coordinate<T: Element>(
        &self,
        spec: &GenerateSpec,
        variable: &Variable,
        values: &[T],
    ) -> Result<(), Error> {
        let write = || -> Result<(), Cause> {
            let array = self.open(spec, variable)?;
            Ok(array.store_chunk_opt(&[0], values, &codec_options())?)
        };
        let what = format!("the coordinate {}", variable.name);
        write().map_err(|error| write_error(what, &self.folder, error))
    }

    fn open(
        &self,
        spec: &GenerateSpec,
        variable: &Variable,
    ) -> Result<Array<FilesystemStore>, Cause> {
        let metadata = variable.metadata(spec.layout.zarr).to_string();
        let metadata = ArrayMetadata::try_from(metadata.as_str())?;
        let path = format!("/{}", variable.name);
        Ok(Array::new_with_metadata(Arc::clone(&self.files), &path, metadata)?)
    }

    fn field_array(
        &self,
        spec: &GenerateSpec,
        kind: Kind,
        variable: &Variable,
    ) -> Result<FieldArray, Error> {
        let (name, folder) = (variable.name, self.folder.clone());
        let array = self
            .open(spec, variable)
            .map_err(|error| write_error(format!("the array {name}"), &folder, error))?;
        let n_channels = kind.n_channels(&spec.fields);
        Ok(FieldArray {
            name,
            folder,
            array,
            packing: Packing::for_element(spec.layout.element, n_channels as usize),
            n_channels: n_channels as usize,
            file_channels: variable.file_shape().last().map_or(1, |n| *n as usize),
            later: kind.later(),
        })
    }
}

impl FieldArray {
    /// Writes a file: all values of its chunk or shard.
    pub(crate) fn write<T: Element>(
        &self,
        file_row: u64,
        file_column: u64,
        values: &[T],
    ) -> Result<(), Error> {
        self.array
            .store_chunk_opt(&[file_row, 0, 0, file_column], values, &codec_options())
            .map_err(|error| {
                let what = format!("chunk [{file_row}, 0, 0, {file_column}] of {}", self.name);
                write_error(what, &self.folder, error.into())
            })
    }
}

/// Encodes on the calling thread alone: there is a thread for each processor already.
fn codec_options() -> CodecOptions {
    CodecOptions::default().with_concurrent_target(1)
}

fn write_error(what: impl Into<String>, folder: &Path, source: Cause) -> Error {
    Error::Write { what: format!("{} in {}", what.into(), folder.display()), source }
}

/// Inputs or targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Inputs,
    Targets,
}

impl Kind {
    const BOTH: [Self; 2] = [Self::Inputs, Self::Targets];

    fn name(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Targets => "targets",
        }
    }

    /// The name of the last dimension. A dimension has one length in a group.
    fn channels(self) -> &'static str {
        match self {
            Self::Inputs => "input_channels",
            Self::Targets => "target_channels",
        }
    }

    fn n_channels(self, fields: &FieldSpec) -> u64 {
        match self {
            Self::Inputs => fields.n_inputs,
            Self::Targets => fields.n_targets,
        }
    }

    fn later(self) -> u64 {
        u64::from(self == Self::Targets)
    }

    fn variable(self, spec: &GenerateSpec) -> Variable {
        let (fields, layout) = (&spec.fields, &spec.layout);
        let n_channels = self.n_channels(fields);
        let chunk_channels = layout.chunk_channels.unwrap_or(n_channels).min(n_channels);
        let shape = |n_samples, n_channels| vec![n_samples, fields.n_lat, fields.n_lon, n_channels];
        let mut attributes = Map::new();
        if let Some(packing) = Packing::for_element(layout.element, n_channels as usize) {
            attributes.insert("scale_factor".to_owned(), json!(packing.scale));
            attributes.insert("add_offset".to_owned(), json!(packing.offset));
        }
        Variable {
            name: self.name(),
            dimensions: vec!["sample", "lat", "lon", self.channels()],
            shape: shape(fields.n_samples, n_channels),
            chunk: shape(layout.chunk_samples, chunk_channels),
            shard: layout.shard_samples.map(|shard_samples| {
                shape(shard_samples, n_channels.next_multiple_of(chunk_channels))
            }),
            element: ElementType::for_element(layout.element),
            codec: layout.codec,
            attributes,
        }
    }

    /// The names of the channels.
    fn coordinate(self, fields: &FieldSpec) -> Variable {
        let attributes = [("long_name", "quantity and level of the channel")];
        coordinate(self.channels(), self.n_channels(fields), metadata::STRING, &attributes)
    }
}

/// The coordinates of samples and points, with the attributes of the CF conventions.
fn coordinates(fields: &FieldSpec) -> [Variable; 3] {
    let sample = [("long_name", "number of the sample")];
    let direction = |name: &'static str, units: &'static str| {
        [("standard_name", name), ("long_name", name), ("units", units)]
    };
    let lat = direction("latitude", "degrees_north");
    let lon = direction("longitude", "degrees_east");
    [
        coordinate("sample", fields.n_samples, metadata::I64, &sample),
        coordinate("lat", fields.n_lat, metadata::F64, &lat),
        coordinate("lon", fields.n_lon, metadata::F64, &lon),
    ]
}

fn coordinate(
    name: &'static str,
    n: u64,
    element: ElementType,
    attributes: &[(&str, &str)],
) -> Variable {
    Variable {
        name,
        dimensions: vec![name],
        shape: vec![n],
        chunk: vec![n],
        shard: None,
        element,
        codec: Codec::None,
        attributes: attributes.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect(),
    }
}

/// Attributes of the group.
fn attributes(fields: &FieldSpec) -> Map<String, Value> {
    let title = "weather-like fields made by somafeed";
    [("title".to_owned(), json!(title)), ("seed".to_owned(), json!(fields.seed))]
        .into_iter()
        .collect()
}

/// Centers of equal bands from pole to pole, from the south.
fn latitudes(n: u64) -> Vec<f64> {
    (0..n).map(|lat| (lat as f64 + 0.5) * 180.0 / n as f64 - 90.0).collect()
}

fn longitudes(n: u64) -> Vec<f64> {
    (0..n).map(|lon| lon as f64 * 360.0 / n as f64).collect()
}
