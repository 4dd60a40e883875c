//! The kernel's files of lines `name: number`, such as `/proc/self/status` and `/proc/meminfo`.

/// The number in the first line that begins with `entry`, in bytes if the line says `kB`.
///
/// `None` if no line begins so, or if something else follows the number.
pub fn kernel_entry(text: &str, entry: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(entry))?.trim();
    match rest.strip_suffix("kB") {
        Some(kib) => kib.trim().parse::<u64>().ok()?.checked_mul(1024),
        None => rest.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_and_nothing_else() {
        let text = "Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    5000 kB\nVmRSS:\t 12 pages\nn: 7\n";
        assert_eq!(kernel_entry(text, "VmHWM:"), Some(5000 * 1024));
        assert_eq!(kernel_entry(text, "n:"), Some(7));
        assert_eq!(kernel_entry(text, "VmRSS:"), None);
        assert_eq!(kernel_entry(text, "Pss:"), None);
        assert_eq!(kernel_entry("Pss: 18446744073709551615 kB", "Pss:"), None);
    }
}
