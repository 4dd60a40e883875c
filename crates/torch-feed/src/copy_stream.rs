//! Copies from host memory to a GPU beside the kernels that torch queues there.
//!
//! They need a stream and events of CUDA, which tch does not have. Here they are C functions of
//! CUDA's runtime, found at run time among the libraries that torch has loaded. So nothing of CUDA
//! is needed to compile, and programs may be linked to a libtorch for the CPU.
//!
//! Source of the functions and of their numbers: CUDA Runtime API, sections "Stream Management",
//! "Event Management" and "Memory Management".
#![expect(unsafe_code, reason = "CUDA's runtime is a library in C that is loaded at run time")]

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::Library;
use tch::{Device, Tensor};

use crate::device::Ticket;
use crate::error::Error;

/// `cudaStreamNonBlocking`: the stream does not wait for the default one by itself.
const NON_BLOCKING: c_uint = 1;
/// `cudaEventBlockingSync | cudaEventDisableTiming`: a thread that waits sleeps.
const SLEEPS_UNTIMED: c_uint = 1 | 2;
/// `cudaMemcpyHostToDevice`.
const TO_DEVICE: c_int = 1;
/// `cudaErrorNotReady`: an event has not happened yet.
const NOT_READY: c_int = 600;

/// A stream or an event.
type Handle = *mut c_void;

/// Functions of CUDA's runtime, and torch's current stream.
struct Runtime {
    get_device: unsafe extern "C" fn(*mut c_int) -> c_int,
    set_device: unsafe extern "C" fn(c_int) -> c_int,
    create_stream: unsafe extern "C" fn(*mut Handle, c_uint) -> c_int,
    destroy_stream: unsafe extern "C" fn(Handle) -> c_int,
    wait_for_event: unsafe extern "C" fn(Handle, Handle, c_uint) -> c_int,
    create_event: unsafe extern "C" fn(*mut Handle, c_uint) -> c_int,
    destroy_event: unsafe extern "C" fn(Handle) -> c_int,
    record: unsafe extern "C" fn(Handle, Handle) -> c_int,
    query: unsafe extern "C" fn(Handle) -> c_int,
    synchronize: unsafe extern "C" fn(Handle) -> c_int,
    copy: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int, Handle) -> c_int,
    torch_stream: unsafe extern "C" fn(i32, *mut Handle) -> i32,
}

impl Runtime {
    /// The functions, if the libraries of this process have all of them.
    fn loaded() -> Option<&'static Self> {
        static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
        let find = || {
            let process = Library::this();
            // SAFETY: the types are those of CUDA's header cuda_runtime_api.h, whose functions keep
            // their names and arguments from version 11 to 13, and of torch's header
            // torch/csrc/inductor/aoti_torch/c/shim.h. The libraries stay loaded: torch never
            // unloads them.
            unsafe {
                Some(Self {
                    get_device: *process.get(b"cudaGetDevice").ok()?,
                    set_device: *process.get(b"cudaSetDevice").ok()?,
                    create_stream: *process.get(b"cudaStreamCreateWithFlags").ok()?,
                    destroy_stream: *process.get(b"cudaStreamDestroy").ok()?,
                    wait_for_event: *process.get(b"cudaStreamWaitEvent").ok()?,
                    create_event: *process.get(b"cudaEventCreateWithFlags").ok()?,
                    destroy_event: *process.get(b"cudaEventDestroy").ok()?,
                    record: *process.get(b"cudaEventRecord").ok()?,
                    query: *process.get(b"cudaEventQuery").ok()?,
                    synchronize: *process.get(b"cudaEventSynchronize").ok()?,
                    copy: *process.get(b"cudaMemcpyAsync").ok()?,
                    torch_stream: *process.get(b"aoti_torch_get_current_cuda_stream").ok()?,
                })
            }
        };
        RUNTIME.get_or_init(find).as_ref()
    }
}

/// The error of a function that did not return success.
fn checked(call: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(Error::Cuda { call, code }) }
}

/// A stream of a GPU that copies from host memory, and what is under way in it.
pub(crate) struct CopyStream {
    runtime: &'static Runtime,
    /// The GPU's index.
    idx: c_int,
    stream: Handle,
    /// Recorded in one stream for the other to wait for.
    order: Handle,
    state: Mutex<State>,
}

// SAFETY: CUDA's streams and events may be used from any thread.
unsafe impl Send for CopyStream {}
// SAFETY: as above; what changes is in a lock.
unsafe impl Sync for CopyStream {}

#[derive(Default)]
struct State {
    n_begun: u64,
    n_done: u64,
    /// Copies that are not known to be done, from the oldest on.
    under_way: VecDeque<UnderWay>,
    /// Events for further copies.
    free: Vec<Handle>,
    /// Targets that the device's other work has not been ordered after. torch must not use their
    /// memory for anything else.
    unordered: Vec<Tensor>,
}

struct UnderWay {
    ticket: u64,
    /// Happens when the copy is done.
    event: Handle,
    /// Keeps the memory that is copied from.
    _host: Tensor,
}

impl CopyStream {
    /// Makes a stream of the GPU with this index; `None` if the libraries of this process lack a
    /// function that it needs.
    ///
    /// # Errors
    /// CUDA's errors.
    pub(crate) fn new(idx: usize) -> Result<Option<Self>, Error> {
        let (Some(runtime), Ok(idx)) = (Runtime::loaded(), c_int::try_from(idx)) else {
            return Ok(None);
        };
        let (stream, order, state) = (ptr::null_mut(), ptr::null_mut(), Mutex::default());
        let mut new = Self { runtime, idx, stream, order, state };
        let mut stream = ptr::null_mut();
        new.on_gpu(|| {
            // SAFETY: the address is of a handle, which the call writes.
            checked("cudaStreamCreateWithFlags", unsafe {
                (runtime.create_stream)(&raw mut stream, NON_BLOCKING)
            })
        })?;
        new.stream = stream;
        new.order = new.event()?;
        Ok(Some(new))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function while this GPU is the thread's current one, whose default stream and new
    /// handles it means.
    fn on_gpu<T>(&self, call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let mut before = 0;
        // SAFETY: the address is of a number, which the call writes.
        checked("cudaGetDevice", unsafe { (self.runtime.get_device)(&raw mut before) })?;
        // SAFETY: the call takes a number, and rejects one of no GPU.
        let set = |idx| checked("cudaSetDevice", unsafe { (self.runtime.set_device)(idx) });
        set(self.idx)?;
        let called = call();
        set(before).and(called)
    }

    /// Makes an event.
    fn event(&self) -> Result<Handle, Error> {
        let mut event = ptr::null_mut();
        self.on_gpu(|| {
            // SAFETY: the address is of a handle, which the call writes.
            checked("cudaEventCreateWithFlags", unsafe {
                (self.runtime.create_event)(&raw mut event, SLEEPS_UNTIMED)
            })
        })?;
        Ok(event)
    }

    /// The stream of torch's next kernels on this thread.
    fn torch_stream(&self) -> Result<Handle, Error> {
        let mut stream = ptr::null_mut();
        // SAFETY: the address is of a handle, which the call writes.
        let code = unsafe { (self.runtime.torch_stream)(self.idx, &raw mut stream) };
        checked("aoti_torch_get_current_cuda_stream", code)?;
        Ok(stream)
    }

    /// Has the work that is queued in `later` from now on wait for what `earlier` has now.
    fn order(&self, earlier: Handle, later: Handle) -> Result<(), Error> {
        self.on_gpu(|| {
            // SAFETY: both streams and the event are of this GPU and alive: torch's streams live
            // as long as the process, and the others as long as `self`.
            let code = unsafe { (self.runtime.record)(self.order, earlier) };
            checked("cudaEventRecord", code)?;
            // SAFETY: as above.
            let code = unsafe { (self.runtime.wait_for_event)(later, self.order, 0) };
            checked("cudaStreamWaitEvent", code)
        })
    }

    /// Begins to copy a contiguous tensor on the CPU, and returns the copy. Work that torch has
    /// queued before is done first: it may still use the memory of the copy, which torch reuses.
    /// Later work waits for the copy only after [`join`](Self::join).
    ///
    /// # Errors
    /// The tensor is not contiguous; torch's and CUDA's errors.
    pub(crate) fn begin(&self, host: &Tensor) -> Result<(Tensor, Ticket), Error> {
        let what = "a copy of a batch on the device";
        let kind = host.f_kind().map_err(Error::torch(what))?;
        if host.device() != Device::Cpu || !host.is_contiguous() {
            let source = tch::TchError::Shape(format!("{host:?} is not contiguous on the CPU"));
            return Err(Error::Torch { what, source });
        }
        let options = (kind, Device::Cuda(self.idx as usize));
        let copy = Tensor::f_empty(host.size(), options).map_err(Error::torch(what))?;
        let n_bytes = host.numel() * kind.elt_size_in_bytes();
        let mut state = self.lock();
        let event = state.free.pop().map_or_else(|| self.event(), Ok)?;
        if 0 < n_bytes {
            state.unordered.push(copy.shallow_clone());
            self.order(self.torch_stream()?, self.stream)?;
            // SAFETY: both tensors are contiguous, of one kind and shape, so each has this many
            // bytes. `unordered` keeps those on the GPU from other uses until the device's other
            // work is ordered after the copy. Those on the CPU live until the event below has
            // happened, since `under_way` keeps them; if the event cannot be recorded, the GPU does
            // nothing any more. That nobody changes them before the ticket is done is what callers
            // promise; a change would make wrong values, not break memory.
            let code = unsafe {
                (self.runtime.copy)(
                    copy.data_ptr(),
                    host.data_ptr(),
                    n_bytes,
                    TO_DEVICE,
                    self.stream,
                )
            };
            checked("cudaMemcpyAsync", code)?;
        }
        // SAFETY: the event and the stream are of this GPU and alive.
        checked("cudaEventRecord", unsafe { (self.runtime.record)(event, self.stream) })?;
        state.n_begun += 1;
        let ticket = state.n_begun;
        state.under_way.push_back(UnderWay { ticket, event, _host: host.shallow_clone() });
        Ok((copy, Ticket(ticket)))
    }

    /// Has work that torch queues on this thread from now on wait for all copies that have begun.
    ///
    /// # Errors
    /// CUDA's errors.
    pub(crate) fn join(&self) -> Result<(), Error> {
        let mut state = self.lock();
        if !state.unordered.is_empty() {
            self.order(self.stream, self.torch_stream()?)?;
            state.unordered.clear();
        }
        Ok(())
    }

    /// A ticket up to which all copies are done.
    pub(crate) fn done(&self) -> Ticket {
        let mut state = self.lock();
        while let Some(oldest) = state.under_way.front() {
            // SAFETY: the event is alive.
            if unsafe { (self.runtime.query)(oldest.event) } == NOT_READY {
                break;
            }
            // After an error of the GPU, too, nothing is copied any more.
            let Some(UnderWay { ticket, event, .. }) = state.under_way.pop_front() else { break };
            state.n_done = ticket;
            state.free.push(event);
        }
        Ticket(state.n_done)
    }

    /// Waits until all copies up to `ticket` are done. Returns that ticket or a later one.
    pub(crate) fn wait(&self, ticket: Ticket) -> Ticket {
        loop {
            let done = self.done();
            let oldest = self.lock().under_way.front().map(|oldest| oldest.event);
            let Some(event) = oldest.filter(|_| done < ticket) else { return done };
            // Without the lock. If the event belongs to a later copy by then, this waits for that.
            // SAFETY: events live as long as `self`. After an error, `done` says that nothing is
            // copied any more.
            let _code = unsafe { (self.runtime.synchronize)(event) };
        }
    }
}

impl Drop for CopyStream {
    /// Waits for the copies, whose memory may be freed after this.
    fn drop(&mut self) {
        // An error of the GPU is one of its next use, too.
        let _joined = self.join();
        let begun = self.lock().n_begun;
        self.wait(Ticket(begun));
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for event in state.free.drain(..).chain([self.order]).filter(|event| !event.is_null()) {
            // SAFETY: the event is alive, and nothing names it any more.
            let _code = unsafe { (self.runtime.destroy_event)(event) };
        }
        if !self.stream.is_null() {
            // SAFETY: the stream is alive, and nothing names it any more.
            let _code = unsafe { (self.runtime.destroy_stream)(self.stream) };
        }
    }
}

impl std::fmt::Debug for CopyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        write!(f, "CopyStream(cuda:{}: {} of {} done)", self.idx, state.n_done, state.n_begun)
    }
}
