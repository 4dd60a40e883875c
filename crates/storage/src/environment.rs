//! The process's environment: variables and files that name an object store and its credentials.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;

/// Beginnings of the names of the stores' variables, and of those that libtiledb reads.
const PREFIXES: [&str; 4] = ["AWS_", "AZURE_", "GOOGLE_", "TILEDB_"];

/// Words in the names of secrets.
const SECRETS: [&str; 7] = ["KEY", "SECRET", "TOKEN", "PASSWORD", "SIGNATURE", "CONNECTION", "SAS"];

/// Last words in the names of variables that hold the place of a secret.
const PLACES: [&str; 5] = ["FILE", "PATH", "URI", "URL", "ENDPOINT"];

/// The variables at one moment. Not to be printed: some are secrets.
#[derive(Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// The process's variables now.
    pub(crate) fn of_process() -> Self {
        let wanted = |name: &str| name == "HOME" || PREFIXES.iter().any(|at| name.starts_with(at));
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            variables: env::vars_os().filter_map(text).filter(|(name, _)| wanted(name)).collect(),
        }
    }

    #[cfg(test)]
    pub(crate) fn from_variables(variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self { variables: variables.iter().map(owned).collect() }
    }

    /// A variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of `names` that is set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Whether a variable is set to true.
    #[cfg(feature = "s3")]
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Values of variables whose names say that they are secrets.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let is_secret = |(name, _): &(&String, &String)| {
            let is_place = name.rsplit('_').next().is_some_and(|word| PLACES.contains(&word));
            !is_place && name.split('_').any(|word| SECRETS.contains(&word))
        };
        let values = self.variables.iter().filter(is_secret).map(|(_, value)| value.clone());
        values.filter(|value| !value.is_empty()).collect()
    }

    /// The text of the file that `variable` names, else of the one at `path` below the home folder;
    /// `None` if it cannot be read.
    pub(crate) fn file(&self, variable: &str, path: &str) -> Option<String> {
        let home = || self.get("HOME").map(|home| PathBuf::from(home).join(path));
        fs::read_to_string(self.get(variable).map(PathBuf::from).or_else(home)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name() {
        let environment = Environment::from_variables(&[
            ("AWS_ACCESS_KEY_ID", "aws id"),
            ("AWS_SECRET_ACCESS_KEY", "aws secret"),
            ("AWS_SESSION_TOKEN", "aws token"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container token"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
            ("AWS_REGION", "eu-1"),
            ("AWS_PROFILE", "lab"),
            ("AWS_SECURITY_TOKEN", ""),
            ("AZURE_CLIENT_SECRET", "azure secret"),
            ("AZURE_STORAGE_CONNECTION_STRING", "azure connection"),
            ("AZURE_STORAGE_KEY", "azure key"),
            ("AZURE_STORAGE_SAS_TOKEN", "azure signature"),
            ("AZURE_TENANT_ID", "tenant"),
            ("GOOGLE_API_KEY", "google key"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/file"),
            ("HOME", "/home/ada"),
            ("TILEDB_REST_TOKEN", "rest token"),
        ]);
        let expect = [
            "aws id",
            "container token",
            "aws secret",
            "aws token",
            "azure secret",
            "azure connection",
            "azure key",
            "azure signature",
            "google key",
            "rest token",
        ];
        assert_eq!(environment.secrets(), expect);
    }
}
