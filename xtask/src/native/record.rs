//! `.cargo/native.toml`: the chosen libraries, in a form that cargo's configuration includes.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

const HEADER: &str = "\
# Written by `cargo xtask native`; included by config.toml. Delete it to have the libraries chosen anew.
# A variable that is set in your environment wins over a line here.
[env]
";

/// Variables and the values that cargo sets them to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    entries: Vec<(String, PathBuf)>,
}

impl Record {
    pub(super) fn new(set: &[(&'static str, PathBuf)]) -> Self {
        Self {
            entries: set.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        }
    }

    /// Reads the file; empty if it does not exist.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        match fs::read_to_string(file) {
            Ok(text) => Ok(Self::parse(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
        }
    }

    /// Skips lines that are not `NAME = "value"`: they are not ours.
    fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let (name, value) = line.split_once('=')?;
            let quoted = value.trim().strip_prefix('"')?.strip_suffix('"')?;
            Some((name.trim().to_owned(), PathBuf::from(unescape(quoted)?)))
        };
        Self { entries: text.lines().filter_map(entry).collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Path> {
        self.entries.iter().find(|(entry, _)| entry == name).map(|(_, value)| value.as_path())
    }

    /// Whether cargo set `value` from this record.
    pub(super) fn is_source_of(&self, name: &str, value: &OsStr) -> bool {
        self.get(name).is_some_and(|recorded| recorded.as_os_str() == value)
    }

    /// Replaces the file atomically. An unchanged file is not written, so that cargo sees no newer
    /// one.
    pub(super) fn write(&self, file: &Path) -> anyhow::Result<()> {
        let text = self.to_toml()?;
        if fs::read_to_string(file).is_ok_and(|old| old == text) {
            return Ok(());
        }
        let temporary = file.with_extension(format!("toml.{}", std::process::id()));
        let what = || format!("cannot write {}", file.display());
        fs::write(&temporary, text).with_context(what)?;
        fs::rename(&temporary, file).with_context(what)
    }

    fn to_toml(&self) -> anyhow::Result<String> {
        let mut lines = vec![HEADER.to_owned()];
        for (name, value) in &self.entries {
            let Some(value) = value.to_str().filter(|v| !v.contains(|c: char| c.is_control()))
            else {
                bail!(
                    "cargo's configuration cannot hold the path {}: it must be UTF-8 on one line",
                    value.display()
                );
            };
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            lines.push(format!("{name} = \"{escaped}\"\n"));
        }
        Ok(lines.concat())
    }
}

fn unescape(quoted: &str) -> Option<String> {
    let mut text = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("native.toml");
        assert_eq!(Record::read(&file).unwrap(), Record::default());
        let record = Record::new(&[
            ("LIBTORCH", "/a b/\"c\"\\d".into()),
            ("SOMAFEED_LIBTILEDB", "/é/x.so".into()),
        ]);
        record.write(&file).unwrap();
        assert_eq!(Record::read(&file).unwrap(), record);
        assert!(record.is_source_of("SOMAFEED_LIBTILEDB", OsStr::new("/é/x.so")));
        assert!(!record.is_source_of("SOMAFEED_LIBTILEDB", OsStr::new("/other")));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn an_unchanged_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("native.toml");
        let record = Record::new(&[("LIBTORCH", "/x".into())]);
        record.write(&file).unwrap();
        let before = fs::metadata(&file).unwrap().modified().unwrap();
        record.write(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn paths_that_toml_cannot_hold_are_refused() {
        let error = Record::new(&[("LIBTORCH", "/a\nb".into())]).to_toml().unwrap_err().to_string();
        assert!(error.contains("must be UTF-8 on one line"), "{error}");
    }
}
