//! A fuzz target: feeds arbitrary bytes to the reading of saved states, and panics if a promise is
//! broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with `--cfg
//! somafeed_fuzz`, for the package in `fuzz/` that runs it under libFuzzer.

use std::sync::{Arc, OnceLock};

use worktime::ThreadTime;

use crate::{
    Assemble, BatchPlace, BlockBytes, BlockPart, BlockRows, Error, LoaderState, Need, Pipeline,
    PipelineSpec, ReadStats, Source, Stop,
};

/// A target's name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("loader_state", loader_state)];

/// Rows of the pipeline that resumes the state.
const N_ROWS: usize = 24;

/// Resumes a saved state in a pipeline that may or may not match it, and its place alone in one
/// that does.
fn loader_state(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let Ok(state) = LoaderState::from_json(text) else { return };
    let again = state.to_json().and_then(|json| LoaderState::from_json(&json));
    assert_eq!(again.ok().as_ref(), Some(&state));
    let pipeline = pipeline();
    let moved = pipeline.beginning().at(state.epoch(), state.lanes(), state.batches_delivered());
    for state in [state, moved] {
        let Ok(lanes) = pipeline.lanes_to_resume(&state) else { continue };
        assert_eq!(lanes, state.lanes());
        // Plans only: starting threads would take most of the time.
        let plan = pipeline.plan(&state).unwrap_or_else(|error| panic!("{state:?}: {error}"));
        let delivered: usize = plan.map(|block| block.n_rows()).sum();
        assert!(delivered <= N_ROWS, "{delivered} rows after {state:?}");
        assert!(state.batches_delivered() > 0 || delivered == N_ROWS);
    }
}

fn pipeline() -> &'static Pipeline<Nothing> {
    static PIPELINE: OnceLock<Pipeline<Nothing>> = OnceLock::new();
    PIPELINE.get_or_init(|| {
        let spec = PipelineSpec {
            batch_rows: 6,
            chunk_rows: 2,
            chunks_per_block: 4,
            ..PipelineSpec::default()
        };
        let pipeline = Pipeline::new(Arc::new(Nothing), spec, |()| 0);
        pipeline.unwrap_or_else(|error| panic!("no pipeline: {error}"))
    })
}

/// Samples without content: only their order matters.
#[derive(Debug)]
struct Nothing;

impl Source for Nothing {
    type Block = ();
    type Batch = ();
    type Error = Error;
    type Scratch = ();
    type Assembler = Self;

    fn n_rows(&self) -> u64 {
        N_ROWS as u64
    }

    fn fingerprint(&self) -> String {
        String::new()
    }

    fn need(&self, _block_rows: u64, _batch_rows: u64) -> Result<Need, Error> {
        Ok(Need::default())
    }

    fn block_bytes(&self, _block: &()) -> BlockBytes {
        BlockBytes::default()
    }

    fn read(
        &self,
        _rows: &BlockRows<'_>,
        _into: &mut (),
        (): &mut (),
        _stop: &Stop,
    ) -> Result<ReadStats, Error> {
        Ok(ReadStats::default())
    }

    fn assembler(&self, _batch_rows: u64) -> Result<Self, Error> {
        Ok(Self)
    }
}

impl Assemble for Nothing {
    type Block = ();
    type Batch = ();
    type Error = Error;

    fn begin(&mut self, _n_rows: usize) -> Result<(), Error> {
        Ok(())
    }

    fn add(&mut self, _block: &(), _part: BlockPart<'_>) -> Result<ThreadTime, Error> {
        Ok(ThreadTime::default())
    }

    fn finish(&mut self, _place: BatchPlace) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
