//! Pins memory for GPUs by CUDA's runtime, which is found at run time among the libraries that the
//! process has loaded: nothing of CUDA is needed to compile.
//!
//! Source of the functions and of their numbers: CUDA Runtime API, sections "Memory Management",
//! "Device Management" and "Error Handling". They are the same from version 11 to 13.
#![expect(unsafe_code, reason = "CUDA's runtime is a library in C that is loaded at run time")]

use std::ffi::{c_int, c_uint, c_void};
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LAZY};
use memmap2::MmapMut;

/// `cudaHostRegisterPortable`: pinned for all GPUs.
const FOR_ALL: c_uint = 1;
/// The names under which CUDA's releases install the runtime.
const NAMES: [&str; 3] = ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"];
/// `RTLD_NOLOAD` of Linux: finds only what is loaded.
const ONLY_LOADED: c_int = 4;

/// Functions of CUDA's runtime.
#[derive(Debug)]
struct Runtime {
    get_device: unsafe extern "C" fn(*mut c_int) -> c_int,
    set_device: unsafe extern "C" fn(c_int) -> c_int,
    register: unsafe extern "C" fn(*mut c_void, usize, c_uint) -> c_int,
    unregister: unsafe extern "C" fn(*mut c_void) -> c_int,
    take_error: unsafe extern "C" fn() -> c_int,
    /// Keeps the functions loaded.
    _library: Library,
}

impl Runtime {
    /// The functions, once the process has loaded them.
    fn loaded() -> Option<&'static Self> {
        static RUNTIME: OnceLock<Runtime> = OnceLock::new();
        if RUNTIME.get().is_none()
            && let Some(found) = Self::find()
        {
            // Another thread may have found the same.
            let _same = RUNTIME.set(found);
        }
        RUNTIME.get()
    }

    fn find() -> Option<Self> {
        let by_name = NAMES.iter().filter_map(|name| {
            // SAFETY: nothing is loaded, so no code of the library runs.
            unsafe { Library::open(Some(*name), RTLD_LAZY | ONLY_LOADED) }.ok()
        });
        by_name.chain([Library::this()]).find_map(Self::of)
    }

    fn of(library: Library) -> Option<Self> {
        // SAFETY: the types are those of CUDA's header cuda_runtime_api.h. The library stays
        // loaded, since `Runtime` keeps it.
        unsafe {
            Some(Self {
                get_device: *library.get(b"cudaGetDevice").ok()?,
                set_device: *library.get(b"cudaSetDevice").ok()?,
                register: *library.get(b"cudaHostRegister").ok()?,
                unregister: *library.get(b"cudaHostUnregister").ok()?,
                take_error: *library.get(b"cudaGetLastError").ok()?,
                _library: library,
            })
        }
    }

    /// Whether a call succeeded. Otherwise its error is taken back: other users of CUDA in this
    /// thread, like torch, would take it for one of theirs.
    fn succeeded(&self, code: c_int) -> bool {
        if code != 0 {
            // SAFETY: the call takes nothing.
            let _taken = unsafe { (self.take_error)() };
        }
        code == 0
    }
}

/// A mapping that can be pinned, and is until it ends.
#[derive(Debug)]
pub(crate) struct PinnableMapping {
    mapping: MmapMut,
    /// Those that pinned it, and their process: a fork has no use of the GPU.
    pinned_by: Option<(&'static Runtime, u32)>,
}

impl From<MmapMut> for PinnableMapping {
    fn from(mapping: MmapMut) -> Self {
        Self { mapping, pinned_by: None }
    }
}

impl Deref for PinnableMapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.mapping
    }
}

impl DerefMut for PinnableMapping {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.mapping
    }
}

impl PinnableMapping {
    /// Whether it is pinned.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pinned_by.is_some()
    }

    /// Pins it for the GPU with this index, and for the others that are in use, if CUDA is loaded
    /// and does so. Returns whether it is pinned now.
    pub(crate) fn pin(&mut self, gpu: usize) -> bool {
        if self.pinned_by.is_none()
            && let (Some(runtime), Ok(gpu)) = (Runtime::loaded(), c_int::try_from(gpu))
            && self.register(runtime, gpu)
        {
            self.pinned_by = Some((runtime, std::process::id()));
        }
        self.is_pinned()
    }

    /// Registers the mapping while the GPU is the thread's current one: CUDA would begin to use the
    /// first one otherwise.
    fn register(&mut self, runtime: &Runtime, gpu: c_int) -> bool {
        let mut before = 0;
        // SAFETY: the address is of a number, which the call writes.
        let known = runtime.succeeded(unsafe { (runtime.get_device)(&raw mut before) });
        // SAFETY: the call takes a number, and rejects one of no GPU.
        let set = |idx| runtime.succeeded(unsafe { (runtime.set_device)(idx) });
        if !known || !set(gpu) {
            return false;
        }
        let (start, n_bytes) = (self.mapping.as_mut_ptr().cast(), self.mapping.len());
        // SAFETY: the memory is a mapping of this many bytes, none of which the call changes. It
        // is unregistered by `drop`, before it is unmapped.
        let registered = runtime.succeeded(unsafe { (runtime.register)(start, n_bytes, FOR_ALL) });
        set(before);
        registered
    }
}

impl Drop for PinnableMapping {
    fn drop(&mut self) {
        if let Some((runtime, pid)) = self.pinned_by
            && pid == std::process::id()
        {
            // SAFETY: the mapping was registered, and is still there. No copy reads it: whoever
            // owns it drops it only then.
            runtime.succeeded(unsafe { (runtime.unregister)(self.mapping.as_mut_ptr().cast()) });
        }
    }
}
