//! Both readers read the same values from the copy as from the source, in their new places.

use proptest::prelude::*;
use relayout::{
    CodecChoice, Codecs, GENE_CODECS, RelayoutEvent, RelayoutSpec, Spilled, VALUE_CODECS,
};
use soma_io::ReaderChoice;

use crate::delete_commit::{delete_first_joinids, delete_first_rows};
use crate::small::{
    Rows, check, lay_out, names, read_x, rows, rows_with_a_late_fraction, watched, write,
};

pub(crate) const CHEAP: CodecChoice = CodecChoice::Measured { storage_bytes_per_second: 1e9 };
/// A storage so slow that the size decides, not the time to decode: the same choice on any machine.
pub(crate) const SLOW: CodecChoice = CodecChoice::Measured { storage_bytes_per_second: 1e3 };

fn any_value(whole: bool) -> BoxedStrategy<f32> {
    let counts = prop_oneof![
        8 => (1_u8..20).prop_map(f32::from),
        2 => any::<u16>().prop_map(f32::from),
        1 => (0_u32..=16_777_216).prop_map(|count| count as f32),
        1 => (-200_i16..0).prop_map(f32::from),
    ];
    if whole {
        counts.boxed()
    } else {
        prop_oneof![3 => counts, 1 => any::<f32>(), 1 => Just(-0.0_f32)].boxed()
    }
}

/// Rows over `n_var` genes.
fn any_rows(n_var: u32, whole: bool) -> impl Strategy<Value = Rows> {
    let row = prop::collection::btree_map(0..n_var, any_value(whole), 0..(n_var as usize).min(40));
    prop::collection::vec(row.prop_map(|row| row.into_iter().collect()), 1..60)
}

fn any_case() -> impl Strategy<Value = (u32, Rows, usize, usize)> {
    let shape = (
        prop_oneof![Just(1_u32), 2..50_u32, Just(70_000)],
        0..GENE_CODECS.len(),
        0..VALUE_CODECS.len(),
    );
    shape.prop_flat_map(|(n_var, genes, values)| {
        let whole = VALUE_CODECS[values].whole_numbers;
        (Just(n_var), any_rows(n_var, whole), Just(genes), Just(values))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_experiment_with_any_codec((n_var, rows, genes, values) in any_case(), chunk_rows in 1_u64..70, seed in prop::option::of(any::<u64>())) {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        write(&from, &rows, n_var.into());
        let codecs = Codecs { genes: GENE_CODECS[genes], values: VALUE_CODECS[values] };
        let spec = RelayoutSpec { chunk_rows, codec: CodecChoice::Named(codecs), shuffle_seed: seed, ..RelayoutSpec::default() };
        let report = lay_out(&from, &to, &spec).unwrap();
        prop_assert_eq!(report.nnz, rows.iter().map(Vec::len).sum::<usize>() as u64);
        let n_rows = rows.len() as u32;
        let joinids = seed.map_or_else(|| (0..n_rows).collect(), |seed| shuffle::storage_order(n_rows, seed));
        let joinids: Vec<u64> = joinids.into_iter().map(u64::from).collect();
        check(&to, &rows, &joinids, seed.map(|_| "source_joinid"));
        prop_assert_eq!(names(folder.path()), ["from", "to"]);
    }
}

#[test]
fn the_quickest_codec_is_chosen_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let rows = rows(900, 500, 60);
    write(&from, &rows, 500);
    let spec = RelayoutSpec { codec: CHEAP, shuffle_seed: Some(3), ..RelayoutSpec::default() };
    let report = lay_out(&from, &to, &spec).unwrap();
    assert_eq!(report.measured.len(), GENE_CODECS.len() + VALUE_CODECS.len() - 1);
    assert_eq!(report.measured[0].codecs, report.codecs);
    // The chosen codec is first, and the others follow by speed; none is much faster.
    let speeds: Vec<f64> =
        report.measured.iter().map(|one| one.rows_per_second_of_storage).collect();
    assert!(speeds[1..].is_sorted_by(|a, b| a >= b) && speeds[0] >= 0.97 * speeds[1], "{speeds:?}");
    assert!(report.measured.iter().all(|one| one.bytes_per_value > 0.0));
    assert!(report.x_bytes < report.bytes_on_disk && report.source_x_bytes > Some(0));
    let joinids: Vec<u64> = shuffle::storage_order(900, 3).into_iter().map(u64::from).collect();
    check(&to, &rows, &joinids, Some("source_joinid"));
    assert_eq!(names(folder.path()), ["from", "to"]);
}

/// Memory so small that rows are read in several pieces and wait in files, and obs is read
/// repeatedly.
pub(crate) const LITTLE_MEMORY: u64 = 4 << 20;

#[test]
fn many_pieces_and_buckets_come_out_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let rows = rows(6_000, 2_000, 300);
    write(&from, &rows, 2_000);
    let spec = RelayoutSpec {
        memory_bytes: LITTLE_MEMORY,
        codec: CodecChoice::Named(Codecs::named("packed", "packed").unwrap()),
        shuffle_seed: Some(11),
        ..RelayoutSpec::default()
    };
    let report = lay_out(&from, &to, &spec).unwrap();
    let spilled = report.spilled;
    assert!(spilled.n_files > 2, "{spilled:?}");
    // Several files were written to before the last row came.
    assert!(spilled.n_writes > 2 * spilled.n_files, "{spilled:?}");
    assert!(spilled.n_bytes > report.nnz, "{spilled:?}");
    assert!(report.obs_passes > 2, "{}", report.obs_passes);
    let joinids: Vec<u64> = shuffle::storage_order(6_000, 11).into_iter().map(u64::from).collect();
    check(&to, &rows, &joinids, Some("source_joinid"));
    assert_eq!(names(folder.path()), ["from", "to"]);
    // In order, no row waits in a file.
    let kept = folder.path().join("kept");
    let report = lay_out(&from, &kept, &RelayoutSpec { shuffle_seed: None, ..spec }).unwrap();
    assert_eq!((report.spilled.n_writes, report.obs_passes), (0, 1));
    check(&kept, &rows, &(0..6_000).collect::<Vec<u64>>(), None);
}

#[test]
fn a_value_that_is_no_whole_number_beyond_the_sample_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let [from, shuffled, kept] = ["from", "shuffled", "kept"].map(|name| folder.path().join(name));
    let rows = rows_with_a_late_fraction();
    write(&from, &rows, 2_000);
    let n_rows = rows.len() as u32;
    for (to, seed) in [(&shuffled, Some(1)), (&kept, None)] {
        let spec = RelayoutSpec {
            codec: SLOW,
            shuffle_seed: seed,
            memory_bytes: LITTLE_MEMORY,
            ..RelayoutSpec::default()
        };
        let mut before = None;
        let mut latest = Spilled::default();
        let report = watched(&from, to, &spec, &mut |event| match event {
            RelayoutEvent::Scattered { spilled, .. } => latest = spilled,
            RelayoutEvent::NotWhole(_) => before = Some(latest),
            _ => {}
        });
        let report = report.unwrap();
        assert_eq!(report.codecs.values.name, "zstd");
        assert!(
            report.measured.iter().any(|one| one.codecs.values.whole_numbers),
            "the sample held it"
        );
        // The first attempt had left rows in files when it met the value; the second wrote as many
        // rows as there are.
        assert_eq!(before.unwrap().n_writes > 0, seed.is_some(), "{before:?}");
        assert_eq!(report.spilled.n_writes > before.unwrap().n_writes, seed.is_some());
        let joinids =
            seed.map_or_else(|| (0..n_rows).collect(), |seed| shuffle::storage_order(n_rows, seed));
        let joinids: Vec<u64> = joinids.into_iter().map(u64::from).collect();
        check(to, &rows, &joinids, seed.map(|_| "source_joinid"));
    }
    assert_eq!(names(folder.path()), ["from", "kept", "shuffled"]);
}

#[test]
fn cells_and_genes_that_were_deleted_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let [from, kept, shuffled] = ["from", "kept", "shuffled"].map(|name| folder.path().join(name));
    let mut rows = rows(200, 100, 20);
    // Values of a gene that var does not have could not be kept.
    for row in &mut rows {
        row.retain(|(gene, _)| *gene > 2);
    }
    write(&from, &rows, 100);
    delete_first_joinids(&from.join("obs"));
    delete_first_joinids(&from.join("ms/RNA/var"));
    delete_first_rows(&from.join("ms/RNA/X/raw"));
    let expected: Rows = rows
        .iter()
        .map(|row| row.iter().map(|(gene, value)| (gene - 3, *value)).collect())
        .collect();
    for (to, seed) in [(&kept, None), (&shuffled, Some(4))] {
        let spec = RelayoutSpec { shuffle_seed: seed, ..RelayoutSpec::default() };
        let report = lay_out(&from, to, &spec).unwrap();
        let nnz: usize = rows[3..].iter().map(Vec::len).sum();
        assert_eq!((report.n_cells, report.n_genes, report.nnz), (197, 97, nnz as u64));
        let order =
            seed.map_or_else(|| (0..197).collect(), |seed| shuffle::storage_order(197, seed));
        let found = read_x(to, ReaderChoice::Native);
        assert_eq!(found.len(), 197);
        for (row, position) in order.into_iter().enumerate() {
            assert_eq!(found[row], expected[position as usize + 3]);
        }
    }
}

#[test]
fn an_experiment_makes_way_for_another_one_laid_out_anew() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let rows = rows(200, 100, 20);
    write(&from, &rows, 100);
    write(&to, &rows[..50].to_vec(), 100);
    let spec = RelayoutSpec { existing: soma_io::REPLACE_EXPERIMENT, ..RelayoutSpec::default() };
    lay_out(&from, &to, &spec).unwrap();
    check(&to, &rows, &(0..200).collect::<Vec<u64>>(), None);
    // Once more, shuffled.
    lay_out(&from, &to, &RelayoutSpec { shuffle_seed: Some(5), ..spec }).unwrap();
    let joinids: Vec<u64> = shuffle::storage_order(200, 5).into_iter().map(u64::from).collect();
    check(&to, &rows, &joinids, Some("source_joinid"));
    assert_eq!(names(folder.path()), ["from", "to"]);
}
