//! Cells deleted by condition do not count.

use std::path::{Path, PathBuf};

use soma_io::{Error, Experiment, OpenOptions, ReaderChoice};
use tiledb::{Array, Context};

use crate::delete_commit::{delete_first_joinids, delete_first_rows};
use crate::small::Small;

const N_OBS: u64 = 300;

struct Deleted {
    small: Small,
    folder: tempfile::TempDir,
    /// The time before the deletion.
    before: u64,
}

/// Counts of rows of obs and of var, of values of X, and of a reader's values.
type Counts = (u64, u64, u64, u64);

impl Deleted {
    /// An experiment without its first three cells, genes, and rows of X.
    fn new() -> Self {
        let (small, folder) = (Small::new(N_OBS, 40, 7), tempfile::tempdir().unwrap());
        let deleted = Self { small, folder, before: 0 };
        deleted.small.write(deleted.uri()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        delete_first_joinids(&deleted.array("obs"));
        delete_first_joinids(&deleted.array("ms/RNA/var"));
        delete_first_rows(&deleted.array("ms/RNA/X/raw"));
        Self { before: now.as_millis() as u64, ..deleted }
    }

    fn uri(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    fn array(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn counts(&self, timestamp: Option<u64>, reader: ReaderChoice) -> Result<Counts, Error> {
        let options = OpenOptions { timestamp, ..OpenOptions::default() };
        let experiment = Experiment::open(self.uri(), &options)?;
        let measurement = experiment.measurement("RNA")?;
        let (obs, var) = (experiment.obs()?, measurement.var()?);
        assert_eq!(obs.n_rows()?, obs.read(None, None)?.num_rows() as u64);
        assert_eq!(var.n_rows()?, var.read(None, None)?.num_rows() as u64);
        let x = measurement.x("raw")?;
        let read = x.reader(reader)?;
        let all = soma_io::RowRanges::new(vec![0..N_OBS])?;
        let mut cells = soma_io::CsrBuffers::default();
        read.read_csr(&all, &soma_io::GeneSelection::All, &mut cells)?;
        let nnz = read.nnz()?.unwrap();
        assert_eq!(nnz, cells.nnz() as u64, "{}", read.name());
        let counts = (obs.n_rows()?, var.n_rows()?, x.nnz()?, nnz);
        let why = [obs.why_not_native(), var.why_not_native(), x.why_not_native()];
        assert_eq!(why, [None; 3]);
        Ok(counts)
    }

    /// With all cells, and with the remaining ones.
    fn expected(&self) -> (Counts, Counts) {
        let x = &self.small.x;
        let left = (x.nnz() - x.row_offsets[3]) as u64;
        assert_ne!(left, x.nnz() as u64);
        let nnz = x.nnz() as u64;
        ((N_OBS, 40, nnz, nnz), (N_OBS - 3, 37, left, left))
    }

    fn check(&self) {
        let (all, left) = self.expected();
        for reader in [ReaderChoice::Auto, ReaderChoice::Native, ReaderChoice::Libtiledb] {
            assert_eq!(self.counts(None, reader).unwrap(), left);
            assert_eq!(self.counts(Some(self.before), reader).unwrap(), all);
        }
    }
}

/// Consolidates an array and removes the replaced files.
fn consolidate(array: &Path, mode: &str) {
    let uri = array.to_str().unwrap();
    let config = [("sm.consolidation.mode", mode), ("sm.vacuum.mode", mode)];
    let config = config.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let context = Context::new(&soma_io::Config::from(config)).unwrap();
    Array::consolidate(&context, uri).unwrap();
    Array::vacuum(&context, uri).unwrap();
}

#[test]
fn deleted_cells_are_not_counted() {
    Deleted::new().check();
}

#[test]
fn deleted_cells_are_not_counted_when_commits_are_consolidated() {
    let deleted = Deleted::new();
    for path in ["obs", "ms/RNA/var", "ms/RNA/X/raw"] {
        consolidate(&deleted.array(path), "commits");
        let commits = std::fs::read_dir(deleted.array(path).join("__commits")).unwrap();
        let names: Vec<String> =
            commits.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().all(|name| !name.contains(".del")), "{names:?}");
    }
    deleted.check();
}
