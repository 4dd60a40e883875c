//! Neighbours by a graph of obsp: the right cells, in the right order, each row once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loader::{
    Batch, BatchForm, BlockForm, Budget, Cells, Dataset, GeneSelection, Loader, LoaderError,
    LoaderSpec, LoaderState, MatrixError, Nearest, NeighbourSpec, PipelineSpec, Remainder, Totals,
    Transform, World,
};
use proptest::prelude::*;
use soma_io::{CsrBuffers, MemoryReader, XReader as _};

use crate::pipeline::counted::CountedReader;
use crate::pipeline::sample::{self, WAYS, dense_rows};

const N_GENES: u64 = 5;
const GENES: [u64; 5] = [0, 1, 2, 3, 4];

/// The stored values of a graph: a list of (column, value) for each row, by ascending column.
type Graph = Vec<Vec<(u64, f32)>>;

fn reader(graph: &Graph) -> Arc<MemoryReader> {
    let mut csr =
        CsrBuffers { row_offsets: vec![0], n_columns: graph.len(), ..CsrBuffers::default() };
    for row in graph {
        csr.columns.extend(row.iter().map(|(column, _)| *column as u32));
        csr.values.extend(row.iter().map(|(_, value)| *value));
        csr.row_offsets.push(csr.values.len());
    }
    Arc::new(MemoryReader::new(csr).unwrap())
}

/// The neighbours of a cell, by the rule: sort all, leave out the cell itself, take the first `k`.
fn expected(graph: &Graph, spec: &NeighbourSpec, cell: u64, selected: &[u64]) -> Vec<(u64, f32)> {
    let mut all = graph[cell as usize].clone();
    all.retain(|(column, _)| *column != cell);
    if spec.selected_only {
        all.retain(|(column, _)| selected.contains(column));
    }
    all.sort_by(|(one, value), (other, of_other)| {
        let by_value = match spec.nearest.unwrap() {
            Nearest::Smallest => value.partial_cmp(of_other).unwrap(),
            _ => of_other.partial_cmp(value).unwrap(),
        };
        by_value.then(one.cmp(other))
    });
    all.truncate(spec.k);
    all
}

/// The value of X that every experiment has; each has other cells, so joinids differ in meaning.
fn expected_row(joinid: i64) -> Vec<f32> {
    GENES.iter().map(|gene| sample::value(joinid as u64, *gene).unwrap_or(0.0)).collect()
}

fn check(batch: &Batch, graphs: &[Graph], spec: &NeighbourSpec, selected: &[Vec<u64>]) {
    let found = batch.neighbours.as_ref().unwrap();
    let (n, k) = (batch.n_rows(), spec.k);
    assert_eq!((found.k, found.positions.len()), (k, n * k));
    assert_eq!((found.values.len(), found.present.len()), (n * k, n * k));
    let rows = dense_rows(&batch.x);
    assert_eq!((rows.len(), found.experiments.len()), (found.joinids.len(), found.joinids.len()));
    assert_eq!(found.joinids[..n], batch.joinids);
    assert_eq!(found.experiments[..n], batch.experiments);
    for (row, joinid) in rows.iter().zip(&found.joinids) {
        assert_eq!(*row, expected_row(*joinid));
    }
    // Distinct: the cells of an epoch are.
    let distinct: BTreeSet<_> = found.experiments.iter().zip(&found.joinids).collect();
    assert_eq!(distinct.len(), rows.len());
    let mut used: BTreeSet<u32> = (0..n as u32).collect();
    for row in 0..n {
        let experiment = batch.experiments[row] as usize;
        let cell = batch.joinids[row] as u64;
        let expected = expected(&graphs[experiment], spec, cell, &selected[experiment]);
        for slot in 0..k {
            let at = row * k + slot;
            let (position, value) = (found.positions[at], found.values[at]);
            used.insert(position);
            let Some((joinid, of_graph)) = expected.get(slot) else {
                assert_eq!((found.present[at], position, value), (false, row as u32, 0.0));
                continue;
            };
            assert!(found.present[at]);
            assert_eq!(found.joinids[position as usize], *joinid as i64, "cell {cell} at {slot}");
            assert_eq!(found.experiments[position as usize] as usize, experiment);
            assert_eq!(value, *of_graph);
        }
    }
    assert_eq!(used.len(), rows.len(), "rows that nobody needs");
}

fn dataset(graph: &Graph, cells: Vec<u64>, spec: &NeighbourSpec) -> Dataset {
    let x = Arc::new(sample::reader(graph.len() as u64, N_GENES));
    let dataset = sample::dataset(x, Cells::List(cells.into()), GeneSelection::All);
    dataset.with_neighbours(spec.clone(), reader(graph)).unwrap()
}

fn graph(most: u64) -> impl Strategy<Value = Graph> {
    (1..most).prop_flat_map(|n| {
        // Few values, so that many are equal; 0 is stored, too, as between cells at one place.
        let value =
            prop_oneof![4 => Just(None), 6 => (0..4_u8).prop_map(|v| Some(f32::from(v) / 2.0))];
        let row = proptest::collection::vec(value, n as usize);
        let stored = |row: Vec<Option<f32>>| {
            let row = (0..).zip(row).filter_map(|(column, value)| Some((column, value?)));
            row.collect::<Vec<(u64, f32)>>()
        };
        let row = prop_oneof![1 => Just(Vec::new()), 6 => row.prop_map(stored)];
        proptest::collection::vec(row, n as usize)
    })
}

#[derive(Debug, Clone)]
struct Case {
    graphs: Vec<Graph>,
    cells: Vec<Vec<u64>>,
    neighbours: NeighbourSpec,
    spec: LoaderSpec,
}

fn case() -> impl Strategy<Value = Case> {
    let of_experiment = graph(30).prop_flat_map(|graph| {
        let all: Vec<u64> = (0..graph.len() as u64).collect();
        let n = all.len();
        (Just(graph), proptest::sample::subsequence(all, 0..=n))
    });
    let experiments = proptest::collection::vec(of_experiment, 1..4);
    let neighbours = (1..6_usize, any::<bool>(), any::<bool>());
    let sizes = (1..12_u64, 1..6_u64, 1..30_u64, 0..3_usize, 0..3_usize);
    (experiments, neighbours, sizes, 1..=WAYS.len(), any::<u64>()).prop_map(
        |(experiments, (k, is_smallest, selected_only), sizes, way, seed)| {
            let (chunk_rows, chunks_per_block, batch_rows, prefetch_blocks, prefetch_batches) =
                sizes;
            let f16 = (BlockForm::Csr, BatchForm::Csr);
            let (block_form, batch_form) = WAYS.get(way).copied().unwrap_or(f16);
            let nearest = Some(if is_smallest { Nearest::Smallest } else { Nearest::Largest });
            let pipeline = PipelineSpec {
                chunk_rows,
                chunks_per_block,
                seed,
                batch_rows,
                prefetch_blocks,
                prefetch_batches,
                ..PipelineSpec::default()
            };
            let (graphs, cells) = experiments.into_iter().unzip();
            Case {
                graphs,
                cells,
                neighbours: NeighbourSpec {
                    nearest,
                    selected_only,
                    ..NeighbourSpec::new("graph", k)
                },
                spec: LoaderSpec { pipeline, block_form, batch_form, ..LoaderSpec::default() },
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn neighbours_are_those_of_the_rule(case in case()) {
        let Case { graphs, cells, neighbours, spec } = case;
        let parts: Vec<Dataset> = graphs
            .iter()
            .zip(&cells)
            .map(|(graph, cells)| dataset(graph, cells.clone(), &neighbours))
            .collect();
        let loader = Loader::new(Dataset::concat(&parts).unwrap(), spec).unwrap();
        let mut epoch = loader.epoch(0).unwrap();
        let mut seen = Vec::new();
        let mut n_further = 0;
        for batch in epoch.by_ref() {
            let batch = batch.unwrap();
            check(&batch, &graphs, &neighbours, &cells);
            seen.extend(batch.experiments.iter().copied().zip(batch.joinids.iter().copied()));
            n_further += batch.neighbours.unwrap().joinids.len() - batch.joinids.len();
        }
        seen.sort_unstable();
        let all = (0..).zip(&cells);
        let all = all.flat_map(|(idx, cells)| cells.iter().map(move |id| (idx, *id as i64)));
        prop_assert_eq!(&seen, &all.collect::<Vec<_>>());
        let rows = epoch.stats().neighbours.unwrap();
        prop_assert_eq!(rows.centres as usize, seen.len());
        // A block reads a cell once for all of its batches, and not if it is a row of its own.
        prop_assert!(rows.further as usize <= seen.len() * neighbours.k);
        prop_assert!(n_further == 0 || rows.amplification() >= Some(1.0));
    }
}

/// Cells on a line, each with the distances to all others.
fn line(places: &[f32]) -> Graph {
    let row = |(cell, place): (usize, &f32)| {
        let others = (0..).zip(places).filter(|(other, _)| *other != cell as u64);
        others.map(|(other, of_other)| (other, (place - of_other).powi(2))).collect()
    };
    places.iter().enumerate().map(row).collect()
}

fn only_batch(dataset: Dataset) -> Batch {
    let mut spec = sample::spec();
    spec.pipeline.batch_rows = 100;
    spec.pipeline.chunks_per_block = 100;
    Loader::new(dataset, spec).unwrap().epoch(0).unwrap().next().unwrap().unwrap()
}

/// The joinid and the value of each neighbour, by the joinid of the cell.
fn by_cell(batch: &Batch) -> Vec<Vec<(i64, f32)>> {
    let of = batch.neighbours.as_ref().unwrap();
    let mut cells: Vec<(i64, Vec<(i64, f32)>)> = (0..batch.n_rows())
        .map(|row| {
            let slots = (row * of.k..(row + 1) * of.k).filter(|at| of.present[*at]);
            let named = slots.map(|at| (of.joinids[of.positions[at] as usize], of.values[at]));
            (batch.joinids[row], named.collect())
        })
        .collect();
    cells.sort_by_key(|(joinid, _)| *joinid);
    cells.into_iter().map(|(_, of)| of).collect()
}

#[test]
fn cells_on_a_line_have_the_neighbours_that_one_sees() {
    let spec = NeighbourSpec::new("distances", 2);
    let graph = line(&[0.0, 1.0, 3.0, 7.0]);
    let expected = [
        vec![(1, 1.0), (2, 9.0)],
        vec![(0, 1.0), (2, 4.0)],
        vec![(1, 4.0), (0, 9.0)],
        vec![(2, 16.0), (1, 36.0)],
    ];
    assert_eq!(by_cell(&only_batch(dataset(&graph, vec![0, 1, 2, 3], &spec))), expected);
    // Two at one place are each other's first neighbour, and equals come by joinid.
    let graph = line(&[0.0, 0.0, 1.0, -1.0]);
    let expected = [
        vec![(1, 0.0), (2, 1.0)],
        vec![(0, 0.0), (2, 1.0)],
        vec![(0, 1.0), (1, 1.0)],
        vec![(0, 1.0), (1, 1.0)],
    ];
    assert_eq!(by_cell(&only_batch(dataset(&graph, vec![0, 1, 2, 3], &spec))), expected);
    // A cell with itself in its row is not its own neighbour.
    let graph = vec![vec![(0, 0.0), (1, 5.0)], vec![(1, 0.0)]];
    assert_eq!(by_cell(&only_batch(dataset(&graph, vec![0, 1], &spec))), [vec![(1, 5.0)], vec![]]);
}

#[test]
fn neighbours_are_of_a_part_only_if_that_is_asked_for() {
    let graph = line(&[0.0, 1.0, 3.0, 7.0]);
    let spec = NeighbourSpec::new("distances", 2);
    let whole =
        |spec: &NeighbourSpec| dataset(&graph, vec![0, 1, 2, 3], spec).rows(&[0, 3]).unwrap();
    let batch = only_batch(whole(&spec));
    assert_eq!(by_cell(&batch), [vec![(1, 1.0), (2, 9.0)], vec![(2, 16.0), (1, 36.0)]]);
    assert_eq!(batch.x.shape().0, 4);
    let only = NeighbourSpec { selected_only: true, ..spec };
    let batch = only_batch(whole(&only));
    assert_eq!(by_cell(&batch), [vec![(3, 49.0)], vec![(0, 49.0)]]);
    assert!(batch.to_arrow().unwrap_err().source.to_string().contains("neighbours"));
    assert_eq!(batch.x.shape().0, 2);
}

#[test]
fn each_row_is_read_once_for_a_block() {
    // A ring: each cell and the next one.
    let graph: Graph = (0..40).map(|cell| vec![((cell + 1) % 40, 1.0)]).collect();
    let spec = NeighbourSpec::new("distances", 3);
    let mut of_loader = sample::spec();
    (of_loader.pipeline.chunk_rows, of_loader.pipeline.chunks_per_block) = (8, 1);
    let loader = Loader::new(dataset(&graph, (0..40).collect(), &spec), of_loader).unwrap();
    let mut epoch = loader.epoch(0).unwrap();
    assert_eq!(epoch.by_ref().map(|batch| batch.unwrap().n_rows()).sum::<usize>(), 40);
    // 5 blocks of 8 cells, each of which lacks one.
    let rows = epoch.stats().neighbours.unwrap();
    assert_eq!((rows.centres, rows.further), (40, 5));
    assert_eq!(rows.amplification(), Some(45.0 / 40.0));
}

#[test]
fn one_read_of_x_serves_a_block() {
    // A modality of the same matrix does not have the rows of neighbours.
    let spec = NeighbourSpec::new("distances", 2);
    let graph = line(&(0..30_u8).map(f32::from).collect::<Vec<_>>());
    let mut x = CountedReader::new(sample::reader(30, N_GENES), 0);
    x.reads_whole_rows = true;
    let x = Arc::new(x);
    let data = sample::dataset(
        Arc::<CountedReader>::clone(&x),
        Cells::Range(0..30),
        GeneSelection::Range(0..3),
    );
    let same = Arc::<CountedReader>::clone(&x);
    let data = data.with_modality("others", same, GeneSelection::Range(3..5), None).unwrap();
    let data = data.with_neighbours(spec, reader(&graph)).unwrap();
    let mut of_loader = sample::spec();
    (of_loader.pipeline.chunk_rows, of_loader.pipeline.chunks_per_block) = (5, 2);
    let mut epoch = Loader::new(data, of_loader).unwrap().epoch(0).unwrap();
    for batch in epoch.by_ref() {
        let batch = batch.unwrap();
        let joinids = &batch.neighbours.as_ref().unwrap().joinids;
        for (row, joinid) in dense_rows(&batch.x).iter().zip(joinids) {
            assert_eq!(*row, expected_row(*joinid)[..3]);
        }
        let others = dense_rows(&batch.modalities[0].1.x);
        assert_eq!(others.len(), batch.joinids.len());
        for (row, joinid) in others.iter().zip(&batch.joinids) {
            assert_eq!(*row, expected_row(*joinid)[3..]);
        }
    }
    // Each block has one read of X, and one of the modality.
    let n_blocks = epoch.stats().engine.n_blocks as usize;
    assert_eq!((n_blocks, x.n_started.load(Ordering::SeqCst)), (3, 6));
}

#[test]
fn x_and_the_graph_keep_decoded_values_in_proportion() {
    let graph: Graph = (0..40).map(|cell| vec![((cell + 1) % 40, 1.0)]).collect();
    let counted = |inner| Arc::new(CountedReader::new(inner, 0));
    let inner = Arc::into_inner(reader(&graph)).unwrap();
    let (x, of_graph) = (counted(sample::reader(40, N_GENES)), counted(inner));
    let data =
        sample::dataset(Arc::<CountedReader>::clone(&x), Cells::Range(0..40), GeneSelection::All);
    let same = Arc::<CountedReader>::clone(&of_graph);
    let data = data.with_neighbours(NeighbourSpec::new("distances", 1), same).unwrap();
    let mut spec = sample::spec();
    spec.pipeline.keep_bytes = Some(1000);
    let loader = Loader::new(data, spec).unwrap();
    loader.epoch(0).unwrap().for_each(|batch| drop(batch.unwrap()));
    let n_values = x.nnz().unwrap().unwrap();
    assert_eq!(of_graph.allowed(), 1000 * 40 / (n_values + 40));
}

#[test]
fn ranks_share_them_and_an_epoch_resumes() {
    let places: Vec<f32> = (0..60_u16).map(|cell| f32::from(cell * 37 % 101)).collect();
    let graph = line(&places);
    let neighbours = NeighbourSpec::new("distances", 4);
    let all: Vec<u64> = (0..60).collect();
    let run = |size: u64, from: Option<&LoaderState>, most: usize| {
        let mut steps: Vec<Vec<i64>> = Vec::new();
        let mut state = None;
        for rank in 0..size {
            let pipeline = PipelineSpec {
                batch_rows: 12 / size,
                world: World { rank, size },
                remainder: Remainder::Drop,
                ..sample::spec().pipeline
            };
            let spec = LoaderSpec { pipeline, ..sample::spec() };
            let loader = Loader::new(dataset(&graph, all.clone(), &neighbours), spec).unwrap();
            let mut epoch = match from {
                Some(state) => loader.resume(state).unwrap(),
                None => loader.epoch(1).unwrap(),
            };
            for (step, batch) in epoch.by_ref().take(most).enumerate() {
                let batch = batch.unwrap();
                check(
                    &batch,
                    std::slice::from_ref(&graph),
                    &named(&neighbours),
                    std::slice::from_ref(&all),
                );
                if rank == 0 {
                    steps.push(Vec::new());
                }
                steps[step].extend(batch.joinids);
            }
            state = Some(epoch.state());
        }
        (steps, state.unwrap())
    };
    let (whole, _) = run(4, None, usize::MAX);
    let (mut resumed, state) = run(4, None, 2);
    resumed.extend(run(3, Some(&state), usize::MAX).0);
    assert_eq!(resumed, whole);
}

/// With what the name says.
fn named(spec: &NeighbourSpec) -> NeighbourSpec {
    NeighbourSpec { nearest: Nearest::of_name(&spec.obsp), ..spec.clone() }
}

#[test]
fn transforms_are_applied_once() {
    let graph = line(&[0.0, 1.0, 3.0, 7.0, 8.0]);
    let data = dataset(&graph, vec![1, 4], &NeighbourSpec::new("distances", 2));
    let transform = Transform { target_sum: Some(10.0), log1p: true, clip: None };
    let spec = LoaderSpec { transform, ..sample::spec() };
    let mut n_rows = 0;
    for batch in Loader::new(data, spec).unwrap().epoch(0).unwrap() {
        let batch = batch.unwrap();
        let joinids = &batch.neighbours.as_ref().unwrap().joinids;
        for (row, joinid) in dense_rows(&batch.x).into_iter().zip(joinids) {
            let stored = expected_row(*joinid);
            let total: f32 = stored.iter().sum();
            for (found, value) in row.into_iter().zip(stored) {
                let expected = if total > 0.0 { (value * 10.0 / total).ln_1p() } else { 0.0 };
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
            n_rows += 1;
        }
    }
    assert!(n_rows > 2);
}

#[test]
fn what_cannot_be_is_an_error() {
    let graph = line(&[0.0, 1.0, 3.0]);
    let whole = || sample::whole(3, N_GENES);
    let fails = |spec: NeighbourSpec, graph: Arc<MemoryReader>| {
        whole().with_neighbours(spec, graph).unwrap_err().to_string()
    };
    let spec = || NeighbourSpec::new("distances", 2);
    let narrow = Arc::new(sample::reader(3, 2));
    for (error, part) in [
        (fails(NeighbourSpec::new("distances", 0), reader(&graph)), "k is 0"),
        (fails(NeighbourSpec::new("distances", 1 << 17), reader(&graph)), "65536"),
        (fails(NeighbourSpec::new("knn", 2), reader(&graph)), "give nearest"),
        (fails(spec(), narrow), "3 rows and 2 columns"),
    ] {
        assert!(error.contains(part), "{error}");
    }
    let short: Graph = vec![vec![], vec![]];
    let error = whole().with_neighbours(spec(), reader(&short)).unwrap_err();
    assert!(matches!(error, MatrixError::CellOutside { joinid: 2, n_rows: 2, .. }), "{error}");
    let twice = dataset(&graph, vec![0], &spec()).with_neighbours(spec(), reader(&graph));
    assert!(matches!(twice, Err(MatrixError::Twice { .. })));
    let several = Dataset::concat(&[whole(), whole()]).unwrap();
    let several = several.with_neighbours(spec(), reader(&graph));
    assert!(matches!(several, Err(MatrixError::SeveralExperiments { .. })));
    let other = NeighbourSpec::new("distances", 1);
    let mixed = [dataset(&graph, vec![0], &spec()), dataset(&graph, vec![0], &other)];
    assert!(Dataset::concat(&mixed).unwrap_err().to_string().contains("NeighbourSpec"));

    // Settings.
    let dense = LoaderSpec { block_form: BlockForm::Dense, ..sample::spec() };
    let totals = LoaderSpec {
        totals: Totals::Obs,
        transform: Transform { target_sum: Some(1.0), ..Transform::default() },
        ..sample::spec()
    };
    for spec_of_loader in [dense, totals] {
        let data = dataset(&graph, vec![0, 1, 2], &spec()).with_totals(vec![1.0; 3]).unwrap();
        let error = Loader::new(data, spec_of_loader).unwrap_err();
        assert!(matches!(error, LoaderError::NeighbourSettings { .. }), "{error}");
    }

    // Rows of the graph.
    let fails = |graph: &Graph, spec: NeighbourSpec, n_cells: u64| {
        let x = Arc::new(sample::reader(n_cells, N_GENES));
        let data = sample::dataset(x, Cells::Range(0..n_cells), GeneSelection::All);
        let data = data.with_neighbours(spec, reader(graph)).unwrap();
        let mut epoch = Loader::new(data, sample::spec()).unwrap().epoch(0).unwrap();
        let error = epoch.find_map(Result::err).unwrap();
        assert!(matches!(error, LoaderError::Neighbours { .. }), "{error}");
        error.to_string()
    };
    let all = NeighbourSpec { allow_fewer: false, ..NeighbourSpec::new("distances", 3) };
    assert!(fails(&graph, all, 3).contains("2 neighbours instead of 3"));
    assert!(fails(&graph, spec(), 2).contains("cell 2 is its neighbour, but X has 2 rows"));
    let wrong = vec![vec![(1, f32::NAN)], vec![]];
    assert!(fails(&wrong, spec(), 2).contains("not a number"));
}

#[test]
fn memory_is_counted_with_all_rows_of_neighbours() {
    let graph = line(&(0..50_u8).map(f32::from).collect::<Vec<_>>());
    let least = |data: Dataset, k: usize| {
        let mut spec = sample::spec();
        spec.pipeline.memory = Budget::new(0);
        match Loader::new(data, spec) {
            Err(LoaderError::Pipeline(pipeline::Error::Memory { least, .. })) => least,
            other => panic!("{k}: {other:?}"),
        }
    };
    let alone = least(sample::whole(50, N_GENES), 0);
    let of = |k| least(dataset(&graph, (0..50).collect(), &NeighbourSpec::new("distances", k)), k);
    // Two batches of 3 dense rows have 4 bytes for each gene of each neighbour.
    assert!(of(1) >= alone + 2 * 3 * N_GENES * 4, "{} {alone}", of(1));
    assert!(of(4) > of(1));
}

#[test]
fn a_state_of_other_neighbours_is_refused() {
    let graph = line(&[0.0, 1.0, 3.0]);
    let loader = |k| {
        let data = dataset(&graph, vec![0, 1, 2], &NeighbourSpec::new("distances", k));
        Loader::new(data, sample::spec()).unwrap()
    };
    let state = loader(2).epoch(0).unwrap().state();
    assert!(loader(2).resume(&state).is_ok());
    assert!(loader(1).resume(&state).is_err());
}
