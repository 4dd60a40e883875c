//! Input of commands in tests.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const N_CELLS: u64 = 3_000;
const N_GENES: u64 = 500;

/// Returns the values with gene and cell numbers, ordered like a 10x matrix.
pub(crate) fn entries() -> Vec<(u64, u64, String)> {
    let per_cell = 60;
    let of_cell = |cell: u64| {
        let mut genes: Vec<u64> = (0..per_cell).map(|nth| (cell * 7 + nth * 8) % N_GENES).collect();
        genes.sort_unstable();
        genes.into_iter().map(move |gene| (gene + 1, cell + 1, (1 + gene % 9).to_string()))
    };
    (0..N_CELLS).flat_map(of_cell).collect()
}

/// Writes a 10x folder `tenx` with these values.
pub(crate) fn write_tenx(folder: &TempDir, entries: &[(u64, u64, String)]) {
    let tenx = folder.path().join("tenx");
    fs::create_dir(&tenx).unwrap();
    let mut matrix = format!(
        "%%MatrixMarket matrix coordinate real general\n{N_GENES} {N_CELLS} {}\n",
        entries.len()
    );
    for (gene, cell, value) in entries {
        writeln!(matrix, "{gene} {cell} {value}").unwrap();
    }
    fs::write(tenx.join("matrix.mtx"), matrix).unwrap();
    let lines = |n: u64, line: &dyn Fn(u64) -> String| -> String { (0..n).map(line).collect() };
    let barcodes = lines(N_CELLS, &|cell| format!("cell{cell}-1\n"));
    fs::write(tenx.join("barcodes.tsv"), barcodes).unwrap();
    let features = lines(N_GENES, &|gene| format!("id{gene}\tname{gene}\tGene Expression\n"));
    fs::write(tenx.join("features.tsv"), features).unwrap();
}

/// Returns all files below a folder, with their bytes.
pub(crate) fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            files.push((path, bytes));
        }
    }
    files
}
