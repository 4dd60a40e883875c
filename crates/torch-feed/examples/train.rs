//! The program of `docs/guide.md`: trains on shuffled batches, saves its place, and resumes from
//! there.
//!
//! `cargo run --release -p somafeed-torch-feed --example train -- <experiment> <checkpoint>
//! <epochs>`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use loader::encode::{Encoder as _, Encoders, LabelEncoder, Rules};
use loader::{
    Budget, Dataset, DatasetSpec, LoaderSpec, LoaderState, PipelineSpec, Remainder, Transform,
    World,
};
use soma_io::{Experiment, OpenOptions};
use tch::{Device, Kind, Tensor};
use torch_feed::{LinearClassifier, TensorLoader};

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, checkpoint, epochs] = &arguments[..] else {
        return Err("usage: train <experiment> <checkpoint> <epochs>".into());
    };
    let (checkpoint, epochs): (&Path, u64) = (checkpoint.as_ref(), epochs.parse()?);

    // The cells, with a label as codes: each value of cell_type is a class.
    let experiment = Experiment::open(uri, &OpenOptions::default())?;
    let wanted = DatasetSpec { obs_columns: vec!["cell_type".into()], ..DatasetSpec::default() };
    let dataset = Dataset::from_experiment(&experiment, &wanted)?;
    let column = dataset.obs().column_by_name("cell_type").ok_or("obs has no cell_type")?;
    let encoder = LabelEncoder::fit("cell_type", column, Rules::default())?;
    let n_classes = encoder.n_classes().ok_or("the labels are not finitely many")?;
    let dataset = dataset.with_encoders(&Encoders::new(vec![Arc::new(encoder)])?)?;

    // The settings that were chosen for this machine and data.
    let world = World::from_environment()?;
    let pipeline = PipelineSpec {
        chunk_rows: 64,
        chunks_per_block: 256,
        batch_rows: 128,
        seed: 42,
        memory: Budget::new(1 << 30),
        world,
        remainder: Remainder::Drop, // all ranks get equally many batches
        ..PipelineSpec::default()
    };
    let transform = Transform { target_sum: Some(1e4), log1p: true, ..Transform::default() };
    let spec = LoaderSpec { pipeline, transform, ..LoaderSpec::default() };
    let device = Device::cuda_if_available();
    tch::set_num_threads(1); // on the CPU, torch's threads would take the loader's processors
    let loader = TensorLoader::new(dataset, spec)?.to_device(device)?;
    let mut model = LinearClassifier::for_loader(&loader, n_classes, 1e-3);
    println!("rank {} of {}, on {device:?}", world.rank, world.size);

    let mut saved = load(checkpoint, &mut model)?;
    let first = saved.as_ref().map_or(0, LoaderState::epoch);
    for epoch in first..epochs {
        let mut batches = match saved.take() {
            Some(state) => loader.resume(&state)?,
            None => loader.epoch(epoch)?,
        };
        let begin = batches.state().batches_delivered();
        let mut loss = None;
        while let Some(batch) = batches.next() {
            let batch = batch?;
            let codes = batch.codes("cell_type").ok_or("the batch has no codes")?;
            loss = Some(model.step(batch.x(), codes)?);
            drop(batch); // a later batch reuses its memory
            let done = batches.state().batches_delivered();
            if done % 100 == 0 || done == batches.n_batches() {
                save(checkpoint, &model, &batches.state())?;
            }
        }
        let Some(loss) = loss else { continue }; // the checkpoint was at the epoch's end
        let stats = batches.stats();
        println!(
            "epoch {epoch}: batches {begin} to {}, last loss {:.3}; {:.0} cells/s, waited {:.0} % of the time",
            batches.state().batches_delivered(),
            loss.f_double_value(&[])?,
            stats.engine.n_rows as f64 / stats.engine.elapsed_secs,
            100.0 * stats.engine.wait_secs.iter().sum::<f64>() / stats.engine.elapsed_secs,
        );
    }
    Ok(())
}

/// Writes the model and the place in the order of batches to one file, completely or not at all.
fn save(path: &Path, model: &LinearClassifier, state: &LoaderState) -> Result<(), Box<dyn Error>> {
    let mut tensors = model.state()?;
    tensors.push(("loader".into(), Tensor::f_from_slice(state.to_json()?.as_bytes())?));
    let partial = path.with_extension("partial");
    Tensor::write_safetensors(&tensors, &partial)?;
    Ok(std::fs::rename(partial, path)?)
}

/// Restores the saved model and state, if there are any.
fn load(path: &Path, model: &mut LinearClassifier) -> Result<Option<LoaderState>, Box<dyn Error>> {
    if !path.try_exists()? {
        return Ok(None);
    }
    let tensors = Tensor::read_safetensors(path)?;
    model.restore(&tensors)?;
    let state =
        tensors.iter().find(|(name, tensor)| name == "loader" && tensor.kind() == Kind::Uint8);
    let (_, state) = state.ok_or("the checkpoint has no loader state")?;
    Ok(Some(LoaderState::from_json(&String::from_utf8(Vec::<u8>::try_from(state)?)?)?))
}
