//! Generated files, against the rule and against each other.

use std::fs;
use std::path::Path;

use sequence_bench::Error;
use sequence_bench::generate::{Compression, DragonLines, Families, GenerateSpec, Kind, generate};
use sequences::{RecordFormat, RecordReader};

/// Enough for several parts of 4,096 sequences would be slow in a test; this is one and a few of
/// short ones.
const LINES: Kind =
    Kind::Families(Families { n_families: 700, n_members: 13, mutations: 0.2, n_letters: 7 });

fn write(file: &Path, spec: &GenerateSpec) -> Vec<u8> {
    generate(file, spec, &mut |_| {}).unwrap();
    fs::read(file).unwrap()
}

fn records(file: &Path) -> Vec<(String, String)> {
    let mut reader = RecordReader::open(file).unwrap();
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let [letters, name] =
            [record.letters, record.name].map(|of| String::from_utf8(of.to_vec()).unwrap());
        records.push((letters, name));
    }
    records
}

#[test]
fn a_file_has_the_lines_of_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    let spec = GenerateSpec::new(Kind::Dragon(DragonLines::bytes(20_000)));
    let mut n_done = 0;
    let report = generate(&file, &spec, &mut |n| n_done = n).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), n_done, report.n_sequences), (20, 20, 20));
    assert_eq!(report.n_bytes, text.len() as u64);
    let mut n_letters = 0;
    for (number, line) in lines.iter().enumerate() {
        let (letters, name) = line.split_once(',').unwrap();
        assert_eq!(name, format!("design_id_{}", number + 1));
        // 10,000 bytes less 9 full lines of 1,025 are 775.
        assert_eq!(letters.len(), if number % 10 == 9 { 775 } else { 1024 });
        let alphabet = if number < 10 { "ATCG" } else { "AUCG" };
        assert!(letters.chars().all(|letter| alphabet.contains(letter)));
        assert!(alphabet.chars().all(|letter| letters.contains(letter)));
        n_letters += letters.len() as u64;
    }
    assert_eq!(report.n_letters, n_letters);
}

#[test]
fn the_seed_decides_and_threads_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, spec: &GenerateSpec| write(&folder.path().join(name), spec);
    for compression in [Compression::None, Compression::Gzip, Compression::Bgzip] {
        let spec = GenerateSpec { compression, n_threads: 1, ..GenerateSpec::new(LINES) };
        let name = format!("{compression:?}");
        let one = written(&name, &spec);
        let many = written(&format!("{name}-3"), &GenerateSpec { n_threads: 3, ..spec.clone() });
        assert!(one == many, "{compression:?}");
        let other = written(&format!("{name}-seed"), &GenerateSpec { seed: 1, ..spec });
        assert!(one != other, "{compression:?}");
    }
    // Other sizes have the same sequences, as far as their lines are full.
    let [small, large] = [20_000, 40_000].map(|n_bytes| {
        let kind = Kind::Dragon(DragonLines::bytes(n_bytes));
        written(&n_bytes.to_string(), &GenerateSpec::new(kind))
    });
    assert_eq!(small[..1024], large[..1024]);
}

#[test]
fn all_formats_have_the_same_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = None;
    for format in [RecordFormat::Lines, RecordFormat::Fasta, RecordFormat::Fastq] {
        for compression in [Compression::None, Compression::Gzip, Compression::Bgzip] {
            let file = folder.path().join(format!("{format:?}-{compression:?}"));
            let spec = GenerateSpec { format, compression, ..GenerateSpec::new(LINES) };
            write(&file, &spec);
            let found = records(&file);
            assert_eq!(found.len(), 9_100);
            assert_eq!(found[1_401].1, "family_1_member_2");
            assert_eq!(&found, expected.get_or_insert_with(|| found.clone()), "{file:?}");
        }
    }
}

#[test]
fn what_is_there_stays_and_what_is_wrong_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    let error = generate(&file, &GenerateSpec::new(LINES), &mut |_| {}).unwrap_err();
    assert!(matches!(error, Error::Destination(_)), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");

    let nothing = GenerateSpec::new(Kind::Dragon(DragonLines::bytes(1)));
    let other = folder.path().join("other");
    assert!(generate(&other, &nothing, &mut |_| {}).unwrap_err().is_usage());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
}
