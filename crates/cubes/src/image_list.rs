//! `images.json`: the list of a data set's images, and the settings of its forms.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Error;
use crate::forms::FormSettings;
use bench_run::Cause;

/// Name of the list in the folder of the data.
pub(crate) const LIST_FILE: &str = "images.json";

/// The version of the list that is written and read.
const VERSION: u32 = 1;

/// The images of a data set. What other programs have added to it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ImageList {
    version: u32,
    /// Height, width and channels of each cube.
    pub(crate) shape: [usize; 3],
    /// Number and names of the classes of the labels.
    #[serde(default)]
    pub(crate) n_classes: usize,
    #[serde(default)]
    pub(crate) classes: Vec<String>,
    pub(crate) images: Vec<ListedImage>,
    /// The settings with which forms were written, by the name of the form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) forms: BTreeMap<String, FormSettings>,
    /// How images were generated, and what other programs have added.
    #[serde(flatten)]
    pub(crate) others: Map<String, Value>,
}

/// An image of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedImage {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) domain: String,
    #[serde(default)]
    pub(crate) subject: String,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl ListedImage {
    pub(crate) fn new(name: String, domain: String, subject: String) -> Self {
        Self { name, domain, subject, others: Map::new() }
    }
}

impl ImageList {
    /// A list of images without labels.
    pub(crate) fn new(shape: [usize; 3], images: Vec<ListedImage>) -> Self {
        Self {
            version: VERSION,
            shape,
            n_classes: 0,
            classes: Vec::new(),
            images,
            forms: BTreeMap::new(),
            others: Map::new(),
        }
    }

    /// Reads the list of a folder; `None` if it has none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let path = folder.join(LIST_FILE);
        let failed = |source: Cause| Error::Source { what: "cubes", path: path.clone(), source };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.into())),
        };
        let list: Self = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        list.check().map_err(|problem| failed(problem.into()))?;
        Ok(Some(list))
    }

    /// The text of the file.
    pub(crate) fn to_text(&self) -> Result<String, Cause> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!("version {} of the list; expected {VERSION}", self.version));
        }
        if self.shape.contains(&0) || self.images.is_empty() {
            return Err("it has no images, or cubes without pixels or channels".to_owned());
        }
        let mut names = std::collections::HashSet::new();
        for image in &self.images {
            // Names are parts of paths: they must not lead out of the folder.
            if image.name.is_empty() || image.name.contains(['/', '\\', '\0']) {
                return Err(format!("`{}` cannot be the name of an image's files", image.name));
            }
            if !names.insert(&image.name) {
                return Err(format!("two images are called {}", image.name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalization::Normalization;

    #[test]
    fn what_others_have_added_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"version": 1, "shape": [2, 3, 4], "images": [{"name": "a", "age": 3}],
            "license": "CC0"}"#;
        fs::write(folder.path().join(LIST_FILE), text).unwrap();
        let mut list = ImageList::read(folder.path()).unwrap().unwrap();
        let settings = FormSettings { normalization: Normalization::L1, codec: "none".to_owned() };
        list.forms.insert("raw16".to_owned(), settings.clone());
        fs::write(folder.path().join(LIST_FILE), list.to_text().unwrap()).unwrap();
        let again = ImageList::read(folder.path()).unwrap().unwrap();
        assert_eq!(again.others["license"], "CC0");
        assert_eq!(again.images[0].others["age"], 3);
        assert_eq!(again.forms["raw16"], settings);
    }

    #[test]
    fn lists_that_cannot_be_used_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ImageList::read(folder.path()).unwrap().is_none());
        for (version, images, shape) in [
            (2, r#"{"name": "a"}"#, "[1, 1, 1]"),
            (1, "", "[1, 1, 1]"),
            (1, r#"{"name": "a"}"#, "[1, 0, 1]"),
            (1, r#"{"name": "../a"}"#, "[1, 1, 1]"),
            (1, r#"{"name": "a"}, {"name": "a"}"#, "[1, 1, 1]"),
        ] {
            let text =
                format!(r#"{{"version": {version}, "shape": {shape}, "images": [{images}]}}"#);
            fs::write(folder.path().join(LIST_FILE), text).unwrap();
            assert!(ImageList::read(folder.path()).is_err(), "{version} {images} {shape}");
        }
    }
}
