//! The arguments of `cargo xtask fuzz`.

use std::ffi::OsString;

use crate::UsageError;

/// Seconds per turn of a target.
const SECONDS: u64 = 60;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) targets: Vec<String>,
    pub(super) seconds: u64,
    /// Repeats until all runs together have this number of executions.
    pub(super) executions: Option<u64>,
    /// Whether to write the inputs that reach new code to `fuzz/corpus`.
    pub(super) keep: bool,
}

/// Parses the arguments. `all` targets run unless some are named.
pub(super) fn parse(arguments: &[OsString], all: &[String]) -> anyhow::Result<Arguments> {
    let mut parsed =
        Arguments { targets: Vec::new(), seconds: SECONDS, executions: None, keep: false };
    let mut rest = arguments.iter().map(|argument| argument.to_string_lossy());
    while let Some(argument) = rest.next() {
        let mut number = || {
            let value = rest.next().unwrap_or_default();
            let number: Option<u64> = value.parse().ok();
            let wrong = || UsageError(format!("{argument} takes a number above 0, got `{value}`"));
            number.filter(|number| *number > 0).ok_or_else(wrong)
        };
        match &*argument {
            "--seconds" => parsed.seconds = number()?,
            "--executions" => parsed.executions = Some(number()?),
            "--keep" => parsed.keep = true,
            target if all.iter().any(|known| known == target) => {
                parsed.targets.push(target.to_owned());
            }
            other => {
                let all = all.join(", ");
                return Err(UsageError(format!("`{other}` is not a fuzz target: {all}")).into());
            }
        }
    }
    if parsed.targets.is_empty() {
        parsed.targets = all.to_vec();
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> anyhow::Result<Arguments> {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        parse(&arguments, &["array".to_owned(), "tile".to_owned()])
    }

    #[test]
    fn arguments_are_read() {
        let all = parsed(&[]).unwrap();
        assert_eq!((all.targets.len(), all.seconds, all.executions), (2, SECONDS, None));
        let some = parsed(&["tile", "--seconds", "5", "--executions", "900", "--keep"]).unwrap();
        let targets = vec!["tile".to_owned()];
        assert_eq!(some, Arguments { targets, seconds: 5, executions: Some(900), keep: true });
        for wrong in [&["files"][..], &["--seconds"], &["--seconds", "0"], &["--executions", "x"]] {
            assert!(parsed(wrong).unwrap_err().is::<UsageError>(), "{wrong:?}");
        }
    }
}
