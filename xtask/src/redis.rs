//! A server of Redis or Valkey, of which tests and `cargo xtask sequences` start several: the one
//! on the PATH, or Debian's package.

use std::ffi::OsStr;

use crate::debian::{Needed, runs};

const NEEDED: Needed = Needed {
    purpose: "the tests start a Redis cluster",
    package: "redis-server",
    by_hand: "install Redis 7 or Valkey so that redis-server or valkey-server is on the PATH (Debian, Ubuntu: apt install redis-server)",
    service: Some("redis-server"),
};

/// Installs a server if there is none.
pub(crate) fn prepare() -> anyhow::Result<()> {
    let names = ["redis-server", "valkey-server"];
    NEEDED.prepare(|| names.iter().any(|name| runs(OsStr::new(name))).then_some(()))
}
