//! The server's program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::Error;

const NAMES: [&str; 2] = ["redis-server", "valkey-server"];

/// Returns the program of a server: the first of `redis-server` and `valkey-server` that runs.
///
/// # Errors
/// Neither runs.
pub fn find_server() -> Result<PathBuf, Error> {
    first_that_runs(&NAMES.map(Path::new))
}

pub(super) fn choose(program: Option<&Path>) -> Result<PathBuf, Error> {
    program.map_or_else(find_server, |program| first_that_runs(&[program]))
}

fn first_that_runs(programs: &[&Path]) -> Result<PathBuf, Error> {
    let found = programs.iter().find(|program| runs(program.as_os_str()));
    found.map(|program| program.to_path_buf()).ok_or_else(|| Error::Missing {
        tried: programs.iter().map(|program| program.display().to_string()).collect(),
    })
}

fn runs(program: &OsStr) -> bool {
    let version = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_the_package() {
        let error = choose(Some(Path::new("/absent/redis-server"))).unwrap_err().to_string();
        assert!(error.contains("/absent/redis-server"), "{error}");
        assert!(error.contains("apt install redis-server"), "{error}");
    }
}
