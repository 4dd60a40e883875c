//! Limits the memory of a measured process, and the rate at which it reads from storage.

mod control_group;
mod io;
mod kernel_io;
mod memory;

pub use control_group::Version;
pub use io::{
    Holder, IoLimit, LimitBy, Rate, check_rate, device_bytes, format_rate, from_page_cache,
};
pub use kernel_io::KernelLimit;
pub(crate) use memory::LimitedProcess;
pub use memory::MemoryLimit;
