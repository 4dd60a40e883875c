//! Ends the servers if the program that started them dies.
//!
//! The kernel can send a signal to a child whose parent dies, but only code between fork and exec
//! can ask for it, and it counts the death of the starting thread, not of the process. So a shell
//! waits instead: it reads from a pipe whose other end only this process has. When this process
//! ends in any way, the kernel closes the pipe. Then the shell kills every process whose working
//! folder is in the cluster's folder, and removes the folder.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::error::Error;

/// A process found by its working folder cannot be another one with a reused number. The search is
/// repeated until nothing is found, for a server that was being started.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
while read -r _; do :; done
found=yes
while [ "$found" ] && [ -d "$1" ]; do
    found=
    for process in /proc/[0-9]*; do
        case "$(readlink "$process/cwd" 2>/dev/null)/" in
            "$1"/*) kill -9 "${process#/proc/}" 2>/dev/null && found=yes ;;
        esac
    done
done
rm -rf "$1"
"#;

/// A shell that outlives this process to clean up after it.
#[derive(Debug)]
pub(super) struct Watchdog {
    shell: Child,
}

impl Watchdog {
    /// Watches over `folder`, which must be a canonical path of an existing folder.
    pub(super) fn start(folder: &Path) -> Result<Self, Error> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal to the group of this process must not end it.
            .process_group(0)
            .spawn();
        let failed = |source| Error::System { what: "start sh".into(), source };
        Ok(Self { shell: shell.map_err(failed)? })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // Its status says nothing that could be acted on.
        drop(self.shell.wait());
    }
}
