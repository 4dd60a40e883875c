//! Sequences in a cluster of Redis or Valkey servers.

use std::ops::Range;

use key_values::{FillReport, KeyValues, NodeStats, ServerSpec};
use pipeline::Stop;
use serde::{Deserialize, Serialize};

use super::SequenceStore;
use super::manifest::Summary;
use super::value::{Value, pack};
use crate::error::Error;
use crate::sequence_list::SequenceList;

/// Letters that a fill reads from its source at once.
const READ_LETTERS: u64 = 1 << 20;

/// How often a fill looks for values that a master lost when it died.
const MAX_ROUNDS: usize = 4;

/// A store of sequences in a cluster of Redis or Valkey servers, in one namespace of its keys.
///
/// Each value has [`sequences_per_key`](Self::sequences_per_key) consecutive sequences with their
/// names, and is fetched as a whole: chunks of the loader should have a multiple of that number.
/// The namespace's manifest describes its content: a store opens only if it was filled to its end.
#[derive(Debug)]
pub struct SequenceServers {
    values: KeyValues,
    manifest: Manifest,
}

/// The description of a store in its namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    summary: Summary,
    sequences_per_key: u64,
    /// Whether all values are there.
    is_complete: bool,
}

/// Result of a fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFill {
    /// Values that were there already.
    pub n_found: u64,
    /// Values written in each round; empty if everything was there.
    pub written: Vec<FillReport>,
}

impl SequenceServers {
    /// Opens a store that was filled.
    ///
    /// # Errors
    /// The servers cannot be reached, or the namespace has no complete store, or has lost the last
    /// value. Other values that are gone are errors when they are read.
    pub fn open(spec: &ServerSpec) -> Result<Self, Error> {
        let values = KeyValues::connect(spec)?;
        let place = place_of(&values);
        let Some(manifest) = Manifest::read(&values)? else {
            let reason = "the namespace has no description; fill it first".to_owned();
            return Err(Error::NotAStore { place, reason });
        };
        if !manifest.is_complete {
            let reason = "it was not filled to its end; fill it again, which writes only what is \
                          missing"
                .to_owned();
            return Err(Error::NotAStore { place, reason });
        }
        // A number of sequences that is wrong would be taken for the length of an epoch.
        if let Some(last) = manifest.n_values().checked_sub(1)
            && !values.which_are_missing(last..last + 1, &|| false)?.is_empty()
        {
            let reason = format!("value {last}, the last one, is missing");
            return Err(Error::Damaged { place, reason });
        }
        Ok(Self { values, manifest })
    }

    /// Copies the sequences of a store to the servers and opens them. Values that are there already
    /// are not written again. `progress` gets the number of sequences that were read so far.
    ///
    /// # Errors
    /// The namespace has a store of other sequences, another number of sequences in a value, or
    /// values without a description, which may be anything; the source cannot be read; a server
    /// cannot be reached or has too little memory. What was written stays, and the next fill goes
    /// on from there.
    pub fn fill(
        spec: &ServerSpec,
        source: &dyn SequenceStore,
        sequences_per_key: u64,
        progress: &mut dyn FnMut(u64),
        stop: &Stop,
    ) -> Result<(Self, ServerFill), Error> {
        let values = KeyValues::connect(spec)?;
        if sequences_per_key == 0 {
            return Err(Error::settings("a value must have at least one sequence"));
        }
        let summary = source.summary().clone();
        let mut manifest = Manifest { summary, sequences_per_key, is_complete: false };
        let n_values = manifest.n_values();
        let is_stopped = || stop.is_set();
        let was_complete = manifest.claim(&values, &is_stopped)?;
        let mut missing = values.which_are_missing(0..n_values, &is_stopped)?;
        let n_found = n_values - n_numbers(&missing);
        let mut fill = ServerFill { n_found, written: Vec::new() };
        if was_complete {
            // Others may be reading a complete store: its description stays as it is.
            if missing.is_empty() {
                manifest.is_complete = true;
                return Ok((Self { values, manifest }, fill));
            }
            manifest.write(&values)?;
        }
        while !missing.is_empty() {
            if fill.written.len() == MAX_ROUNDS {
                let what = format!("{} values again and again", missing.len());
                let source = "servers lose what was written".into();
                return Err(Error::Read { what, place: place_of(&values), source });
            }
            let report = manifest.put(&values, &missing, source, (progress, stop))?;
            missing = if report.masters_changed {
                values.which_are_missing(0..n_values, &is_stopped)?
            } else {
                Vec::new()
            };
            fill.written.push(report);
        }
        manifest.is_complete = true;
        manifest.write(&values)?;
        Ok((Self { values, manifest }, fill))
    }

    /// Sequences of one value.
    pub fn sequences_per_key(&self) -> u64 {
        self.manifest.sequences_per_key
    }

    /// The values, for counts and statistics.
    pub fn values(&self) -> &KeyValues {
        &self.values
    }

    /// Statistics of all masters, in the order of addresses.
    ///
    /// # Errors
    /// A server does not answer.
    pub fn stats(&self) -> Result<Vec<NodeStats>, Error> {
        Ok(self.values.stats()?)
    }

    fn damaged(&self, number: u64) -> Error {
        let reason = format!("value {number} has other sequences than were written");
        Error::Damaged { place: self.place(), reason }
    }
}

impl SequenceStore for SequenceServers {
    fn place(&self) -> String {
        place_of(&self.values)
    }

    fn summary(&self) -> &Summary {
        &self.manifest.summary
    }

    /// Whole values are fetched before sequences are taken out of them.
    fn working_bytes(&self, n_rows: u64, _with_names: bool) -> u64 {
        let Manifest { summary, sequences_per_key, .. } = &self.manifest;
        let all = summary.n_letters.saturating_add(summary.n_name_bytes);
        let mean = all.div_ceil(summary.n_sequences.max(1)).saturating_add(8);
        n_rows.max(*sequences_per_key).min(summary.n_sequences).saturating_mul(mean)
    }

    fn read(
        &self,
        rows: &[Range<u64>],
        with_names: bool,
        into: &mut SequenceList,
        stop: &Stop,
    ) -> Result<u64, Error> {
        let n = self.manifest.summary.n_sequences;
        if let Some(rows) = rows.iter().find(|rows| n < rows.end || rows.end < rows.start) {
            return Err(Error::settings(format!(
                "{} has {n} sequences, and rows {} to {} were asked for",
                self.place(),
                rows.start,
                rows.end
            )));
        }
        let per_key = self.manifest.sequences_per_key;
        let mut numbers: Vec<u64> = Vec::new();
        for row in rows.iter().cloned().flatten() {
            if numbers.last() != Some(&(row / per_key)) {
                numbers.push(row / per_key);
            }
        }
        let mut values: Vec<Vec<u8>> = vec![Vec::new(); numbers.len()];
        self.values.get_many(&numbers, &|| stop.is_set(), |at, value| {
            values[at] = value.to_vec();
        })?;
        let mut found = numbers.iter().zip(&values);
        let mut present: Option<(u64, Value<'_>)> = None;
        for row in rows.iter().cloned().flatten() {
            let (number, at) = (row / per_key, (row % per_key) as usize);
            if present.as_ref().is_none_or(|(present, _)| *present != number) {
                present =
                    found.next().and_then(|(number, bytes)| Some((*number, Value::new(bytes)?)));
            }
            let appended =
                present.as_mut().and_then(|(_, value)| value.append_to(into, at, with_names));
            appended.ok_or_else(|| self.damaged(number))?;
        }
        Ok(values.iter().map(|value| value.len() as u64).sum())
    }
}

impl Manifest {
    /// Reads the namespace's manifest, if there is one.
    fn read(values: &KeyValues) -> Result<Option<Self>, Error> {
        let Some(bytes) = values.manifest()? else { return Ok(None) };
        let manifest: Self = serde_json::from_slice(&bytes).map_err(|error| {
            let reason = format!("its description cannot be understood: {error}");
            Error::NotAStore { place: place_of(values), reason }
        })?;
        manifest.summary.check_version(&place_of(values))?;
        if manifest.sequences_per_key == 0 {
            let reason = "its values have no sequences".to_owned();
            return Err(Error::NotAStore { place: place_of(values), reason });
        }
        Ok(Some(manifest))
    }

    fn write(&self, values: &KeyValues) -> Result<(), Error> {
        Ok(values.put_manifest(&self.to_json()?)?)
    }

    fn to_json(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| {
            Error::settings(format!("the description of the store cannot be written: {error}"))
        })
    }

    /// Makes sure that the namespace is this store's, and returns whether it was complete.
    ///
    /// Two fills at a time cannot both claim an empty namespace. Values that nothing describes are
    /// not taken for this store's: they may be left from another one.
    fn claim(&self, values: &KeyValues, stop: &dyn Fn() -> bool) -> Result<bool, Error> {
        let place = place_of(values);
        let mut there = Self::read(values)?;
        if there.is_none() {
            let n_values = self.n_values();
            let missing = values.which_are_missing(0..n_values, stop)?;
            if n_numbers(&missing) == n_values && values.put_new_manifest(&self.to_json()?)? {
                return Ok(false);
            }
            there = Self::read(values)?;
        }
        let Some(there) = there else {
            let reason = "it has values and no description of them; use another namespace, or \
                          clear this one"
                .to_owned();
            return Err(Error::OtherData { place, reason });
        };
        self.check(&there, &place)?;
        Ok(there.is_complete)
    }

    /// Fails if a namespace has another store than is to be filled into it.
    fn check(&self, there: &Self, place: &str) -> Result<(), Error> {
        let other = |what: &str| {
            let reason = format!("it has {what}; use another namespace, or clear this one");
            Err(Error::OtherData { place: place.to_owned(), reason })
        };
        if there.summary != self.summary {
            return other(&format!(
                "{} other sequences (fingerprint {}, not {})",
                there.summary.n_sequences, there.summary.fingerprint, self.summary.fingerprint
            ));
        }
        if there.sequences_per_key != self.sequences_per_key {
            return other(&format!(
                "{} sequences in a value, not {}",
                there.sequences_per_key, self.sequences_per_key
            ));
        }
        Ok(())
    }

    fn n_values(&self) -> u64 {
        self.summary.n_sequences.div_ceil(self.sequences_per_key)
    }

    /// Writes the values with these numbers.
    fn put(
        &self,
        values: &KeyValues,
        numbers: &[Range<u64>],
        source: &dyn SequenceStore,
        (progress, stop): (&mut dyn FnMut(u64), &Stop),
    ) -> Result<FillReport, Error> {
        let n_expected = n_numbers(numbers);
        let mut failure = None;
        let mut packed = Packed {
            manifest: self,
            source,
            numbers: numbers.iter(),
            rest: 0..0,
            ready: Vec::new().into_iter(),
            list: SequenceList::default(),
            n_read: 0,
            progress,
            stop,
        };
        let items = std::iter::from_fn(|| match packed.next_value() {
            Ok(item) => item,
            Err(error) => {
                failure = Some(error);
                None
            }
        });
        let report = values.put_all(items, n_expected, &|| stop.is_set())?;
        failure.map_or(Ok(report), Err)
    }
}

/// Reads sequences and packs them into values.
struct Packed<'a> {
    manifest: &'a Manifest,
    source: &'a dyn SequenceStore,
    numbers: std::slice::Iter<'a, Range<u64>>,
    /// Numbers of values that were not read yet, of the present range.
    rest: Range<u64>,
    ready: std::vec::IntoIter<(u64, Vec<u8>)>,
    list: SequenceList,
    n_read: u64,
    progress: &'a mut dyn FnMut(u64),
    stop: &'a Stop,
}

impl Packed<'_> {
    fn next_value(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        loop {
            if let Some(value) = self.ready.next() {
                return Ok(Some(value));
            }
            if self.rest.is_empty() {
                match self.numbers.next() {
                    Some(numbers) => self.rest = numbers.clone(),
                    None => return Ok(None),
                }
            }
            self.read_some()?;
        }
    }

    /// Reads the sequences of the next values, about [`READ_LETTERS`] letters.
    fn read_some(&mut self) -> Result<(), Error> {
        let Manifest { summary, sequences_per_key: per_key, .. } = self.manifest;
        let mean = (summary.n_letters / summary.n_sequences.max(1)).max(1);
        let n_values = (READ_LETTERS / mean / per_key).max(1);
        let numbers = self.rest.start..self.rest.end.min(self.rest.start + n_values);
        self.rest.start = numbers.end;
        let rows = numbers.start * per_key..summary.n_sequences.min(numbers.end * per_key);
        self.list.clear();
        self.source.read(std::slice::from_ref(&rows), true, &mut self.list, self.stop)?;
        let per_key = usize::try_from(*per_key).unwrap_or(usize::MAX);
        let ready: Vec<(u64, Vec<u8>)> = numbers
            .zip((0..self.list.len()).step_by(per_key))
            .map(|(number, first)| {
                let end = self.list.len().min(first.saturating_add(per_key));
                pack(&self.list, first..end).map(|value| (number, value))
            })
            .collect::<Result<_, Error>>()?;
        self.ready = ready.into_iter();
        self.n_read += rows.end - rows.start;
        (self.progress)(self.n_read);
        Ok(())
    }
}

/// How many numbers are in these ranges.
fn n_numbers(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn place_of(values: &KeyValues) -> String {
    format!("namespace {}", values.namespace())
}
