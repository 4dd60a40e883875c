//! Trains Doc2Vec on random sequences and prints how fast, and how well related sequences are
//! found. `benches/peers/doc2vec.py` does the same with gensim.
//!
//! ```sh
//! cargo run --release -p doc2vec --example train_sequences -- --write /tmp/sequences.txt
//! python benches/peers/doc2vec.py /tmp/sequences.txt
//! ```
//!
//! The words of a sequence are its 4-mers in all four frames, one frame after another: 1,021 words
//! for 1,024 bases. As in gensim, the windows at the end of a frame reach into the next one.
#![expect(clippy::print_stdout, reason = "prints results")]

mod sequences;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use doc2vec::{Combine, Model, TrainSpec, Trainer, WindowRule};

use self::sequences::{Sequences, SequencesSpec};

/// Trains Doc2Vec on random sequences, and prints speed, loss and score
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    sequences: SequencesSpec,
    /// Write the sequences to this file, a line each: family, a tab, bases
    #[arg(long)]
    write: Option<PathBuf>,
    /// PV-DM or PV-DBOW
    #[arg(long, value_enum, default_value = "dm")]
    model: ModelName,
    /// Numbers of threads to train with, in turn
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Epochs of each training
    #[arg(long, default_value_t = 10)]
    epochs: usize,
    /// Trainings for each number of threads, in turn
    #[arg(long, default_value_t = 1)]
    repetitions: usize,
    /// Length of a vector
    #[arg(long, default_value_t = 24)]
    dimension: usize,
    /// Largest distance of a context word
    #[arg(long, default_value_t = 3)]
    window: usize,
    /// Noise words for each target
    #[arg(long, default_value_t = 5)]
    negatives: usize,
    /// Learning rate at the beginning
    #[arg(long, default_value_t = 0.025)]
    alpha: f32,
    /// Add the vectors of context and document up, instead of taking their mean
    #[arg(long)]
    sum: bool,
    /// TokenizedSequences of a batch
    #[arg(long, default_value_t = 64)]
    batch: usize,
    /// Targets of a thread before word vectors are merged
    #[arg(long)]
    words_per_merge: Option<usize>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModelName {
    Dm,
    Dbow,
}

impl Arguments {
    fn spec(&self, planned_words: u64, threads: usize) -> TrainSpec {
        let model = match self.model {
            ModelName::Dbow => Model::BagOfWords,
            ModelName::Dm => Model::DistributedMemory {
                window: self.window,
                window_rule: WindowRule::Whole,
                combine: if self.sum { Combine::Sum } else { Combine::Mean },
            },
        };
        TrainSpec {
            dimension: self.dimension,
            negatives: self.negatives,
            alpha: self.alpha,
            threads,
            words_per_merge: self.words_per_merge,
            seed: self.sequences.seed,
            ..TrainSpec::new(model, planned_words)
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let sequences = Sequences::generate(&arguments.sequences);
    if let Some(path) = &arguments.write {
        sequences.write(path)?;
    }
    let documents = sequences.documents(arguments.batch);
    println!("model  threads  seconds  words/s  loss of first and last epoch  score");
    for _ in 0..arguments.repetitions {
        for threads in &arguments.threads {
            let planned = documents.n_words() * arguments.epochs as u64;
            let spec = arguments.spec(planned, *threads);
            let mut trainer =
                Trainer::new(&spec, sequences.families.len(), &documents.word_counts)?;
            let begin = Instant::now();
            let mut losses = Vec::new();
            for _ in 0..arguments.epochs {
                let mut loss = 0.0;
                for batch in &documents.batches {
                    let progress = trainer.train_batch(&batch.frames())?;
                    loss += progress.loss.unwrap_or_default() * progress.words as f64;
                }
                losses.push(loss / documents.n_words() as f64);
            }
            let seconds = begin.elapsed().as_secs_f64();
            let embeddings = trainer.embeddings(sequences.names(), documents.word_names())?;
            let score = embeddings.documents.unit().label_score(&sequences.families);
            println!(
                "{:?}  {threads}  {seconds:.2}  {:.0}  {:.4} {:.4}  {score:.4}",
                arguments.model,
                planned as f64 / seconds,
                losses.first().unwrap_or(&f64::NAN),
                losses.last().unwrap_or(&f64::NAN),
            );
        }
    }
    Ok(())
}
