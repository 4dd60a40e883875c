//! Files of sequences, written to a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pipeline::Stop;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sequences::{RecordFormat, RecordReader, SequenceFilesWriter};

use crate::errors::{IntoException as _, OrException as _};
use crate::waiting::{log, logged};

/// Writes records of files to a new store.
#[pyfunction]
#[pyo3(signature = (files, store, *, skip_empty = false, skip_doubled = false))]
pub(crate) fn import_sequences(
    py: Python<'_>,
    files: Vec<PathBuf>,
    store: PathBuf,
    skip_empty: bool,
    skip_doubled: bool,
) -> PyResult<Bound<'_, PyDict>> {
    let (stop, n_read) = (Stop::default(), Arc::new(AtomicU64::new(0)));
    let (of_thread, n_of_thread) = (stop.clone(), Arc::clone(&n_read));
    let work =
        move || import(&files, &store, (skip_empty, skip_doubled), (&n_of_thread, &of_thread));
    // Messages name the flags of the command.
    let imported = logged(py, "import", &n_read, work, || stop.set())?.map_err(|error| {
        let text = error.value(py).to_string();
        let named = text
            .replace("--skip-empty", "skip_empty=True")
            .replace("--skip-doubled", "skip_doubled=True");
        error.get_type(py).call1((named,)).map_or_else(|error| error, PyErr::from_value)
    })?;
    let (n_sequences, n_letters) = (imported.n_sequences, imported.n_letters);
    log(py, &format!("imported {n_sequences} sequences of {n_letters} letters"))?;
    let dict = PyDict::new(py);
    dict.set_item("n_sequences", imported.n_sequences)?;
    dict.set_item("n_letters", imported.n_letters)?;
    dict.set_item("n_bytes", imported.n_bytes)?;
    dict.set_item("n_empty", imported.n_empty)?;
    dict.set_item("n_doubled", imported.n_doubled)?;
    dict.set_item("formats", imported.formats)?;
    Ok(dict)
}

/// What was written.
struct Imported {
    n_sequences: u64,
    n_letters: u64,
    n_bytes: u64,
    n_empty: u64,
    n_doubled: u64,
    formats: Vec<&'static str>,
}

fn import(
    files: &[PathBuf],
    store: &Path,
    (skip_empty, skip_doubled): (bool, bool),
    (n_read, stop): (&AtomicU64, &Stop),
) -> PyResult<Imported> {
    let sources: Vec<String> =
        files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let mut readers = Vec::new();
    for file in files {
        let reader = RecordReader::open(file).or_exception()?;
        readers.push(if skip_empty { reader.skipping_empty() } else { reader });
    }
    let mut writer = SequenceFilesWriter::create(store, &sources).or_exception()?;
    if skip_doubled {
        writer = writer.skipping_doubled();
    }
    for reader in &mut readers {
        while let Some(record) = reader.next_record().or_exception()? {
            if stop.is_set() {
                return Err(sequences::Error::Stopped.into_exception());
            }
            writer.push(record.letters, record.name).or_exception()?;
            n_read.fetch_add(1, Ordering::Relaxed);
        }
    }
    let report = writer.finish().or_exception()?;
    Ok(Imported {
        n_sequences: report.summary.n_sequences,
        n_letters: report.summary.n_letters,
        n_bytes: report.n_bytes,
        n_empty: readers.iter().map(RecordReader::n_skipped).sum(),
        n_doubled: report.n_doubled,
        formats: readers.iter().map(|reader| format_name(reader.format())).collect(),
    })
}

fn format_name(format: RecordFormat) -> &'static str {
    match format {
        RecordFormat::Lines => "lines",
        RecordFormat::Fasta => "fasta",
        RecordFormat::Fastq => "fastq",
    }
}
