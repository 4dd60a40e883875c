//! The tested selections: as JSON for tiledbsoma, and as a specification for the loader.

use loader::{
    AxisQuery, DatasetSpec, Genes, Joinids, ReaderChoice, Totals, Transform, ValueFilter,
};
use serde_json::{Value, json};

/// Cells and genes, the columns beside them, and the transforms of their values.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) layer: &'static str,
    pub(crate) cells: AxisQuery,
    pub(crate) genes: Genes,
    pub(crate) obs_columns: Vec<&'static str>,
    pub(crate) var_columns: Vec<&'static str>,
    pub(crate) totals: &'static str,
    pub(crate) transforms: Vec<(Transform, Totals)>,
    /// Further layers, and arrays of obsm.
    pub(crate) layers: Vec<&'static str>,
    pub(crate) obsm: Vec<&'static str>,
}

impl Selection {
    /// The JSON that `python/query_experiment.py` reads.
    pub(crate) fn json(&self) -> Value {
        let transforms = self.transforms.iter().map(|(transform, totals)| {
            let Transform { target_sum, log1p, clip } = transform;
            let totals = match totals {
                Totals::Genes => "genes",
                Totals::Obs => "obs",
                other => panic!("{other:?}"),
            };
            json!({ "target_sum": target_sum, "log1p": log1p, "clip": clip, "totals": totals })
        });
        let genes = match &self.genes {
            Genes::Query(query) => query_json(query),
            Genes::Named { column, names } => json!({ "column": column, "names": names }),
            other => panic!("{other:?}"),
        };
        json!({
            "layer": self.layer,
            "cells": query_json(&self.cells),
            "genes": genes,
            "obs_columns": self.obs_columns,
            "var_columns": self.var_columns,
            "totals": self.totals,
            "transforms": transforms.collect::<Value>(),
            "layers": self.layers,
            "obsm": self.obsm,
        })
    }

    /// The loader's specification of it.
    pub(crate) fn spec(&self, reader: ReaderChoice) -> DatasetSpec {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        DatasetSpec {
            layer: Some(self.layer.into()),
            layers: owned(&self.layers),
            obsm: owned(&self.obsm),
            cells: self.cells.clone(),
            genes: self.genes.clone(),
            obs_columns: owned(&self.obs_columns),
            var_columns: owned(&self.var_columns),
            totals: Some(self.totals.into()),
            reader,
            ..DatasetSpec::default()
        }
    }
}

fn query_json(query: &AxisQuery) -> Value {
    let filter = query.value_filter.as_ref().map(ValueFilter::text);
    match &query.joinids {
        Joinids::All => json!({ "filter": filter }),
        Joinids::Range(range) => json!({ "filter": filter, "range": [range.start, range.end] }),
        Joinids::List(list) => json!({ "filter": filter, "list": list }),
    }
}

fn filter(text: &str) -> AxisQuery {
    AxisQuery::filter(text).unwrap()
}

fn both(joinids: AxisQuery, text: &str) -> AxisQuery {
    AxisQuery { joinids: joinids.joinids, ..filter(text) }
}

fn named(column: &str, names: &[&str]) -> Genes {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Genes::Named { column: column.into(), names }
}

/// Each part of a transform alone and all together, with both kinds of totals.
fn transforms(most: f32) -> Vec<(Transform, Totals)> {
    let plain = Transform::default();
    let scaled = Transform { target_sum: Some(1e4), ..plain };
    vec![
        (Transform { log1p: true, ..plain }, Totals::Genes),
        (Transform { clip: Some((-0.5, 3.0)), ..plain }, Totals::Obs),
        (scaled, Totals::Genes),
        (Transform { log1p: true, clip: Some((0.0, most)), ..scaled }, Totals::Genes),
        (Transform { target_sum: Some(1e6), log1p: true, ..plain }, Totals::Obs),
    ]
}

/// Each pair of cells and genes, with all obs and var columns.
fn selections(base: &Selection, pairs: Vec<(AxisQuery, Genes)>) -> Vec<Selection> {
    pairs.into_iter().map(|(cells, genes)| Selection { cells, genes, ..base.clone() }).collect()
}

/// Selections of the experiment of `python/default_experiment.py`: 740 cells x 300 genes, no cells
/// from joinid 700 to 719.
pub(crate) fn of_defaults() -> Vec<Selection> {
    let all = || Genes::Query(AxisQuery::default());
    let base = Selection {
        layer: "data",
        cells: AxisQuery::default(),
        genes: all(),
        obs_columns: vec![
            "cell_type",
            "stage",
            "donor",
            "count_or_none",
            "truth_or_none",
            "share",
            "text",
            "size",
            "obs_id",
            "soma_joinid",
        ],
        var_columns: vec!["kind", "soma_joinid", "feature_id", "length_or_none", "var_id"],
        totals: "size",
        transforms: transforms(6.5),
        layers: Vec::new(),
        obsm: Vec::new(),
    };
    let scattered: Vec<u64> =
        (0..760).rev().filter(|id| id % 7 < 3 && !(700..720).contains(id)).collect();
    let genes: Vec<u64> =
        (0..300).map(|gene| gene * 41 % 300).filter(|gene| gene % 5 > 0).collect();
    let pairs = vec![
        (AxisQuery::default(), all()),
        (filter("cell_type == 'Müller glia' and count_or_none > 20"), all()),
        (filter("stage == 'mid' or truth_or_none == False"), all()),
        (AxisQuery::default(), Genes::Query(filter("kind in ['coding', 'pseudo']"))),
        (filter("share < 60.5"), Genes::Query(filter("length_or_none >= 1500"))),
        (AxisQuery::range(13..401), Genes::Query(AxisQuery::range(17..200))),
        // Across the gap, and only the gap.
        (AxisQuery::range(690..741), all()),
        (AxisQuery::range(700..720), all()),
        (AxisQuery::list(scattered.clone()), Genes::Query(AxisQuery::list(genes))),
        (AxisQuery::list([759, 0]), Genes::Query(AxisQuery::list([299]))),
        (
            both(AxisQuery::list(scattered), "donor != 'donor 7' and size > 1050"),
            Genes::Query(both(AxisQuery::range(100..290), "kind == 'ribosomal'")),
        ),
        (
            both(AxisQuery::range(100..755), "cell_type == 'T cell'"),
            Genes::Query(both(AxisQuery::list([7, 250, 1, 100, 4]), "length_or_none < 2000")),
        ),
        // Empty, by either axis.
        (filter("cell_type == 'neuron'"), all()),
        (AxisQuery::default(), Genes::Query(filter("kind == 'neuron'"))),
        (
            filter("donor in ['donor 3', 'donor 39']"),
            named(
                "feature_id",
                &["ENSG00097", "absent", "ENSG00000", "ENSG00299", "none", "ENSG00010"],
            ),
        ),
        (AxisQuery::default(), named("var_id", &["gene 299", "gene 3", "gene 0"])),
        (AxisQuery::range(0..50), named("feature_id", &["absent", "none", "ENSG00010"])),
    ];
    let mut selections = selections(&base, pairs);
    // Layers of other number types are returned as float32.
    for layer in ["doubles", "integers"] {
        let cells = filter("cell_type != 'B cell'");
        selections.push(Selection { layer, cells, ..base.clone() });
    }
    // With other matrices beside X: of all cells, of genes that are partly absent, and of none.
    let absent = &["ENSG00097", "absent", "ENSG00299", "ENSG00010"];
    for (cells, genes) in [
        (AxisQuery::default(), Genes::Query(AxisQuery::list([299, 3, 150]))),
        (AxisQuery::range(650..760), named("feature_id", absent)),
        (filter("cell_type == 'neuron'"), all()),
    ] {
        let (layers, obsm) = (vec!["integers", "doubles", "data"], vec!["X_umap", "X_pca"]);
        selections.push(Selection { cells, genes, layers, obsm, ..base.clone() });
    }
    selections
}

/// Selections of real counts: 2,898 cells by 19,465 genes.
pub(crate) fn of_visium() -> Vec<Selection> {
    let all = || Genes::Query(AxisQuery::default());
    let base = Selection {
        layer: "raw",
        cells: AxisQuery::default(),
        genes: all(),
        obs_columns: vec!["soma_joinid", "cluster", "barcode", "raw_sum", "nnz", "is_primary_data"],
        var_columns: vec!["feature_id", "feature_name"],
        totals: "raw_sum",
        transforms: transforms(5.0),
        layers: Vec::new(),
        obsm: Vec::new(),
    };
    let every_ninth: Vec<u64> = (0..2898).step_by(9).collect();
    let every_fortieth: Vec<u64> = (0..19_465).rev().step_by(40).collect();
    let pairs = vec![
        (AxisQuery::default(), all()),
        (filter("cluster == 'cluster 3' and nnz > 200"), all()),
        (
            AxisQuery::default(),
            Genes::Query(filter("feature_name in ['Xkr4', 'Sox17', 'Rp1', 'Mbp']")),
        ),
        (
            filter("raw_sum >= 300 or in_depth_half != 'x'"),
            Genes::Query(filter("feature_id < 'ENSMUSG00000002000'")),
        ),
        (AxisQuery::range(1_000..1_300), Genes::Query(AxisQuery::range(3_000..5_500))),
        (AxisQuery::list(every_ninth), Genes::Query(AxisQuery::list(every_fortieth))),
        (both(AxisQuery::range(5..900), "cluster == 'cluster 1'"), all()),
        (filter("raw_sum < 0"), all()),
        (
            filter("cluster == 'cluster 2'"),
            named(
                "feature_id",
                &["ENSMUSG00000025902", "ENSMUSG1", "ENSMUSG00000051951", "ENSMUSG2"],
            ),
        ),
    ];
    selections(&base, pairs)
}
