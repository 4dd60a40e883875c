//! A Redis or Valkey cluster on the loopback interface, for tests and measurements.
//!
//! [`LocalCluster::start`] starts `redis-server` (or `valkey-server`, version 7 or later) once for
//! each node, joins the nodes, and waits until all of them say that the cluster works. The cluster
//! is a real one: nodes can be killed, restarted and added, a replica can take over, and slots can
//! move from node to node while clients use them.
//!
//! Nothing is kept: persistence is off, and all files are in a temporary folder. Processes and
//! folder are gone when the [`LocalCluster`] is dropped. If the program that started it dies
//! without dropping it, even by SIGKILL, a shell that waits for that ends the servers and removes
//! the folder. The shell needs `/proc`, so only Linux has this guarantee.
//!
//! ```no_run
//! use key_values::local_cluster::{ClusterSpec, LocalCluster};
//!
//! let mut cluster = LocalCluster::start(ClusterSpec { n_masters: 3, ..ClusterSpec::default() })?;
//! println!("{:?}", cluster.urls());
//! cluster.move_slots(0..100, 0, 1)?;
//! cluster.kill(2)?;
//! # Ok::<(), key_values::local_cluster::Error>(())
//! ```

mod cluster;
mod control;
mod error;
mod node;
mod ports;
mod program;
mod resharding;
mod settings;
mod spec;
mod view;
mod wait;
mod watchdog;

pub use cluster::LocalCluster;
pub use error::Error;
pub use program::find_server;
pub use spec::{ClusterSpec, TlsFiles};
pub use view::{NodeInfo, Role};

/// Number of hash slots of a cluster.
pub const N_SLOTS: u16 = crate::slot::N_SLOTS as u16;
