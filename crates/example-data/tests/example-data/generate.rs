//! Generated experiments.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use arrow_array::cast::AsArray as _;
use arrow_schema::DataType;
use example_data::{Error, Extent, GenerateReport, GenerateSpec, generate};

use crate::contents::{Contents, floats, integers, names, read, texts};

fn spec(n_cells: u64, n_genes: u64) -> GenerateSpec {
    GenerateSpec { n_cells, n_genes, seed: 11, zstd_level: 1, ..GenerateSpec::default() }
}

fn write(path: &Path, spec: &GenerateSpec) -> GenerateReport {
    generate(path.to_str().unwrap(), spec, &mut |_| {}).unwrap()
}

fn generated(spec: &GenerateSpec) -> Contents {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("data"), spec);
    read(&folder.path().join("data"))
}

#[test]
fn obs_and_var_say_of_x_what_it_holds() {
    let contents = generated(&spec(5000, 300));
    let (obs, var) = (&contents.obs, &contents.var);
    assert_eq!(integers(obs, "soma_joinid"), (0..5000).collect::<Vec<_>>());
    assert_eq!(integers(var, "soma_joinid"), (0..300).collect::<Vec<_>>());
    let (nnz, sums) = (contents.row_nnz(), contents.row_sums());
    assert_eq!(integers(obs, "nnz"), nnz);
    assert_eq!(floats(obs, "raw_sum"), sums);
    assert_eq!(integers(var, "nnz"), contents.column_nnz());
    let (means, variances) = (floats(obs, "raw_mean_nnz"), floats(obs, "raw_variance_nnz"));
    for row in 0..5000 {
        let (n, mean) = (nnz[row] as f64, sums[row] / nnz[row] as f64);
        assert_eq!(means[row], mean);
        let values = contents.x.row(row).1;
        let squares: f64 = values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum();
        let variance = if nnz[row] < 2 { 0.0 } else { squares / (n - 1.0) };
        assert!((variances[row] - variance).abs() <= 1e-9 * variance.max(1.0), "row {row}");
    }
    let (by_cell, by_gene) = (integers(obs, "n_measured_vars"), integers(var, "n_measured_obs"));
    assert_eq!(by_cell.iter().sum::<i64>(), by_gene.iter().sum::<i64>());
    assert!(by_cell.iter().zip(&nnz).all(|(measured, nnz)| nnz <= measured));
    let var_nnz = contents.column_nnz();
    assert!(by_gene.iter().zip(&var_nnz).all(|(measured, nnz)| nnz <= measured));
}

#[test]
fn columns_are_the_census_s() {
    let contents = generated(&spec(3000, 40));
    let categorical = [
        "dataset_id",
        "assay",
        "cell_type",
        "cell_type_ontology_term_id",
        "tissue_general",
        "tissue",
        "donor_id",
        "disease",
        "sex",
        "self_reported_ethnicity",
        "development_stage",
        "suspension_type",
    ];
    for name in categorical {
        let array = contents.obs.column_by_name(name).unwrap();
        assert!(matches!(array.data_type(), DataType::Dictionary(..)), "{name}");
        assert_eq!(array.null_count(), 0, "{name}");
    }
    let obs = &contents.obs;
    let primary = obs.column_by_name("is_primary_data").unwrap().as_boolean();
    assert!(primary.true_count() > 0 && primary.false_count() > 0);
    assert_eq!(obs.schema().field_with_name("nnz").unwrap().data_type(), &DataType::Int64);
    let unique = |texts: Vec<String>| texts.into_iter().collect::<HashSet<_>>().len();
    assert_eq!(unique(texts(obs, "observation_joinid")), 3000);
    assert_eq!(unique(texts(&contents.var, "feature_id")), 40);
    assert!(texts(&contents.var, "feature_id").iter().all(|id| id.starts_with("ENSG")));
    assert!(integers(&contents.var, "feature_length").iter().all(|length| *length >= 100));
    // A cell type and its term go together, and so do a donor and a dataset.
    let pairs = |a: &str, b: &str| {
        texts(obs, a).into_iter().zip(texts(obs, b)).collect::<HashSet<_>>().len()
    };
    assert_eq!(pairs("cell_type", "cell_type_ontology_term_id"), unique(texts(obs, "cell_type")));
    assert_eq!(pairs("donor_id", "dataset_id"), unique(texts(obs, "donor_id")));
    // Datasets are runs.
    let mut datasets = texts(obs, "dataset_id");
    datasets.dedup();
    assert_eq!(datasets.len(), unique(datasets));
}

#[test]
fn the_data_depends_on_sizes_and_seed_alone() {
    let plain = spec(5000, 60);
    let expect = generated(&plain);
    let others = [
        GenerateSpec { n_threads: 1, ..plain.clone() },
        GenerateSpec { n_threads: 5, fragment_rows: Some(1), ..plain.clone() },
        GenerateSpec { fragment_rows: Some(2048), consolidate: true, ..plain.clone() },
        GenerateSpec { extent: Extent::FixedDomain, zstd_level: 5, ..plain.clone() },
    ];
    for other in others {
        assert_eq!(generated(&other), expect, "{other:?}");
    }
    assert_ne!(generated(&GenerateSpec { seed: 12, ..plain }).x, expect.x);
}

#[test]
fn fragments_are_as_they_were_ordered() {
    let n_fragments = |fragment_rows, consolidate| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        write(&path, &GenerateSpec { fragment_rows, consolidate, ..spec(5000, 60) });
        names(&path.join("ms/RNA/X/raw/__fragments")).len()
    };
    assert_eq!(n_fragments(None, false), 1);
    assert_eq!(n_fragments(Some(2048), false), 3);
    assert_eq!(n_fragments(Some(4000), false), 2);
    assert_eq!(n_fragments(Some(2048), true), 1);
}

#[test]
fn the_report_and_the_progress_tell_what_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new folder/data");
    let mut progress = Vec::new();
    let report = generate(path.to_str().unwrap(), &spec(5000, 50), &mut |n_cells| {
        progress.push(n_cells);
        // Nothing has the experiment's name before it is complete.
        assert!(!path.exists());
    })
    .unwrap();
    assert_eq!(progress, [2048, 4096, 5000]);
    assert_eq!((report.n_cells, report.n_genes), (5000, 50));
    assert_eq!(report.nnz, read(&path).x.nnz() as u64);
    assert!(report.bytes_on_disk.unwrap() > report.nnz && report.seconds > 0.0);
    assert_eq!(names(path.parent().unwrap()), ["data"]);
}

#[test]
fn the_smallest_experiments_are_whole() {
    for (n_cells, n_genes) in [(1, 1), (1, 50), (7, 1), (2, 2), (2049, 1)] {
        let contents = generated(&spec(n_cells, n_genes));
        assert_eq!(contents.x.n_rows() as u64, n_cells);
        assert!(contents.row_nnz().iter().all(|nnz| *nnz >= 1), "{n_cells} x {n_genes}");
        assert_eq!(integers(&contents.obs, "nnz"), contents.row_nnz());
    }
}

#[test]
fn sizes_that_cannot_be_made_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("data");
    let check = |n_cells, n_genes, expect: &str| {
        let error = generate(uri.to_str().unwrap(), &spec(n_cells, n_genes), &mut |_| {});
        assert_eq!(error.unwrap_err().to_string(), expect);
        assert!(names(folder.path()).is_empty());
    };
    check(0, 5, "the number of cells is 0; it must be between 1 and 1000000000");
    check(5, 0, "the number of genes is 0; it must be between 1 and 1000000");
    check(5, 1 << 40, "the number of genes is 1099511627776; it must be between 1 and 1000000");
}

#[test]
fn what_is_there_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    write(&path, &spec(10, 10));
    let before = read(&path);
    let again = generate(path.to_str().unwrap(), &spec(20, 20), &mut |_| {});
    assert!(
        matches!(again, Err(Error::Destination(soma_io::DestinationError::Exists { uri })) if uri == path.to_str().unwrap())
    );
    assert_eq!(read(&path), before);
    assert_eq!(names(folder.path()), ["data"]);
}

#[test]
fn a_failure_half_way_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let fragments = folder.path().join("data.partial/experiment/ms/RNA/X/raw/__fragments");
    // More genes than a tile has, so that a row of tiles is written as soon as its cells end.
    let failed = generate(path.to_str().unwrap(), &spec(5000, 2100), &mut |n_cells| {
        if n_cells == 2048 {
            // A file stands at the path of the values.
            let fragment = fragments.join(&names(&fragments)[0]);
            fs::remove_dir_all(&fragment).unwrap();
            fs::write(&fragment, "").unwrap();
        }
    });
    assert!(matches!(failed, Err(Error::Write(_))), "{failed:?}");
    assert!(names(folder.path()).is_empty());
}
