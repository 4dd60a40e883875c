//! What a file is that holds no experiment, by its name, and what to do with it.

/// Endings of names, each with what such a file is and what to do. The first that fits counts.
const KINDS: [(&str, &str); 11] = [
    (".gz", "a compressed file (unpack it with gunzip)"),
    (".bz2", "a compressed file (unpack it with bunzip2)"),
    (".xz", "a compressed file (unpack it with unxz)"),
    (".zst", "a compressed file (unpack it with unzstd)"),
    (
        ".zip",
        "a Zip archive with neither an experiment nor an AnnData in Zarr at its root (pack what is \
         in the store's folder, without the folder; unpack anything else)",
    ),
    (".tar", "an archive (unpack it: what is inside is read in place)"),
    (".loom", "a Loom file (write it as AnnData: anndata.io.read_loom(...).write_h5ad(...))"),
    (
        "molecule_info.h5",
        "a list of molecules of 10x Genomics (open filtered_feature_bc_matrix.h5 of the same run)",
    ),
    (
        ".h5",
        "an HDF5 file with neither an AnnData nor a feature-barcode matrix of 10x Genomics (write \
         its data as an AnnData: adata.write_h5ad(...))",
    ),
    (".hdf5", "an HDF5 file (give an AnnData the ending .h5ad)"),
    (".rds", "a file of R (write it as AnnData, for example with zellkonverter::writeH5AD)"),
];

/// What the file at a path is.
pub(crate) fn file_kind(path: &str) -> &'static str {
    let name = path.to_ascii_lowercase();
    let kind = KINDS.iter().find(|(ending, _)| name.ends_with(ending));
    kind.map_or("a file (an experiment is a folder, an AnnData one or a .h5ad)", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use crate::{Error, Experiment, OpenOptions};

    #[test]
    fn an_hdf5_file_of_another_kind_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../hdf5/tests/data/small.h5");
        for (name, advice) in
            [("molecule_info.h5", "filtered_feature_bc_matrix.h5"), ("x.h5", "write_h5ad")]
        {
            let path = folder.path().join(name);
            std::fs::copy(small, &path).unwrap();
            let opened = Experiment::open(path.to_str().unwrap(), &OpenOptions::default());
            let error = opened.unwrap_err();
            assert!(matches!(error, Error::NotA { .. }), "{name}: {error}");
            assert!(error.to_string().contains(advice), "{error}");
        }
        for name in ["absent.h5", "absent.zarr.zip"] {
            let error = Experiment::open(name, &OpenOptions::default()).unwrap_err();
            assert!(matches!(error, Error::Missing { .. }), "{error}");
        }
        let other = concat!(env!("CARGO_MANIFEST_DIR"), "/../storage/tests/data/small.zip");
        let error = Experiment::open(other, &OpenOptions::default()).unwrap_err();
        assert!(error.to_string().contains("without the folder"), "{error}");
    }

    #[test]
    fn a_file_that_is_no_experiment_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        for (name, advice) in [
            ("x.h5ad.gz", "gunzip"),
            ("x.tar", "unpack it"),
            ("x.loom", "read_loom"),
            ("x.rds", "writeH5AD"),
            ("x", "a folder"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, "content").unwrap();
            let opened = Experiment::open(path.to_str().unwrap(), &OpenOptions::default());
            let error = opened.unwrap_err();
            assert!(matches!(error, Error::NotA { .. }), "{name}: {error}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}
