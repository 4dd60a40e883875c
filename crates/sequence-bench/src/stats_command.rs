//! The command `stats`: what servers have.

use std::process::ExitCode;

use bench_run::{grouped, print_line};
use clap::Args;
use sequences::key_values::balance;
use sequences::{SequenceServers, SequenceStore as _};

use crate::server_flags::ServerFlags;

/// Flags of `stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    servers: ServerFlags,
}

/// Prints what servers have of a data set.
pub(crate) fn run(args: &StatsArgs) -> anyhow::Result<ExitCode> {
    let servers = args.servers.start()?;
    print_line!("{}", format_stats(&SequenceServers::open(&servers.spec)?)?);
    Ok(ExitCode::SUCCESS)
}

/// Formats the keys, bytes and memory of each server, and of all.
///
/// # Errors
/// A server does not answer.
pub(crate) fn format_stats(store: &SequenceServers) -> anyhow::Result<String> {
    let counts = store.values().count(&|| false)?;
    let mut lines = vec![
        "| server | id | slots | keys | of them ours | MB of ours | MB of memory | replicas |"
            .to_owned(),
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |".to_owned(),
    ];
    let (mut n_kept, mut n_ours, mut n_others) = (0, Vec::new(), 0);
    for node in store.stats()? {
        let ours = counts.iter().find(|count| count.address == node.address);
        let (n_keys, n_bytes) = ours.map_or((0, 0), |count| (count.n_keys, count.n_bytes));
        let kept = node.used_memory.saturating_sub(node.memory_at_start);
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {:.1} | {:.1} | {} |",
            node.address,
            node.id.get(..8).unwrap_or(&node.id),
            grouped(node.n_slots as u64),
            grouped(node.n_keys),
            grouped(n_keys),
            n_bytes as f64 / 1e6,
            kept as f64 / 1e6,
            node.replicas.len(),
        ));
        n_kept += kept;
        // The manifest is a key, too.
        n_others += node.n_keys.saturating_sub(n_keys);
        n_ours.push(n_keys);
    }
    let summary = store.summary();
    let n_stored = summary.n_letters + summary.n_name_bytes;
    let balance = balance(&n_ours).unwrap_or(1.0);
    let kept = match n_others {
        0 | 1 => format!(
            "{:.3} bytes of memory for each byte of letters and names",
            n_kept as f64 / n_stored.max(1) as f64
        ),
        n => format!("the servers have {} other keys", grouped(n)),
    };
    lines.push(format!("fullest server over the mean: {balance:.3}; {kept}"));
    Ok(lines.join("\n"))
}
