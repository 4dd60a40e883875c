//! Stores of sequences in files and on servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pipeline::Stop;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sequences::key_values::ServerSpec;
use sequences::{SequenceFiles, SequenceServers, SequenceStore};
use storage::Config;

use crate::errors::OrException as _;
use crate::samples::StoreAddress;
use crate::waiting::{log, logged};

/// Files of a store, or servers with one.
#[derive(Debug)]
pub(super) enum Store {
    Files(StoreAddress),
    Servers(ServerSpec),
}

/// Servers, as Python describes them.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Servers {
    addresses: Vec<String>,
    namespace: String,
    retry_secs: f64,
    root_certificates: Option<Vec<u8>>,
}

/// A store, as Python describes it: an address, or servers.
#[derive(Debug, FromPyObject)]
pub(super) enum DescribedStore {
    Files(String),
    Servers(Servers),
}

impl Servers {
    pub(super) fn spec(self) -> PyResult<ServerSpec> {
        let retry_for = Duration::try_from_secs_f64(self.retry_secs).map_err(|_| {
            PyValueError::new_err(format!("{} is no time to retry for", self.retry_secs))
        })?;
        let spec = ServerSpec::new(self.addresses, self.namespace);
        Ok(ServerSpec { retry_for, root_certificates: self.root_certificates, ..spec })
    }
}

impl Store {
    pub(super) fn open(&self) -> PyResult<Arc<dyn SequenceStore>> {
        match self {
            Self::Files(address) => {
                let files = SequenceFiles::open(address.storage()?);
                Ok(Arc::new(address.hiding(files)?))
            }
            Self::Servers(spec) => Ok(Arc::new(SequenceServers::open(spec).or_exception()?)),
        }
    }
}

/// Copies a store to servers, as far as they do not have it; the number of sequences.
#[pyfunction]
#[pyo3(signature = (uri, servers, *, config = None, sequences_per_key = 1))]
pub(crate) fn fill_sequence_servers(
    py: Python<'_>,
    uri: String,
    servers: Servers,
    config: Option<Config>,
    sequences_per_key: u64,
) -> PyResult<u64> {
    let (spec, stop, n_read) = (servers.spec()?, Stop::default(), Arc::new(AtomicU64::new(0)));
    let (of_thread, n_of_thread) = (stop.clone(), Arc::clone(&n_read));
    let fill = move || {
        let source = Store::Files(StoreAddress::new(uri, config)).open()?;
        let progress = &mut |n| n_of_thread.store(n, Ordering::Relaxed);
        SequenceServers::fill(&spec, &*source, sequences_per_key, progress, &of_thread)
            .or_exception()?;
        Ok::<_, PyErr>(source.summary().n_sequences)
    };
    let n_sequences = logged(py, "filling servers", &n_read, fill, || stop.set())??;
    log(py, &format!("servers have {n_sequences} sequences"))?;
    Ok(n_sequences)
}
