//! The command that measures: rows, tables and pictures of a tiny store.

use std::fs;

use bench_report::{Status, read};

use crate::{run, store};

#[test]
fn a_sweep_measures_every_point_of_its_grid() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let (code, table, messages) = run(
        folder,
        "sweep store --form letters,tokens,windows -w 0,2 -B 5,16 -E 2 --repetitions 2 \
         --chunk 4 --chunks-per-block 3 --published -q -d results",
    );
    assert_eq!(code, Some(0), "{table}{messages}");
    let rows = read(&folder.join("results")).unwrap();
    assert_eq!(rows.len(), 3 * 2 * 2 * 2 * 2);
    for row in &rows {
        let measured = &row.measured;
        assert_eq!((measured.status, measured.n_rows), (Status::Ok, Some(48)), "{row:?}");
        assert_eq!(row.point.workload.as_deref(), Some("sequences"));
        assert_eq!(measured.bytes_needed, measured.bytes_read);
        // 24 full lines, but for one at the end of each half with 1,024 less 23 letters.
        let n_letters = 2 * (23 * 1024 + 1001);
        assert_eq!(measured.bytes_read, Some(n_letters), "{row:?}");
        // A sequence has 21 words with padding more than letters, of which 24 are no targets.
        let n_words = match row.point.form.as_str() {
            "letters" => None,
            "tokens" => Some(n_letters + 48 * 21),
            _ => Some(n_letters + 48 * 21 - 48 * 24),
        };
        assert_eq!(measured.nnz, n_words, "{row:?}");
    }
    let seeds: Vec<u64> = rows.iter().map(|row| row.point.seed).collect();
    assert!(seeds.contains(&0) && seeds.contains(&1), "{seeds:?}");
    for form in ["letters", "tokens", "windows"] {
        assert!(table.contains(&format!("| store | {form} | 2 | 16 |")), "{table}");
        let picture = fs::read_to_string(folder.join(format!("results/{form}.svg"))).unwrap();
        for part in ["0 workers", "2 workers", "batches of 5", "batches of 16"] {
            assert!(picture.contains(part), "{part}");
        }
        assert!(folder.join(format!("results/{form}.png")).is_file());
    }
    assert!(table.contains("not for a pass over"), "{table}");
    let page = fs::read_to_string(folder.join("results/README.md")).unwrap();
    for part in ["sequences sweep store", "4-mers stride 4 frames 4 padding 3", "48 sequences"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn several_stores_are_measured_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    run(folder, "generate large.txt --size 100KB -q");
    run(folder, "import large.txt large -q");
    let (code, table, messages) = run(
        folder,
        "sweep store large --form tokens -w 1 -B 8 -E 1 --warmup 0 --repetitions 1 -n 2 \
         --in-order -q -d results",
    );
    assert_eq!(code, Some(0), "{table}{messages}");
    let rows = read(&folder.join("results")).unwrap();
    let uris: Vec<&str> = rows.iter().map(|row| row.data.uri.as_str()).collect();
    assert!(uris[0].ends_with("/store") && uris[1].ends_with("/large"), "{uris:?}");
    assert!(
        rows.iter().all(|row| row.measured.n_rows == Some(16) && row.point.order == "in-order")
    );
    assert!(folder.join("results/tokens-2.svg").is_file());
}

#[test]
fn a_point_that_fails_is_a_row_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("file.txt"), "ACGTACGT,a\nACNTACGT,b\n").unwrap();
    run(folder, "import file.txt store -q");
    let (code, table, _) = run(
        folder,
        "sweep store --form letters,tokens --alphabet ACGT -w 1 -B 1 -E 1 --warmup 0 \
         --repetitions 1 -q -d results",
    );
    assert_eq!(code, Some(1), "{table}");
    assert!(
        table.contains("failed: error: sequence 1 has the letter 'N' at position 2"),
        "{table}"
    );
    let rows = read(&folder.join("results")).unwrap();
    let states: Vec<Status> = rows.iter().map(|row| row.measured.status).collect();
    assert_eq!(states, [Status::Ok, Status::Error]);
}
