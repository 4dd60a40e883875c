//! This program: how its users call it, and how it starts itself again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context as _;

/// What starts programs that have no other name.
pub(crate) const XTASK: &str = "cargo xtask";

static THIS: OnceLock<Program> = OnceLock::new();

/// A program of benchmark commands. It starts itself again for each measured process.
#[derive(Clone, Debug)]
pub struct Program {
    /// How users call it: the words before a subcommand.
    pub called: &'static str,
    /// The file and the arguments that start it; a subcommand and its arguments follow.
    pub start: Vec<OsString>,
    /// The subcommand of this process and its arguments.
    pub arguments: Vec<OsString>,
    /// The file that contains its code.
    pub code: PathBuf,
}

impl Program {
    /// Names this program, if it is not an executable file of its own. Does nothing if it was named
    /// before.
    pub fn name(self) {
        THIS.get_or_init(|| self);
    }

    /// Returns this program; unless it was named, the executable file of this process, which
    /// `cargo xtask` calls.
    ///
    /// # Errors
    /// The path of the executable file is unknown.
    pub fn this() -> anyhow::Result<&'static Self> {
        if let Some(this) = THIS.get() {
            return Ok(this);
        }
        let file =
            std::env::current_exe().context("cannot find the program itself to start it again")?;
        Ok(THIS.get_or_init(|| Self {
            called: XTASK,
            start: vec![file.clone().into_os_string()],
            arguments: std::env::args_os().skip(1).collect(),
            code: file,
        }))
    }

    /// Returns how users call this program: the words before a subcommand.
    pub fn called() -> &'static str {
        THIS.get().map_or(XTASK, |this| this.called)
    }

    /// Returns how users call the program of one kind of samples, `fields` for example: the words
    /// before a subcommand.
    pub fn called_for(kind: &str) -> String {
        match Self::called() {
            XTASK => format!("{XTASK} {kind}"),
            called => called.to_owned(),
        }
    }

    /// Returns the command that starts it again. A subcommand must follow.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.start.first().cloned().unwrap_or_default());
        command.args(self.start.iter().skip(1));
        command
    }
}
