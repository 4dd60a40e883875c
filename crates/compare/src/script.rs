//! Processes of scripts: they have their order on the command line, but for the data's address and
//! settings, which come on stdin: other users see a command line.

use std::collections::BTreeMap;
use std::process::Command;

use bench_run::ProcessSpec;
use grid_point::Data;
use serde::Serialize;

/// What a script reads from its stdin.
#[derive(Serialize)]
struct ScriptInput<'a> {
    uri: &'a str,
    config: &'a BTreeMap<String, String>,
}

/// The process of a script that reads the data.
pub(crate) fn script_process(
    command: Command,
    data: &Data,
) -> anyhow::Result<ProcessSpec<'static>> {
    let input = ScriptInput { uri: data.uri.full(), config: &data.config };
    ProcessSpec::new(command, &input, data.secrets())
}
