//! What is listed, and what is named as not read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anndata::UnsValue;

use crate::{copied, copy, fixtures, forget_consolidated, open, rows};

/// The stores in both versions of Zarr without consolidated metadata, changed.
fn on_each(change: impl Fn(&Path), check: impl Fn(&Path)) {
    for name in ["v2", "v3"] {
        let folder = copied(name);
        forget_consolidated(folder.path());
        change(folder.path());
        check(folder.path());
    }
}

#[test]
fn names_that_begin_with_a_dot_are_listed() {
    let rename = |store: &Path| {
        for (from, to) in [("layers/counts", "layers/.counts"), ("obsm/X_pca", "obsm/.pca")] {
            fs::rename(store.join(from), store.join(to)).unwrap();
        }
        fs::rename(store.join("uns/title"), store.join("uns/.title")).unwrap();
    };
    on_each(rename, |store| {
        let anndata = open(store).unwrap();
        assert_eq!(anndata.layers().unwrap(), [".counts", "by_columns", "dense"]);
        assert_eq!(anndata.obsm_names().unwrap(), [".pca"]);
        assert_eq!(rows(&anndata.layer(".counts").unwrap(), &[0..7]).unwrap().nnz(), 11);
        let uns = anndata.uns().unwrap();
        assert!(uns.values.iter().any(|(name, _)| name == ".title"), "{uns:?}");
    });
}

#[test]
fn folders_that_are_no_elements_are_not_listed() {
    let add = |store: &Path| fs::create_dir(store.join("layers/.ipynb_checkpoints")).unwrap();
    on_each(add, |store| {
        let layers = open(store).unwrap().layers().unwrap();
        assert_eq!(layers, ["by_columns", "counts", "dense"]);
    });
}

#[test]
fn linked_layers_are_listed_and_read() {
    let link = |store: &Path| symlink("counts", store.join("layers/linked")).unwrap();
    on_each(link, |store| {
        let anndata = open(store).unwrap();
        assert_eq!(anndata.layers().unwrap(), ["by_columns", "counts", "dense", "linked"]);
        assert_eq!(rows(&anndata.layer("linked").unwrap(), &[0..7]).unwrap().nnz(), 11);
    });
}

/// Moves an element of a store without consolidated metadata to where h5py puts one whose name has
/// slashes: groups in each other, which have no attributes.
fn move_into_groups(store: &Path, from: &str, to: &str) {
    let mut above = store.to_owned();
    let (groups, _) = to.rsplit_once('/').unwrap();
    for name in groups.split('/') {
        above.push(name);
        fs::create_dir_all(&above).unwrap();
        let (file, metadata) = if store.join("zarr.json").exists() {
            ("zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}")
        } else {
            (".zgroup", "{\"zarr_format\": 2}")
        };
        if !above.join(file).exists() {
            fs::write(above.join(file), metadata).unwrap();
        }
    }
    fs::rename(store.join(from), store.join(to)).unwrap();
}

#[test]
fn names_with_slashes_are_listed_and_read() {
    let nest = |store: &Path| {
        for (from, to) in [
            ("layers/counts", "layers/a/b/counts"),
            ("layers/dense", "layers/a/dense"),
            ("obsm/X_pca", "obsm/pca/scaled"),
        ] {
            move_into_groups(store, from, to);
        }
        move_into_groups(store, "uns/title", "obsp/some/title");
    };
    on_each(nest, |store| {
        let anndata = open(store).unwrap();
        assert_eq!(anndata.layers().unwrap(), ["a/b/counts", "a/dense", "by_columns"]);
        assert_eq!(anndata.obsm_names().unwrap(), ["pca/scaled"]);
        for (name, of) in [("a/b/counts", "counts"), ("a/dense", "dense")] {
            let original = open(&fixtures().join("v3")).unwrap().layer(of).unwrap();
            let moved = anndata.layer(name).unwrap();
            assert_eq!(rows(&moved, &[0..7]).unwrap(), rows(&original, &[0..7]).unwrap());
        }
        assert_eq!(anndata.unread().unwrap()[0].0, "obsp/some/title");
        assert!(anndata.version().unwrap().contains("layers/a/b/counts/indptr"));
    });
}

#[test]
fn elements_that_are_not_read_are_named() {
    let add = |store: &Path| {
        for to in ["obsp/.distances", "varm/PCs", "varp/p", "raw/varm/PCs"] {
            copy(&store.join("obsm/X_pca"), &store.join(to));
        }
    };
    on_each(add, |store| {
        let unread = open(store).unwrap().unread().unwrap();
        let paths: Vec<&str> = unread.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["obsp/.distances", "varm/PCs", "varp/p", "raw/varm/PCs"]);
    });
    on_each(|_| (), |store| assert!(open(store).unwrap().unread().unwrap().is_empty()));
}

#[test]
fn an_element_whose_metadata_is_broken_is_listed_and_the_others_are_read() {
    let damage = |store: &Path| {
        for name in ["zarr.json", ".zgroup"] {
            let file = store.join("layers/counts").join(name);
            if file.exists() {
                fs::write(file, "{").unwrap();
            }
            let file = store.join("uns/pca").join(name);
            if file.exists() {
                fs::write(file, "{").unwrap();
            }
        }
    };
    on_each(damage, |store| {
        let anndata = open(store).unwrap();
        assert_eq!(anndata.layers().unwrap(), ["by_columns", "counts", "dense"]);
        let error = anndata.layer("counts").unwrap_err().to_string();
        assert!(error.contains("layers/counts"), "{error}");
        assert_eq!(rows(&anndata.layer("dense").unwrap(), &[0..7]).unwrap().n_rows(), 7);
        let uns = anndata.uns().unwrap();
        assert!(uns.unread.iter().any(|(path, _)| path == "pca"), "{uns:?}");
        assert!(uns.values.iter().any(|(name, _)| name == "title"), "{uns:?}");
    });
}

/// The number of values in a group and in those within it.
fn count(values: &[(String, UnsValue)]) -> usize {
    let of_value = |value: &UnsValue| match value {
        UnsValue::Group(within) => count(within),
        _ => 1,
    };
    values.iter().map(|(_, value)| of_value(value)).sum()
}

#[test]
fn links_that_form_circles_end() {
    let link = |store: &Path| {
        for name in ["colors", "empty", "large", "n", "pca", "share", "table", "yes"] {
            fs::remove_dir_all(store.join("uns").join(name)).unwrap();
        }
        for name in ["uns", "obs", "layers", "obsm", "raw"] {
            for n in 0..9 {
                symlink(".", store.join(name).join(format!("loop{n}"))).unwrap();
            }
        }
    };
    on_each(link, |store| {
        let anndata = open(store).unwrap();
        let uns = anndata.uns().unwrap();
        assert!(uns.values.iter().any(|(name, _)| name == "title"));
        let beyond = uns.unread.iter().filter(|(_, why)| why.contains("lie beyond the first"));
        assert!((1..20).contains(&beyond.count()));
        assert!(count(&uns.values) < 1 << 14);
        assert!(anndata.version().unwrap().contains("obs/cell_id"));
        assert!(anndata.layer("loop0").is_err());
    });
}
