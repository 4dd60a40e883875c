//! Stores in another layout: the same values, in bounded memory, whatever ends a run.

mod program;
mod same;
mod source;
mod unfinished;
mod xarray;

use std::path::Path;
use std::sync::Arc;

use fields::Error;
use fields::relayout::{RelayoutEvent, RelayoutReport, RelayoutSpec, relayout};
use storage::{LocalStorage, Storage};

/// Copies a store in a folder.
fn lay_out(from: &Path, to: &Path, spec: &RelayoutSpec) -> Result<RelayoutReport, Error> {
    watched(from, to, spec, &mut |_| {})
}

fn watched(
    from: &Path,
    to: &Path,
    spec: &RelayoutSpec,
    watch: &mut dyn FnMut(RelayoutEvent<'_>),
) -> Result<RelayoutReport, Error> {
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(from));
    relayout((&storage, from.to_str().unwrap()), to, spec, watch)
}

/// All files below a folder with their contents, in order.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.push((name, std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
