//! OpenMPI's `mpirun`, with which a test starts several ranks: the one on the PATH, or Debian's
//! package.

use std::ffi::OsStr;

use crate::debian::{Needed, runs};

const NEEDED: Needed = Needed {
    purpose: "the tests start ranks under mpirun",
    package: "openmpi-bin",
    by_hand: "install OpenMPI so that mpirun is on the PATH (Debian, Ubuntu: apt install openmpi-bin)",
    service: None,
};

/// Installs mpirun if it is missing.
pub(crate) fn prepare() -> anyhow::Result<()> {
    NEEDED.prepare(|| runs(OsStr::new("mpirun")).then_some(()))
}
