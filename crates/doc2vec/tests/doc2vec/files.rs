//! Embeddings in files: read back as written, and damaged files as errors.

use std::fs;

use doc2vec::{Embeddings, Error, NamedVectors};
use proptest::prelude::*;

fn vectors(name: &'static str) -> impl Strategy<Value = NamedVectors> {
    (0_usize..6, 1_usize..10).prop_flat_map(move |(n_vectors, dimension)| {
        let names = prop::collection::vec(name, n_vectors);
        let value = any::<f32>().prop_filter("finite", |value| value.is_finite());
        let values = prop::collection::vec(value, n_vectors * dimension);
        (names, values)
            .prop_map(move |(names, values)| NamedVectors::new(names, values, dimension).unwrap())
    })
}

/// The bits of all numbers: -0 is not 0.
fn bits(vectors: &NamedVectors) -> Vec<u32> {
    vectors.values().iter().map(|value| value.to_bits()).collect()
}

proptest! {
    #[test]
    fn word2vec_files_are_read_back(vectors in vectors("[!-~äß漢]{1,12}")) {
        let folder = tempfile::tempdir().unwrap();
        let (text, binary) = (folder.path().join("text"), folder.path().join("binary"));
        vectors.write_word2vec_text(&text).unwrap();
        vectors.write_word2vec_binary(&binary).unwrap();
        for read in [
            NamedVectors::read_word2vec_text(&text).unwrap(),
            NamedVectors::read_word2vec_binary(&binary).unwrap(),
        ] {
            prop_assert_eq!(&read, &vectors);
            prop_assert_eq!(bits(&read), bits(&vectors));
        }
        // No partial file remains.
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn safetensors_are_read_back(documents in vectors("(?s).{0,9}"), words in vectors("[A-Z]{4}")) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors.safetensors");
        let embeddings = Embeddings { documents, words };
        embeddings.write_safetensors(&path).unwrap();
        let read = Embeddings::read_safetensors(&path).unwrap();
        prop_assert_eq!(&read, &embeddings);
        prop_assert_eq!(bits(&read.documents), bits(&embeddings.documents));
    }

    #[test]
    fn a_cut_file_is_an_error_or_whole(vectors in vectors("[a-z]{1,5}"), cut in 1_usize..60) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut");
        vectors.write_word2vec_binary(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len().saturating_sub(cut)]).unwrap();
        match NamedVectors::read_word2vec_binary(&path) {
            Ok(read) => prop_assert!(read == vectors && cut == 1 && !read.is_empty()),
            Err(Error::Format { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        let embeddings = Embeddings { documents: vectors.clone(), words: vectors };
        embeddings.write_safetensors(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len().saturating_sub(cut)]).unwrap();
        let error = Embeddings::read_safetensors(&path).unwrap_err();
        prop_assert!(matches!(error, Error::Safetensors { .. }), "{}", error);
    }
}

#[track_caller]
fn assert_text(text: &str, message: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors.txt");
    fs::write(&path, text).unwrap();
    let error = NamedVectors::read_word2vec_text(&path).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn wrong_lines_are_named() {
    assert_text("", "line 1: \"\" is not a number of vectors");
    assert_text("1\na 1\n", "line 1");
    assert_text("1 0\na\n", "line 1");
    assert_text("1 2 3\na 1 2\n", "line 1");
    assert_text("2 2\na 1 2\nb 1 x\n", "line 3: \"x\" of \"b\" is not a number");
    assert_text("2 2\na 1 2\nb 1\n", "line 3: \"b\" has 1 numbers instead of 2");
    assert_text("2 2\na 1 2\n\n", "line 3: the line is empty");
    assert_text("2 2\na 1 2\n", "line 3: the file ends here, of 2 vectors");
    assert_text("1 2\na 1 2\nb 1 2\n", "line 3: the header announces 1 vectors only");
    assert_text("1 2\na 1 inf\n", "vector 0 (a) has the number inf");
    assert_text("99999999999999999999 2\n", "line 1");
}

#[test]
fn wrong_bytes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors.bin");
    let check = |bytes: &[u8], message: &str| {
        fs::write(&path, bytes).unwrap();
        let error = NamedVectors::read_word2vec_binary(&path).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    check(b"1 1", "line 1: it does not end");
    check(b"1 1\na \0\0", "vector 0: the file ends within the 1 numbers of \"a\"");
    check(b"1 1\n\xff \0\0\0\0", "vector 0: its name is not UTF-8");
    check(b"1 1\na \0\0\0\0\nb", "the end: 2 bytes follow");
    check(b"2 1\na \0\0\0\0\n", "vector 1: the file ends before or in its name");
    check(b"1 18446744073709551615\na \0", "vector 0: the file ends within");
}

#[test]
fn names_with_white_space_are_refused_by_word2vec_s_forms() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors");
    for name in ["", "a b", "a\n", "a\u{a0}b"] {
        let names = vec!["good".to_owned(), name.to_owned()];
        let vectors = NamedVectors::new(names, vec![1.0, 2.0], 1).unwrap();
        for error in [
            vectors.write_word2vec_text(&path).unwrap_err(),
            vectors.write_word2vec_binary(&path).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Name { row: 1, .. }), "{error}");
        }
    }
    assert!(!path.exists());
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = NamedVectors::new(vec!["a".to_owned()], vec![1.0], 1).unwrap();
    let missing = folder.path().join("missing/vectors");
    let error = vectors.write_word2vec_text(&missing).unwrap_err();
    assert!(matches!(&error, Error::Write { path, .. } if *path == missing), "{error}");
    let error = NamedVectors::read_word2vec_text(&missing).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");

    // A folder is where the partial file should be.
    let path = folder.path().join("vectors");
    vectors.write_word2vec_text(&path).unwrap();
    fs::create_dir(folder.path().join("vectors.partial")).unwrap();
    let other = NamedVectors::new(vec!["b".to_owned()], vec![2.0], 1).unwrap();
    assert!(other.write_word2vec_text(&path).is_err());
    assert_eq!(NamedVectors::read_word2vec_text(&path).unwrap(), vectors);
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors.safetensors");
    fs::write(&path, b"not tensors").unwrap();
    assert!(matches!(Embeddings::read_safetensors(&path), Err(Error::Safetensors { .. })));

    let header = br#"{"documents":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    bytes.extend_from_slice(&[0; 4]);
    fs::write(&path, bytes).unwrap();
    let error = Embeddings::read_safetensors(&path).unwrap_err().to_string();
    assert!(error.contains("documents is F32 of shape [1]"), "{error}");
}

#[test]
fn rows_are_found_by_name() {
    let names = ["b", "a"].map(str::to_owned).to_vec();
    let vectors = NamedVectors::new(names, vec![1.0, 0.0, 3.0, 4.0], 2).unwrap();
    assert_eq!(vectors.rows()["a"], 1);
    assert_eq!(vectors.vector(1), Some(&[3.0, 4.0][..]));
    assert_eq!(vectors.vector(2), None);
    assert_eq!((vectors.len(), vectors.dimension(), vectors.is_empty()), (2, 2, false));
    let nearest = vectors.unit().nearest(0, 5);
    assert_eq!((nearest.len(), nearest[0].row), (1, 1));
    assert!((nearest[0].cosine - 0.6).abs() < 1e-6);
}
