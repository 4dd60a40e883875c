//! Measures the memory of a process and its descendants. Worker processes of a loader share pages,
//! which count once.

use std::fs;

use bench_report::kernel_entry;

/// Highest sampled memory of a process and its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreePeak {
    /// Sum of the proportional set sizes, in which a page that n processes share counts as 1/n for
    /// each.
    pub bytes: u64,
    /// Number of processes in the sum.
    pub n_processes: u64,
}

/// Returns the memory of a process and its descendants; `None` if it has no child processes.
pub(super) fn memory(root: u32) -> Option<TreePeak> {
    let below = descendants(root);
    if below.is_empty() {
        return None;
    }
    let bytes = below.iter().chain([&root]).filter_map(|id| proportional_bytes(*id)).sum();
    Some(TreePeak { bytes, n_processes: below.len() as u64 + 1 })
}

fn descendants(root: u32) -> Vec<u32> {
    let mut processes = children(root);
    let mut next = 0;
    while let Some(id) = processes.get(next) {
        processes.extend(children(*id));
        next += 1;
    }
    processes
}

/// Lists a process's children. Each of its threads has its own list.
fn children(id: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the proportional set size in bytes; `None` once the process has ended.
fn proportional_bytes(id: u32) -> Option<u64> {
    kernel_entry(&fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?, "Pss:")
}

/// Returns the peak resident memory of another process, in bytes; `None` once it has ended.
pub(super) fn peak_of(id: u32) -> Option<u64> {
    kernel_entry(&fs::read_to_string(format!("/proc/{id}/status")).ok()?, "VmHWM:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    #[test]
    fn children_and_theirs_are_counted() {
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'sleep 60; true' & cat; kill $!"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let start = Instant::now();
        // The processes are two shells, `sleep` and `cat`.
        let peak = loop {
            match memory(shell.id()) {
                Some(peak) if peak.n_processes == 4 => break peak,
                other => assert!(start.elapsed() < Duration::from_secs(30), "{other:?}"),
            }
            sleep(Duration::from_millis(5));
        };
        assert!(100_000 < peak.bytes, "{peak:?}");
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(memory(shell.id()), None);
    }

    #[test]
    fn a_process_alone_has_no_tree() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert_eq!(memory(cat.id()), None);
        drop(cat.stdin.take());
        cat.wait().unwrap();
    }
}
