//! Errors of the engine.

/// An error of the engine: what was tried and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The batch size is zero.
    #[error("batches of 0 rows: give a batch size of at least 1")]
    ZeroBatchRows,

    /// The order of the rows cannot be planned with these sizes.
    #[error("cannot plan the order of the rows")]
    Plan(#[from] shuffle::PlanError),

    /// The rows of an epoch cannot be drawn.
    #[error("cannot plan the order of the rows")]
    Sample(#[from] shuffle::sample::Error),

    /// The memory limit is too small for one block and its batches.
    #[error(
        "blocks of {chunks_per_block} chunks of {chunk_rows} rows with their batches take about {least} bytes of memory, {limit} are \
         allowed: allow at least {least}, or make blocks or batches smaller"
    )]
    Memory {
        /// Bytes allowed.
        limit: u64,
        /// Bytes for one block, reading it, and two batches.
        least: u64,
        /// Rows of a chunk.
        chunk_rows: u64,
        /// Chunks of a block.
        chunks_per_block: u64,
    },

    /// Other loaders have leased so much of a shared budget that too little is left.
    #[error(
        "about {least} bytes of memory are needed, and other loaders have left {available} of the budget of {limit} bytes: raise the \
         budget, end another epoch first, or make blocks or batches smaller"
    )]
    Budget {
        /// Bytes of the whole budget.
        limit: u64,
        /// Bytes that are not leased.
        available: u64,
        /// Bytes for one block, reading it, and two batches.
        least: u64,
    },

    /// A block turned out larger than expected.
    #[error(
        "with block {block_idx} of epoch {epoch} the blocks in memory take {bytes} bytes, but only {limit} are allowed: its samples are \
         larger than most; allow more memory, or make blocks smaller"
    )]
    BlockMemory {
        /// The epoch.
        epoch: u64,
        /// The block, counted from 0.
        block_idx: u64,
        /// Bytes of the blocks in memory.
        bytes: u64,
        /// Bytes allowed to blocks.
        limit: u64,
    },

    /// More rows cannot be read than may be skipped.
    #[error(
        "{n_rows} samples one after another cannot be read, the last of them {name}: {reason}; skipping is for single damaged samples, so \
         look whether the data is there, or let the first error end the epoch"
    )]
    Unreadable {
        /// Number of rows.
        n_rows: u64,
        /// The last one's name.
        name: String,
        /// The last one's error.
        reason: String,
    },

    /// A sampling draws from other rows than the source has.
    #[error(
        "the sampling draws from {sampled} rows, but {n_rows} are selected: make it of the same data set"
    )]
    SamplingLength {
        /// Rows that it draws from.
        sampled: u64,
        /// Rows of the source.
        n_rows: u64,
    },

    /// The rank is not below the world size.
    #[error("there is no rank {rank} in a world of {size}: ranks count from 0")]
    NoSuchRank {
        /// The rank.
        rank: u64,
        /// Number of ranks.
        size: u64,
    },

    /// Only one of a pair of environment variables is set.
    #[error(
        "{set} is set and {missing} is not: set both, or neither, or give rank and world size as arguments"
    )]
    RankHalfSet {
        /// The variable that is set.
        set: &'static str,
        /// The variable that is not set.
        missing: &'static str,
    },

    /// The variable for rank or world size is not a number.
    #[error("{variable} is {value:?}, which is not a number: set it to one from 0 on, or unset it")]
    RankNotANumber {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },

    /// The rank in the environment is not below the world size there.
    #[error(
        "by {} and {} this is rank {rank} of {size}: ranks count from 0; correct them, or give rank and world size as arguments",
        variables.0,
        variables.1
    )]
    RankOutside {
        /// The variables for rank and size.
        variables: (&'static str, &'static str),
        /// The rank.
        rank: u64,
        /// Number of ranks.
        size: u64,
    },

    /// The variables of two launchers disagree.
    #[error(
        "by {} and {} this is rank {} of {}, by {} and {} rank {} of {}: set RANK and WORLD_SIZE, or give them as arguments",
        variables[0],
        variables[1],
        worlds[0].0,
        worlds[0].1,
        variables[2],
        variables[3],
        worlds[1].0,
        worlds[1].1
    )]
    RankContradiction {
        /// Rank and size variables of the first launcher, then of the second.
        variables: [&'static str; 4],
        /// Their values.
        worlds: [(u64, u64); 2],
    },

    /// The process was started by hand in a shell that is one of several Slurm tasks.
    #[error(
        "this shell is one of {size} tasks of Slurm (SLURM_PROCID, SLURM_STEP_NUM_TASKS), and the others do not run what is typed in \
         it: start with srun, or set RANK=0 and WORLD_SIZE=1"
    )]
    RankOfShell {
        /// Number of tasks.
        size: u64,
    },

    /// Only the process's number on its machine is known, which is not the rank.
    #[error(
        "{variable} is set, but it does not say which of how many processes this is: set RANK and WORLD_SIZE (or NODE_RANK, \
         LOCAL_WORLD_SIZE and NNODES beside LOCAL_RANK), or give rank and world size as arguments"
    )]
    RankUnknown {
        /// The variable.
        variable: &'static str,
    },

    /// A saved state belongs to another loader.
    #[error(
        "the state was saved with {field} {saved}, and this loader has {here}: resume with what it was saved with"
    )]
    State {
        /// The field that differs.
        field: &'static str,
        /// Its saved value.
        saved: String,
        /// Its value here.
        here: String,
    },

    /// The JSON of a saved state has another format.
    #[error("this is JSON of format {found:?}, not the state of a loader")]
    StateFormat {
        /// The format that it names.
        found: String,
    },

    /// The saved state has an unsupported version.
    #[error(
        "the state is of version {found}, and this release reads version {supported}: resume with the release that saved it"
    )]
    StateVersion {
        /// Its version.
        found: u64,
        /// The supported version.
        supported: u64,
    },

    /// The JSON is not the state of a loader.
    #[error("cannot read or write the state of a loader as JSON")]
    StateJson {
        /// The reason.
        #[source]
        source: serde_json::Error,
    },

    /// The system could not start a thread.
    #[error("cannot start thread {thread}")]
    Spawn {
        /// Its name.
        thread: &'static str,
        /// The reason.
        #[source]
        source: std::io::Error,
    },

    /// A thread of the pipeline panicked.
    #[error("thread {thread} panicked: {message}")]
    Panicked {
        /// Its name.
        thread: &'static str,
        /// The panic's message.
        message: String,
    },
}
