//! The choice of a device on a command line.

use std::fmt;
use std::str::FromStr;

use tch::Device;

use crate::device::TorchDevice;
use crate::error::Error;

/// A device as a user names it: `auto`, `cpu`, or `cuda:0`, `cuda:1` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU, or the CPU if there is none.
    Auto,
    /// This device.
    Is(Device),
}

impl DeviceChoice {
    /// Returns the device.
    ///
    /// # Errors
    /// torch does not see this GPU.
    pub fn find(self) -> Result<Device, Error> {
        match self {
            Self::Auto => Ok(Device::cuda_if_available()),
            Self::Is(device) => TorchDevice::new(device).map(|_| device),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_understood_as_they_are_shown() {
        for text in ["auto", "cpu", "cuda:0", "cuda:12"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        for bad in ["", "gpu", "cuda", "cuda:", "cuda:x", "cuda:-1"] {
            bad.parse::<DeviceChoice>().unwrap_err();
        }
        assert_eq!(DeviceChoice::Is(Device::Cpu).find().unwrap(), Device::Cpu);
        let refused = DeviceChoice::Is(Device::Cuda(99)).find().unwrap_err().to_string();
        assert!(refused.contains("there is no cuda:99"), "{refused}");
    }
}
