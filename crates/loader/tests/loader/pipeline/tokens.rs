//! Tokens of batches: each sequence is that of its cell, for any settings.

use std::collections::{BTreeMap, HashMap};
use std::error::Error as _;
use std::sync::Arc;

use loader::{
    BatchForm, Cells, Dataset, GeneSelection, Loader, LoaderSpec, PipelineSpec, Remainder,
    TokenSpec, Totals, Transform, World,
};
use soma_io::{CsrBuffers, MemoryReader};
use tokens::{
    BinSpec, BinnedValues, Layout, RankSpec, RankValues, SpecialNames, Tokenizer, Vocabulary,
};

use crate::pipeline::sample;

const N_CELLS: u64 = 60;
const N_GENES: u64 = 40;

fn genes() -> Vec<String> {
    (0..N_GENES).map(|gene| format!("gene-{gene}")).collect()
}

/// Every gene but each fifth, with ids from 10.
fn vocabulary() -> Vocabulary {
    let known = genes().into_iter().zip(10..).filter(|(_, id)| id % 5 != 0);
    let special = [("<pad>".to_owned(), 0), ("<cls>".to_owned(), 1)];
    let names = SpecialNames { pad: "<pad>", cls: Some("<cls>"), eos: None };
    Vocabulary::new(special.into_iter().chain(known), names).unwrap()
}

fn median(gene: u64) -> f64 {
    1.0 + (gene * 7 % 11) as f64
}

fn ranks(max_length: usize) -> Arc<Tokenizer> {
    let medians: HashMap<String, f64> = genes().into_iter().zip((0..N_GENES).map(median)).collect();
    let spec = RankSpec { max_length, ..RankSpec::default() };
    let ranks = RankValues::new(&vocabulary(), &medians, &genes(), spec).unwrap();
    Arc::new(Tokenizer::Ranks(ranks))
}

fn bins(max_length: usize) -> Arc<Tokenizer> {
    let spec = BinSpec { max_length, n_bins: 5, ..BinSpec::default() };
    Arc::new(Tokenizer::Bins(BinnedValues::new(&vocabulary(), &genes(), spec).unwrap()))
}

fn spec(tokenizer: &Arc<Tokenizer>, layout: Layout) -> LoaderSpec {
    let tokens = Some(TokenSpec { tokenizer: Arc::clone(tokenizer), layout });
    LoaderSpec {
        pipeline: PipelineSpec { batch_rows: 5, ..sample::spec().pipeline },
        batch_form: BatchForm::Csr,
        tokens,
        ..sample::spec()
    }
}

/// The tokens, and the bits of the values beside them, of each delivered cell.
type Sequences = BTreeMap<i64, (Vec<u32>, Vec<u32>)>;

fn collect(batches: impl Iterator<Item = loader::Batch>, into: &mut Sequences) {
    for batch in batches {
        let made = batch.tokens.as_ref().unwrap();
        let (tokens, values) = (made.tokens().unwrap(), made.values().unwrap());
        assert_eq!(made.places.n_cells(), batch.n_rows());
        for ((joinid, length), place) in
            batch.joinids.iter().zip(made.places.lengths()).zip(made.places.offsets())
        {
            let part = *place..*place + *length as usize;
            let bits = values.get(part.clone()).unwrap_or_default().iter().map(|v| v.to_bits());
            into.insert(*joinid, (tokens[part].to_vec(), bits.collect()));
        }
    }
}

fn sequences(dataset: &Dataset, spec: LoaderSpec, epoch: u64) -> Sequences {
    let mut all = Sequences::new();
    let loader = Loader::new(dataset.clone(), spec).unwrap();
    collect(loader.epoch(epoch).unwrap().map(Result::unwrap), &mut all);
    all
}

/// The tokens of a cell by the definition; `value / median` has the order of the full formula,
/// because no two results of these cells are equal or close.
fn ranked(joinid: u64, max_length: usize) -> Vec<u32> {
    let mut results: Vec<(f64, u64)> = (0..N_GENES)
        .filter(|gene| gene % 5 != 0)
        .filter_map(|gene| Some((f64::from(sample::value(joinid, gene)?) / median(gene), gene)))
        .collect();
    results.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let tokens = results.iter().map(|(_, gene)| *gene as u32 + 10);
    [1].into_iter().chain(tokens).take(max_length).collect()
}

#[test]
fn each_cell_has_its_own_tokens_in_any_layout() {
    let dataset = sample::whole(N_CELLS, N_GENES);
    for layout in [Layout::Padded, Layout::PaddedToLongest, Layout::Ragged] {
        for (max_length, batch_threads) in [(50, Some(1)), (6, Some(2))] {
            let spec = LoaderSpec { batch_threads, ..spec(&ranks(max_length), layout) };
            let made = sequences(&dataset, spec, 3);
            assert_eq!(made.len() as u64, N_CELLS);
            for (joinid, (tokens, values)) in made {
                assert_eq!(tokens, ranked(joinid as u64, max_length), "cell {joinid}");
                assert!(values.is_empty());
            }
        }
    }
}

#[test]
fn random_tokens_depend_on_seed_epoch_and_cell_alone() {
    let dataset = sample::whole(N_CELLS, N_GENES);
    let sequences_of = |spec: LoaderSpec, epoch| sequences(&dataset, spec, epoch);
    let alone = spec(&bins(8), Layout::Ragged);
    let expected = sequences_of(alone.clone(), 0);
    assert_eq!(expected.len() as u64, N_CELLS);
    assert!(expected.values().any(|(tokens, _)| tokens.len() == 8));
    // Other batches, other threads, another order.
    let other = LoaderSpec {
        pipeline: PipelineSpec { batch_rows: 13, seed: 9, ..alone.pipeline.clone() },
        batch_threads: Some(2),
        ..alone.clone()
    };
    assert_eq!(sequences_of(other, 0), expected);
    assert_ne!(sequences_of(alone.clone(), 1), expected);
    // Two ranks.
    let mut by_ranks = Sequences::new();
    for rank in 0..2 {
        let world = World { rank, size: 2 };
        let remainder = Remainder::Drop;
        by_ranks.append(&mut sequences_of(
            LoaderSpec {
                pipeline: PipelineSpec { world, remainder, ..alone.pipeline.clone() },
                ..alone.clone()
            },
            0,
        ));
    }
    assert_eq!(by_ranks, expected);
    // A resumed epoch.
    let loader = Loader::new(dataset.clone(), alone.clone()).unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    let mut resumed = Sequences::new();
    collect(epoch.by_ref().take(4).map(Result::unwrap), &mut resumed);
    let state = epoch.state();
    let again = Loader::new(dataset.clone(), alone.clone()).unwrap();
    collect(again.resume(&state).unwrap().map(Result::unwrap), &mut resumed);
    assert_eq!(resumed, expected);
    // A part of the cells.
    let x = Arc::new(sample::reader(N_CELLS, N_GENES));
    let part = sample::dataset(x, Cells::Range(11..23), GeneSelection::All);
    let part = sequences(&part, alone, 0);
    assert_eq!(part.len(), 12);
    assert!(part.iter().all(|(joinid, made)| expected[joinid] == *made));
}

#[test]
fn what_tokens_cannot_be_made_of_is_an_error() {
    let dataset = sample::whole(N_CELLS, N_GENES);
    let refused = |spec: LoaderSpec| Loader::new(dataset.clone(), spec).unwrap_err().to_string();
    let ranks = spec(&ranks(8), Layout::Padded);
    for (spec, expected) in [
        (LoaderSpec { batch_form: BatchForm::Dense, ..ranks.clone() }, "not of form dense"),
        (LoaderSpec { batch_form: BatchForm::Coo, ..ranks.clone() }, "not of form coo"),
        (LoaderSpec { totals: Totals::Obs, ..ranks.clone() }, "has no totals"),
        (
            LoaderSpec {
                transform: Transform { log1p: true, ..Transform::default() },
                ..ranks.clone()
            },
            "values are transformed before (log1p)",
        ),
    ] {
        let found = refused(spec);
        assert!(found.contains(expected), "{found}");
    }
    let narrow = sample::whole(N_CELLS, N_GENES - 1);
    let found = Loader::new(narrow, ranks).unwrap_err().to_string();
    assert!(found.contains("is for 40 genes, but batches have 39"), "{found}");
    // Bins are made of transformed values, too.
    let transform = Transform { target_sum: Some(1e4), log1p: true, ..Transform::default() };
    let binned = LoaderSpec { transform, ..spec(&bins(8), Layout::Padded) };
    assert_eq!(sequences(&dataset, binned, 0).len() as u64, N_CELLS);
}

#[test]
fn a_negative_value_is_an_error_that_names_the_cell() {
    let csr = CsrBuffers {
        row_offsets: vec![0, 1, 1, 2],
        columns: vec![3, 4],
        values: vec![1.0, -2.0],
        n_columns: N_GENES as usize,
    };
    let x = Arc::new(MemoryReader::new(csr).unwrap());
    let dataset = sample::dataset(x, Cells::Range(0..3), GeneSelection::All);
    let loader = Loader::new(dataset, spec(&bins(8), Layout::Padded)).unwrap();
    let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap();
    assert_eq!(error.to_string(), "cannot make tokens of cell 2 of experiment 0");
    let source = error.source().unwrap().to_string();
    assert!(source.contains("the value -2 in column 4"), "{source}");
}

#[test]
fn ranks_divide_by_the_totals_of_obs_if_asked() {
    // Only rounding depends on a total above 0, so a total of 0 shows which one divides.
    let obs = |totals: Vec<f64>| {
        sample::whole(N_CELLS, N_GENES).with_totals(totals.into_iter().collect()).unwrap()
    };
    let spec = LoaderSpec { totals: Totals::Obs, ..spec(&ranks(50), Layout::Padded) };
    let made = sequences(&obs(vec![3.0; N_CELLS as usize]), spec.clone(), 0);
    assert!(made.iter().all(|(joinid, made)| made.0 == ranked(*joinid as u64, 50)));
    let mut totals = vec![3.0; N_CELLS as usize];
    totals[8] = 0.0;
    let loader = Loader::new(obs(totals), spec).unwrap();
    let error = loader.epoch(0).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("cell 8 of experiment 0 has values, but its total is 0"), "{error}");
}
