//! OpenMPI's `mpirun`, under which a test starts several ranks: the one on the PATH, else Debian's package.

use std::ffi::OsStr;

use crate::debian::{Needed, runs};

const NEEDED: Needed = Needed {
    what_for: "the tests start ranks under mpirun",
    package: "openmpi-bin",
    by_hand: "install OpenMPI so that mpirun is on the PATH (Debian, Ubuntu: apt install openmpi-bin)",
};

/// Makes sure that there is an mpirun.
pub(crate) fn prepare() -> anyhow::Result<()> {
    NEEDED.prepare(|| runs(OsStr::new("mpirun")).then_some(()))
}
