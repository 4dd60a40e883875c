//! Tests of the model: the same cells for any pieces, similar to the Census, consistent.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

fn append(whole: &mut Piece, piece: &Piece) {
    let offset = whole.values.len();
    whole.row_offsets.extend(piece.row_offsets[1..].iter().map(|end| end + offset));
    whole.columns.extend(&piece.columns);
    whole.values.extend(&piece.values);
    whole.cells.extend_from_slice(&piece.cells);
    for (total, nnz) in whole.gene_nnz.iter_mut().zip(&piece.gene_nnz) {
        *total += nnz;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn cells_are_the_same_whatever_the_pieces(
        n_cells in 1_u64..300,
        n_genes in 1_u32..400,
        seed: u64,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let model = Model::new(n_cells, n_genes, seed);
        let mut cuts: Vec<u64> =
            cuts.iter().map(|cut| cut.index(n_cells as usize + 1) as u64).collect();
        cuts.extend([0, n_cells]);
        cuts.sort_unstable();
        let mut whole = model.piece(0..0);
        for pair in cuts.windows(2) {
            append(&mut whole, &model.piece(pair[0]..pair[1]));
        }
        prop_assert_eq!(&whole, &Model::new(n_cells, n_genes, seed).piece(0..n_cells));
    }

    #[test]
    fn a_piece_is_consistent(n_cells in 1_u64..200, n_genes in 1_u32..500, seed: u64) {
        let model = Model::new(n_cells, n_genes, seed);
        let piece = model.piece(0..n_cells);
        prop_assert_eq!(piece.row_offsets.len() as u64, n_cells + 1);
        let mut gene_nnz = vec![0; n_genes as usize];
        for (cell, bounds) in piece.cells.iter().zip(piece.row_offsets.windows(2)) {
            let (genes, values) =
                (&piece.columns[bounds[0]..bounds[1]], &piece.values[bounds[0]..bounds[1]]);
            let dataset = &model.datasets[cell.dataset];
            prop_assert!(genes.is_sorted_by(|a, b| a < b));
            prop_assert!(genes.iter().all(|gene| dataset.measures(*gene as usize)));
            prop_assert!(values.iter().all(|value| *value >= 1.0 && value.fract() == 0.0));
            prop_assert_eq!(cell.nnz, values.len() as u64);
            prop_assert!(cell.nnz >= 1);
            let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
            let squares: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
            prop_assert_eq!((cell.raw_sum, cell.sum_of_squares), (sum, squares));
            for gene in genes {
                gene_nnz[*gene as usize] += 1;
            }
        }
        prop_assert_eq!(gene_nnz, piece.gene_nnz);
        let by_gene: u64 = (0..n_genes as usize).map(|gene| model.n_measured_obs(gene)).sum();
        let by_cell: u64 =
            piece.cells.iter().map(|cell| model.datasets[cell.dataset].n_measured).sum();
        prop_assert_eq!(by_gene, by_cell);
    }
}

/// The golden values may change only on purpose, because published data refers to its seed.
#[test]
fn a_seed_stands_for_these_cells() {
    let piece = Model::new(100, 40, 42).piece(97..100);
    let found: Vec<String> = piece
        .cells
        .iter()
        .zip(piece.row_offsets.windows(2))
        .map(|(cell, bounds)| {
            let row = bounds[0]..bounds[1];
            format!(
                "{} dataset {} type {} {:?} {:?}",
                cell.observation_joinid,
                cell.dataset,
                cell.kind,
                &piece.columns[row.clone()],
                &piece.values[row]
            )
        })
        .collect();
    let expect = [
        "uHWBeL4-Qz dataset 4 type 81 [0, 2, 6, 10, 23] [2.0, 2.0, 1.0, 1.0, 1.0]",
        "9pMivqjeiO dataset 4 type 6 [0, 6, 10, 11, 38] [1.0, 1.0, 1.0, 1.0, 1.0]",
        "i+tfL7+HIx dataset 4 type 31 [0, 2, 4, 6, 9, 10, 11, 23, 30] [11.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0]",
    ];
    assert_eq!(found, expect);
}

#[test]
fn other_seeds_give_other_cells() {
    let [a, b] = [0, 1].map(|seed| Model::new(50, 200, seed).piece(0..50));
    assert_ne!(a.columns, b.columns);
    assert_ne!(a.cells[0].observation_joinid, b.cells[0].observation_joinid);
}

#[test]
fn numbers_of_values_are_as_in_the_census() {
    for seed in 0..3 {
        let model = Model::new(1_000_000, 20_000, seed);
        // From all over, because datasets differ in depth.
        let mut nnz: Vec<u64> = (0..200)
            .flat_map(|part| model.piece(part * 5000..part * 5000 + 10).cells)
            .map(|cell| cell.nnz)
            .collect();
        nnz.sort_unstable();
        let (least, median, most) = (nnz[0], nnz[nnz.len() / 2], nnz[nnz.len() - 1]);
        assert!((1300..1500).contains(&median), "seed {seed}: {median}");
        assert!(200 <= least && most <= 8000, "seed {seed}: {least} to {most}");
        assert!(most > 4 * median / 2 && least < median / 2, "seed {seed}: {least} to {most}");
    }
}

#[test]
fn counts_are_small_with_a_heavy_tail() {
    let piece = Model::new(200_000, 20_000, 0).piece(0..1000);
    let share = |least: f32| {
        let n = piece.values.iter().filter(|value| **value >= least).count();
        n as f64 / piece.values.len() as f64
    };
    let mean =
        piece.values.iter().map(|value| f64::from(*value)).sum::<f64>() / piece.values.len() as f64;
    assert!((1.7..3.0).contains(&mean), "{mean}");
    assert!((0.55..0.90).contains(&(1.0 - share(2.0))), "{}", share(2.0));
    assert!((0.0005..0.03).contains(&share(30.0)), "{}", share(30.0));
    assert!(share(300.0) > 0.0);
}

#[test]
fn few_genes_have_most_values_and_the_first_third_more_than_its_share() {
    let piece = Model::new(200_000, 20_000, 1).piece(0..1000);
    let share = |genes: &[u32]| {
        let nnz: u64 = genes.iter().map(|nnz| u64::from(*nnz)).sum();
        nnz as f64 / piece.values.len() as f64
    };
    let first_third = share(&piece.gene_nnz[..20_000 / 3]);
    assert!((0.5..0.75).contains(&first_third), "{first_third}");
    let mut by_popularity = piece.gene_nnz.clone();
    by_popularity.sort_unstable_by(|a, b| b.cmp(a));
    let tenth = share(&by_popularity[..2000]);
    assert!((0.5..0.9).contains(&tenth), "{tenth}");
}

#[test]
fn genes_tell_cell_types_apart() {
    let model = Model::new(20_000, 5000, 0);
    let piece = model.piece(0..4000);
    // Frequency of each gene among the even and the odd cells of each type.
    let mut profiles: HashMap<(usize, bool), (f64, Vec<f64>)> = HashMap::new();
    for (cell_idx, cell) in piece.cells.iter().enumerate() {
        let (n, profile) = profiles
            .entry((cell.kind, cell_idx % 2 == 0))
            .or_insert_with(|| (0.0, vec![0.0; 5000]));
        *n += 1.0;
        for gene in &piece.columns[piece.row_offsets[cell_idx]..piece.row_offsets[cell_idx + 1]] {
            profile[*gene as usize] += 1.0;
        }
    }
    profiles.retain(|_, (n, _)| *n >= 50.0);
    let distance = |a: &(f64, Vec<f64>), b: &(f64, Vec<f64>)| -> f64 {
        a.1.iter().zip(&b.1).map(|(x, y)| (x / a.0 - y / b.0).abs()).sum()
    };
    let mut n_pairs = 0;
    for ((cell_type, even), profile) in &profiles {
        let Some(own) = profiles.get(&(*cell_type, !even)) else { continue };
        for ((other_type, _), other) in &profiles {
            if other_type != cell_type {
                n_pairs += 1;
                let (within, between) = (distance(profile, own), distance(profile, other));
                assert!(between > 1.3 * within, "{cell_type}, {other_type}: {within}, {between}");
            }
        }
    }
    assert!(n_pairs >= 12, "{n_pairs}");
}

#[test]
fn cell_types_stand_in_runs_in_some_datasets_and_mixed_in_others() {
    let model = Model::new(20_000, 30, 0);
    let piece = model.piece(0..20_000);
    let (mut n_sorted, mut n_mixed) = (0, 0);
    for dataset in
        model.datasets.iter().filter(|dataset| dataset.cells.end - dataset.cells.start > 200)
    {
        let cells = &piece.cells[dataset.cells.start as usize..dataset.cells.end as usize];
        let n_types = cells.iter().map(|cell| cell.kind).collect::<HashSet<_>>().len();
        let n_runs = 1 + cells.windows(2).filter(|pair| pair[0].kind != pair[1].kind).count();
        if n_runs == n_types {
            n_sorted += 1;
        } else {
            assert!(n_runs > 5 * n_types, "{n_runs} runs of {n_types} types");
            n_mixed += 1;
        }
    }
    assert!(n_sorted >= 3 && n_mixed >= 3, "{n_sorted} sorted, {n_mixed} mixed");
    let all: HashSet<usize> = piece.cells.iter().map(|cell| cell.kind).collect();
    assert!(all.len() > 80, "{}", all.len());
}

#[test]
fn no_two_cells_have_the_same_observation_joinid() {
    let piece = Model::new(30_000, 1, 5).piece(0..30_000);
    let names: HashSet<&str> =
        piece.cells.iter().map(|cell| cell.observation_joinid.as_str()).collect();
    assert_eq!(names.len(), 30_000);
    assert!(names.iter().all(|name| name.len() == 10));
}

#[test]
fn one_cell_and_one_gene_are_enough() {
    let piece = Model::new(1, 1, 0).piece(0..1);
    assert_eq!((piece.row_offsets, piece.columns), (vec![0, 1], vec![0]));
    assert_eq!(piece.cells[0].nnz, 1);
}
