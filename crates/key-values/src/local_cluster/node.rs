//! A node: its process, its files and its ports.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::Connection;

use super::control;
use super::error::Error;
use super::ports::{Ports, free_ports};
use super::settings::Settings;
use super::wait::{Look, until};

/// How often a node gets other ports because another process was faster.
const MOST_ATTEMPTS: usize = 5;

/// What a server's log says if a port is taken.
const TAKEN: &str = "Address already in use";

const CONFIGURATION: &str = "node.conf";
const LOG: &str = "log";

/// A node of a cluster, running or not.
#[derive(Debug)]
pub(super) struct Node {
    folder: PathBuf,
    pub(super) ports: Ports,
    /// The node's own name in the cluster; empty for a server that is not a cluster.
    pub(super) id: String,
    process: Option<Child>,
}

/// A way in which a server does not start.
enum Stillborn {
    PortTaken,
    Other(Error),
}

impl Node {
    /// Starts a node with empty memory in the new folder `folder`.
    pub(super) fn start(
        program: &Path,
        settings: &Settings,
        folder: &Path,
        deadline: Duration,
    ) -> Result<Self, Error> {
        let failed = |source| Error::System { what: format!("write {}", folder.display()), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut attempt = 1;
        loop {
            let ports = free_ports(settings.tls.is_some())?;
            let text = settings.configuration(ports);
            fs::write(folder.join(CONFIGURATION), text).map_err(failed)?;
            let mut node =
                Self { folder: folder.to_owned(), ports, id: String::new(), process: None };
            match node.run(program, settings, deadline) {
                Ok(id) => {
                    node.id = id;
                    return Ok(node);
                }
                Err(Stillborn::PortTaken) if attempt < MOST_ATTEMPTS => attempt += 1,
                Err(Stillborn::PortTaken) => return Err(node.did_not_start()),
                Err(Stillborn::Other(error)) => return Err(error),
            }
        }
    }

    /// Starts the node again on its ports. It is the same node, with empty memory.
    pub(super) fn restart(
        &mut self,
        program: &Path,
        settings: &Settings,
        deadline: Duration,
    ) -> Result<(), Error> {
        // A killed server's ports are free at once, but others may use them for a moment.
        until(deadline, "restarted", || match self.run(program, settings, deadline) {
            Ok(_) => Ok(Look::Reached(())),
            Err(Stillborn::PortTaken) => Ok(Look::NotYet("its ports are taken".into())),
            Err(Stillborn::Other(error)) => Err(error),
        })
    }

    /// Number of the running process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Kills the process and waits for its end.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Both fail only if it has ended already.
            drop(process.kill());
            drop(process.wait());
        }
    }

    /// Starts the process, waits until it answers, and returns the node's id.
    fn run(
        &mut self,
        program: &Path,
        settings: &Settings,
        deadline: Duration,
    ) -> Result<String, Stillborn> {
        let log = self.folder.join(LOG);
        let failed = |source| {
            let what = format!("start {} in {}", program.display(), self.folder.display());
            Stillborn::Other(Error::System { what, source })
        };
        let output = File::create(&log).map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let process = Command::new(program)
            .arg(CONFIGURATION)
            // The watchdog finds the process by its working folder.
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C is for the program that started it, which may want to tidy up first.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        self.process = Some(process);
        let answered = until(deadline, "answering", || Ok(self.look(settings)));
        match answered {
            Ok(Some(mut connection)) if settings.is_cluster => {
                control::my_id(&mut connection).map_err(|source| self.stillborn(source))
            }
            Ok(Some(_)) => Ok(String::new()),
            Ok(None) => {
                self.kill();
                let is_taken = self.last_lines(usize::MAX).contains(TAKEN);
                Err(if is_taken {
                    Stillborn::PortTaken
                } else {
                    Stillborn::Other(self.did_not_start())
                })
            }
            Err(error) => {
                self.kill();
                Err(Stillborn::Other(error))
            }
        }
    }

    /// Reached with a connection once the server answers, without one once it has ended.
    fn look(&mut self, settings: &Settings) -> Look<Option<Connection>> {
        let has_ended = self.process.as_mut().is_none_or(|process| {
            // An error means that there is no such process.
            process.try_wait().map_or(true, |status| status.is_some())
        });
        if has_ended {
            return Look::Reached(None);
        }
        match control::connect(self.ports.plain, settings.password()) {
            Ok(connection) => Look::Reached(Some(connection)),
            Err(error) => Look::NotYet(error.to_string()),
        }
    }

    fn stillborn(&mut self, source: redis::RedisError) -> Stillborn {
        self.kill();
        let what = format!("ask the server in {} for its id", self.folder.display());
        Stillborn::Other(Error::System { what, source: std::io::Error::other(source) })
    }

    fn did_not_start(&self) -> Error {
        Error::Start { folder: self.folder.clone(), last_lines: self.last_lines(4) }
    }

    /// The last lines of the log, with `; ` between them.
    fn last_lines(&self, n_lines: usize) -> String {
        let text = fs::read(self.folder.join(LOG)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(n_lines)..].join("; ")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
