//! Makes processes of scripts. A script's order is on its command line, except for the data's
//! address and settings: these come on stdin, because other users can read a command line.

use std::collections::BTreeMap;
use std::process::Command;

use bench_run::ProcessSpec;
use grid_point::Data;
use serde::Serialize;

/// Input of a script on stdin.
#[derive(Serialize)]
struct ScriptInput<'a> {
    uri: &'a str,
    config: &'a BTreeMap<String, String>,
}

/// Makes the process of a script that reads the data. Fails if its input cannot be serialized.
pub(crate) fn script_process(
    command: Command,
    data: &Data,
) -> anyhow::Result<ProcessSpec<'static>> {
    let input = ScriptInput { uri: data.uri.full(), config: &data.config };
    ProcessSpec::new(command, &input, data.secrets())
}
