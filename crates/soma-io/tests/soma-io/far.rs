//! Opening an experiment over a link: few requests, and few of them one after another.

use std::fs;
use std::path::Path;

use link::{BUCKET, LinkServer, LinkSpec, ServeOptions};
use soma_io::{CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges};
use tempfile::TempDir;

use crate::small::Small;

/// An experiment below a folder that a server serves.
struct Far {
    folder: TempDir,
    small: Small,
}

impl Far {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let small = Small::new(400, 90, 12);
        small.write(folder.path().join("experiment").to_str().unwrap()).unwrap();
        Self { folder, small }
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("experiment")
    }

    fn serve(&self) -> LinkServer {
        LinkServer::start(self.folder.path(), "0".parse::<LinkSpec>().unwrap()).unwrap()
    }

    fn serve_with(&self, link: &str, faults: &str) -> LinkServer {
        let (spec, faults) = (link.parse().unwrap(), faults.parse().unwrap());
        let options = ServeOptions { spec, faults, ..ServeOptions::default() };
        LinkServer::start_with(self.folder.path(), &options).unwrap()
    }

    /// Adds files until the experiment is listed folder by folder.
    fn enlarge(&self) {
        fs::create_dir(self.root().join("other")).unwrap();
        for idx in 0..1000 {
            fs::write(self.root().join(format!("other/{idx}")), "").unwrap();
        }
    }

    /// Reads a column of each frame and the first rows of X, and returns the requests up to X's
    /// values, and all.
    fn read(&self, server: &LinkServer, more: &[(&str, &str)]) -> (u64, u64) {
        let experiment = open(server, more);
        let columns = Some(&["category"][..]);
        let obs = experiment.obs().unwrap().read(columns, None).unwrap();
        assert_eq!(obs.column(0), self.small.obs.column_by_name("category").unwrap());
        let measurement = experiment.measurement("RNA").unwrap();
        let var = measurement.var().unwrap().read(columns, None).unwrap();
        assert_eq!(var.column(0), self.small.var.column_by_name("category").unwrap());
        let reader = measurement.x("raw").unwrap().reader(ReaderChoice::Native).unwrap();
        assert_eq!(reader.nnz().unwrap(), Some(self.small.x.values.len() as u64));
        let before = server.counts().requests;
        let mut rows = CsrBuffers::new();
        let some = RowRanges::new(vec![0..30]).unwrap();
        reader.read_csr(&some, &GeneSelection::All, &mut rows).unwrap();
        assert_eq!(rows.values, self.small.x.values[..self.small.x.row_offsets[30]]);
        (before, server.counts().requests)
    }
}

fn open(server: &LinkServer, more: &[(&str, &str)]) -> Experiment {
    try_open(server, more).unwrap()
}

fn try_open(server: &LinkServer, more: &[(&str, &str)]) -> Result<Experiment, soma_io::Error> {
    let mut config = server.config();
    config.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let options = OpenOptions { config, reader: ReaderChoice::Native, ..OpenOptions::default() };
    Experiment::open(&format!("s3://{BUCKET}/experiment"), &options)
}

/// An error and its causes.
fn text(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Files that opening reads: below `root`, except for the values of fragments and for commits.
fn n_files_of_opening(root: &Path) -> u64 {
    let mut n_files = 0;
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            n_files += n_files_of_opening(&entry.path());
        } else if !name.contains('.') || name == "__fragment_metadata.tdb" {
            n_files += 1;
        }
    }
    n_files
}

#[test]
fn opening_lists_once_and_reads_each_file_once() {
    let far = Far::new();
    let server = far.serve();
    let n_files = n_files_of_opening(&far.root());
    let (opening, all) = far.read(&server, &[]);
    // A listing, each file, and the values of a column of the frames' three fragments each: of rows
    // that are not asked for by their joinids, these are not read.
    let frames = 2 * 3;
    assert!(opening <= 1 + n_files + frames, "{opening} requests, {n_files} files");
    // Three files of a fragment of X; the sizes are known.
    assert!(all - opening <= 3 * 3 + 3, "{all} - {opening}");
}

/// So nothing is requested after something else was: opening is two rounds of requests.
#[test]
fn what_leads_to_x_is_read_when_the_experiment_is_opened() {
    let far = Far::new();
    let server = far.serve();
    let experiment = open(&server, &[]);
    let opened = server.counts().requests;
    let obs = experiment.obs().unwrap();
    assert_eq!(obs.n_rows().unwrap(), far.small.spec.n_obs);
    assert_eq!(experiment.measurements().unwrap(), ["RNA"]);
    let measurement = experiment.measurement("RNA").unwrap();
    assert_eq!(measurement.layers().unwrap(), ["raw"]);
    assert!(measurement.obsm_names().unwrap().is_empty());
    let specs = measurement.var().unwrap().column_specs().unwrap();
    assert_eq!(specs.len(), far.small.spec.var.len());
    let x = measurement.x("raw").unwrap();
    x.used_columns().unwrap();
    x.reader(ReaderChoice::Native).unwrap();
    assert_eq!(server.counts().requests, opened);
}

#[test]
fn a_large_experiment_is_listed_folder_by_folder() {
    let far = Far::new();
    let server = far.serve();
    let (small, _) = far.read(&server, &[]);
    far.enlarge();
    let server = far.serve();
    let (large, _) = far.read(&server, &[]);
    // For each of eight objects six listings; the sizes of the fragments' files.
    assert!(small < large && large <= small + 1 + 8 * 6 + 60, "{small}, {large}");
}

#[test]
fn files_that_are_added_later_are_not_seen() {
    let far = Far::new();
    let server = far.serve();
    let experiment = open(&server, &[]);
    let commits = far.root().join("ms/RNA/X/raw/__commits");
    for entry in fs::read_dir(&commits).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let x = |experiment: &Experiment| experiment.measurement("RNA")?.x("raw")?.nnz();
    assert_eq!(x(&experiment).unwrap(), far.small.x.values.len() as u64);
    assert_eq!(x(&open(&server, &[])).unwrap(), 0);
}

#[test]
fn a_cache_keeps_each_file_once() {
    let far = Far::new();
    let cache = tempfile::tempdir().unwrap();
    let server = far.serve();
    let settings = [("soma.cache_folder", cache.path().to_str().unwrap())];
    far.read(&server, &settings);
    let count = |folder: &Path| -> usize {
        let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        folders
            .filter(|path| path.is_dir())
            .map(|path| {
                let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
                names.filter(|name| name.to_str().unwrap().contains('-')).count()
            })
            .sum()
    };
    let n_blocks = count(cache.path());
    let sent = server.counts().bytes_sent;
    far.read(&server, &settings);
    assert_eq!(count(cache.path()), n_blocks);
    assert!(server.counts().bytes_sent - sent < sent);
}

/// As after a consolidation and a vacuum by another program: a fragment is replaced by one of
/// another name.
#[test]
fn a_fragment_that_was_vacuumed_is_an_error_that_says_what_to_do() {
    for is_large in [false, true] {
        let far = Far::new();
        if is_large {
            far.enlarge();
        }
        let server = far.serve();
        let experiment = open(&server, &[]);
        let x = experiment.measurement("RNA").unwrap().x("raw").unwrap();
        let reader = x.reader(ReaderChoice::Native).unwrap();
        for array in ["obs", "ms/RNA/X/raw"] {
            let [fragments, commits] =
                ["__fragments", "__commits"].map(|name| far.root().join(array).join(name));
            let names = fs::read_dir(&fragments).unwrap().map(|entry| entry.unwrap().file_name());
            let old = names.min().unwrap().into_string().unwrap();
            let uuid = old.split('_').find(|part| part.len() == 32).unwrap();
            let new = old.replace(uuid, &"0".repeat(32));
            fs::rename(fragments.join(&old), fragments.join(&new)).unwrap();
            let commit = |name: &str| commits.join(format!("{name}.wrt"));
            fs::rename(commit(&old), commit(&new)).unwrap();
        }
        let read_obs = |experiment: &Experiment| {
            let obs = experiment.obs()?.read(Some(&["category"]), None)?;
            assert_eq!(obs.column(0), far.small.obs.column_by_name("category").unwrap());
            Ok(())
        };
        let read_x = |reader: &dyn soma_io::XReader| {
            let (mut rows, some) = (CsrBuffers::new(), RowRanges::new(vec![0..30]).unwrap());
            reader.read_csr(&some, &GeneSelection::All, &mut rows).map(drop)
        };
        for error in [read_obs(&experiment).unwrap_err(), read_x(&*reader).unwrap_err()] {
            let error: soma_io::Error = error;
            assert!(text(&error).contains("open the data set again"), "{}", text(&error));
        }
        let again = open(&server, &[]);
        read_obs(&again).unwrap();
        let x = again.measurement("RNA").unwrap().x("raw").unwrap();
        read_x(&*x.reader(ReaderChoice::Native).unwrap()).unwrap();
    }
}

/// Requests that fail are not sent again by the next step, which would fail as well.
#[test]
fn a_store_that_fails_is_asked_once() {
    let far = Far::new();
    far.enlarge();
    // The first request lists the first thousand files. All later ones are refused.
    let server = far.serve_with("0", "storm=1:1000000");
    let tries = [("vfs.s3.connect_max_tries", "2")];
    let error = text(&try_open(&server, &tries).unwrap_err());
    assert!(error.contains("503"), "{error}");
    let requests = server.counts().requests;
    // Six lists of the root, each tried twice at most.
    assert!((2..=1 + 6 * 2).contains(&requests), "{requests}");
}

/// With one thread to decode, so that no array could be read while that thread waits for another.
#[test]
fn arrays_wait_for_their_answers_at_the_same_time() {
    let far = Far::new();
    let server = far.serve_with("150ms", "seed=0");
    let one_thread = [("sm.compute_concurrency_level", "1")];
    let experiment = open(&server, &one_thread);
    let measurement = experiment.measurement("RNA").unwrap();
    let x = measurement.x("raw").unwrap();
    let readers = [(); 5].map(|()| x.reader(ReaderChoice::Native).unwrap());
    let rounds = |readers: &[std::sync::Arc<dyn soma_io::XReader>]| {
        let before = server.counts().rounds;
        std::thread::scope(|scope| {
            for reader in readers {
                scope.spawn(|| {
                    let (mut rows, some) =
                        (CsrBuffers::new(), RowRanges::new(vec![0..30]).unwrap());
                    reader.read_csr(&some, &GeneSelection::All, &mut rows).unwrap();
                });
            }
        });
        server.counts().rounds - before
    };
    let alone = rounds(&readers[..1]);
    let together = rounds(&readers[1..]);
    // One after another they would take four times as many.
    assert!(1 <= alone && together <= alone + 1, "{together} rounds, {alone} of one array alone");
}
