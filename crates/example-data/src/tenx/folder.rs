//! The files of a 10x folder, and the tables of cells and genes.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::lines::Lines;
use crate::Error;

/// The type of features if the file has none.
const DEFAULT_FEATURE_TYPE: &str = "Gene Expression";

/// A row of features.tsv.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Feature {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: String,
}

/// The three files of a folder.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) matrix: PathBuf,
    barcodes: PathBuf,
    features: PathBuf,
}

impl Folder {
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let failed =
            |source| Error::Io { action: "open the folder", path: folder.to_owned(), source };
        drop(fs::read_dir(folder).map_err(failed)?);
        Ok(Self {
            matrix: find(folder, &["matrix.mtx"])?,
            barcodes: find(folder, &["barcodes.tsv"])?,
            // Its name before Cell Ranger 3.
            features: find(folder, &["features.tsv", "genes.tsv"])?,
        })
    }

    /// The files' paths.
    pub(super) fn paths(&self) -> [&Path; 3] {
        [&self.matrix, &self.barcodes, &self.features]
    }

    /// The barcodes of the cells; there must be `n_cells`, the matrix's number.
    pub(super) fn barcodes(&self, n_cells: u64) -> Result<Vec<String>, Error> {
        let mut lines = Lines::open(&self.barcodes)?;
        let mut table = Table::new("barcode", n_cells, "cells");
        let mut barcodes = Vec::new();
        while let Some(fields) = next_fields(&mut lines)? {
            table.check(&lines, &fields[0])?;
            barcodes.extend(fields.into_iter().next());
        }
        table.check_end(&lines)?;
        Ok(barcodes)
    }

    /// The features; there must be `n_genes`, the matrix's number.
    pub(super) fn features(&self, n_genes: u64) -> Result<Vec<Feature>, Error> {
        let mut lines = Lines::open(&self.features)?;
        let mut table = Table::new("feature id", n_genes, "genes");
        let mut features = Vec::new();
        while let Some(fields) = next_fields(&mut lines)? {
            table.check(&lines, &fields[0])?;
            let mut fields = fields.into_iter();
            let id = fields.next().unwrap_or_default();
            let name = fields.next().unwrap_or_else(|| id.clone());
            let kind = fields.next().unwrap_or_else(|| DEFAULT_FEATURE_TYPE.to_owned());
            features.push(Feature { id, name, kind });
        }
        table.check_end(&lines)?;
        Ok(features)
    }
}

/// Finds the file by one of its names, plain or gzipped.
fn find(folder: &Path, names: &[&'static str]) -> Result<PathBuf, Error> {
    let mut found = names
        .iter()
        .flat_map(|name| [format!("{name}.gz"), (*name).to_owned()])
        .filter(|name| folder.join(name).is_file());
    match (found.next(), found.next()) {
        (None, _) => Err(Error::NoFile { folder: folder.to_owned(), wanted: names[0] }),
        (Some(first), Some(second)) => {
            Err(Error::TwoFiles { folder: folder.to_owned(), first, second })
        }
        (Some(name), None) => Ok(folder.join(name)),
    }
}

/// The fields of the next non-empty line.
fn next_fields(lines: &mut Lines) -> Result<Option<Vec<String>>, Error> {
    loop {
        let Some(line) = lines.next()? else { return Ok(None) };
        if line.is_empty() {
            continue;
        }
        let fields =
            std::str::from_utf8(line).map(|line| line.split('\t').map(str::to_owned).collect());
        return fields.map(Some).map_err(|_| lines.wrong("it is not UTF-8 text"));
    }
}

/// Checks a table while it is read: it must have the matrix's number of rows, with distinct names.
struct Table {
    key: &'static str,
    n_wanted: u64,
    of_what: &'static str,
    /// Each key with its line.
    seen: HashMap<String, u64>,
}

impl Table {
    fn new(key: &'static str, n_wanted: u64, of_what: &'static str) -> Self {
        Self { key, n_wanted, of_what, seen: HashMap::new() }
    }

    fn check(&mut self, lines: &Lines, key: &str) -> Result<(), Error> {
        if key.is_empty() {
            return Err(lines.wrong(format!("the {} is empty", self.key)));
        }
        if self.seen.len() as u64 == self.n_wanted {
            return Err(lines.wrong(format!(
                "there are more rows than the {} {} of the matrix",
                self.n_wanted, self.of_what
            )));
        }
        match self.seen.insert(key.to_owned(), lines.number()) {
            None => Ok(()),
            Some(line) => {
                Err(lines.wrong(format!("the {} {key:?} already stands in line {line}", self.key)))
            }
        }
    }

    fn check_end(&self, lines: &Lines) -> Result<(), Error> {
        if self.seen.len() as u64 == self.n_wanted {
            return Ok(());
        }
        Err(lines.wrong(format!(
            "the file ends after {} rows, the matrix has {} {}",
            self.seen.len(),
            self.n_wanted,
            self.of_what
        )))
    }
}
