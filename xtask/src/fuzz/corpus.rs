//! The kept inputs: one file per target, and as a folder of files for libFuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::target_of;

/// File name extension in `fuzz/corpus`.
pub(super) const EXTENSION: &str = "inputs";
/// Largest size of a target's inputs in bytes; the shortest inputs are kept.
const MAX_BYTES: usize = 100_000;

/// The names of all targets: those with kept inputs.
pub(super) fn targets(corpus: &Path) -> anyhow::Result<Vec<String>> {
    let mut targets: Vec<String> =
        paths(corpus)?.iter().filter_map(|path| target_of(path)).collect();
    targets.sort();
    Ok(targets)
}

/// Writes each input of the file `kept` to its own file in `folder`, beside existing ones.
pub(super) fn unpack(kept: &Path, folder: &Path) -> anyhow::Result<()> {
    let file = fs::read(kept).with_context(|| format!("cannot read {}", kept.display()))?;
    let inputs = split(&file).with_context(|| format!("{} is cut short", kept.display()))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (idx, input) in inputs.into_iter().enumerate() {
        let path = folder.join(format!("kept-{idx}"));
        fs::write(&path, input).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Packs the inputs in `folder` into the file `kept`, short ones first. Returns its size in bytes.
pub(super) fn pack(folder: &Path, kept: &Path) -> anyhow::Result<usize> {
    let mut inputs = Vec::new();
    for path in paths(folder)? {
        inputs.push(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    if inputs.is_empty() {
        bail!("{} has no inputs", folder.display());
    }
    let file = joined(inputs);
    fs::write(kept, &file).with_context(|| format!("cannot write {}", kept.display()))?;
    Ok(file.len())
}

/// Creates a folder, or empties an existing one.
pub(super) fn empty_folder(folder: &Path) -> anyhow::Result<()> {
    let what = || format!("cannot empty {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(what)?;
    }
    fs::create_dir_all(folder).with_context(what)
}

fn paths(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let what = || format!("cannot list {}", folder.display());
    let entries = fs::read_dir(folder).with_context(what)?;
    entries.map(|entry| Ok(entry.with_context(what)?.path())).collect()
}

/// The inputs in a file; `None` if it ends within one.
fn split(file: &[u8]) -> Option<Vec<&[u8]>> {
    let mut inputs = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (input, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        inputs.push(input);
        rest = after;
    }
    Some(inputs)
}

/// Joins inputs into one file, without those that would make it too long.
fn joined(mut inputs: Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    inputs.dedup();
    let mut file = Vec::new();
    for input in inputs {
        if file.len() + 4 + input.len() <= MAX_BYTES {
            file.extend((input.len() as u32).to_le_bytes());
            file.extend(input);
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_kept_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("tile.inputs");
        let found = folder.path().join("found");
        empty_folder(&found).unwrap();
        for (name, input) in [("a", "long"), ("b", ""), ("c", "x"), ("d", "x")] {
            fs::write(found.join(name), input).unwrap();
        }
        assert_eq!(pack(&found, &kept).unwrap(), 3 * 4 + 5);
        assert_eq!(split(&fs::read(&kept).unwrap()).unwrap(), [&b""[..], b"x", b"long"]);
        assert_eq!(split(&[9, 0, 0, 0, 1]), None);
        empty_folder(&found).unwrap();
        assert!(pack(&found, &kept).is_err());
        unpack(&kept, &found).unwrap();
        assert_eq!(fs::read(found.join("kept-2")).unwrap(), b"long");
        assert_eq!(targets(folder.path()).unwrap(), ["tile"]);
    }

    #[test]
    fn no_target_has_too_many_bytes() {
        let inputs = (0..200).map(|idx| vec![idx as u8; 1000]).collect();
        assert!(joined(inputs).len() <= MAX_BYTES);
    }
}
