//! Cores of the link's servers. If the machine has enough cores, the servers leave those of the
//! measured processes alone.

use std::io;

use crate::kernel::{allowed_cores, bind};

/// Least number of cores with which the servers get cores of their own: with fewer, the rest would
/// be a different machine.
const LEAST_CORES: usize = 4;

/// Least number of cores with which the servers get as many as a server has threads.
const MANY_CORES: usize = 8;

/// The servers' cores; the others are given back to this thread when it is dropped.
#[derive(Debug)]
pub(super) struct ServerCores {
    of_server: Vec<usize>,
    /// The cores of this thread before.
    before: Vec<usize>,
}

impl ServerCores {
    /// Sets apart the last of the cores that this thread may run on, if there are enough. Threads
    /// and processes that it starts from now on run on the others.
    pub(super) fn take() -> io::Result<Self> {
        let before = allowed_cores()?;
        let mut allowed = before.clone();
        let of_server = allowed.split_off(allowed.len() - n_of_server(allowed.len()));
        if !of_server.is_empty() {
            bind(&allowed)?;
        }
        Ok(Self { of_server, before })
    }

    /// The cores of the servers; none if they share those of the measured processes.
    pub(super) fn of_server(&self) -> &[usize] {
        &self.of_server
    }
}

impl Drop for ServerCores {
    fn drop(&mut self) {
        if !self.of_server.is_empty() {
            // These cores were allowed before; if they are no longer, the thread stays as it is.
            let _unchanged = bind(&self.before);
        }
    }
}

/// Number of cores that the servers take of `n_cores`.
fn n_of_server(n_cores: usize) -> usize {
    match n_cores {
        MANY_CORES.. => 2,
        LEAST_CORES.. => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_cores_where_there_are_many() {
        assert_eq!([1, 2, 3, 4, 7, 8, 16, 128].map(n_of_server), [0, 0, 0, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn cores_are_set_apart_and_given_back() {
        let before = allowed_cores().unwrap();
        let cores = ServerCores::take().unwrap();
        let now = allowed_cores().unwrap();
        assert_eq!(now.len() + cores.of_server().len(), before.len());
        let is_set_apart = |core: &usize| before.contains(core) && !now.contains(core);
        assert!(cores.of_server().iter().all(is_set_apart));
        drop(cores);
        assert_eq!(allowed_cores().unwrap(), before);
    }
}
