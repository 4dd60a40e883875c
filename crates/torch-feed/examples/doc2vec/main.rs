//! Trains Doc2Vec on sequences with the model, the loss and the optimizer of Dragon's example, and
//! looks whether related sequences get similar vectors.
//!
//! ```text
//! cargo xtask sequences generate families.txt --families 20 --members 10 --letters 400
//! cargo xtask sequences import families.txt families
//! cargo run --release -p somafeed-torch-feed --example doc2vec -- families
//! ```
//!
//! The loader delivers each word with its context and noise as tensors, and every epoch trains on
//! all of them. The program prints the loss of each epoch and, if names are those of `generate
//! --families`, the share of sequences whose nearest neighbour is of the same family. `--help`
//! lists all options. On processors, `cargo xtask sequences train` is much faster.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use doc2vec::NamedVectors;
use pipeline::{PipelineSpec, Stop};
use sequences::{
    KmerSpec, SequenceFiles, SequenceList, SequenceSamples, SequenceSpec, SequenceStore as _,
    Tokenizer, Vocabulary, WhenUnknown, WindowSpec,
};
use shuffle::AliasTable;
use storage::LocalStorage;
use tch::{Device, Kind, Tensor};
use torch_feed::{
    ArrayTensorLoader, DeviceChoice, DocumentExamples, DocumentModel, DocumentVectors,
};

/// An error that stops the program, shown to its user.
type Failure = Box<dyn Error + Send + Sync>;

/// Trains Doc2Vec on the sequences of a store.
#[derive(Debug, Clone, Parser)]
struct Arguments {
    /// The store, as `cargo xtask sequences import` writes it
    store: PathBuf,
    /// PV-DM, which predicts a word from its sequence and the words around it, or PV-DBOW, which
    /// predicts it from the sequence alone
    #[arg(long, value_enum, default_value = "dm")]
    model: Model,
    /// Length of a vector
    #[arg(long, default_value_t = 24)]
    dimension: i64,
    /// Words of context on each side
    #[arg(long, default_value_t = 3)]
    context: usize,
    /// Noise words for each word
    #[arg(long, default_value_t = 5)]
    noise: usize,
    /// Epochs
    #[arg(long, default_value_t = 5)]
    epochs: u64,
    /// Sequences of a batch
    #[arg(long, default_value_t = 8)]
    batch: u64,
    /// Learning rate of Adam
    #[arg(long, default_value_t = 0.1)]
    learning_rate: f64,
    /// Seed of the first vectors, the order and the noise
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// Device: cpu, cuda:0, or auto
    #[arg(long, default_value = "cpu")]
    device: DeviceChoice,
}

/// The model, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Model {
    Dm,
    Dbow,
}

/// How training went.
#[derive(Debug)]
struct Outcome {
    /// Mean loss of a word in each epoch.
    losses: Vec<f64>,
    /// Share of sequences whose nearest neighbour is of the same family, if names have families.
    score: Option<f64>,
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn main() -> Result<(), Failure> {
    let outcome = run(&Arguments::parse(), &mut |line| println!("{line}"))?;
    if let (Some(first), Some(last)) = (outcome.losses.first(), outcome.losses.last()) {
        println!("the loss of a word fell from {first:.4} to {last:.4}");
    }
    if let Some(score) = outcome.score {
        println!("nearest neighbour of the same family: {:.1} %", 100.0 * score);
    }
    Ok(())
}

fn run(arguments: &Arguments, print: &mut dyn FnMut(&str)) -> Result<Outcome, Failure> {
    let device = arguments.device.find()?;
    tch::manual_seed(i64::from(arguments.seed));
    let store = SequenceFiles::open(Arc::new(LocalStorage::new(&arguments.store)))?;
    let store = Arc::new(store);
    let kmers = KmerSpec::all_frames(4, arguments.context);
    let alphabet = store.summary().alphabet()?;
    let words = Vocabulary::count(&*store, &alphabet, &kmers, WhenUnknown::Fail, 2)?;
    let n_words = i64::try_from(words.n_words())?;
    let loader = loader(arguments, &store, (kmers, words))?.to_device(device)?;
    let mut model = model(arguments, i64::try_from(store.summary().n_sequences)?, n_words, device)?;

    let mut losses = Vec::new();
    for epoch in 0..arguments.epochs {
        let started = Instant::now();
        let (mut sum, mut n_targets) = (0.0, 0);
        for batch in loader.epoch(epoch)? {
            let batch = batch?;
            let numbers = |name: &str| -> Result<Tensor, Failure> {
                Ok(batch.tensor(name)?.to_kind(Kind::Int64))
            };
            let (documents, contexts) = (numbers("sequences")?, numbers("contexts")?);
            let targets = numbers("targets_and_noise")?;
            let n_of_batch = targets.size()[0];
            if n_of_batch == 0 {
                continue;
            }
            let loss = model.step(DocumentExamples {
                doc_ids: &documents,
                context_ids: (arguments.model == Model::Dm).then_some(&contexts),
                target_noise_ids: &targets,
            })?;
            sum += f64::try_from(loss)? * n_of_batch as f64;
            n_targets += n_of_batch;
        }
        losses.push(sum / n_targets.max(1) as f64);
        let rate = n_targets as f64 / started.elapsed().as_secs_f64();
        print(&format!(
            "epoch {} of {}: loss {:.4} a word, {rate:.0} words/s",
            epoch + 1,
            arguments.epochs,
            sum / n_targets.max(1) as f64
        ));
    }
    Ok(Outcome { losses, score: score(&store, &model)? })
}

fn loader(
    arguments: &Arguments,
    store: &Arc<SequenceFiles>,
    (kmers, words): (KmerSpec, Vocabulary),
) -> Result<ArrayTensorLoader<SequenceSamples>, Failure> {
    let seed = u64::from(arguments.seed);
    let windows = WindowSpec {
        context: arguments.context,
        n_noise: arguments.noise,
        noise: Arc::new(AliasTable::new(words.counts(), AliasTable::NOISE)?),
        seed,
    };
    let tokenizer = Tokenizer::new(kmers, Arc::new(words), WhenUnknown::Fail)?;
    let spec = SequenceSpec {
        tokenizer: Some(tokenizer),
        windows: Some(windows),
        ..SequenceSpec::default()
    };
    let samples = SequenceSamples::new(Arc::<SequenceFiles>::clone(store), spec)?;
    let spec = PipelineSpec { batch_rows: arguments.batch, seed, ..PipelineSpec::default() };
    Ok(ArrayTensorLoader::new(samples, spec)?)
}

fn model(
    arguments: &Arguments,
    n_documents: i64,
    n_words: i64,
    device: Device,
) -> Result<DocumentModel, Failure> {
    let first = match arguments.model {
        Model::Dm => DocumentVectors::distributed_memory,
        Model::Dbow => DocumentVectors::bag_of_words,
    };
    let first = first(n_documents, n_words, arguments.dimension, device)?;
    Ok(DocumentModel::new(&first, arguments.learning_rate)?)
}

/// The share of sequences whose nearest neighbour is of the same family.
fn score(store: &SequenceFiles, model: &DocumentModel) -> Result<Option<f64>, Failure> {
    let mut list = SequenceList::default();
    let n_sequences = store.summary().n_sequences;
    store.read_names(&[0..n_sequences], &mut list, &Stop::default())?;
    let name = |row| String::from_utf8_lossy(list.name(row).unwrap_or_default()).into_owned();
    let names: Vec<String> = (0..usize::try_from(n_sequences)?).map(name).collect();
    let family = |name: &String| name.split_once("_member_").map(|(family, _)| family.to_owned());
    let Some(families) = names.iter().map(family).collect::<Option<Vec<String>>>() else {
        return Ok(None);
    };
    let vectors = model.documents().to_device(Device::Cpu);
    let dimension = usize::try_from(vectors.size()[1])?;
    let values: Vec<f32> = Vec::try_from(vectors.view(-1))?;
    let vectors = NamedVectors::new(names, values, dimension)?;
    Ok(Some(vectors.unit().label_score(&families)))
}

#[cfg(test)]
mod tests {
    use sequence_bench::generate::{Families, GenerateSpec, Kind, generate};
    use sequences::{RecordReader, SequenceFilesWriter};

    use super::*;

    #[test]
    fn every_epoch_runs_and_relatives_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (file, store) = (folder.path().join("file"), folder.path().join("store"));
        let families = Families { n_families: 8, n_members: 5, mutations: 0.03, n_letters: 300 };
        generate(&file, &GenerateSpec::new(Kind::Families(families)), &mut |_| {}).unwrap();
        let mut writer = SequenceFilesWriter::create(&store, &[]).unwrap();
        RecordReader::open(&file).unwrap().copy_to(&mut writer, &mut |_| {}).unwrap();
        writer.finish().unwrap();
        for model in ["dm", "dbow"] {
            let arguments = ["doc2vec", store.to_str().unwrap(), "--model", model, "--epochs", "8"];
            let arguments = Arguments::try_parse_from(arguments).unwrap();
            let mut lines = Vec::new();
            let outcome = run(&arguments, &mut |line| lines.push(line.to_owned())).unwrap();
            assert_eq!((outcome.losses.len(), lines.len()), (8, 8), "{lines:?}");
            assert!(outcome.losses.is_sorted_by(|one, next| next < one), "{outcome:?}");
            // By chance it would be 10 %.
            assert!(0.6 < outcome.score.unwrap(), "{model}: {outcome:?}");
        }
    }
}
