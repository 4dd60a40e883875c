//! Pages are what was encoded, to the bit, whole and in part.

use proptest::prelude::*;

use super::*;

/// Rows by number: columns and values.
type Rows = Vec<(u32, Vec<u32>, Vec<f32>)>;

const N_COLUMNS: usize = 60_000;

/// Values of each kind: counts, few different ones, any bits.
fn value(kind: usize) -> BoxedStrategy<f32> {
    match kind {
        0 => (0..70_u16).prop_map(f32::from).boxed(),
        1 => prop::sample::select(vec![0.5, -0.0, f32::NAN, 3.25, f32::from_bits(0x7fa0_0001)])
            .boxed(),
        2 => any::<u16>().prop_map(f32::from).boxed(),
        _ => any::<u32>().prop_map(f32::from_bits).boxed(),
    }
}

fn rows(kind: usize) -> impl Strategy<Value = Rows> {
    let cells = prop::collection::vec((0..N_COLUMNS as u32, value(kind)), 0..40);
    prop::collection::vec((any::<bool>(), cells), 0..64).prop_map(|rows| {
        let rows = (0..).zip(rows).filter(|(_, (is_there, _))| *is_there);
        rows.map(|(row, (_, mut cells))| {
            // A column may come twice.
            cells.sort_by_key(|(column, _)| *column);
            let (columns, values) = cells.into_iter().unzip();
            (row, columns, values)
        })
        .collect()
    })
}

fn encoded(rows: &Rows, n_columns: usize) -> Vec<u8> {
    let mut of_page = PageRows::default();
    for (row, columns, values) in rows {
        of_page.add(*row, n_columns, columns, values);
    }
    // Memory that another page used.
    let mut encoder = Encoder::default();
    encoder.encode(&PageRows::default());
    let page = encoder.encode(&of_page);
    assert_eq!(page, encoder.encode(&of_page));
    page
}

/// The columns and the values' bits of the rows in `mask`.
fn expected(rows: &Rows, mask: u64) -> (Vec<u32>, Vec<u32>) {
    let wanted = rows.iter().filter(|(row, ..)| mask >> row & 1 == 1);
    let (columns, values): (Vec<_>, Vec<_>) =
        wanted.map(|(_, columns, values)| (columns.clone(), values.clone())).unzip();
    (columns.concat(), values.concat().iter().map(|value| value.to_bits()).collect())
}

proptest! {
    #[test]
    fn every_choice_of_rows_comes_back(
        rows in (0..4_usize).prop_flat_map(rows),
        masks in prop::collection::vec(any::<u64>(), 4),
    ) {
        let page = encoded(&rows, N_COLUMNS);
        let head = Head::parse(&page).unwrap();
        prop_assert_eq!(bits(head.rows).collect::<Vec<_>>(), rows.iter().map(|row| row.0).collect::<Vec<_>>());
        for mask in masks.into_iter().chain([0, u64::MAX]) {
            let mask = mask & head.rows;
            let (columns, values) = expected(&rows, mask);
            let mut wide = (vec![0_u32; columns.len()], vec![0_f32; columns.len()]);
            unpack(&head, &page, N_COLUMNS, mask, &mut wide.0, &mut wide.1).unwrap();
            let of_values = wide.1.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!((&wide.0, &of_values), (&columns, &values));
            let mut narrow = (vec![0_u16; columns.len()], vec![0_u16; columns.len()]);
            let found = unpack(&head, &page, N_COLUMNS, mask, &mut narrow.0, &mut narrow.1);
            prop_assert_eq!(found.is_some(), head.kind == Kind::Counts);
            if found.is_some() {
                let of_columns: Vec<u32> = narrow.0.iter().copied().map(u32::from).collect();
                let counts = narrow.1.iter().map(|count| f32::from(*count).to_bits());
                prop_assert_eq!((of_columns, counts.collect::<Vec<_>>()), (columns, values));
            }
        }
    }

    /// The store finds damage by its checksum. A page that is damaged all the same is an error or
    /// other values, never a panic or a column that does not exist.
    #[test]
    fn damage_does_no_harm(
        rows in (0..4_usize).prop_flat_map(rows),
        at: prop::sample::Index,
        to: u8,
        cut: prop::sample::Index,
    ) {
        let page = encoded(&rows, N_COLUMNS);
        let head = Head::parse(&page).unwrap();
        let mut damaged = page.clone();
        let at = at.index(page.len());
        damaged[at] = to;
        if at < head.bytes().len() {
            prop_assert_eq!(Head::parse(&damaged).is_some(), damaged == page);
        }
        let nnz = head.nnz();
        for page in [&damaged[..], &page[..cut.index(page.len())]] {
            let mut out = (vec![0_u32; nnz], vec![0_f32; nnz]);
            let found = unpack(&head, page, N_COLUMNS, head.rows, &mut out.0, &mut out.1);
            prop_assert!(found.is_none() || out.0.iter().all(|column| *column < N_COLUMNS as u32));
        }
    }
}

#[test]
fn a_page_of_wide_rows_has_fewer_rows() {
    for (n_columns, n_rows) in
        [(0, 64), (1, 64), (60_000, 64), (1 << 26, 64), ((1 << 26) + 1, 32), (u32::MAX as usize, 1)]
    {
        assert_eq!(page_rows(n_columns), n_rows, "{n_columns} columns");
    }
    let last = page_rows(1 << 26) as u32 - 1;
    let rows = vec![(last, vec![0, (1 << 26) - 1], vec![1.0, 2.0])];
    let page = encoded(&rows, 1 << 26);
    let head = Head::parse(&page).unwrap();
    let mut out = (vec![0_u32; 2], vec![0_f32; 2]);
    unpack(&head, &page, 1 << 26, head.rows, &mut out.0, &mut out.1).unwrap();
    assert_eq!(out, (rows[0].1.clone(), rows[0].2.clone()));
}

/// About the size that packed differences and counts should have.
#[test]
fn counts_of_cells_take_about_two_bytes() {
    let rows: Rows = (0..64)
        .map(|row| {
            let columns: Vec<u32> = (0..1500).map(|idx| idx * 40 + (idx * 7 + row) % 31).collect();
            let values = columns.iter().map(|column| (1 + column % 6) as f32).collect();
            (row, columns, values)
        })
        .collect();
    let page = encoded(&rows, N_COLUMNS);
    let nnz = 64 * 1500;
    assert!(page.len() < nnz * 5 / 4, "{} bytes for {nnz} values", page.len());
    // Scaled by row: few different values.
    let scaled: Rows = rows
        .iter()
        .map(|(row, columns, values)| {
            let of_row = 1.0 + *row as f32 / 100.0;
            (*row, columns.clone(), values.iter().map(|value| (value / of_row).ln_1p()).collect())
        })
        .collect();
    let page = encoded(&scaled, N_COLUMNS);
    assert_eq!(Head::parse(&page).unwrap().kind, Kind::Table);
    assert!(page.len() < nnz * 3 / 2, "{} bytes for {nnz} values", page.len());
}
