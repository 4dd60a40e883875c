//! The rows of the next read: they are announced to the storage once everything of the present read
//! is, so that their bytes are on their way while the present ones are decoded.

use std::ops::Range;
use std::sync::PoisonError;

use csr::ColumnSelection;
use storage::Expected;

use super::plan::announce_tiles;
use super::{Reader, task};
use crate::error::Error;
use crate::request::{Columns, Rows};

/// What the next read will want.
#[derive(Debug)]
pub(crate) struct NextRead {
    rows: Vec<Range<u64>>,
    columns: ColumnSelection,
}

impl Reader {
    /// Sets the rows and columns to be announced by the read that begins next, if its storage
    /// fetches ahead.
    pub(crate) fn set_next(&self, rows: &[Range<u64>], columns: &ColumnSelection) {
        if self.files.storage().coalesce().prefetches() {
            let next = NextRead { rows: rows.to_vec(), columns: columns.clone() };
            let next = Some(next).filter(|next| !next.rows.is_empty());
            *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
        }
    }

    /// Announces the rows that were set, if their tiles' places are known. Errors are left to the
    /// read itself.
    pub(super) fn announce_next(&self) {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(next) = next {
            drop(self.announce_rows(&next));
        }
    }

    fn announce_rows(&self, next: &NextRead) -> Result<(), Error> {
        if !self.fragments.iter().all(crate::fragment::Fragment::knows_tiles) {
            return Ok(());
        }
        let rows = Rows::new(&next.rows, self.layout.shape[0].1)?;
        let (columns, _) = Columns::new(&next.columns, self.layout.shape[1])?;
        let tasks = task::tasks(&rows, &self.layout);
        announce_tiles(self, &tasks, &columns, Expected::Next)?;
        Ok(())
    }
}
