//! Objects that are not read, and why.

/// What to do about it.
const REMEDY: &str = "Python can read and rewrite the file, for instance with \
                      anndata.read_h5ad(path).write_h5ad(new_path)";

/// An object that is not read.
#[derive(Debug, Clone)]
pub(crate) struct Unreadable {
    /// The property that is not read, as a type that no reader of Zarr knows.
    pub(crate) data_type: String,
    /// A sentence with the property and what to do.
    pub(crate) reason: String,
}

impl Unreadable {
    /// One with a property, about which `what` says more.
    pub(crate) fn new(property: &str, what: &str) -> Self {
        let data_type = format!("hdf5.{property}");
        Self { data_type, reason: format!("{what}; {REMEDY}") }
    }

    /// One whose elements are of a class that is not read; `more` follows the name of the class.
    pub(crate) fn datatype(class: &str, more: &str) -> Self {
        let space = if more.is_empty() { "" } else { " " };
        Self::new(class, &format!("its elements are of the HDF5 datatype {class}{space}{more}"))
    }
}
