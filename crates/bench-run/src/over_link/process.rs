//! The server of a link in a process of its own: its work is not counted as the loader's.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context as _, ensure};
use clap::Args;
use link::{LinkFaults, LinkServer, LinkSpec, ServeOptions};

use crate::kernel::bind;
use crate::program::Program;

/// The subcommand of the server's process; hidden.
pub const SUBCOMMAND: &str = "serve-link";

/// Flags of the server's process.
#[derive(Debug, Args)]
pub struct ServeLinkArgs {
    /// The folder to serve
    folder: PathBuf,
    /// Latency and rates
    #[arg(long)]
    link: LinkSpec,
    /// Faults
    #[arg(long, default_value = "seed=0")]
    faults: LinkFaults,
    /// Name of the folder in the bucket; none if it is the bucket itself
    #[arg(long, default_value = "")]
    name: String,
    /// Cores to run on
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
}

/// Serves a folder until stdin closes; prints the server's address first.
///
/// # Errors
/// The folder cannot be served, or the process not be bound to its cores.
pub fn serve(args: &ServeLinkArgs) -> anyhow::Result<()> {
    if !args.cores.is_empty() {
        // Before the server's threads start, which run on the same cores.
        bind(&args.cores).context("cannot bind the server of the link to its cores")?;
    }
    let options = ServeOptions { spec: args.link, faults: args.faults, name: args.name.clone() };
    let server = LinkServer::start_with(&args.folder, &options)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.address()).and_then(|()| out.flush())?;
    // The parent holds the other end. It closes when the parent ends, whatever ends it.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// A running server's process; killed when it is dropped.
#[derive(Debug)]
pub(super) struct LinkProcess {
    child: Child,
    /// Host and port.
    address: String,
}

impl LinkProcess {
    /// Starts this program again as a server over `folder`, and waits for its address.
    pub(super) fn start(
        folder: &Path,
        options: &ServeOptions,
        cores: &[usize],
    ) -> anyhow::Result<Self> {
        let mut command = Program::this()?.command();
        command.arg(SUBCOMMAND).args(["--link", &options.spec.to_string()]);
        command.args(["--faults", &options.faults.to_string(), "--name", &options.name]);
        if !cores.is_empty() {
            let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
            command.args(["--cores", &cores.join(",")]);
        }
        command.arg("--").arg(folder);
        // In a group of its own: Ctrl-C is the parent's to handle, which ends it in the end.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let child = command.spawn().context("cannot start the server of the link")?;
        let mut process = Self { child, address: String::new() };
        if let Some(out) = process.child.stdout.take() {
            BufReader::new(out).read_line(&mut process.address)?;
        }
        process.address.truncate(process.address.trim_end().len());
        ensure!(
            !process.address.is_empty(),
            "the server of the link ended at once; its error is above"
        );
        Ok(process)
    }

    /// Host and port of the server.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for LinkProcess {
    fn drop(&mut self) {
        // It has nothing to keep. Both fail only if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
