//! Writing an experiment to a bucket equals writing to a folder.

use soma_io::{
    ColumnChoice, Destination, DestinationError, Error, Existing, Experiment, ExperimentWriter,
    FrameCopy, OpenOptions, REPLACE_EXPERIMENT,
};

use crate::s3::places::{READERS, Stored, every_cell, reader_of, rows};
use test_storage::PRIVATE;

#[test]
fn what_is_written_to_a_bucket_is_read_from_it() {
    let stored = Stored::new(PRIVATE);
    let mut config = stored.server.config();
    // s3s-fs rejects libtiledb's multipart uploads.
    config.insert("vfs.s3.use_multipart_upload".into(), "false".into());
    let options = OpenOptions { config: config.clone(), ..OpenOptions::default() };
    let source = stored.open(config.clone()).unwrap();
    let measurement = source.measurement("RNA").unwrap();
    let copy = |frame| FrameCopy::new(frame, &ColumnChoice::All, None).unwrap();
    let (obs, var) = (copy(source.obs().unwrap()), copy(measurement.var().unwrap()));
    let spec = soma_io::ExperimentSpec {
        obs: obs.specs().to_vec(),
        var: var.specs().to_vec(),
        config,
        ..stored.small.spec.clone()
    };
    let address = format!("s3://{PRIVATE}/copy");
    let destination = Destination::claim(&address, Existing::Keep, &[]).unwrap();
    assert_eq!(destination.uri(), address);
    let mut writer = ExperimentWriter::create(destination.uri(), spec.clone()).unwrap();
    writer.write_obs(&obs.read(&rows([0..spec.n_obs])).unwrap()).unwrap();
    writer.write_var(&var.read(&rows([0..spec.n_var])).unwrap()).unwrap();
    let x = &stored.small.x;
    for layer in &spec.layers {
        writer.write_x(layer, &x.row_offsets, &x.columns, &x.values).unwrap();
    }
    // Nothing opens before it is complete.
    let early = Experiment::open(&address, &options).unwrap_err();
    assert!(matches!(early, Error::NotA { .. }), "{early}");
    writer.finish().unwrap();
    assert_eq!(destination.publish().unwrap(), None);

    let written = Experiment::open(&address, &options).unwrap();
    assert_eq!(written.obs().unwrap().read(None, None).unwrap(), stored.small.obs);
    let found = written.measurement("RNA").unwrap().var().unwrap().read(None, None).unwrap();
    assert_eq!(found, stored.small.var);
    for choice in READERS {
        let reader = reader_of(&written, choice).unwrap();
        assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
    }
    // Existing objects are not overwritten.
    let again = ExperimentWriter::create(&address, spec).unwrap_err();
    assert!(matches!(again, Error::Destination(DestinationError::Exists { .. })), "{again}");
    let replaced = Destination::claim(&address, REPLACE_EXPERIMENT, &[]).unwrap_err();
    assert!(matches!(replaced, DestinationError::Irreplaceable { .. }), "{replaced}");
}
