//! Makes processes of scripts. A script's order is on its command line, except for the data's
//! address and settings: these come on stdin, because other users can read a command line.

use std::collections::BTreeMap;
use std::process::Command;

use bench_run::{LinkAccess, ProcessSpec};
use grid_point::{Data, DataSource};
use serde::Serialize;

/// Input of a script on stdin.
#[derive(Serialize)]
struct ScriptInput<'a> {
    uri: &'a str,
    config: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<ScriptLink>,
}

/// The link over which a script's loader reads.
#[derive(Serialize)]
struct ScriptLink {
    /// The address that answers with the counts of its server, as JSON.
    counts: String,
    /// The server, in the way of S3.
    endpoint: String,
    bucket: String,
    /// The folder of the data, or of the loader's copy, in the bucket.
    prefix: String,
}

/// Makes the process of a script that reads the data, where it is or over its link. Fails if its
/// input cannot be serialized.
pub(crate) fn script_process(
    command: Command,
    data: &Data,
) -> anyhow::Result<ProcessSpec<'static>> {
    let DataSource { uri, config } = data.source()?;
    let link = data.link.as_ref().map(|link| ScriptLink {
        counts: link.counts_uri(),
        endpoint: format!("http://{}", link.address),
        bucket: LinkAccess::BUCKET.to_owned(),
        prefix: link.name.clone(),
    });
    let input = ScriptInput { uri: uri.full(), config: &config, link };
    Ok(ProcessSpec::new(command, &input, data.secrets())?.over(data.link.clone()))
}
