//! Small experiments with known values: making, writing and reading them.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int8Array, Int64Array, LargeStringArray,
    RecordBatch,
};
use arrow_schema::{Field, Schema};
use soma_io::{
    ColumnKind, ColumnSpec, CsrBuffers, ExperimentSpec, ExperimentWriter, Extent, XLayout,
};

/// The values of the categorical columns.
const CATEGORIES: [&str; 4] = ["B cell", "T cell", "Übergang", "unknown"];

/// An experiment with all its data.
pub(crate) struct Small {
    pub(crate) spec: ExperimentSpec,
    pub(crate) obs: RecordBatch,
    pub(crate) var: RecordBatch,
    pub(crate) x: CsrBuffers,
}

impl Small {
    /// Makes an experiment of `n_obs` cells by `n_var` genes, with about `per_row` values per cell;
    /// every fifth cell has none.
    pub(crate) fn new(n_obs: u64, n_var: u64, per_row: u64) -> Self {
        let spec = ExperimentSpec {
            n_obs,
            n_var,
            obs: every_column(),
            var: every_column(),
            measurement: "RNA".into(),
            layers: vec!["raw".into()],
            extent: Extent::CurrentDomain,
            x_layout: XLayout::census(1),
            fragment_rows: None,
            consolidate: false,
            config: soma_io::Config::new(),
        };
        Self { spec, obs: frame(n_obs, 3), var: frame(n_var, 4), x: csr(n_obs, n_var, per_row) }
    }

    /// Writes the experiment: frames and X each in three pieces of uneven size.
    pub(crate) fn write(&self, uri: &str) -> Result<(), soma_io::Error> {
        let mut writer = ExperimentWriter::create(uri, self.spec.clone())?;
        self.write_rows(&mut writer)?;
        writer.finish()
    }

    /// Writes all rows, and leaves the writer open.
    pub(crate) fn write_rows(&self, writer: &mut ExperimentWriter) -> Result<(), soma_io::Error> {
        for [start, end] in thirds(self.spec.n_var).array_windows() {
            writer.write_var(&self.var.slice(*start, end - start))?;
        }
        for [start, end] in thirds(self.spec.n_obs).array_windows() {
            writer.write_obs(&self.obs.slice(*start, end - start))?;
            let offsets = &self.x.row_offsets[*start..=*end];
            for layer in self.spec.layers.clone() {
                writer.write_x(&layer, offsets, &self.x.columns, &self.x.values)?;
            }
        }
        Ok(())
    }
}

fn thirds(n_rows: u64) -> [usize; 4] {
    [0, n_rows as usize / 7, n_rows as usize * 5 / 7, n_rows as usize]
}

/// A column of each kind, with and without nulls.
pub(crate) fn every_column() -> Vec<ColumnSpec> {
    let categorical = |ordered| ColumnKind::Categorical {
        values: CATEGORIES.map(str::to_owned).to_vec(),
        ordered,
    };
    let plain = ColumnSpec::new;
    let nullable = |name: &str, kind| ColumnSpec { nullable: true, ..plain(name, kind) };
    vec![
        plain("text", ColumnKind::Text),
        nullable("text_or_none", ColumnKind::Text),
        plain("category", categorical(false)),
        nullable("ordered_category_or_none", categorical(true)),
        plain("truth", ColumnKind::Bool),
        nullable("truth_or_none", ColumnKind::Bool),
        plain("count", ColumnKind::Int64),
        nullable("count_or_none", ColumnKind::Int64),
        plain("share", ColumnKind::Float64),
        nullable("share_or_none", ColumnKind::Float64),
    ]
}

/// Rows of [`every_column`], with the joinid first, as they should be read back.
pub(crate) fn frame(n_rows: u64, seed: u64) -> RecordBatch {
    let n_rows = n_rows as i64;
    let draw = |row: i64, n: u64| (mix(seed, row as u64) % n) as i64;
    let or_none = |row: i64| draw(row, 3) != 0;
    // Includes the empty text, and texts with several bytes per letter.
    let text = |row: i64| "é".repeat(draw(row, 4) as usize) + &"x".repeat(draw(row, 5) as usize);
    let code = |row: i64| draw(row, CATEGORIES.len() as u64) as i8;
    let category = |codes: Int8Array| -> ArrayRef {
        let values = Arc::new(LargeStringArray::from(CATEGORIES.to_vec()));
        Arc::new(DictionaryArray::<Int8Type>::new(codes, values))
    };
    let rows = || 0..n_rows;
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(rows().collect::<Int64Array>()),
        Arc::new(LargeStringArray::from_iter_values(rows().map(text))),
        Arc::new(rows().map(|row| or_none(row).then(|| text(row))).collect::<LargeStringArray>()),
        category(rows().map(code).map(Some).collect()),
        category(rows().map(|row| or_none(row).then(|| code(row))).collect()),
        Arc::new(rows().map(|row| Some(draw(row, 2) == 1)).collect::<BooleanArray>()),
        Arc::new(
            rows().map(|row| or_none(row).then(|| draw(row, 2) == 1)).collect::<BooleanArray>(),
        ),
        Arc::new(rows().map(|row| draw(row, 1 << 40) - (1 << 39)).collect::<Int64Array>()),
        Arc::new(rows().map(|row| or_none(row).then(|| draw(row, 900))).collect::<Int64Array>()),
        Arc::new(rows().map(|row| draw(row, 1 << 50) as f64 / 7.0).collect::<Float64Array>()),
        Arc::new(
            rows()
                .map(|row| or_none(row).then(|| draw(row, 99) as f64 / 8.0))
                .collect::<Float64Array>(),
        ),
    ];
    let columns = every_column();
    let fields = columns.iter().zip(&arrays[1..]).map(|(column, array)| {
        let ordered = matches!(column.kind, ColumnKind::Categorical { ordered: true, .. });
        Field::new(&column.name, array.data_type().clone(), column.nullable)
            .with_dict_is_ordered(ordered)
    });
    let joinid = Field::new("soma_joinid", arrays[0].data_type().clone(), false);
    let schema = Schema::new([joinid].into_iter().chain(fields).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

/// Counts, about `per_row` per row; every fifth row is empty, and the last column is used.
pub(crate) fn csr(n_rows: u64, n_columns: u64, per_row: u64) -> CsrBuffers {
    let mut csr = CsrBuffers { n_columns: n_columns as usize, ..CsrBuffers::default() };
    for row in 0..n_rows {
        if row % 5 != 2 && per_row > 0 {
            let n_row = 1 + mix(17, row) % (2 * per_row);
            let mut columns: Vec<u32> =
                (0..n_row).map(|at| (mix(row, at) % n_columns) as u32).collect();
            columns.push(n_columns as u32 - 1);
            columns.sort_unstable();
            columns.dedup();
            csr.values.extend(
                columns.iter().map(|column| (mix(row, (*column).into()) % 90 + 1) as f32 / 4.0),
            );
            csr.columns.extend(columns);
        }
        csr.row_offsets.push(csr.values.len());
    }
    csr
}

/// A number that depends on both, and looks random.
pub(crate) fn mix(seed: u64, at: u64) -> u64 {
    let mut state = (seed << 32 ^ at).wrapping_add(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        state = (state ^ (state >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state >> 8
}
