//! The machine that measured, read from the system and never from a network.

use std::fs;

use sysinfo::System;

use crate::column::column_group;

column_group! {
    /// The machine and its user.
    pub struct HostInfo {
        /// Host name.
        pub hostname: String,
        /// Short description: processor, cores, memory.
        pub host: String,
        /// User name, or the numeric id if it has no name.
        pub user: Option<String>,
        /// Processor model, as the processor reports it.
        pub cpu_model: Option<String>,
        /// Logical cores that the command could use when it began, those included that it set
        /// apart for the server of a link (`link_cores`).
        pub n_cores: u64,
        /// Physical cores.
        pub n_physical_cores: Option<u64>,
        /// Memory of the machine, in bytes.
        pub memory_bytes: u64,
        /// Memory limit of this process's control group in bytes, if it is below the machine's
        /// memory.
        pub memory_limit_bytes: Option<u64>,
        /// Kernel version.
        pub kernel: Option<String>,
        /// Operating system.
        pub os: Option<String>,
        /// NVIDIA GPUs and their driver; null if the driver is not loaded.
        pub gpu: Option<String>,
    }
}

impl HostInfo {
    /// Collects the facts from the system. Unknown ones are null or 0.
    pub fn gather() -> Self {
        let (memory_bytes, memory_limit_bytes) = memory();
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu_model = cpu_model(&cpu_info);
        let n_cores = std::thread::available_parallelism().map_or(0, |n| n.get() as u64);
        Self {
            hostname: System::host_name().unwrap_or_default(),
            host: describe(
                cpu_model.as_deref(),
                n_cores,
                memory_limit_bytes.unwrap_or(memory_bytes),
            ),
            user: Some(user()),
            cpu_model,
            n_cores,
            n_physical_cores: System::physical_core_count().ok().map(|n| n as u64),
            memory_bytes,
            memory_limit_bytes,
            kernel: System::kernel_version().ok(),
            os: System::long_os_version().ok(),
            gpu: gpu(),
        }
    }
}

/// Memory of the machine, and the control group's limit if that is smaller.
fn memory() -> (u64, Option<u64>) {
    let Ok(mut system) = System::new() else {
        return (0, None);
    };
    system.refresh_memory();
    let bytes = system.total_memory();
    let limit = system.cgroup_limits().map(|limits| limits.total_memory);
    (bytes, limit.filter(|limit| (1..bytes).contains(limit)))
}

fn describe(cpu_model: Option<&str>, n_cores: u64, memory_bytes: u64) -> String {
    let gib = memory_bytes as f64 / f64::from(1 << 30);
    let cores = if n_cores == 1 { "core" } else { "cores" };
    format!("{}, {n_cores} {cores}, {gib:.0} GiB", cpu_model.unwrap_or("unknown processor"))
}

fn cpu_model(cpu_info: &str) -> Option<String> {
    entry(cpu_info, "model name")
}

/// The value of the first line `name : value`.
fn entry(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

fn user() -> String {
    let id = rustix::process::geteuid().as_raw().to_string();
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    account_name(&accounts, &id).unwrap_or(id)
}

fn account_name(accounts: &str, id: &str) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)? == id).then(|| name.to_owned())
    })
}

fn gpu() -> Option<String> {
    let driver = fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let mut cards: Vec<String> = fs::read_dir("/proc/driver/nvidia/gpus")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|card| fs::read_to_string(card.path().join("information")).ok())
        .filter_map(|card| entry(&card, "Model"))
        .collect();
    cards.sort();
    Some(describe_gpus(&cards, &driver))
}

fn describe_gpus(cards: &[String], driver: &str) -> String {
    let version = driver
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.'))
        .unwrap_or("unknown");
    let names = cards.chunk_by(|one, next| one == next).map(|same| match same {
        [card] => card.clone(),
        _ => format!("{} x {}", same.len(), same[0]),
    });
    names.chain([format!("driver {version}")]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_named_in_cpuinfo() {
        let text =
            "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 9B14\n\nmodel name\t: other\n";
        assert_eq!(cpu_model(text).as_deref(), Some("AMD EPYC 9B14"));
        assert_eq!(cpu_model("Features : fp asimd\n"), None);
    }

    #[test]
    fn accounts_are_found_by_number() {
        let text = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/sh\nbroken\n";
        assert_eq!(account_name(text, "1000").as_deref(), Some("ada"));
        assert_eq!(account_name(text, "100"), None);
    }

    #[test]
    fn gpus_are_counted_and_the_driver_named() {
        let driver = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 2025\nGCC version: 12";
        let cards = ["Tesla T4", "Tesla T4", "NVIDIA H200"].map(str::to_owned);
        assert_eq!(describe_gpus(&cards, driver), "2 x Tesla T4, NVIDIA H200, driver 570.86.15");
        assert_eq!(describe_gpus(&[], ""), "driver unknown");
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        let host = HostInfo::gather();
        assert!(host.n_cores > 0 && host.memory_bytes > 0, "{host:?}");
        assert!(host.host.contains("GiB"), "{host:?}");
    }
}
