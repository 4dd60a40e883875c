//! The use of a GPU, read from NVML: the library of NVIDIA's driver, opened when it is needed.

use anyhow::{Context as _, bail};
use nvml_wrapper::Nvml;

/// Checks that NVML can be opened and lists a GPU.
pub(super) fn check() -> anyhow::Result<()> {
    open()?.device_count().context("NVML cannot list the GPUs").map(drop)
}

/// Opens the GPU on which this process computes; each call of the result returns the share of the
/// time just before in which a kernel ran, 0 to 1. NVML averages over a sixth of a second to a
/// second, depending on the GPU.
///
/// # Errors
/// NVML cannot be opened; it has several GPUs and does not say which one this process uses; the GPU
/// does not report its use.
pub(super) fn share_of_busy_time()
-> anyhow::Result<impl FnMut() -> anyhow::Result<f64> + Send + 'static> {
    let nvml = open()?;
    let n_gpus = nvml.device_count().context("NVML cannot list the GPUs")?;
    let mut of_process = Vec::new();
    // torch and NVML number GPUs differently, so a number of torch's says nothing here.
    if 1 < n_gpus {
        for idx in 0..n_gpus {
            let gpu = nvml.device_by_index(idx);
            let processes = gpu.and_then(|gpu| gpu.running_compute_processes());
            let processes = processes.context("NVML does not list the processes of a GPU")?;
            if processes.iter().any(|process| process.pid == std::process::id()) {
                of_process.push(idx);
            }
        }
    }
    let idx = chosen(n_gpus, &of_process)?;
    Ok(move || {
        let used = nvml.device_by_index(idx).and_then(|gpu| gpu.utilization_rates());
        Ok(f64::from(used.context("NVML does not say how busy the GPU is")?.gpu) / 100.0)
    })
}

fn open() -> anyhow::Result<Nvml> {
    Nvml::init().context(
        "NVML, which measures the use of the GPU, cannot be opened: it is a part of NVIDIA's \
         driver, and a container needs the capability `utility` for it",
    )
}

/// The number of the GPU to ask: the only one, or the one that runs this process.
fn chosen(n_gpus: u32, of_process: &[u32]) -> anyhow::Result<u32> {
    match (n_gpus, of_process) {
        (0, _) => bail!("NVML sees no GPU"),
        (1, _) => Ok(0),
        (_, [idx]) => Ok(*idx),
        (_, []) => bail!(
            "NVML sees {n_gpus} GPUs and this process on none of them, as in a container: let it \
             see only one"
        ),
        (_, several) => bail!("this process uses the GPUs {several:?}; it should use one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_gpu_or_that_of_the_process_is_asked() {
        assert_eq!(chosen(1, &[]).unwrap(), 0);
        assert_eq!(chosen(8, &[5]).unwrap(), 5);
        for (n_gpus, of_process) in [(0, &[][..]), (4, &[]), (4, &[1, 2])] {
            chosen(n_gpus, of_process).unwrap_err();
        }
    }
}
