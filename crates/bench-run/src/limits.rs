//! Limits the memory of a measured process, and the rate at which it reads from storage.

mod control_group;
mod io;
mod kernel_io;
mod memory;
mod meter;

pub use control_group::Version;
pub use io::{Holder, IoLimit, LimitBy, Rate, format_rate};
pub use kernel_io::KernelLimit;
pub(crate) use memory::LimitedProcess;
pub use memory::MemoryLimit;
pub use meter::LimitMeter;
