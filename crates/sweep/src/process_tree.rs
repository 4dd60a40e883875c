//! Memory of a process and of those that it started: loaders with worker processes share pages between them.

use std::fs;

/// The most memory that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TreePeak {
    /// Sum of the proportional set sizes, in which a page that n processes share counts as 1/n for each.
    pub(crate) bytes: u64,
    pub(crate) n_processes: u64,
}

/// What a process and all below it take together; none where there is nothing below it.
pub(crate) fn memory(root: u32) -> Option<TreePeak> {
    let below = descendants(root);
    if below.is_empty() {
        return None;
    }
    let bytes = below.iter().chain([&root]).filter_map(|id| proportional_bytes(*id)).sum();
    Some(TreePeak { bytes, n_processes: below.len() as u64 + 1 })
}

fn descendants(root: u32) -> Vec<u32> {
    let mut found = children(root);
    let mut next = 0;
    while let Some(id) = found.get(next) {
        found.extend(children(*id));
        next += 1;
    }
    found
}

/// A process's threads each have their own list.
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

/// None once the process has ended.
fn proportional_bytes(id: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
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
        // The shell, the one below it and its sleep, and cat.
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
