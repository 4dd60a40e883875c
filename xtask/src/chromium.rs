//! A headless browser for tests of the report's page: the one that `SOMAFEED_CHROMIUM` names, one
//! on the PATH, or Debian's package.

use std::ffi::{OsStr, OsString};

use anyhow::bail;

use crate::debian::{Needed, runs};

const VARIABLE: &str = "SOMAFEED_CHROMIUM";
/// Names under which distributions and Google install it.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const NEEDED: Needed = Needed {
    purpose: "a test opens a report's page in Chromium",
    package: "chromium",
    by_hand: "install Chromium or Chrome so that it is on the PATH, or name it by SOMAFEED_CHROMIUM (Debian: apt install chromium)",
    service: None,
};

/// Returns the browser; installs it if there is none.
pub(crate) fn prepare() -> anyhow::Result<OsString> {
    choose(std::env::var_os(VARIABLE), || NEEDED.prepare(|| on_path(&NAMES)))
}

fn choose(
    named: Option<OsString>,
    otherwise: impl FnOnce() -> anyhow::Result<OsString>,
) -> anyhow::Result<OsString> {
    match named.filter(|name| !name.is_empty()) {
        Some(named) if runs(&named) => Ok(named),
        Some(named) => {
            bail!("{VARIABLE} is {}, which does not run: unset it or correct it", named.display())
        }
        None => otherwise(),
    }
}

fn on_path(names: &[&str]) -> Option<OsString> {
    names.iter().find(|name| runs(OsStr::new(name))).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_browser_is_taken_or_refused_but_never_passed_over() {
        let otherwise = || Ok("other".into());
        assert_eq!(choose(Some("true".into()), otherwise).unwrap(), "true");
        assert_eq!(choose(Some(OsString::new()), otherwise).unwrap(), "other");
        assert_eq!(choose(None, otherwise).unwrap(), "other");
        let error = choose(Some("/absent/chromium".into()), otherwise).unwrap_err().to_string();
        assert!(error.contains("SOMAFEED_CHROMIUM is /absent/chromium"), "{error}");
    }

    #[test]
    fn the_first_that_runs_is_found() {
        assert_eq!(on_path(&["/absent/chromium", "true"]), Some("true".into()));
        assert_eq!(on_path(&["/absent/chromium"]), None);
    }
}
