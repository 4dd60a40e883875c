//! Proxies of the environment: clients of S3 would send the requests for a link's server to them,
//! and no proxy reaches the loopback interface of this machine.

use std::os::unix::process::CommandExt as _;

use anyhow::Context as _;

use crate::program::Program;

/// Variables by which HTTP clients are directed to a proxy. Most clients read both spellings.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Replaces this process by the same command without proxies, if the environment names one.
/// Readers in this process and in its child processes then reach a link's server directly.
///
/// # Errors
/// The program cannot be started again.
pub(super) fn leave() -> anyhow::Result<()> {
    if VARIABLES.iter().all(|name| std::env::var_os(name).is_none()) {
        return Ok(());
    }
    let cannot = "cannot start the program again without the proxy of the environment";
    let program = Program::this().context(cannot)?;
    let mut again = program.command();
    again.args(&program.arguments);
    for variable in VARIABLES {
        again.env_remove(variable);
    }
    // `exec` returns only if it failed.
    Err(again.exec()).context(cannot)
}
