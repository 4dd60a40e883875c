//! Relayouts to an object store, where writes cannot be undone.

use std::ops::ControlFlow;
use std::path::Path;

use relayout::{CodecChoice, Codecs, Error, RelayoutEvent, RelayoutReport, RelayoutSpec};

use crate::same::{LITTLE_MEMORY, SLOW};
use crate::small::{check, names, open, rows_with_a_late_fraction, write};
use test_storage::{PRIVATE, Server};

/// Lays out an experiment to a bucket, with temporary files in `folder`.
fn lay_out(
    server: &Server,
    folder: &Path,
    name: &str,
    spec: RelayoutSpec,
    see: &mut dyn FnMut(RelayoutEvent<'_>),
) -> Result<RelayoutReport, Error> {
    let mut config = server.config();
    // s3s-fs rejects libtiledb's multipart uploads.
    config.insert("vfs.s3.use_multipart_upload".into(), "false".into());
    let spec = RelayoutSpec {
        config,
        memory_bytes: LITTLE_MEMORY,
        temporary: Some(folder.to_owned()),
        ..spec
    };
    let source = open(&folder.join("from"))?;
    relayout::relayout(&source, &format!("s3://{PRIVATE}/{name}"), &spec, &mut |event| {
        see(event);
        ControlFlow::Continue(())
    })
}

#[test]
fn in_a_bucket_all_values_are_checked_before_anything_is_written() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let rows = rows_with_a_late_fraction();
    let n_rows = rows.len() as u32;
    write(&folder.path().join("from"), &rows, 2_000);
    for (name, shuffle_seed) in [("kept", None), ("shuffled", Some(1))] {
        let spec = RelayoutSpec { codec: SLOW, shuffle_seed, ..RelayoutSpec::default() };
        let at = server.bucket(PRIVATE).join(name);
        let mut began_anew = false;
        let report = lay_out(&server, folder.path(), name, spec, &mut |event| {
            if let RelayoutEvent::NotWhole(_) = event {
                began_anew = true;
                assert!(!at.exists());
            }
        });
        assert_eq!(report.unwrap().codecs.values.name, "zstd");
        assert!(began_anew);
        let joinids = shuffle_seed
            .map_or_else(|| (0..n_rows).collect(), |seed| shuffle::storage_order(n_rows, seed));
        let joinids: Vec<u64> = joinids.into_iter().map(u64::from).collect();
        check(&at, &rows, &joinids, shuffle_seed.map(|_| "source_joinid"));
    }
    // A named codec is refused, and nothing is written.
    let codec = CodecChoice::Named(Codecs::named("packed", "packed").unwrap());
    let spec = RelayoutSpec { codec, ..RelayoutSpec::default() };
    let refused = lay_out(&server, folder.path(), "packed", spec, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, Error::NotWhole { .. }), "{refused}");
    assert!(!server.bucket(PRIVATE).join("packed").exists());
    assert_eq!(names(folder.path()), ["from"]);
}
