//! Tests of several experiments as one data set, with genes aligned by name.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int8Array, Int64Array, RecordBatch, StringArray,
};
use loader::{
    AxisQuery, Cells, ConcatError, Dataset, DatasetError, DatasetSpec, GeneJoin, GeneSelection,
    Genes, Loader, LoaderSpec,
};
use proptest::prelude::*;
use soma_io::{
    ColumnKind, ColumnSpec, CsrBuffers, Experiment, ExperimentWriter, MemoryReader, OpenOptions,
};

use crate::pipeline::sample::{self, WAYS, dense_rows};

/// A value that identifies its experiment, cell and gene, the gene by name.
fn value(experiment: usize, joinid: u64, gene: char) -> Option<f32> {
    let place = joinid * 29 + gene as u64 * 13 + experiment as u64;
    (!place.is_multiple_of(3))
        .then(|| (experiment as u64 * 100_000 + joinid * 100 + gene as u64) as f32)
}

fn csr(experiment: usize, n_rows: u64, genes: &str) -> CsrBuffers {
    let mut csr = CsrBuffers { n_columns: genes.len(), ..CsrBuffers::default() };
    for joinid in 0..n_rows {
        for (column, gene) in (0..).zip(genes.chars()) {
            if let Some(value) = value(experiment, joinid, gene) {
                csr.columns.push(column);
                csr.values.push(value);
            }
        }
        csr.row_offsets.push(csr.values.len());
    }
    csr
}

/// Checks each row of every batch against its experiment and joinid. `genes` are the columns, `has`
/// the genes of each experiment.
fn check(dataset: &Dataset, genes: &str, has: &[&str], expected: &[(u32, i64)]) {
    for (block_form, batch_form) in WAYS {
        let spec = LoaderSpec { block_form, batch_form, ..sample::spec() };
        let loader = Loader::new(dataset.clone(), spec).unwrap();
        let mut seen = Vec::new();
        for batch in loader.epoch(1).unwrap() {
            let batch = batch.unwrap();
            assert_eq!(batch.x.shape(), (batch.n_rows(), genes.len()));
            let labels = batch.obs.column_by_name("label").unwrap();
            let labels = arrow_cast::cast(labels, &arrow_schema::DataType::Utf8).unwrap();
            for (idx, row) in dense_rows(&batch.x).into_iter().enumerate() {
                let (experiment, joinid) = (batch.experiments[idx], batch.joinids[idx]);
                seen.push((experiment, joinid));
                let of_gene = |gene: char| {
                    has[experiment as usize]
                        .contains(gene)
                        .then(|| value(experiment as usize, joinid as u64, gene))
                        .flatten()
                        .unwrap_or(0.0)
                };
                let values: Vec<f32> = genes.chars().map(of_gene).collect();
                assert_eq!(row, values, "{block_form} {batch_form}: cell {joinid} of {experiment}");
                let label = format!("cell {joinid} of {experiment}");
                assert_eq!(labels.as_string::<i32>().value(idx), label);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, expected, "{block_form} {batch_form}");
    }
}

fn in_memory(experiment: usize, joinids: &[u64], genes: &str) -> Dataset {
    let n_rows = joinids.last().map_or(0, |last| last + 3);
    let x = MemoryReader::new(csr(experiment, n_rows, genes)).unwrap();
    let labels = joinids.iter().map(|joinid| format!("cell {joinid} of {experiment}"));
    let labels: ArrayRef = if experiment.is_multiple_of(2) {
        Arc::new(StringArray::from_iter_values(labels))
    } else {
        Arc::new(
            labels
                .collect::<Vec<_>>()
                .iter()
                .map(|l| Some(l.as_str()))
                .collect::<DictionaryArray<Int32Type>>(),
        )
    };
    let obs = RecordBatch::try_from_iter([("label", labels)]).unwrap();
    Dataset::new(Arc::new(x), Cells::List(joinids.into()), obs, GeneSelection::All).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_cell_of_every_experiment_comes_once(
        joinids in proptest::collection::vec(
            proptest::collection::btree_set(0_u64..40, 0..20), 1..5
        ),
    ) {
        let parts: Vec<Dataset> = (0..)
            .zip(&joinids)
            .map(|(idx, ids)| in_memory(idx, &ids.iter().copied().collect::<Vec<_>>(), "abcde"))
            .collect();
        let dataset = Dataset::concat(&parts).unwrap();
        let expected: Vec<(u32, i64)> = (0..)
            .zip(&joinids)
            .flat_map(|(idx, ids)| ids.iter().map(move |id| (idx, *id as i64)))
            .collect();
        prop_assert_eq!(dataset.n_rows(), expected.len() as u64);
        let origins = (0..dataset.n_rows()).map(|row| dataset.origin(row));
        prop_assert!(origins.eq(expected.iter().map(|(idx, id)| (*idx as usize, *id as u64))));
        check(&dataset, "abcde", &["abcde"; 5], &expected);
    }
}

/// Writes an experiment with a gene for each of these letters.
fn write(uri: &str, (experiment, layer): (usize, &str), n_obs: u64, genes: &str) {
    let mut spec = sample::experiment_spec(
        (n_obs, genes.len() as u64),
        vec![ColumnSpec::new("label", ColumnKind::Text)],
        ["feature_id", "symbol"].map(|name| ColumnSpec::new(name, ColumnKind::Text)).to_vec(),
    );
    spec.layers = vec![layer.to_owned()];
    let mut writer = ExperimentWriter::create(uri, spec).unwrap();
    let text = |name, texts: Vec<String>| {
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        RecordBatch::try_from_iter([(name, texts)]).unwrap()
    };
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values(genes.chars().map(String::from)));
    let symbols = genes.chars().map(|gene| format!("symbol {gene}"));
    let symbols: ArrayRef = Arc::new(StringArray::from_iter_values(symbols));
    let var = RecordBatch::try_from_iter([("feature_id", ids), ("symbol", symbols)]).unwrap();
    writer.write_var(&var).unwrap();
    let labels = (0..n_obs).map(|joinid| format!("cell {joinid} of {experiment}")).collect();
    writer.write_obs(&text("label", labels)).unwrap();
    let csr = csr(experiment, n_obs, genes);
    writer.write_x(layer, &csr.row_offsets, &csr.columns, &csr.values).unwrap();
    writer.finish().unwrap();
}

struct Written {
    _folder: tempfile::TempDir,
    experiments: Vec<Experiment>,
}

fn written(parts: &[(u64, &str)]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let experiments = (0..)
        .zip(parts)
        .map(|(idx, (n_obs, genes))| {
            let uri = folder.path().join(format!("{idx}")).to_str().unwrap().to_owned();
            write(&uri, (idx, "raw"), *n_obs, genes);
            Experiment::open(&uri, &OpenOptions::default()).unwrap()
        })
        .collect();
    Written { _folder: folder, experiments }
}

fn spec() -> DatasetSpec {
    DatasetSpec {
        obs_columns: vec!["label".into()],
        var_columns: vec!["feature_id".into(), "soma_joinid".into()],
        ..DatasetSpec::default()
    }
}

fn all(parts: &[(u64, &str)]) -> Vec<(u32, i64)> {
    (0..).zip(parts).flat_map(|(idx, (n, _))| (0..*n as i64).map(move |id| (idx, id))).collect()
}

#[test]
fn genes_of_several_experiments_are_aligned() {
    let parts = [(30, "abcde"), (20, "ecxa"), (11, "zca")];
    let written = written(&parts);
    let has: Vec<&str> = parts.iter().map(|(_, genes)| *genes).collect();
    let specs: Vec<_> = written.experiments.iter().map(|one| (one, spec())).collect();
    for (join, genes) in [(GeneJoin::Intersection, "ac"), (GeneJoin::Union, "abcdexz")] {
        let dataset = Dataset::from_experiments(&specs, "feature_id", join).unwrap();
        assert_eq!((dataset.n_experiments(), dataset.n_columns()), (3, genes.len()));
        check(&dataset, genes, &has, &all(&parts));
    }
    // Every column of the union has its name, from the first experiment with the gene.
    let union = Dataset::from_experiments(&specs, "feature_id", GeneJoin::Union).unwrap();
    let ids = union.var().column_by_name("feature_id").unwrap().as_string::<i64>();
    let ids: String = ids.iter().map(Option::unwrap).collect();
    assert_eq!((ids.as_str(), union.n_absent_genes()), ("abcdexz", 0));
    // A gene that one specification leaves out is zero in that experiment.
    let mut part = specs.clone();
    part[1].1.genes =
        Genes::Query(AxisQuery::filter("feature_id != 'x' and feature_id != 'a'").unwrap());
    let dataset = Dataset::from_experiments(&part, "feature_id", GeneJoin::Union).unwrap();
    check(&dataset, "abcdez", &["abcde", "ec", "zca"], &all(&parts));
    part[0].1.genes = Genes::Query(AxisQuery::filter("feature_id == 'd'").unwrap());
    let error = Dataset::from_experiments(&part, "feature_id", GeneJoin::Intersection).unwrap_err();
    assert!(matches!(error, DatasetError::NoCommonGenes { .. }), "{error}");
    // Parts of the experiments, by different filters.
    let mut specs = specs;
    specs[0].1.cells = AxisQuery::filter("soma_joinid in [3, 4, 29]").unwrap();
    specs[1].1.cells = AxisQuery::range(0..0);
    specs[2].1.genes = Genes::Query(AxisQuery::filter("feature_id != 'a'").unwrap());
    let dataset = Dataset::from_experiments(&specs, "feature_id", GeneJoin::Intersection).unwrap();
    let expected: Vec<_> =
        [(0, 3), (0, 4), (0, 29)].into_iter().chain((0..11).map(|id| (2, id))).collect();
    check(&dataset, "c", &has, &expected);
}

/// Selects genes by another column than the aligning one; one gene is absent.
#[test]
fn names_of_any_column_are_aligned_by_the_one_that_is_given() {
    let parts = [(30, "abcde"), (20, "ecxa")];
    let written = written(&parts);
    let has: Vec<&str> = parts.iter().map(|(_, genes)| *genes).collect();
    let named = |names: &[&str]| DatasetSpec {
        genes: Genes::Named {
            column: "symbol".into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        },
        ..spec()
    };
    let specs = [
        (&written.experiments[0], named(&["symbol e", "absent", "symbol a", "symbol b"])),
        (&written.experiments[1], named(&["symbol x", "symbol a", "symbol e"])),
    ];
    for (join, genes) in [(GeneJoin::Intersection, "ea"), (GeneJoin::Union, "eabx")] {
        let dataset = Dataset::from_experiments(&specs, "feature_id", join).unwrap();
        check(&dataset, genes, &has, &all(&parts));
    }
}

#[test]
fn a_list_of_names_says_which_column_is_which_gene() {
    let parts = [(40, "abcdef")];
    let written = written(&parts);
    let named = |names: &[&str]| DatasetSpec {
        genes: Genes::Named {
            column: "feature_id".into(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        },
        ..spec()
    };
    let open = |spec: &DatasetSpec| Dataset::from_experiment(&written.experiments[0], spec);
    for names in [&["f", "b", "a"][..], &["x", "e", "y", "a", "z"], &["x", "f"], &[]] {
        let dataset = open(&named(names)).unwrap();
        check(&dataset, &names.concat(), &["abcdef"], &all(&parts));
        let ids = dataset.var().column_by_name("feature_id").unwrap().as_string::<i64>();
        let joinids: &Int64Array =
            dataset.var().column_by_name("soma_joinid").unwrap().as_primitive();
        assert_eq!(dataset.var().num_rows(), names.len());
        let n_absent = names.iter().filter(|name| !"abcdef".contains(**name)).count();
        assert_eq!(dataset.n_absent_genes(), n_absent);
        assert_eq!(dataset.gene_warning().is_some(), n_absent * 2 > names.len(), "{names:?}");
        for (column, name) in names.iter().enumerate() {
            let there = "abcdef".find(name);
            assert_eq!(ids.is_valid(column).then(|| ids.value(column)), there.map(|_| *name));
            let joinid = joinids.is_valid(column).then(|| joinids.value(column));
            assert_eq!(joinid, there.map(|at| at as i64));
        }
    }
    let advice = |names: &[&str]| match open(&named(names)) {
        Ok(dataset) => dataset.gene_warning().unwrap().to_owned(),
        Err(DatasetError::NoNamedGene { column, n_names, advice }) => {
            assert_eq!((column.as_str(), n_names), ("feature_id", names.len()));
            advice
        }
        Err(error) => panic!("{error}"),
    };
    let few = advice(&["a", "x", "B", "C", "D"]);
    assert!(few.starts_with("only 1 of the 5 named genes are in var column"), "{few}");
    assert!(few.ends_with("4 of 5 fit but for the upper and lower case"), "{few}");
    let other = advice(&["symbol a", "symbol f", "x"]);
    assert!(other.ends_with("2 of 3 are in var column \"symbol\": name it instead"), "{other}");
    let none = advice(&["x", "ENSG00000000001"]);
    assert!(none.ends_with("check the list and the column"), "{none}");
    let error = open(&named(&["a", "b", "a"])).unwrap_err();
    assert!(matches!(&error, DatasetError::GeneTwice { name, .. } if name == "a"), "{error}");
    let nowhere =
        DatasetSpec { genes: Genes::Named { column: "gene".into(), names: vec![] }, ..spec() };
    let error = format!("{:?}", open(&nowhere).unwrap_err());
    assert!(error.contains("feature_id"), "{error}");
}

#[test]
fn categories_of_all_are_kept_in_their_order() {
    let data_set = |keys: Vec<Option<i8>>, categories: Vec<&str>| {
        let values = Arc::new(StringArray::from(categories));
        let n_rows = keys.len() as u64;
        let column = DictionaryArray::<Int8Type>::new(Int8Array::from(keys), values);
        let column: ArrayRef = Arc::new(column);
        let obs = RecordBatch::try_from_iter_with_nullable([("type", column, true)]).unwrap();
        let x = Arc::new(MemoryReader::new(csr(0, n_rows, "ab")).unwrap());
        Dataset::new(x, Cells::Range(0..n_rows), obs, GeneSelection::All).unwrap()
    };
    let first = data_set(vec![Some(2), None, Some(0)], vec!["c", "unused", "a"]);
    let second = data_set(vec![Some(1), Some(0)], vec!["b", "a", "unused too"]);
    let empty = data_set(vec![], vec!["d"]);
    let dataset = Dataset::concat(&[first, second, empty]).unwrap();
    let column = dataset.obs().column(0).as_dictionary::<Int32Type>();
    let categories: Vec<_> = column.values().as_string::<i64>().iter().flatten().collect();
    assert_eq!(categories, ["c", "unused", "a", "b", "unused too", "d"]);
    let keys: Vec<_> = column.keys().iter().collect();
    assert_eq!(keys, [Some(2), None, Some(0), Some(2), Some(3)]);
}

#[test]
fn layers_that_were_not_named_must_have_one_name() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = ["raw", "log"].map(|layer| {
        let uri = folder.path().join(layer).to_str().unwrap().to_owned();
        write(&uri, (0, layer), 2, "ab");
        Experiment::open(&uri, &OpenOptions::default()).unwrap()
    });
    let [raw, log] = &experiments;
    let opened = |layers: [Option<&str>; 2]| {
        let spec = |layer: Option<&str>| DatasetSpec { layer: layer.map(str::to_owned), ..spec() };
        let parts = [(raw, spec(layers[0])), (log, spec(layers[1]))];
        Dataset::from_experiments(&parts, "feature_id", GeneJoin::Intersection)
    };
    let error = opened([None, None]).unwrap_err();
    assert!(
        matches!(&error, DatasetError::Concat(ConcatError::Layers { idx: 1, layer, first }) if layer == "log" && first == "raw"),
        "{error}"
    );
    // Whoever names them means them.
    assert_eq!(opened([Some("raw"), Some("log")]).unwrap().n_rows(), 4);
    assert_eq!(opened([None, Some("log")]).unwrap().n_rows(), 4);
    let parts = [(raw, spec()), (raw, spec())];
    assert!(Dataset::from_experiments(&parts, "feature_id", GeneJoin::Union).is_ok());
}

#[test]
fn data_sets_that_do_not_fit_are_refused() {
    assert!(matches!(Dataset::concat(&[]), Err(ConcatError::NoDatasets)));
    let first = in_memory(0, &[1, 2], "abc");
    let error = Dataset::concat(&[first.clone(), in_memory(1, &[1], "ab")]).unwrap_err();
    assert!(matches!(error, ConcatError::Genes { idx: 1, n_columns: 2, first: 3 }), "{error}");
    for (column, values) in [
        ("other", Arc::new(StringArray::from(vec!["x"])) as ArrayRef),
        ("label", Arc::new(Int64Array::from(vec![1]))),
    ] {
        let obs = RecordBatch::try_from_iter([(column, values)]).unwrap();
        let x = Arc::new(MemoryReader::new(csr(1, 1, "abc")).unwrap());
        let other = Dataset::new(x, Cells::Range(0..1), obs, GeneSelection::All).unwrap();
        let error = Dataset::concat(&[first.clone(), other]).unwrap_err();
        assert!(matches!(error, ConcatError::Obs { idx: 1, .. }), "{error}");
    }
}
