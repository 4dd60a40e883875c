//! A store of fields in another layout: chunks, shards, codec, types, a part of its dimensions.
//!
//! [`relayout()`] copies the arrays of a group, in any storage, in Zarr 2 or 3, to a new store of
//! Zarr 3 in a folder. Values are those of the source bit by bit, unless a smaller type is wanted;
//! names, dimensions, attributes and missing values are such that xarray reads the same.
//!
//! A store is copied region by region, in bounded memory, and a source chunk is decoded once if
//! that fits (module `plan`). A run that was killed, interrupted, or found its disk full goes on
//! where it ended, if it is called again with the same settings (module `progress`); the result is
//! the same bit by bit.

mod axis;
mod cast;
mod copy;
mod plan;
mod progress;
mod run;
mod source;
mod spec;
mod strings;
mod target;
mod variable;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bench_run::{check_interrupted, n_threads};
use serde_json::{Value, json};
use storage::{Destination, Existing, Storage, local_path};

use crate::Error;
use progress::Progress;
use run::{Copying, Counts};
use source::{Source, read_error};
pub use spec::{ArrayPlan, Length, RelayoutEvent, RelayoutReport, RelayoutSpec, StoredAs};
use target::write_error;
use variable::Variable;

/// Copies the fields of `storage`, which was opened at the address `uri`, to a new store in the
/// folder `path`.
///
/// The store is written to a folder with the suffix `.partial` and renamed at the end. If the run
/// ends early, that stays, and the same call goes on with it. `watch` gets each event.
///
/// # Errors
/// The source cannot be read, something exists at `path`, another relayout was begun there, a
/// setting does not fit the source, a number does not fit a smaller type, writing fails, or the run
/// is interrupted.
pub fn relayout(
    (storage, uri): (&Arc<dyn Storage>, &str),
    path: &Path,
    spec: &RelayoutSpec,
    watch: &mut dyn FnMut(RelayoutEvent<'_>),
) -> Result<RelayoutReport, Error> {
    let started = Instant::now();
    spec.check()?;
    let source = Source::open(storage, spec)?;
    let Source { attributes, arrays, groups, is_whole } = source;
    let variables: Vec<Variable> =
        arrays.into_iter().map(|array| Variable::new(array, spec)).collect::<Result<_, _>>()?;
    let task = task(&**storage, uri, &variables, spec)?;
    let mut destination = claim(path, uri, &task)?;
    if let Some(path) = destination.leftover() {
        watch(RelayoutEvent::Leftover(path));
    }
    let resumed = destination.resumed().map(Path::to_owned);
    if let Some(path) = &resumed {
        watch(RelayoutEvent::Resumed(path));
    }
    let folder = PathBuf::from(destination.uri());
    let group = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
    write_json(&folder.join("zarr.json"), &group)?;
    let progress_file = destination.progress_file().unwrap_or_else(|| folder.join(".progress"));
    let mut progress = Progress::open(&progress_file)?;
    if let Some(path) = destination.keep_unfinished() {
        watch(RelayoutEvent::KeptOnFailure(path));
    }
    let n_chunks = variables.iter().map(|of| of.plan.n_chunks()).sum();
    watch(RelayoutEvent::Opened { n_arrays: variables.len(), n_chunks, groups: &groups });
    let mut report = RelayoutReport {
        arrays: Vec::new(),
        n_bytes: variables.iter().map(Variable::n_bytes).sum(),
        source_bytes: None,
        bytes_on_disk: 0,
        n_decoded: 0,
        rounded_to_zero: Vec::new(),
        seconds: 0.0,
        resumed: resumed.is_some(),
    };
    let mut n_written = 0;
    for variable in &variables {
        let name = &variable.source.name;
        let fitting = spec.memory_bytes / variable.plan.region_bytes.max(1);
        let n_threads = n_threads(spec.n_threads, variable.plan.n_regions().min(fitting)).max(1);
        let plan = variable.described(n_threads);
        watch(RelayoutEvent::Array(&plan));
        report.arrays.push(plan);
        if progress.is_finished(name) {
            n_written += variable.plan.n_chunks();
            watch(RelayoutEvent::Written { n_chunks: n_written });
            continue;
        }
        let folder = folder.join(name);
        write_json(&folder.join("zarr.json"), &variable.metadata())?;
        let counts = Counts::default();
        let copying = Copying { variable, spec, folder: &folder, n_threads, counts: &counts };
        copying.run(&mut progress, &mut |n_chunks| {
            n_written += n_chunks;
            watch(RelayoutEvent::Written { n_chunks: n_written });
        })?;
        check_interrupted(spec.interrupted)?;
        progress.note_finished(name)?;
        report.n_decoded += counts.n_decoded.into_inner();
        let n_zeros = counts.n_zeros.load(Ordering::Relaxed);
        if 0 < n_zeros {
            report.rounded_to_zero.push((name.clone(), n_zeros));
        }
    }
    if is_whole && groups.is_empty() {
        report.source_bytes = local_path(uri)
            .filter(|path| path.is_dir())
            .and_then(|folder| bench_run::folder_bytes(folder).ok());
    }
    drop(progress);
    report.bytes_on_disk = destination.publish()?.unwrap_or(0);
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Claims a local folder for the store.
fn claim(path: &Path, uri: &str, task: &str) -> Result<Destination, Error> {
    let refused = |problem| Error::Place { path: path.to_owned(), what: "store", problem };
    let text = path.to_str().ok_or_else(|| refused("its name is not valid UTF-8"))?;
    if local_path(text).is_none() {
        return Err(refused("it is written to a local folder; copy it from there"));
    }
    Ok(Destination::resume_or_refuse(text, Existing::Keep, &[uri], task)?)
}

/// What the target depends on: equal texts mean equal stores.
fn task(
    storage: &dyn Storage,
    uri: &str,
    variables: &[Variable],
    spec: &RelayoutSpec,
) -> Result<String, Error> {
    let version = env!("CARGO_PKG_VERSION");
    let place = match local_path(uri) {
        Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        None => storage.place().into(),
    };
    let mut lines = vec![format!("somafeed {version}: fields of {}", place.display()), spec.task()];
    for variable in variables {
        let name = &variable.source.name;
        let files = ["zarr.json", ".zarray", ".zattrs"].map(|file| format!("{name}/{file}"));
        let files = files.each_ref().map(String::as_str);
        for (file, version) in files.iter().zip(storage.versions(&files)) {
            match version {
                Ok(version) => lines.push(format!("{file} {version:?}")),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(read_error(storage, error)),
            }
        }
        lines.push(variable.metadata().to_string());
    }
    Ok(lines.join("\n"))
}

fn write_json(path: &Path, content: &Value) -> Result<(), Error> {
    let write = || -> Result<(), bench_run::Cause> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(fs::write(path, serde_json::to_vec_pretty(content)?)?)
    };
    write().map_err(|error| write_error(path, error))
}
