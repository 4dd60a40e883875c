//! Interpreters on the PATH, of which some may not run.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::iter;
use std::path::{Path, PathBuf};

/// The PATH of this process.
pub(crate) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Every file called `name` in the folders of `path`, in their order. A shim of pyenv runs only the
/// versions of Python that are switched on, so it is followed by the interpreters of that name that
/// pyenv has installed beside its shims.
pub(crate) fn candidates(name: &str, path: &OsStr) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in std::env::split_paths(path) {
        let in_pyenv = installed_by_pyenv(&folder).into_iter().map(|version| version.join("bin"));
        let folders = iter::once(folder).chain(in_pyenv);
        found.extend(folders.map(|folder| folder.join(name)).filter(|program| program.is_file()));
    }
    found
}

/// The versions of Python that pyenv has installed, newest first, if `folder` has its shims; its
/// folder has `shims` and `versions` side by side.
fn installed_by_pyenv(folder: &Path) -> Vec<PathBuf> {
    let root = folder.parent().filter(|_| folder.ends_with("shims"));
    let versions = root.and_then(|root| root.join("versions").read_dir().ok());
    let versions = versions.into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<PathBuf> = versions.map(|version| version.path()).collect();
    let number = |folder: &PathBuf| -> Vec<u32> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        name.split('.').map_while(|part| part.parse().ok()).collect()
    };
    found.sort_by_key(|folder| Reverse((number(folder), folder.clone())));
    found
}

/// Writes a program that runs a line of shell, for tests. Another process writes it: a file that
/// this one has open for writing could not be run while another thread starts a process.
#[cfg(test)]
pub(crate) fn write_program(folder: &Path, name: &str, line: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let program = folder.join(name);
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#;
    let written =
        std::process::Command::new("sh").args(["-c", write]).arg(&program).arg(line).status();
    assert!(written.unwrap().success());
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_all_files_of_the_name_in_the_paths_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let first = write_program(&at("z"), "python3.12", "exit 127");
        write_program(&at("z"), "python3.13", "");
        let second = write_program(&at("a"), "python3.12", "");
        std::fs::create_dir_all(at("b/python3.12")).unwrap();
        let path = std::env::join_paths(["z", "missing", "b", "a"].map(at)).unwrap();
        assert_eq!(candidates("python3.12", &path), [first, second]);
    }

    #[test]
    fn interpreters_behind_a_shim_of_pyenv_are_candidates_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let shim = write_program(&at("shims"), "python3.12", "exit 127");
        let [nine, ten, candidate] = ["3.12.9", "3.12.10", "3.12.1rc1"].map(|version| {
            write_program(&at(&format!("versions/{version}/bin")), "python3.12", "")
        });
        write_program(&at("versions/3.11.7/bin"), "python3.11", "");
        let found = candidates("python3.12", at("shims").as_os_str());
        assert_eq!(found, [shim, ten, nine, candidate]);
        assert!(candidates("python3.12", at("versions").as_os_str()).is_empty());
    }
}
