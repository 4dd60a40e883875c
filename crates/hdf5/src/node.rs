//! A group or a dataset, as Zarr describes it.

use std::sync::Arc;

use hdf5_reader::error::Error;
use hdf5_reader::messages::{MSG_DATA_LAYOUT, MSG_DATASPACE, MSG_DATATYPE};
use serde_json::{Map, json};

use crate::array::{ArrayNode, unreadable_metadata};
use crate::attributes;
use crate::file::File;
use crate::header::Header;
use crate::links::Links;
use crate::unreadable::Unreadable;

/// Reads the links of the group at an address, which has this header.
pub(crate) type ReadLinks<'a> = dyn Fn(u64, &Header) -> Result<Arc<Links>, Error> + 'a;

/// A group or a dataset.
#[derive(Debug)]
pub(crate) enum Node {
    Group {
        /// Its `zarr.json`.
        metadata: Vec<u8>,
        /// The addresses of this group and of those that it lies in, from the root.
        addresses: Vec<u64>,
        links: Arc<Links>,
    },
    Array(Box<ArrayNode>),
    /// An object that is not read; its `zarr.json` says why.
    Unreadable {
        metadata: Vec<u8>,
    },
}

impl Node {
    /// Describes the object whose header is at the last of these addresses; the others are those of
    /// the groups that it lies in. `path_of` finds the path of the object at an address.
    pub(crate) fn read(
        file: &File,
        addresses: Vec<u64>,
        links: &ReadLinks<'_>,
        path_of: &dyn Fn(u64) -> Result<Option<String>, Error>,
    ) -> Result<Self, Error> {
        let address = addresses.last().copied().unwrap_or_default();
        let header = Header::read(file, address)?;
        let attributes = attributes::json(file, &header, path_of)?;
        if header.has(MSG_DATA_LAYOUT) || header.has(MSG_DATASPACE) {
            return Ok(match ArrayNode::read(file, &header, &attributes)? {
                Ok(array) => Self::Array(Box::new(array)),
                Err((unreadable, shape)) => {
                    let metadata = unreadable_metadata(&unreadable, &shape, &attributes);
                    Self::Unreadable { metadata }
                }
            });
        }
        if header.has(MSG_DATATYPE) {
            let what = "it is a committed datatype, which has no elements";
            return Ok(Self::unreadable(&Unreadable::new("committed datatype", what)));
        }
        let links = links(address, &header)?;
        let metadata = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
        Ok(Self::Group { metadata: metadata.to_string().into_bytes(), addresses, links })
    }

    /// An object that is not read.
    pub(crate) fn unreadable(unreadable: &Unreadable) -> Self {
        Self::Unreadable { metadata: unreadable_metadata(unreadable, &[], &Map::new()) }
    }

    /// Whether it is an array of strings, whose chunks have a length only once they are made.
    pub(crate) fn has_strings(&self) -> bool {
        matches!(self, Self::Array(array) if array.has_strings())
    }

    pub(crate) fn metadata(&self) -> &[u8] {
        match self {
            Self::Group { metadata, .. } | Self::Unreadable { metadata } => metadata,
            Self::Array(array) => &array.metadata,
        }
    }
}
