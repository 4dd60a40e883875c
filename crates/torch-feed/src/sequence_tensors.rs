//! One batch of sequences as tensors.

use sequences::{SequenceBatch, SequenceSamples, Windows};
use tch::{Kind, Tensor};

use crate::array_tensors::ArrayTensors;
use crate::error::Error;
use crate::tensor_source::{Sealed, TensorSource};

impl Sealed for SequenceSamples {}

impl TensorSource for SequenceSamples {
    /// Words are 32-bit integers, letters bytes, ends 64-bit integers: torch has them all.
    fn check_elements(&self) -> Result<(), Error> {
        Ok(())
    }

    fn n_samples_of(batch: &SequenceBatch) -> usize {
        batch.n_sequences()
    }

    fn tensors_of(batch: SequenceBatch) -> Result<ArrayTensors, Error> {
        ArrayTensors::from_sequences(&batch)
    }
}

impl ArrayTensors {
    /// Makes the tensors of a batch of sequences, on the CPU. Words are `Kind::Int`.
    ///
    /// | asked for | tensors |
    /// |---|---|
    /// | letters | `letters`, bytes `[letters]`, and `letter_ends`, `Kind::Int64`, `[sequences]` |
    /// | words | `tokens`, `[words]`, and `frame_ends`, `Kind::Int64`, `[sequences * frames]` |
    /// | padded letters | `letters`, `[sequences, width]`, and `letter_lengths`, `[sequences]` |
    /// | padded words | `tokens`, `[sequences, width]`, and `lengths`, `[sequences]` |
    /// | encoded letters | `one_hot`, `Kind::Float`, all numbers in one dimension |
    /// | windows | `sequences`, `[T]`, `targets`, `[T]`, `contexts`, `[T, 2 * context]`, `targets_and_noise`, `[T, 1 + noise]` |
    ///
    /// # Errors
    /// torch has no memory.
    pub fn from_sequences(batch: &SequenceBatch) -> Result<Self, Error> {
        let mut tensors = Vec::new();
        let mut push = |name: &str, tensor: Result<Tensor, tch::TchError>| {
            let tensor = tensor.map_err(Error::torch("a tensor of a batch of sequences"))?;
            tensors.push((name.to_owned(), tensor));
            Ok::<(), Error>(())
        };
        let (letters, ends) = batch.sequences().letters_and_ends();
        if !ends.is_empty() {
            let n_letters = letters.len() as i64;
            push("letters", Tensor::f_from_data_size(letters, &[n_letters], Kind::Uint8))?;
            push("letter_ends", numbers(ends))?;
        }
        if let Some(tokens) = batch.tokens() {
            push("tokens", words(tokens.tokens(), None))?;
            push("frame_ends", numbers(tokens.frame_ends()))?;
        }
        if let Some(rows) = batch.padded_letters() {
            let size = [rows.lengths.len() as i64, rows.width as i64];
            push("letters", Tensor::f_from_data_size(&rows.values, &size, Kind::Uint8))?;
            push("letter_lengths", numbers(&rows.lengths))?;
        }
        if let Some(rows) = batch.padded_words() {
            let n_sequences = rows.lengths.len() as i64;
            let words = words(&rows.values, None);
            push("tokens", words.and_then(|words| words.f_view([n_sequences, rows.width as i64])))?;
            push("lengths", numbers(&rows.lengths))?;
        }
        if let Some(one_hot) = batch.one_hot() {
            push("one_hot", Tensor::f_from_slice(one_hot))?;
        }
        if let Some(windows) = batch.windows() {
            let Windows { sequences, targets, contexts, targets_and_noise, n_context, n_noise } =
                windows;
            push("sequences", words(sequences, None))?;
            push("targets", words(targets, None))?;
            push("contexts", words(contexts, Some(*n_context)))?;
            push("targets_and_noise", words(targets_and_noise, Some(1 + n_noise)))?;
        }
        Ok(Self::of_tensors(tensors, batch.rows().to_vec(), batch.place()))
    }
}

/// A tensor of words, in one dimension or in rows of `width`.
fn words(values: &[u32], width: Option<usize>) -> Result<Tensor, tch::TchError> {
    let shape = match width {
        None => vec![values.len() as i64],
        Some(width) => vec![(values.len() / width.max(1)) as i64, width as i64],
    };
    // All are below 2^31: vocabularies and sources check it.
    Tensor::f_from_data_size(bytemuck::cast_slice(values), &shape, Kind::Int)
}

/// A tensor of positions.
fn numbers(values: &[usize]) -> Result<Tensor, tch::TchError> {
    let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
    Tensor::f_from_slice(&values)
}
