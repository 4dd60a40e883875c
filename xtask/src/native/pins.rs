//! The wheels with the libraries, pinned by version and hash, and the destinations of their files.

use anyhow::bail;

use super::install::{Library, Member};
use crate::interpreter::BY_HAND;

/// A file of a Python package index, pinned by its hash.
#[derive(Debug, Clone)]
pub(super) struct Wheel {
    pub(super) project: String,
    pub(super) version: String,
    pub(super) file: String,
    pub(super) sha256: String,
    pub(super) bytes: u64,
    /// The platform tag for pip, so that any Python here gets the same wheel.
    pub(super) platform: String,
}

/// The Python version of the wheels; they have C libraries only, so the user's may be another.
pub(super) const WHEEL_PYTHON: &str = "311";

/// The oldest glibc that the wheels support, by their platform tags.
const OLDEST_GLIBC: (u32, u32) = (2, 28);

/// The version of libtorch that our `tch` supports; both change together.
pub(super) const LIBTORCH_VERSION: &str = "2.11.0";

/// libtiledb 2.30 from Python's `tiledb`: one shared object with S3, GCS and Azure built in.
pub(super) fn libtiledb() -> Library {
    Library {
        name: "libtiledb 2.30".into(),
        folder: "libtiledb-2.30-0.36.1".into(),
        wheels: vec![Wheel {
            project: "tiledb".into(),
            version: "0.36.1".into(),
            file: "tiledb-0.36.1-cp311-cp311-manylinux_2_28_x86_64.whl".into(),
            sha256: "28031477d62b74ded0123559f02f784913bb440bc4d739c0d2de8334a372015b".into(),
            bytes: 18_700_373,
            platform: "manylinux_2_28_x86_64".into(),
        }],
        members: vec![member(0, "tiledb.libs/libtiledb-edd2b82f.so.2.30", "libtiledb.so.2.30")],
        texts: Vec::new(),
        unpacked_bytes: 56_000_000,
    }
}

/// The CPU half of libtorch. For Linux, PyPI has only the CUDA build, whose CUDA packages take
/// gigabytes; `libtorch_cpu.so` needs just two small libraries of them.
pub(super) fn libtorch() -> Library {
    let lib = |wheel, folder: &str, name: &str| {
        member(wheel, &format!("{folder}/{name}"), &format!("lib/{name}"))
    };
    let cuda = "nvidia/cu13/lib";
    Library {
        name: format!("libtorch {LIBTORCH_VERSION} for CPU"),
        folder: format!("libtorch-{LIBTORCH_VERSION}-cpu"),
        wheels: libtorch_wheels(),
        members: vec![
            lib(0, "torch/lib", "libtorch_cpu.so"),
            lib(0, "torch/lib", "libc10.so"),
            lib(0, "torch/lib", "libgomp.so.1"),
            lib(1, cuda, "libcudart.so.13"),
            lib(2, cuda, "libcupti.so.13"),
            member(0, "torch/include/", "include/"),
        ],
        // The real libtorch.so needs the CUDA half; this linker script names the libraries that are
        // here.
        texts: vec![
            ("lib/libtorch.so".into(), "INPUT(-ltorch_cpu -lc10)\n".into()),
            ("build-version".into(), format!("{LIBTORCH_VERSION}\n")),
        ],
        unpacked_bytes: 520_000_000,
    }
}

fn libtorch_wheels() -> Vec<Wheel> {
    vec![
        Wheel {
            project: "torch".into(),
            version: LIBTORCH_VERSION.into(),
            file: "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl".into(),
            sha256: "7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a".into(),
            bytes: 530_604_548,
            platform: "manylinux_2_28_x86_64".into(),
        },
        Wheel {
            project: "nvidia-cuda-runtime".into(),
            version: "13.0.96".into(),
            file: "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl".into(),
            sha256: "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548".into(),
            bytes: 2_243_632,
            platform: "manylinux2014_x86_64".into(),
        },
        Wheel {
            project: "nvidia-cuda-cupti".into(),
            version: "13.0.85".into(),
            file: "nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl".into(),
            sha256: "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8".into(),
            bytes: 10_715_597,
            platform: "manylinux_2_25_x86_64".into(),
        },
    ]
}

fn member(wheel: usize, from: &str, to: &str) -> Member {
    Member { wheel, from: from.into(), to: to.into() }
}

/// Fails on platforms without wheels.
pub(super) fn check_platform() -> anyhow::Result<()> {
    platform_runs_wheels(std::env::consts::OS, std::env::consts::ARCH)
}

fn platform_runs_wheels(os: &str, arch: &str) -> anyhow::Result<()> {
    if (os, arch) != ("linux", "x86_64") {
        bail!(
            "the pinned libraries are for Linux on x86-64, this is {os} on {arch}: set LIBTORCH to a libtorch {LIBTORCH_VERSION} \
             (or LIBTORCH_USE_PYTORCH=1 with PyTorch {LIBTORCH_VERSION}) and SOMAFEED_LIBTILEDB to a libtiledb 2.30 for this platform"
        );
    }
    Ok(())
}

/// Fails if glibc is too old, or if `found` is `None`: the wheels do not run with another C
/// library.
pub(super) fn check_glibc(found: Option<(u32, u32)>) -> anyhow::Result<()> {
    let (major, minor) = OLDEST_GLIBC;
    match found {
        Some(found) if OLDEST_GLIBC <= found => Ok(()),
        Some((a, b)) => bail!(
            "the pinned libraries need glibc {major}.{minor} or newer, this machine has {a}.{b}: use a newer system, {BY_HAND}"
        ),
        None => bail!(
            "the pinned libraries need glibc {major}.{minor} or newer, this machine has another C library: use a glibc system, {BY_HAND}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_well_formed() {
        for library in [libtiledb(), libtorch()] {
            for wheel in &library.wheels {
                assert_eq!(wheel.sha256.len(), 64, "{wheel:?}");
                assert!(
                    wheel.sha256.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
                );
                let start = format!("{}-{}-", wheel.project.replace('-', "_"), wheel.version);
                assert!(
                    wheel.file.starts_with(&start) && wheel.file.contains(&wheel.platform),
                    "{wheel:?}"
                );
            }
            assert!(library.members.iter().all(|m| m.wheel < library.wheels.len()));
        }
    }

    #[test]
    fn tch_is_made_for_the_pinned_libtorch() {
        let manifest =
            std::fs::read_to_string(crate::cargo::workspace_root().join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("tch = \"=0.24.0\""),
            "move LIBTORCH_VERSION, its wheels and this test together with tch"
        );
    }

    #[test]
    fn other_platforms_are_told_which_variables_help() {
        platform_runs_wheels("linux", "x86_64").unwrap();
        for (os, arch) in [("macos", "aarch64"), ("linux", "aarch64"), ("windows", "x86_64")] {
            let error = platform_runs_wheels(os, arch).unwrap_err().to_string();
            assert!(
                error.contains(os)
                    && error.contains("LIBTORCH_USE_PYTORCH=1")
                    && error.contains("SOMAFEED_LIBTILEDB")
            );
        }
    }

    #[test]
    fn old_or_foreign_c_libraries_are_refused() {
        check_glibc(Some((2, 28))).unwrap();
        check_glibc(Some((3, 0))).unwrap();
        assert!(check_glibc(Some((2, 27))).unwrap_err().to_string().contains("has 2.27"));
        assert!(check_glibc(None).unwrap_err().to_string().contains("another C library"));
    }
}
