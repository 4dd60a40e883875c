//! Some of a source's samples: in their order, and as if there were no others.

use std::sync::Arc;

use pipeline::{Pipeline, PipelineSpec, Selected, Source as _, World};
use proptest::prelude::*;
use shuffle::RowSet;

use crate::numbers::{Numbered, batches, numbers_of, pipeline, spec};

/// A set of the rows for which there is a true.
fn chosen(is_chosen: &[bool]) -> RowSet {
    let rows = (0_u64..).zip(is_chosen).filter(|(_, is_chosen)| **is_chosen);
    RowSet::from_ascending(rows.map(|(row, _)| row)).unwrap()
}

proptest! {
    #[test]
    fn batches_are_those_of_a_source_that_has_no_others(
        is_chosen in prop::collection::vec(any::<bool>(), 0..200),
        is_kept in prop::collection::vec(any::<bool>(), 200),
        chunk_rows in 1_u64..9,
        batch_rows in 1_u64..9,
        size in 1_u64..4,
    ) {
        let whole = Selected::all(Arc::new(numbers_of(is_chosen.len() as u64)));
        let part = whole.at(&chosen(&is_chosen)).unwrap();
        let places = chosen(&is_kept[..part.n_rows() as usize]);
        let part = part.at(&places).unwrap();
        let world = World { rank: size - 1, size };
        let spec = PipelineSpec { chunk_rows, batch_rows, world, ..spec() };
        let alone = pipeline(numbers_of(part.n_rows()), spec.clone());
        let rows = part.rows().clone();
        let of_part = Pipeline::new(Arc::new(part), spec, |batch: &Numbered| batch.rows.len()).unwrap();
        for epoch in [0, 3] {
            let expected = batches(&alone, epoch).into_iter().map(|batch| Numbered {
                rows: batch.rows.iter().map(|at| rows.get(*at).unwrap()).collect(),
                ..batch
            });
            let found = of_part.epoch(epoch).unwrap().map(Result::unwrap);
            prop_assert!(found.eq(expected));
        }
    }
}

#[test]
fn a_state_of_other_samples_is_refused() {
    let whole = Selected::all(Arc::new(numbers_of(96)));
    let some = |rows: [u64; 3]| {
        let part = whole.at(&RowSet::from_ascending(rows).unwrap()).unwrap();
        Pipeline::new(Arc::new(part), spec(), |batch: &Numbered| batch.rows.len()).unwrap()
    };
    let state = some([1, 2, 5]).epoch(0).unwrap().state();
    assert!(some([1, 2, 5]).resume(&state).is_ok());
    assert!(some([1, 2, 6]).resume(&state).is_err());
    // All samples are the source itself.
    assert_eq!(whole.fingerprint(), numbers_of(96).fingerprint());
}
