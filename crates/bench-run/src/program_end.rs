//! How a program of benchmark commands ends: its exit code, and errors as one line.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use crate::output::unprinted;
use crate::program::{Program, XTASK};
use crate::secrets::{HIDDEN, Secrets};
use crate::usage_error::UsageError;

/// Runs a program on a command line (program name first) and returns its exit code: 0 for success,
/// 1 for a failure, 2 for an invalid command line, and 130 after Ctrl-C. Errors are one line on
/// stderr. Help calls the program as its users do ([`Program::called`]).
pub fn run_program<Cli: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    perform: impl FnOnce(Cli, &[OsString]) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let secrets = Secrets::of_arguments(&arguments, storage::environment_secrets());
    let called = Program::called();
    let mut command = Cli::command();
    if called != XTASK {
        command = command.name(called).bin_name(called);
    }
    let parsed = command.try_get_matches_from(&arguments);
    match parsed.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches)) {
        Ok(cli) => exit_code(perform(cli, &arguments), &secrets),
        Err(error) => refused_command_line(error, &secrets),
    }
}

/// Returns the exit code of a command. Prints an error to stderr, with its causes, in one line
/// without secrets; the code is then 2 for a [`UsageError`], else 1.
pub fn exit_code(outcome: anyhow::Result<ExitCode>, secrets: &Secrets) -> ExitCode {
    outcome.and_then(whole_output).unwrap_or_else(|error| {
        crate::print_message!("error: {}", secrets.hide(&one_line(&with_causes(&error))));
        if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

/// Fails if stdout does not have all that the command printed.
fn whole_output(code: ExitCode) -> anyhow::Result<ExitCode> {
    match unprinted() {
        Some(error) => Err(error).context("cannot write to stdout"),
        None => Ok(code),
    }
}

/// Ends a command line that did not parse: prints help to stdout unchanged, or the first paragraph
/// of the error to stderr, in one line without secrets. Returns 0 after help, else 2.
pub fn refused_command_line(mut error: clap::Error, secrets: &Secrets) -> ExitCode {
    if !error.use_stderr() {
        // Clap uses color on a terminal only.
        return match error.print() {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        };
    }
    let is_setting = matches!(
        error.get(ContextKind::InvalidArg),
        Some(ContextValue::String(flag)) if flag.contains("KEY=VALUE")
    );
    if is_setting {
        error.insert(ContextKind::InvalidValue, ContextValue::String(HIDDEN.to_owned()));
    }
    let text = error.render().to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    if text.starts_with("error:") {
        crate::print_message!("{}; see --help", secrets.hide(&one_line(paragraph)));
    } else {
        // The subcommand is missing: clap shows the help instead of an error.
        crate::print_message!("{}", text.trim_end());
    }
    ExitCode::from(2)
}

/// Joins an error and its causes, leaving out repeated text.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for part in error.chain().map(ToString::to_string) {
        if !text.contains(&part) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&part);
        }
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::with_causes;

    #[test]
    fn a_cause_is_printed_once() {
        let error = anyhow::anyhow!("no such file").context("cannot open x: no such file");
        assert_eq!(
            with_causes(&error.context("the sweep ends")),
            "the sweep ends: cannot open x: no such file"
        );
    }
}
