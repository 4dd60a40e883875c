//! The flag `--device` of the examples.

use std::fmt;
use std::str::FromStr;

use tch::{Cuda, Device};

use crate::Failure;

/// The device for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    Auto,
    Is(Device),
}

impl DeviceChoice {
    /// Returns the device, if this machine and this libtorch have it.
    pub(crate) fn find(self) -> Result<Device, Failure> {
        match self {
            Self::Auto => Ok(Device::cuda_if_available()),
            Self::Is(Device::Cuda(idx)) if Cuda::device_count() <= idx as i64 => Err(format!(
                "there is no cuda:{idx}: torch sees {} GPUs; take --device cpu, or a libtorch for CUDA",
                Cuda::device_count()
            )
            .into()),
            Self::Is(device) => Ok(device),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Is(Device::Cpu)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|idx| idx.parse().ok())
                .map(|idx| Self::Is(Device::Cuda(idx)))
                .ok_or_else(|| "a device is auto, cpu, or cuda:0, cuda:1 and so on".to_owned()),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Is(Device::Cuda(idx)) => write!(f, "cuda:{idx}"),
            Self::Is(_) => f.write_str("cpu"),
        }
    }
}
