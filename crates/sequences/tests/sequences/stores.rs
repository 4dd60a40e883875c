//! Stores in files.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pipeline::Stop;
use proptest::prelude::*;
use sequences::{
    Alphabet, Error, JoinedStores, KmerSpec, RecordReader, SequenceFiles, SequenceFilesWriter,
    SequenceList, SequenceStore, Vocabulary, WhenUnknown,
};
use storage::LocalStorage;

use crate::bed::{open, random, store, write};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_was_written_is_read(
        sequences in proptest::collection::vec("[A-Z]{0,30}", 1..40),
        rows in proptest::collection::vec((0_u64..40, 0_u64..10), 0..6),
    ) {
        let (_folder, store) = store(&sequences);
        let n = sequences.len() as u64;
        let rows: Vec<_> =
            rows.iter().map(|(from, len)| (*from).min(n)..(from + len).min(n)).collect();
        let mut list = SequenceList::default();
        store.read(&rows, true, &mut list, &Stop::default()).unwrap();
        let expected: Vec<u64> = rows.into_iter().flatten().collect();
        prop_assert_eq!(list.len(), expected.len());
        for (at, row) in expected.into_iter().enumerate() {
            prop_assert_eq!(list.get(at), Some(sequences[row as usize].as_bytes()));
            let name = format!("s{row}");
            prop_assert_eq!(list.name(at), Some(name.as_bytes()));
            prop_assert_eq!(store.find(name.as_bytes()).unwrap(), Some(row));
        }
        prop_assert_eq!(store.find(b"another").unwrap(), None);
        let summary = store.summary();
        let n_letters: usize = sequences.iter().map(String::len).sum();
        prop_assert_eq!((summary.n_sequences, summary.n_letters), (n, n_letters as u64));
        for (letter, count) in &summary.letters {
            let all: usize = sequences.iter().map(|of| of.matches(*letter).count()).sum();
            prop_assert_eq!(*count, all as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Joined stores are the sequences of all, one after another.
    #[test]
    fn joined_stores_are_one(
        parts in proptest::collection::vec(proptest::collection::vec("[ACGT]{0,30}", 1..12), 1..5),
        rows in proptest::collection::vec((0_u64..50, 0_u64..20), 0..6),
    ) {
        let all: Vec<&String> = parts.iter().flatten().collect();
        let n = all.len() as u64;
        let (_folders, stores): (Vec<_>, Vec<_>) = parts.iter().map(|part| store(part)).unzip();
        let stores = stores.into_iter().map(|store| store as Arc<dyn SequenceStore>);
        let joined = JoinedStores::new(stores.collect()).unwrap();
        let sizes: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
        prop_assert_eq!(joined.sizes(), sizes);
        let names: Vec<String> =
            parts.iter().flat_map(|part| (0..part.len()).map(|row| format!("s{row}"))).collect();
        let rows: Vec<_> =
            rows.iter().map(|(from, len)| (*from).min(n)..(from + len).min(n)).collect();
        let (mut list, mut named) = (SequenceList::default(), SequenceList::default());
        joined.read(&rows, true, &mut list, &Stop::default()).unwrap();
        joined.read_names(&rows, &mut named, &Stop::default()).unwrap();
        let expected: Vec<u64> = rows.into_iter().flatten().collect();
        prop_assert_eq!(list.len(), expected.len());
        for (at, row) in expected.into_iter().enumerate() {
            prop_assert_eq!(list.get(at), Some(all[row as usize].as_bytes()));
            prop_assert_eq!(list.name(at), Some(names[row as usize].as_bytes()));
            prop_assert_eq!(named.name(at), Some(names[row as usize].as_bytes()));
        }
        let error = joined.read(&[n - 1..n + 1], false, &mut list, &Stop::default()).unwrap_err();
        prop_assert!(error.to_string().contains(&format!("sequence {n}")), "{error}");
        // Numbers and words of all together.
        let (_folder, one) = store(&all);
        let (found, expected) = (joined.summary(), one.summary());
        prop_assert_eq!((found.n_sequences, found.n_letters), (n, expected.n_letters));
        prop_assert_eq!((&found.letters, found.longest), (&expected.letters, expected.longest));
        let words = |store: &dyn SequenceStore| {
            let spec = KmerSpec::all_frames(3, 2);
            let words = Vocabulary::count(store, &Alphabet::DNA, &spec, WhenUnknown::Fail, 2);
            words.unwrap().counts().to_vec()
        };
        prop_assert_eq!(words(&joined), words(&*one));
    }
}

#[test]
fn joined_stores_have_the_fingerprint_of_their_order() {
    let texts = [vec!["AC"], vec!["G"], vec!["AC", "G"], vec!["AC"]];
    let [a, b, ab, again] = texts.map(|of| store(&of));
    let fingerprint = |stores: [&Arc<SequenceFiles>; 2]| {
        let stores =
            stores.map(|store| Arc::<SequenceFiles>::clone(store) as Arc<dyn SequenceStore>);
        JoinedStores::new(stores.to_vec()).unwrap().summary().fingerprint.clone()
    };
    let orders = [[&a.1, &b.1], [&b.1, &a.1], [&ab.1, &b.1], [&a.1, &ab.1]].map(fingerprint);
    let mut distinct = orders.to_vec();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), orders.len());
    assert_eq!(fingerprint([&again.1, &b.1]), orders[0]);
    let error = JoinedStores::new(Vec::new()).unwrap_err();
    assert!(error.to_string().contains("name at least one"), "{error}");
}

#[test]
fn a_store_of_kilobytes_takes_at_most_a_twentieth_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = SequenceFilesWriter::create(&folder.path().join("store"), &[]).unwrap();
    let mut n_stored = 0;
    for number in 0..500 {
        let (letters, name) = (random(b"ACGT", 1024, number), format!("design_id_{number}"));
        n_stored += letters.len() + name.len();
        writer.push(&letters, name.as_bytes()).unwrap();
    }
    let report = writer.finish().unwrap();
    assert!((report.n_bytes as f64) < 1.05 * n_stored as f64, "{report:?}");
}

#[test]
fn the_same_name_twice_is_named_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (folder.path().join("in"), folder.path().join("store"));
    fs::write(&file, "AC,a\nAC,b\nGG,c\nTT,b\n").unwrap();
    let mut writer = SequenceFilesWriter::create(&path, &[]).unwrap();
    RecordReader::open(&file).unwrap().copy_to(&mut writer, &mut |_| {}).unwrap();
    let error = writer.finish().unwrap_err();
    assert!(matches!(&error, Error::DuplicateName { name, first: 1, second: 3 } if name == "b"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the input is left");
}

#[test]
fn damaged_and_other_stores_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let opened = || SequenceFiles::open(Arc::new(LocalStorage::new(&path)));
    assert!(matches!(opened(), Err(Error::NotAStore { .. })), "nothing is there");
    write(&path, &["ACGT", "AC", "G"]);
    for (file, damage) in [
        ("letters", 6),
        ("letter-ends", 23),
        ("letter-ends", 16),
        ("names", 0),
        ("name-ends", 8),
        ("by-name", 35),
        ("sequences.json", 20),
    ] {
        let path = path.join(file);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..damage]).unwrap();
        let error = opened().unwrap_err();
        assert!(matches!(error, Error::Damaged { .. } | Error::NotAStore { .. }), "{error:?}");
        fs::write(&path, &whole).unwrap();
    }
    for (file, from, to) in
        [("letter-ends", [4, 0, 0, 0], [9, 0, 0, 0]), ("sequences.json", *b"n\": ", *b"n\":9")]
    {
        let path = path.join(file);
        let whole = fs::read(&path).unwrap();
        let at = whole.windows(4).position(|bytes| bytes == from).unwrap();
        let mut damaged = whole.clone();
        damaged[at..at + 4].copy_from_slice(&to);
        fs::write(&path, damaged).unwrap();
        assert!(opened().is_err(), "{file}");
        fs::write(&path, &whole).unwrap();
    }
    opened().unwrap();
}

/// Numbers that lie are errors that name the file; nothing is allocated for them.
#[test]
fn numbers_that_lie_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let opened = || SequenceFiles::open(Arc::new(LocalStorage::new(&path)));
    write(&path, &["ACGT", "AC", "G"]);
    let summary = path.join("sequences.json");
    let text = fs::read_to_string(&summary).unwrap();
    for (from, to) in [
        ("\"n_sequences\": 3", "\"n_sequences\": 1152921504606846976"),
        ("\"n_sequences\": 3", "\"n_sequences\": 18446744073709551615"),
        ("\"n_letters\": 7", "\"n_letters\": 18446744073709551615"),
        ("\"n_name_bytes\": 6", "\"n_name_bytes\": 4611686018427387904"),
        ("\"longest\": 4", "\"longest\": 3"),
    ] {
        assert!(text.contains(from), "{text}");
        fs::write(&summary, text.replace(from, to)).unwrap();
        let error = opened().unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{to}: {error:?}");
    }
    fs::write(&summary, &text).unwrap();
    for (file, at, to) in [
        ("letter-ends", 0, [u8::MAX; 8]),
        ("letter-ends", 16, [u8::MAX; 8]),
        ("letter-ends", 0, [5, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let path = path.join(file);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[at..at + 8].copy_from_slice(&to);
        fs::write(&path, damaged).unwrap();
        assert!(matches!(opened(), Err(Error::Damaged { .. })), "{file} {at}");
        fs::write(&path, &whole).unwrap();
    }
    let mut list = SequenceList::default();
    for (file, at, to) in [
        ("name-ends", 0, vec![u8::MAX; 8]),
        ("name-ends", 8, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("name-ends", 16, vec![u8::MAX; 8]),
        ("by-name", 8, vec![3, 0, 0, 0]),
        ("by-name", 8, vec![u8::MAX; 4]),
    ] {
        let path = path.join(file);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[at..at + to.len()].copy_from_slice(&to);
        // A row that is wrong is found by the name that has it.
        if file == "by-name" {
            (1..3).for_each(|entry| damaged[12 * entry + 8..12 * entry + 12].copy_from_slice(&to));
        }
        fs::write(&path, damaged).unwrap();
        let store = opened().unwrap();
        let error = if file == "by-name" {
            store.find(b"s1").unwrap_err()
        } else {
            store.read(&[0..1, 1..3], true, &mut list, &Stop::default()).unwrap_err()
        };
        assert!(matches!(error, Error::Damaged { .. }), "{file}: {error:?}");
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_store_is_written_to_a_folder_only() {
    for path in ["s3://bucket/genes", "gs://bucket/genes"] {
        let error = SequenceFilesWriter::create(Path::new(path), &[]).unwrap_err();
        assert!(matches!(error, Error::Settings { .. }), "{error:?}");
        assert!(!Path::new(path.split('/').next().unwrap()).exists());
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(std::ffi::OsStr::from_bytes(b"gen\xff"));
        assert!(matches!(SequenceFilesWriter::create(&path, &[]), Err(Error::Settings { .. })));
    }
}

/// A store of which something was not written does not appear.
#[test]
fn files_that_lack_bytes_are_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut writer = SequenceFilesWriter::create(&path, &[]).unwrap();
    writer.push(b"ACGT", b"a").unwrap();
    let names = folder.path().join("store.partial/experiment/names");
    fs::remove_file(&names).unwrap();
    fs::write(&names, "").unwrap();
    let error = writer.finish().unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A file that is cut while the store is open ends in an error.
#[test]
fn a_store_that_shrinks_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    write(&path, &["ACGTACGT", "ACGT"]);
    let store = open(&path);
    fs::write(path.join("letters"), "ACGTACGT").unwrap();
    let mut list = SequenceList::default();
    // A change that the file system's clock shows is an error here as well.
    match store.read(&[0..1], false, &mut list, &Stop::default()) {
        Ok(_) => assert_eq!(list.get(0), Some(&b"ACGTACGT"[..])),
        Err(error) => assert!(matches!(error, Error::Read { .. }), "{error:?}"),
    }
    let error = store.read(&[1..2], false, &mut list, &Stop::default()).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error:?}");
    let error = store.read(&[1..3], false, &mut list, &Stop::default()).unwrap_err();
    assert!(matches!(error, Error::Settings { .. }), "{error:?}");
}
