//! The variables and files of the process's environment that say where an object store is and who asks.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

/// Variables, as they were when it was made; not to be printed, since some are secrets.
#[derive(Default)]
pub(super) struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// That of the process.
    pub(super) fn of_process() -> Self {
        let wanted = |name: &str| {
            name == "HOME" || ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|at| name.starts_with(at))
        };
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            variables: env::vars_os().filter_map(text).filter(|(name, _)| wanted(name)).collect(),
        }
    }

    #[cfg(test)]
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { variables: variables.iter().map(owned).collect() }
    }

    /// A variable that is set and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of several.
    pub(super) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Whether it is set to true.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The text of the file that `variable` names, else of the one at `path` below the home folder; nothing where it cannot be read.
    pub(super) fn file(&self, variable: &str, path: &str) -> Option<String> {
        let home = || self.get("HOME").map(|home| PathBuf::from(home).join(path));
        fs::read_to_string(self.get(variable).map(PathBuf::from).or_else(home)?).ok()
    }
}
