//! Scaling, log1p and clipping on the way into a batch, compared with a plain implementation.

use csr::CsrBuffers;
use densify::{
    Error, RowTransforms, Transform, csr_gather_rows, csr_rows_to_coo, csr_rows_to_dense,
    dense_rows_to_dense,
};
use half::f16;
use proptest::prelude::*;

const N_COLUMNS: usize = 7;

#[derive(Debug, Clone)]
struct Case {
    /// Dense rows; zeros are not stored.
    rows: Vec<[f32; N_COLUMNS]>,
    order: Vec<u32>,
    transform: Transform,
    /// Totals of the rows of `order`, unless the rows' own sums are used.
    totals: Option<Vec<f64>>,
}

fn case() -> impl Strategy<Value = Case> {
    let value = prop_oneof![
        3 => Just(0.0_f32),
        4 => (1_u16..100).prop_map(f32::from),
        1 => 0.01_f32..2e6,
    ];
    let rows = proptest::collection::vec(proptest::array::uniform7(value), 1..9);
    let transform = (
        proptest::option::of(0.5_f64..2e4),
        any::<bool>(),
        proptest::option::of((-2.0_f32..=0.0, 0.0_f32..20.0)),
    )
        .prop_map(|(target_sum, log1p, clip)| Transform { target_sum, log1p, clip });
    (rows, transform, any::<bool>()).prop_flat_map(|(rows, transform, own)| {
        let order = proptest::collection::vec(0..rows.len() as u32, 0..12);
        (Just(rows), order, Just(transform), Just(own)).prop_flat_map(
            |(rows, order, transform, own)| {
                let totals = proptest::collection::vec(0.5_f64..1e5, order.len());
                totals.prop_map(move |totals| Case {
                    rows: rows.clone(),
                    order: order.clone(),
                    transform,
                    totals: (!own).then_some(totals),
                })
            },
        )
    })
}

impl Case {
    fn csr(&self) -> CsrBuffers {
        let mut csr = CsrBuffers::empty(N_COLUMNS);
        for row in &self.rows {
            for (column, value) in (0..).zip(row) {
                if *value != 0.0 {
                    csr.columns.push(column);
                    csr.values.push(*value);
                }
            }
            csr.row_offsets.push(csr.values.len());
        }
        csr
    }

    fn oracle(&self) -> Vec<f32> {
        let mut out = Vec::new();
        for (idx, row) in self.order.iter().enumerate() {
            let row = &self.rows[*row as usize];
            let own: f64 = row.iter().map(|value| f64::from(*value)).sum();
            let total = self.totals.as_ref().map_or(own, |totals| totals[idx]);
            for value in row {
                let mut value = f64::from(*value);
                if let Some(target) = self.transform.target_sum
                    && value != 0.0
                {
                    value *= target / total;
                }
                if self.transform.log1p {
                    value = value.ln_1p();
                }
                let value = value as f32;
                out.push(match self.transform.clip {
                    Some((least, most)) => value.max(least).min(most),
                    None => value,
                });
            }
        }
        out
    }

    fn transforms(&self) -> RowTransforms<'_> {
        RowTransforms { transform: &self.transform, totals: self.totals.as_deref() }
    }
}

proptest! {
    #[test]
    fn every_way_gives_what_is_said_plainly(case in case()) {
        let expected = case.oracle();
        let csr = case.csr();
        let transforms = Some(case.transforms());
        let mut out = vec![9.0_f32; expected.len()];
        csr_rows_to_dense(csr.view(), &case.order, transforms, &mut out).unwrap();
        prop_assert_eq!(&out, &expected);

        let mut half = vec![f16::ONE; expected.len()];
        csr_rows_to_dense(csr.view(), &case.order, transforms, &mut half).unwrap();
        let rounded: Vec<f16> = expected.iter().map(|value| f16::from_f32(*value)).collect();
        prop_assert_eq!(&half, &rounded);

        let flat = case.rows.concat();
        out.fill(9.0);
        dense_rows_to_dense(&flat, N_COLUMNS, &case.order, transforms, &mut out).unwrap();
        prop_assert_eq!(&out, &expected);
        half.fill(f16::ONE);
        dense_rows_to_dense(&flat, N_COLUMNS, &case.order, transforms, &mut half).unwrap();
        prop_assert_eq!(&half, &rounded);

        let mut gathered = CsrBuffers::empty(N_COLUMNS);
        csr_gather_rows(csr.view(), &case.order, transforms, &mut gathered).unwrap();
        prop_assert_eq!((gathered.n_rows(), gathered.n_columns), (case.order.len(), N_COLUMNS));
        let mut coo_rows = vec![0; gathered.nnz()];
        csr_rows_to_coo(&gathered.row_offsets, &mut coo_rows);
        out.fill(0.0);
        for ((row, column), value) in coo_rows.iter().zip(&gathered.columns).zip(&gathered.values) {
            out[*row as usize * N_COLUMNS + *column as usize] = *value;
        }
        prop_assert_eq!(&out, &expected);
        prop_assert!(coo_rows.is_sorted());
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let csr = CsrBuffers {
        row_offsets: vec![0, 1, 1],
        columns: vec![0],
        values: vec![3.0],
        n_columns: 1,
    };
    let run = |transform: Transform, totals: Option<&[f64]>| {
        let transforms = Some(RowTransforms { transform: &transform, totals });
        csr_rows_to_dense(csr.view(), &[0, 1], transforms, &mut [0.0_f32; 2])
    };
    let scaled = Transform { target_sum: Some(1e4), ..Transform::default() };
    // The second row has no values: its total does not matter.
    run(scaled, Some(&[3.0, 0.0])).unwrap();
    for total in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = run(scaled, Some(&[total, 1.0])).unwrap_err();
        assert!(matches!(error, Error::Total { row_idx: 0, .. }), "{error}");
    }
    assert!(matches!(run(scaled, Some(&[1.0])), Err(Error::Length { found: 1, .. })));
    for target in [0.0, -1.0, f64::NAN] {
        let transform = Transform { target_sum: Some(target), ..scaled };
        assert!(matches!(run(transform, None), Err(Error::TargetSum { .. })));
    }
    for clip in [(1.0, 2.0), (-2.0, -1.0), (f32::NAN, 1.0), (0.0, f32::NAN)] {
        let transform = Transform { clip: Some(clip), ..Transform::default() };
        assert!(matches!(run(transform, None), Err(Error::Clip { .. })));
    }
    assert!(Transform::default().is_identity() && !scaled.is_identity());
    assert_eq!(Transform::default().to_string(), "none");
    let all = Transform { log1p: true, clip: Some((0.0, 10.5)), ..scaled };
    assert_eq!(all.to_string(), "per 10000, log1p, clipped to 0..10.5");
}
