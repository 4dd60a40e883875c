//! Imports of small 10x folders made here.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use example_data::{Error, ImportReport, ImportSpec, import_10x};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use crate::contents::{Contents, floats, integers, names, read, texts};
use test_storage::{PRIVATE, Server};

const BANNER: &str = "%%MatrixMarket matrix coordinate integer general\n%a comment\n";

/// Three genes by four cells; the third cell has no values.
const MATRIX: &str = "3 4 5\n1 1 2\n3 1 7\n2 2 1\n1 4 1\n3 4 300\n";
const BARCODES: &str = "AAAC-1\nAAAG-1\nAAAT-1\nAACA-1\n";
const FEATURES: &str =
    "ENSG1\tA\tGene Expression\nENSG2\tB\tGene Expression\nENSG3\tCD3\tAntibody Capture\n";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A valid folder.
    fn good() -> Self {
        let folder = Self::new();
        folder.put_gzip("matrix.mtx.gz", &format!("{BANNER}{MATRIX}"));
        folder.put_gzip("barcodes.tsv.gz", BARCODES);
        folder.put_gzip("features.tsv.gz", FEATURES);
        folder
    }

    fn source(&self) -> PathBuf {
        let source = self.0.path().join("10x");
        fs::create_dir_all(&source).unwrap();
        source
    }

    fn target(&self) -> PathBuf {
        self.0.path().join("experiment")
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.source().join(name), content).unwrap();
    }

    fn put_gzip(&self, name: &str, content: &str) {
        self.put(name, gzip(content));
    }

    fn import_with(&self, spec: &ImportSpec) -> Result<ImportReport, Error> {
        import_10x(&self.source(), self.target().to_str().unwrap(), spec, &mut |_| {})
    }

    fn imported(&self) -> (ImportReport, Contents) {
        let report = self.import_with(&ImportSpec::default()).unwrap();
        (report, read(&self.target()))
    }
}

fn gzip(content: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A table of `n_rows` numbered rows.
fn numbered(n_rows: u32) -> String {
    (0..n_rows).fold(String::new(), |text, row| text + &format!("row{row}\n"))
}

#[test]
fn a_folder_becomes_an_experiment() {
    let folder = Folder::good();
    let (report, contents) = folder.imported();
    assert_eq!((report.n_cells, report.n_genes, report.nnz, report.sum), (4, 3, 5, 311.0));
    assert!(!report.sorted_in_memory && report.bytes_on_disk.is_some());
    assert_eq!(contents.x.row_offsets, [0, 2, 3, 3, 5]);
    assert_eq!(contents.x.columns, [0, 2, 1, 0, 2]);
    assert_eq!(contents.x.values, [2.0, 7.0, 1.0, 1.0, 300.0]);
    assert_eq!(texts(&contents.obs, "obs_id"), ["AAAC-1", "AAAG-1", "AAAT-1", "AACA-1"]);
    assert_eq!(floats(&contents.obs, "raw_sum"), [9.0, 1.0, 0.0, 301.0]);
    assert_eq!(integers(&contents.obs, "nnz"), [2, 1, 0, 2]);
    assert_eq!(texts(&contents.var, "feature_id"), ["ENSG1", "ENSG2", "ENSG3"]);
    assert_eq!(texts(&contents.var, "feature_name"), ["A", "B", "CD3"]);
    let types = ["Gene Expression", "Gene Expression", "Antibody Capture"];
    assert_eq!(texts(&contents.var, "feature_type"), types);
    assert_eq!(integers(&contents.var, "nnz"), [2, 1, 2]);
    assert_eq!(names(folder.0.path()), ["10x", "experiment"]);
}

#[test]
fn other_spellings_of_the_same_folder_give_the_same() {
    let (_, expect) = Folder::good().imported();
    let plain = Folder::new();
    plain.put("matrix.mtx", format!("{BANNER}{MATRIX}"));
    plain.put("barcodes.tsv", BARCODES);
    plain.put("features.tsv", FEATURES);
    assert_eq!(plain.imported().1, expect);

    // Windows line ends, empty lines, comments between entries, spaces, real numbers, no final
    // newline.
    let odd = Folder::new();
    odd.put(
        "matrix.mtx",
        "%%matrixmarket MATRIX coordinate real general\r\n\r\n 3  4 5\r\n1 1 2.0\r\n%\r\n3\t1 7e0\r\n2 2 1\r\n\r\n1 4 1.\r\n3 4 300",
    );
    odd.put("barcodes.tsv", BARCODES.replace('\n', "\r\n"));
    odd.put("features.tsv", FEATURES.trim_end());
    assert_eq!(odd.imported().1, expect);

    // Genes out of order within a cell; gzip in several members; a gzipped file without the suffix.
    let split = Folder::good();
    let (head, tail) = MATRIX.split_at(9);
    let [head, tail] =
        [format!("{BANNER}{head}"), tail.replace("1 4 1\n3 4 300", "3 4 300\n1 4 1")];
    split.put("matrix.mtx.gz", [gzip(&head), gzip(&tail)].concat());
    fs::rename(split.source().join("barcodes.tsv.gz"), split.source().join("barcodes.tsv"))
        .unwrap();
    assert_eq!(split.imported().1, expect);
}

#[test]
fn folders_of_cell_ranger_2_have_genes_without_a_type() {
    let folder = Folder::new();
    folder.put("matrix.mtx", format!("{BANNER}{MATRIX}"));
    folder.put("barcodes.tsv", BARCODES);
    folder.put("genes.tsv", "ENSG1\tA\nENSG2\tB\nENSG3\n");
    let (_, contents) = folder.imported();
    assert_eq!(texts(&contents.var, "feature_name"), ["A", "B", "ENSG3"]);
    assert_eq!(texts(&contents.var, "feature_type"), ["Gene Expression"; 3]);
}

#[test]
fn zeros_are_no_values_and_no_values_are_fine() {
    let folder = Folder::good();
    folder.put_gzip("matrix.mtx.gz", &format!("{BANNER}3 4 2\n1 1 0\n2 1 0\n"));
    let (report, contents) = folder.imported();
    assert_eq!((report.nnz, report.sum), (0, 0.0));
    assert_eq!(contents.x.row_offsets, [0; 5]);
}

#[test]
fn an_unsorted_matrix_is_sorted_where_memory_allows() {
    let (_, expect) = Folder::good().imported();
    let folder = Folder::good();
    let unsorted = "3 4 5\n1 4 1\n2 2 1\n3 4 300\n3 1 7\n1 1 2\n";
    folder.put_gzip("matrix.mtx.gz", &format!("{BANNER}{unsorted}"));
    let tight = ImportSpec { sort_budget_bytes: 5 * 24 - 1, ..ImportSpec::default() };
    let error = folder.import_with(&tight).unwrap_err();
    let matrix = folder.source().join("matrix.mtx.gz");
    assert_eq!(
        error.to_string(),
        format!(
            "{}, line 5: values are not sorted by cell, and sorting needs 120 bytes of memory, but only 119 are allowed: sort the file by its second column, or allow more",
            matrix.display()
        )
    );
    assert_eq!(names(folder.0.path()), ["10x"]);
    let enough = ImportSpec { sort_budget_bytes: 5 * 24, ..ImportSpec::default() };
    let report = folder.import_with(&enough).unwrap();
    assert!(report.sorted_in_memory);
    assert_eq!(read(&folder.target()), expect);
    assert_eq!(names(folder.0.path()), ["10x", "experiment"]);
}

#[test]
fn an_unsorted_matrix_is_noticed_before_anything_is_written_to_a_bucket() {
    let (_, expect) = Folder::good().imported();
    let server = Server::start();
    let mut config = server.config();
    // s3s-fs rejects libtiledb's multipart uploads.
    config.insert("vfs.s3.use_multipart_upload".into(), "false".into());
    let folder = Folder::good();
    let address = format!("s3://{PRIVATE}/experiment");
    let at = server.bucket(PRIVATE).join("experiment");
    let import = |sort_budget_bytes| {
        let spec =
            ImportSpec { sort_budget_bytes, config: config.clone(), ..ImportSpec::default() };
        import_10x(&folder.source(), &address, &spec, &mut |_| {})
    };
    // The first cells are in order.
    let unsorted = "3 4 5\n1 1 2\n2 2 1\n3 4 300\n1 4 1\n3 1 7\n";
    folder.put_gzip("matrix.mtx.gz", &format!("{BANNER}{unsorted}"));
    let refused = import(0).unwrap_err();
    assert!(matches!(refused, Error::Unsorted { .. }), "{refused}");
    assert!(!at.exists());
    let report = import(5 * 24).unwrap();
    assert!(report.sorted_in_memory);
    assert_eq!(read(&at), expect);
    assert_eq!(names(folder.0.path()), ["10x"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_matrix_comes_through(
        n_genes in 1_u32..60,
        n_cells in 1_u32..120,
        places in prop::collection::hash_map((0_u32..120, 0_u32..60), 1_u32..1000, 0..400),
        shuffled: bool,
    ) {
        let mut entries: Vec<(u32, u32, u32)> = places
            .into_iter()
            .filter(|((cell, gene), _)| *cell < n_cells && *gene < n_genes)
            .map(|((cell, gene), value)| (cell, gene, value))
            .collect();
        let mut sorted = entries.clone();
        sorted.sort_unstable();
        if !shuffled {
            entries.clone_from(&sorted);
        }
        let mut matrix = format!("{BANNER}{n_genes} {n_cells} {}\n", entries.len());
        for (cell, gene, value) in entries {
            writeln!(matrix, "{} {} {value}", gene + 1, cell + 1).unwrap();
        }
        let folder = Folder::new();
        folder.put_gzip("matrix.mtx.gz", &matrix);
        folder.put("barcodes.tsv", numbered(n_cells));
        folder.put("features.tsv", numbered(n_genes));
        let (report, contents) = folder.imported();
        let found: Vec<(u32, u32, u32)> = (0..n_cells)
            .flat_map(|cell| {
                let (genes, values) = contents.x.row(cell as usize);
                genes.iter().zip(values).map(move |(gene, value)| (cell, *gene, *value as u32))
            })
            .collect();
        prop_assert_eq!(&found, &sorted);
        prop_assert_eq!(report.nnz, sorted.len() as u64);
    }
}

#[test]
fn more_cells_than_a_piece_come_through() {
    let n_cells = 5000;
    let folder = Folder::new();
    let mut matrix = format!("{BANNER}2 {n_cells} {}\n", n_cells / 2);
    let mut barcodes = String::new();
    for cell in 1..=n_cells {
        if cell % 2 == 0 {
            writeln!(matrix, "{} {cell} {cell}", 1 + cell % 4 / 2).unwrap();
        }
        writeln!(barcodes, "cell{cell}").unwrap();
    }
    folder.put("matrix.mtx", matrix);
    folder.put("barcodes.tsv", barcodes);
    folder.put("features.tsv", "a\nb\n");
    let mut progress = Vec::new();
    let target = folder.target();
    let spec = ImportSpec { fragment_rows: Some(2048), consolidate: true, ..ImportSpec::default() };
    import_10x(&folder.source(), target.to_str().unwrap(), &spec, &mut |n| progress.push(n))
        .unwrap();
    assert_eq!(progress, [2048, 4096, 5000]);
    let contents = read(&target);
    let expect: Vec<f32> =
        (1..=n_cells).filter(|cell| cell % 2 == 0).map(|cell| cell as f32).collect();
    assert_eq!(contents.x.values, expect);
    assert_eq!(texts(&contents.obs, "obs_id")[4999], "cell5000");
}

/// Replaces a file of a valid folder and checks the error. `{}` at its beginning stands for the
/// file.
#[track_caller]
fn check(name: &str, content: &str, expect: &str) {
    let folder = Folder::good();
    let path = folder.source().join(name);
    fs::remove_file(folder.source().join(format!("{name}.gz"))).unwrap();
    folder.put(name, content);
    let error = folder.import_with(&ImportSpec::default()).unwrap_err();
    assert_eq!(error.to_string(), expect.replace("{}", &path.display().to_string()));
    assert_eq!(names(folder.0.path()), ["10x"], "nothing is left behind");
}

#[test]
fn a_broken_matrix_is_an_error_with_its_line() {
    let matrix = |rest: &str, expect: &str| check("matrix.mtx", &format!("{BANNER}{rest}"), expect);
    let banner = "{}, line 1: expected \"%%MatrixMarket matrix coordinate\" with \"integer general\" or \"real general\"";
    check("matrix.mtx", "", banner);
    check("matrix.mtx", "%%MatrixMarket matrix array real general\n", banner);
    check("matrix.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n", banner);
    matrix("", "{}, line 2: the file ends before the line with its sizes");
    matrix("3 4\n", "{}, line 3: expected three numbers: genes, cells, entries");
    matrix("3 4 x\n", "{}, line 3: expected three numbers: genes, cells, entries");
    matrix("3 0 0\n", "{}, line 3: the matrix has 0 cells; it must be 1 to 4294967295");
    matrix("3 4 13\n", "{}, line 3: 13 entries do not fit into 3 x 4");
    matrix("3 4 1\n1 1\n", "{}, line 4: expected three numbers: gene, cell, value");
    matrix("3 4 1\n1 1 1 1\n", "{}, line 4: expected three numbers: gene, cell, value");
    matrix("3 4 1\n4 1 1\n", "{}, line 4: gene 4 is not among 1 to 3");
    matrix("3 4 1\n0 1 1\n", "{}, line 4: gene 0 is not among 1 to 3");
    matrix("3 4 1\n1 5 1\n", "{}, line 4: cell 5 is not among 1 to 4");
    matrix("3 4 1\n1 a 1\n", "{}, line 4: \"a\" is not the number of a cell");
    matrix("3 4 1\n1 1 1.5\n", "{}, line 4: \"1.5\" is not a whole number");
    matrix("3 4 2\n1 1 1\n", "{}, line 4: the file ends after 1 of 2 entries: is it truncated?");
    matrix("3 4 1\n1 1 1\n1 2 1\n", "{}, line 5: there are more entries than the 1 of the header");
    let twice = "3 4 3\n1 2 1\n3 2 1\n1 2 5\n";
    matrix(twice, "{}, line 6: gene 1 of cell 2 already stands in line 4");
    let twice_unsorted = "3 4 3\n1 2 1\n3 1 1\n1 2 5\n";
    matrix(twice_unsorted, "{}, line 6: gene 1 of cell 2 already stands in line 4");
}

#[test]
fn a_broken_table_is_an_error_with_its_line() {
    check(
        "barcodes.tsv",
        "a\nb\nc\n",
        "{}, line 3: the file ends after 3 rows, the matrix has 4 cells",
    );
    check("barcodes.tsv", "", "{}, line 1: the file ends after 0 rows, the matrix has 4 cells");
    let more = "{}, line 5: there are more rows than the 4 cells of the matrix";
    check("barcodes.tsv", "a\nb\nc\nd\ne\n", more);
    let twice = "{}, line 3: the barcode \"a\" already stands in line 1";
    check("barcodes.tsv", "a\nb\na\nd\n", twice);
    check("features.tsv", "a\tx\n\ty\nc\n", "{}, line 2: the feature id is empty");
    check("features.tsv", "a\nb\nb\n", "{}, line 3: the feature id \"b\" already stands in line 2");
    let long = "x".repeat(2 << 20);
    check("features.tsv", &long, "{}, line 1: it is longer than 1048576 bytes: is this text?");
}

#[test]
fn what_is_not_text_is_an_error_with_its_line() {
    let folder = Folder::good();
    folder.put("barcodes.tsv.gz", b"a\nb\xff\nc\nd\n");
    let error = folder.import_with(&ImportSpec::default()).unwrap_err().to_string();
    assert!(error.ends_with("barcodes.tsv.gz, line 2: it is not UTF-8 text"), "{error}");
}

#[test]
fn a_gzip_file_that_is_cut_off_is_an_error() {
    let folder = Folder::good();
    let mut matrix = format!("{BANNER}1000 4 4000\n");
    for cell in 1..=4 {
        for gene in 1..=1000 {
            writeln!(matrix, "{gene} {cell} {}", gene * 7919 % 1000 + 1).unwrap();
        }
    }
    let whole = gzip(&matrix);
    folder.put("features.tsv.gz", numbered(1000));
    for n_bytes in [15, whole.len() / 2, whole.len() - 1] {
        folder.put("matrix.mtx.gz", &whole[..n_bytes]);
        let error = folder.import_with(&ImportSpec::default()).unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("matrix.mtx.gz, after line "), "{text}");
        assert!(text.ends_with("the file is truncated, copy it again"), "{text}");
        assert_eq!(names(folder.0.path()), ["10x"]);
    }
    folder.put("matrix.mtx.gz", &whole);
    assert_eq!(folder.imported().0.nnz, 4000);
}

#[test]
fn files_that_are_not_there_or_twice_are_errors() {
    let message =
        |folder: &Folder| folder.import_with(&ImportSpec::default()).unwrap_err().to_string();
    let folder = Folder::good();
    let source = folder.source();
    fs::remove_file(source.join("features.tsv.gz")).unwrap();
    let expect = format!(
        "{} has no features.tsv or features.tsv.gz: it is not a 10x Genomics folder",
        source.display()
    );
    assert_eq!(message(&folder), expect);
    let folder = Folder::good();
    folder.put("matrix.mtx", "");
    let expect =
        format!("{} has both matrix.mtx.gz and matrix.mtx: remove one", folder.source().display());
    assert_eq!(message(&folder), expect);
    let missing = import_10x(Path::new("no/such"), "x", &ImportSpec::default(), &mut |_| {});
    assert!(missing.unwrap_err().to_string().starts_with("cannot open the folder no/such: "));
    File::create(folder.target()).unwrap();
    fs::remove_file(folder.source().join("matrix.mtx")).unwrap();
    let existing = folder.import_with(&ImportSpec::default());
    assert!(
        matches!(existing, Err(Error::Destination(soma_io::DestinationError::Exists { .. }))),
        "{existing:?}"
    );
}
