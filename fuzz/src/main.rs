//! Runs one fuzz target of our crates, named by SOMAFEED_FUZZ_TARGET, under libFuzzer.
//!
//! Each execution may allocate up to its target's budget beyond what was allocated before it. An
//! allocation beyond that fails, which ends the process, and libFuzzer keeps the input as it does
//! with one that panics. `cargo xtask fuzz` builds and starts this.
#![no_main]

use std::alloc::System;
use std::sync::{Arc, OnceLock};

use cap::Cap;
use libfuzzer_sys::fuzz_target;

/// Counts the bytes that Rust code allocates, in all threads.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes that an execution may allocate.
const BUDGET_BYTES: usize = 16 << 20;
/// Bytes that each byte of the input adds if there is filtered data in it: the most that zstd makes
/// of one.
const EXPANSION: usize = 1 << 17;
const WITH_FILTERED_DATA: [&str; 10] = [
    "generic_tile",
    "fragment",
    "array",
    "table",
    "table_as_stored",
    "dense",
    "cube_file",
    "hdf5_file",
    "h5ad",
    "sequence_file",
];
/// Targets whose libraries allocate what a damaged length asks for, without using it: only the
/// memory in use counts, which libFuzzer limits.
const WITH_UNUSED_MEMORY: [&str; 1] = ["anndata"];
/// Targets whose libraries may panic where our crates make an error of it. libFuzzer would end the
/// process at the panic itself; so it does at one that nothing holds.
const WITH_HELD_PANICS: [&str; 2] = ["anndata", "h5ad"];
/// Targets of several crates together.
const TOGETHER: [hdf5::fuzz::Target; 1] = [("h5ad", h5ad)];

struct Chosen {
    run: fn(&[u8]),
    has_filtered_data: bool,
    is_limited: bool,
}

fuzz_target!(|input: &[u8]| {
    static CHOSEN: OnceLock<Chosen> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(choose);
    let mut budget = BUDGET_BYTES;
    if chosen.has_filtered_data {
        budget += EXPANSION * input.len();
    }
    let limit = if chosen.is_limited { ALLOCATOR.allocated() + budget } else { usize::MAX };
    let limited = ALLOCATOR.set_limit(limit);
    assert!(limited.is_ok(), "the limit is below what is allocated");
    (chosen.run)(input);
    let unlimited = ALLOCATOR.set_limit(usize::MAX);
    assert!(unlimited.is_ok(), "there is a limit to any size");
});

/// An AnnData in HDF5, from its file to its elements.
fn h5ad(input: &[u8]) {
    let file = anndata::fuzz::h5ad("x.h5", input);
    if let Ok(storage) = hdf5::Hdf5Storage::open(Arc::new(file), "x.h5") {
        anndata::fuzz::read(Arc::new(storage));
    }
}

fn choose() -> Chosen {
    let name = std::env::var("SOMAFEED_FUZZ_TARGET").unwrap_or_default();
    let mut targets = tiledb_native::fuzz::TARGETS
        .iter()
        .chain(&storage::fuzz::TARGETS)
        .chain(&pipeline::fuzz::TARGETS)
        .chain(&images::fuzz::TARGETS)
        .chain(&anndata::fuzz::TARGETS)
        .chain(&hdf5::fuzz::TARGETS)
        .chain(&sequences::fuzz::TARGETS)
        .chain(&loader::fuzz::TARGETS)
        .chain(&TOGETHER);
    let target = targets.find(|(found, _)| *found == name);
    let Some((_, run)) = target else {
        panic!("SOMAFEED_FUZZ_TARGET names no target: `{name}`");
    };
    if WITH_HELD_PANICS.contains(&name.as_str()) {
        std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    }
    // What a target keeps from run to run is made before the first one is limited.
    run(&[]);
    let has_filtered_data = WITH_FILTERED_DATA.contains(&name.as_str());
    let is_limited = !WITH_UNUSED_MEMORY.contains(&name.as_str());
    Chosen { run: *run, has_filtered_data, is_limited }
}
