//! A proposal for cells as users write it: a command, Python, Rust.

use bench_run::{BlockSpec, Program, quoted, recorded};
use grid_point::Data;
use loader::{BatchForm, BlockForm, ReaderChoice};

use super::args::TuneArgs;
use super::cells::PREFETCH_BATCHES;

/// A proposal and its data.
pub(super) struct Written<'a> {
    pub(super) args: &'a TuneArgs,
    pub(super) data: &'a Data,
    pub(super) reader: ReaderChoice,
    pub(super) spec: BlockSpec,
    pub(super) prefetch_blocks: u64,
}

impl Written<'_> {
    /// The command that sweeps the proposal alone.
    pub(super) fn command(&self) -> String {
        let args = self.args;
        let mut words = vec![format!("{} sweep", Program::called())];
        let mut flag = |name: &str, value: &str| {
            words.push(format!("{name} {}", quoted(value)));
        };
        if args.data.address().is_some() {
            flag("--uri", &self.data.uri.to_string());
        }
        args.data.names().for_each(|(name, value)| flag(name, value));
        flag("-b", &self.spec.to_string());
        flag("-m", BlockForm::Csr.name());
        flag("-B", &args.batch_size.to_string());
        flag("--batch-form", BatchForm::from(args.batch_form).name());
        flag("--prefetch-blocks", &self.prefetch_blocks.to_string());
        flag("--prefetch-batches", &PREFETCH_BATCHES.to_string());
        flag("--reader", self.reader.name());
        flag("--seed", &args.seed.to_string());
        flag("--entropy-of", self.label().map_or("none", String::as_str));
        if let Some(n_genes) = self.data.n_genes {
            flag("-v", &n_genes.to_string());
        }
        let cells = self.data.cells.clone().unwrap_or(0..u64::MAX);
        for (name, joinid, default) in [("-s", cells.start, 0), ("-e", cells.end, u64::MAX)] {
            if joinid != default {
                flag(name, &joinid.to_string());
            }
        }
        for (name, value) in
            [("--obs-filter", &self.data.obs_filter), ("--var-filter", &self.data.var_filter)]
        {
            if let Some(value) = value {
                flag(name, value);
            }
        }
        args.link.typed().for_each(|(name, value)| flag(name, &value));
        // The native reader does not read X through libtiledb, so only typed settings matter to it.
        // libtiledb's settings include those that `tune` added.
        let by_libtiledb = self.is_by_libtiledb().then_some(&self.data.config);
        let typed = args.data.settings().iter().map(|(key, value)| (key, value));
        let chosen = by_libtiledb.into_iter().flatten();
        for (key, value) in typed.filter(|_| by_libtiledb.is_none()).chain(chosen) {
            flag("--config", &format!("{key}={}", recorded(key, value)));
        }
        words.join(" ")
    }

    /// The label whose mixing was asked for.
    fn label(&self) -> Option<&String> {
        self.data.entropy_of.iter().flatten().next()
    }

    /// The choice of the reader in Rust.
    fn reader_variant(&self) -> &'static str {
        match self.reader {
            ReaderChoice::Libtiledb => "Libtiledb",
            ReaderChoice::Native => "Native",
            ReaderChoice::Auto => "Auto",
        }
    }

    fn is_by_libtiledb(&self) -> bool {
        self.reader == ReaderChoice::Libtiledb
    }

    /// The data set with these settings in Python.
    pub(super) fn python(&self) -> String {
        let spec = self.spec;
        let mut arguments = vec![format!("uri={:?}", self.data.uri.to_string())];
        let names = self.args.data.names();
        arguments.extend(names.map(|(flag, name)| format!("{}_name={name:?}", &flag[2..])));
        let filters =
            [("obs_filter", &self.data.obs_filter), ("var_filter", &self.data.var_filter)];
        let filters =
            filters.into_iter().filter_map(|(name, filter)| Some((name, filter.as_ref()?)));
        arguments.extend(filters.map(|(name, filter)| format!("{name}={filter:?}")));
        let form = match BatchForm::from(self.args.batch_form) {
            BatchForm::F16 => "torch_f16",
            BatchForm::Csr => "torch_csr",
            BatchForm::Coo => "torch_coo",
            _ => "torch",
        };
        arguments.push(format!("batch_size={}", self.args.batch_size));
        arguments.push(format!("shuffle_chunk_size={}", spec.chunk_rows));
        arguments.push(format!("io_batch_size={}", spec.chunk_rows * spec.chunks_per_block));
        arguments.push(format!("memory={}", self.args.tune.memory.as_u64()));
        arguments.push(format!("form={form:?}"));
        // Codes need no other package.
        arguments.extend(self.label().map(|label| format!("obs_column_names=[{label:?}]")));
        arguments.push("obs_form=\"codes\"".to_owned());
        arguments.push(format!("seed={}", self.args.seed));
        format!("ExperimentDataset({})", arguments.join(", "))
    }

    /// The loader's settings as Rust code.
    pub(super) fn loader_spec(&self) -> String {
        let Self { spec, prefetch_blocks, .. } = *self;
        format!(
            "LoaderSpec {{ pipeline: PipelineSpec {{ chunk_rows: {}, chunks_per_block: {}, batch_rows: {}, prefetch_blocks: {prefetch_blocks}, \
             prefetch_batches: {PREFETCH_BATCHES}, seed: {}, ..PipelineSpec::default() }}, batch_form: BatchForm::{:?}, ..LoaderSpec::default() }} \
             with DatasetSpec {{ reader: ReaderChoice::{}, .. }}",
            spec.chunk_rows,
            spec.chunks_per_block,
            self.args.batch_size,
            self.args.seed,
            BatchForm::from(self.args.batch_form),
            self.reader_variant(),
        )
    }
}
