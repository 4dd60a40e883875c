//! The command `train`: vectors of the sequences of a store.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use bench_run::{UsageError, grouped, print_line};
use clap::{Args, ValueEnum};
use doc2vec::{
    Combine, Documents, Embeddings, Model, TrainSpec, Trainer, WindowRule, check_word2vec_names,
};
use pipeline::{Pipeline, PipelineSpec, Stop};
use sequences::{
    SequenceBatch, SequenceFiles, SequenceList, SequenceSamples, SequenceSpec, SequenceStore as _,
    Tokenizer,
};

use crate::bench::open;
use crate::kmer_flags::KmerFlags;

/// Flags of `train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// The store
    store: PathBuf,
    #[command(flatten)]
    words: KmerFlags,
    /// PV-DM, which predicts a word from its sequence and the words around it, or PV-DBOW, which
    /// predicts it from the sequence alone
    #[arg(long, value_enum, default_value = "dm")]
    model: ModelName,
    /// Length of a vector
    #[arg(long, value_name = "N", default_value_t = 24)]
    dimension: usize,
    /// Words of context on each side of a word, of PV-DM
    #[arg(long, value_name = "N", default_value_t = 3)]
    window: usize,
    /// Noise words for each word
    #[arg(long, value_name = "N", default_value_t = 5)]
    negatives: usize,
    /// Learning rate at the beginning
    #[arg(long, value_name = "RATE", default_value_t = 0.025)]
    alpha: f32,
    /// Epochs
    #[arg(short = 'E', long, default_value_t = 10)]
    epochs: u64,
    /// Sequences of a batch
    #[arg(short = 'B', long, default_value_t = 256)]
    batch: u64,
    /// Threads that train [default: one per processor]
    #[arg(short = 't', long, value_name = "N")]
    threads: Option<usize>,
    /// Seed of the order, the first vectors and the noise
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for the vectors, which must not exist: embeddings.safetensors, and sequences.txt and
    /// words.txt in word2vec's form
    #[arg(short = 'd', long, alias = "output", short_alias = 'o', value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Write embeddings.safetensors alone: word2vec's form cannot hold names with blanks
    #[arg(long, requires = "results")]
    safetensors_only: bool,
}

/// The model, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelName {
    Dm,
    Dbow,
}

/// Trains, prints the progress, and writes the vectors.
pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    if args.epochs == 0 || args.batch == 0 {
        return Err(UsageError::new("there must be an epoch, and a sequence in a batch").into());
    }
    let Some(folder) = &args.results else {
        train(args)?;
        return Ok(ExitCode::SUCCESS);
    };
    // Better now than after hours of training.
    std::fs::create_dir(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let written =
        train(args).and_then(|embeddings| write(&embeddings, folder, args.safetensors_only));
    if written.is_err() {
        // The next try should find no folder. One that is not empty stays.
        drop(std::fs::remove_dir(folder));
    }
    written.map(|()| ExitCode::SUCCESS)
}

/// Trains; prints the progress and, for families, how many neighbours are relatives.
fn train(args: &TrainArgs) -> anyhow::Result<Embeddings> {
    let threads =
        args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let store = open(&args.store)?;
    let names = names(&store)?;
    if args.results.is_some() && !args.safetensors_only {
        check_word2vec_names(&names)
            .context("import the sequences with other names, or train with --safetensors-only")?;
    }
    let tokenizer = args.words.words().tokenizer(&*store, threads)?;
    let mut training = Training::new(args, &store, &tokenizer, threads)?;
    for epoch in 0..args.epochs {
        print_line!("{}", training.epoch(epoch)?);
    }
    let words = tokenizer.vocabulary();
    let word_names = (0..words.n_words() as u32).map(|word| words.word(word).unwrap_or_default());
    let embeddings = training.trainer.embeddings(names, word_names.collect())?;
    let names = embeddings.documents.names();
    let families: Option<Vec<&str>> = names.iter().map(|name| family(name)).collect();
    if let Some(families) = families {
        let score = embeddings.documents.unit().label_score(&families);
        print_line!(
            "nearest neighbour of the same family: {:.1} % of the sequences",
            100.0 * score
        );
    }
    Ok(embeddings)
}

/// A trainer and the loader that feeds it.
struct Training {
    pipeline: Pipeline<SequenceSamples>,
    trainer: Trainer,
    padding: usize,
    n_epochs: u64,
}

impl Training {
    fn new(
        args: &TrainArgs,
        store: &Arc<SequenceFiles>,
        tokenizer: &Tokenizer,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let n_documents = usize::try_from(store.summary().n_sequences)?;
        let (words, kmers) = (tokenizer.vocabulary(), *tokenizer.spec());
        let n_words: u64 = words.counts().iter().sum();
        let model = match args.model {
            ModelName::Dm => Model::DistributedMemory {
                window: args.window,
                window_rule: WindowRule::Whole,
                combine: Combine::Mean,
            },
            ModelName::Dbow => Model::BagOfWords,
        };
        let planned = n_words.saturating_mul(args.epochs).max(1);
        let spec = TrainSpec {
            dimension: args.dimension,
            negatives: args.negatives,
            alpha: args.alpha,
            threads,
            seed: args.seed,
            ..TrainSpec::new(model, planned)
        };
        let trainer = Trainer::new(&spec, n_documents, words.counts())?;
        let of_batch = SequenceSpec { tokenizer: Some(tokenizer.clone()), ..Default::default() };
        let samples = SequenceSamples::new(Arc::<SequenceFiles>::clone(store), of_batch)?;
        let sizes = PipelineSpec { chunk_rows: 16, chunks_per_block: 256, ..Default::default() };
        let spec = PipelineSpec { batch_rows: args.batch, seed: args.seed, ..sizes };
        let pipeline = Pipeline::new(Arc::new(samples), spec, SequenceBatch::n_sequences)?;
        Ok(Self { pipeline, trainer, padding: kmers.padding, n_epochs: args.epochs })
    }

    /// Trains on an epoch, and formats how it went.
    fn epoch(&mut self, number: u64) -> anyhow::Result<String> {
        let started = Instant::now();
        let (mut n_words, mut loss, mut n_sequences) = (0, 0.0, 0);
        for batch in self.pipeline.epoch(number)? {
            let batch = batch?;
            let Some(tokens) = batch.tokens() else { continue };
            let n_frames = batch.n_frames();
            let ends: Vec<usize> = (1..=batch.n_sequences()).map(|n| n * n_frames).collect();
            let progress = self.trainer.train_batch(&Documents {
                documents: batch.rows(),
                document_ends: &ends,
                frame_ends: tokens.frame_ends(),
                tokens: tokens.tokens(),
                padding: self.padding,
            })?;
            n_words += progress.words;
            n_sequences += batch.n_sequences() as u64;
            loss += progress.loss.unwrap_or(0.0) * progress.words as f64;
        }
        let seconds = started.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        Ok(format!(
            "epoch {} of {}: loss {:.4} a word, {seconds:.2} s, {:.2} million words/s, {} sequences/s",
            number + 1,
            self.n_epochs,
            loss / n_words.max(1) as f64,
            n_words as f64 / 1e6 / seconds,
            grouped((n_sequences as f64 / seconds) as u64),
        ))
    }
}

/// The names of all sequences.
fn names(store: &SequenceFiles) -> anyhow::Result<Vec<String>> {
    let mut list = SequenceList::default();
    let n_sequences = store.summary().n_sequences;
    store.read_names(&[0..n_sequences], &mut list, &Stop::default())?;
    let name = |row| String::from_utf8_lossy(list.name(row).unwrap_or_default()).into_owned();
    Ok((0..usize::try_from(n_sequences)?).map(name).collect())
}

/// The family in a name that `generate --families` gave.
fn family(name: &str) -> Option<&str> {
    name.split_once("_member_").map(|(family, _)| family).filter(|of| of.starts_with("family_"))
}

/// Writes vectors in both forms, or as safetensors alone.
fn write(embeddings: &Embeddings, folder: &Path, safetensors_only: bool) -> anyhow::Result<()> {
    let path = folder.join("embeddings.safetensors");
    embeddings.write_safetensors(&path)?;
    print_line!("{}", path.display());
    if safetensors_only {
        return Ok(());
    }
    for (vectors, name) in
        [(&embeddings.documents, "sequences.txt"), (&embeddings.words, "words.txt")]
    {
        let path = folder.join(name);
        vectors.write_word2vec_text(&path)?;
        print_line!("{}", path.display());
    }
    Ok(())
}
