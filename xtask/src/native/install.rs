//! Installs a library in the cache atomically: a folder under the library's name is always
//! complete. It is made under another name, flushed to disk before it is renamed, and has a marker
//! with the wheels that it was made from.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::download::download;
use super::pins::Wheel;
use crate::cache::{Cache, remove};
use crate::interpreter::{Python, last_line};
use crate::progress::{Step, megabytes, print_line};

const SCRIPT: &str = include_str!("unpack.py");
const MARKER: &str = ".complete";

/// Exit codes of the unpacking script.
const MISMATCH: i32 = 10;
const FULL: i32 = 28;

/// A folder made from wheels.
#[derive(Debug, Clone)]
pub(super) struct Library {
    /// Name for messages.
    pub(super) name: String,
    /// Its folder below the cache's; the name contains the versions.
    pub(super) folder: String,
    pub(super) wheels: Vec<Wheel>,
    pub(super) members: Vec<Member>,
    /// Small files with fixed contents: name and content.
    pub(super) texts: Vec<(String, String)>,
    /// Approximate size of the folder.
    pub(super) unpacked_bytes: u64,
}

/// An item unpacked from a wheel: a file, or all files below a prefix that ends in `/`.
#[derive(Debug, Clone)]
pub(super) struct Member {
    /// Position in `Library::wheels`.
    pub(super) wheel: usize,
    pub(super) from: String,
    pub(super) to: String,
}

impl Library {
    /// The file that represents the library: the first item.
    pub(super) fn key_file(&self) -> &str {
        self.members.first().map_or("", |member| member.to.as_str())
    }

    /// The single files, whose sizes the marker records.
    fn files(&self) -> impl Iterator<Item = &str> {
        let members =
            self.members.iter().map(|member| member.to.as_str()).filter(|to| !to.ends_with('/'));
        members.chain(self.texts.iter().map(|(name, _)| name.as_str()))
    }

    /// The marker of a complete folder: the wheels, and each single file with its size.
    fn marker(&self, folder: &Path) -> std::io::Result<String> {
        let mut lines: Vec<String> =
            self.wheels.iter().map(|wheel| format!("{} {}\n", wheel.sha256, wheel.file)).collect();
        for file in self.files() {
            lines.push(format!("{} {file}\n", fs::metadata(folder.join(file))?.len()));
        }
        Ok(lines.concat())
    }
}

/// The library's folder, if it exists and is complete.
pub(super) fn find(library: &Library, cache: &Cache) -> Option<PathBuf> {
    let folder = cache.root().join(&library.folder);
    let written = fs::read_to_string(folder.join(MARKER)).ok()?;
    (library.marker(&folder).ok()? == written).then_some(folder)
}

/// Makes the library's folder in the cache, or uses one that another process made in the meantime.
pub(super) fn install(
    library: &Library,
    cache: &Cache,
    python: &Python,
) -> anyhow::Result<PathBuf> {
    let _lock = cache.lock()?;
    if let Some(folder) = find(library, cache) {
        return Ok(folder);
    }
    check_space(library, cache, python)?;
    let downloads = cache.root().join("downloads");
    fs::create_dir_all(&downloads)
        .with_context(|| format!("cannot write {}", downloads.display()))?;
    let wheels = library
        .wheels
        .iter()
        .map(|wheel| get_wheel(wheel, &downloads, python))
        .collect::<Result<Vec<_>, _>>()?;

    let folder = cache.root().join(&library.folder);
    let partial = cache.root().join(format!("{}.partial", library.folder));
    remove(&partial)?;
    unpack(library, &wheels, &partial, python)?;
    // A folder in the way is incomplete, or `find` would have returned it.
    remove(&folder)?;
    fs::rename(&partial, &folder)
        .with_context(|| format!("cannot rename {} into place", partial.display()))?;
    for wheel in wheels {
        remove(&wheel)?;
    }
    Ok(folder)
}

/// Fails unless there is room for twice the wheels (pip's copy and ours) and the unpacked files.
fn check_space(library: &Library, cache: &Cache, python: &Python) -> anyhow::Result<()> {
    let wheels: u64 = library.wheels.iter().map(|wheel| wheel.bytes).sum();
    let need = 2 * wheels + library.unpacked_bytes;
    let (code, line) =
        run_script(python, &json!({ "need_bytes": need, "folder": path(cache.root())? }))?;
    match code {
        0 => Ok(()),
        FULL => bail!(
            "the disk is too full for {}: {} needs {} free and has {}; set XDG_CACHE_HOME to a larger one",
            library.name,
            cache.root().display(),
            megabytes(need),
            line.parse().map_or(line, megabytes)
        ),
        _ => bail!("cannot tell how much room {} has: {line}", cache.root().display()),
    }
}

/// The wheel's file with the pinned content: left by an earlier run, or downloaded.
fn get_wheel(wheel: &Wheel, downloads: &Path, python: &Python) -> anyhow::Result<PathBuf> {
    let earlier = downloads.join(&wheel.file);
    if earlier.is_file() {
        if hash_differs(&earlier, wheel, python)?.is_none() {
            print_line(&format!(
                "taking {} {} from an earlier download",
                wheel.project, wheel.version
            ));
            return Ok(earlier);
        }
        print_line(&format!(
            "an earlier download of {} {} is damaged: removing it",
            wheel.project, wheel.version
        ));
        remove(&earlier)?;
    }
    let file = download(wheel, downloads, python)?;
    if let Some(found) = hash_differs(&file, wheel, python)? {
        remove(&file)?;
        bail!(
            "{} has sha256 {found}, pinned is {}; it was removed and nothing was installed",
            wheel.file,
            wheel.sha256
        );
    }
    Ok(file)
}

/// The file's hash, if it is not the pinned one.
fn hash_differs(file: &Path, wheel: &Wheel, python: &Python) -> anyhow::Result<Option<String>> {
    let (code, line) = run_script(python, &json!({ "file": path(file)?, "sha256": wheel.sha256 }))?;
    match code {
        0 => Ok(None),
        MISMATCH => Ok(Some(line)),
        _ => bail!("cannot check {}: {line}", file.display()),
    }
}

fn unpack(
    library: &Library,
    wheels: &[PathBuf],
    into: &Path,
    python: &Python,
) -> anyhow::Result<()> {
    let step =
        Step::start(format!("unpacking {} ({})", library.name, megabytes(library.unpacked_bytes)));
    let mut members = Vec::new();
    for member in &library.members {
        let wheel = wheels
            .get(member.wheel)
            .context("a member of a wheel that the library does not have")?;
        members.push(json!({ "wheel": path(wheel)?, "from": member.from, "to": member.to }));
    }
    let (code, line) = run_script(python, &json!({ "into": path(into)?, "members": members }))?;
    match code {
        0 => {}
        FULL => bail!(
            "the disk is full: {} takes {}; set XDG_CACHE_HOME to a larger one",
            library.name,
            megabytes(library.unpacked_bytes)
        ),
        _ => bail!("cannot unpack {}: {line}", library.name),
    }
    let what = || format!("cannot write {}", into.display());
    for (name, content) in &library.texts {
        fs::write(into.join(name), content).with_context(what)?;
    }
    let marker = library.marker(into).with_context(what)?;
    let mut file = fs::File::create(into.join(MARKER)).with_context(what)?;
    file.write_all(marker.as_bytes()).and_then(|()| file.sync_all()).with_context(what)?;
    step.done();
    Ok(())
}

/// Runs the script on a plan. Returns its exit code (-1 if killed) and its last line of output.
fn run_script(python: &Python, plan: &Value) -> anyhow::Result<(i32, String)> {
    let mut command = python.command(["-I", "-c", SCRIPT]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot run python3")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(plan.to_string().as_bytes()).context("python3 ended early")?;
    }
    let output = child.wait_with_output().context("cannot wait for python3")?;
    Ok((output.status.code().unwrap_or(-1), last_line(&String::from_utf8_lossy(&output.stderr))))
}

/// The path as text, which JSON needs.
fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("the path {} must be UTF-8", path.display()))
}

#[cfg(test)]
mod tests;
