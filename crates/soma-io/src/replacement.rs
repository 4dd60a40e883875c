//! The folders that a new experiment may replace.

use storage::{Existing, Replaceable};

use crate::{Experiment, OpenOptions};

/// Replaces an existing experiment once the new one is complete. Only the folder of an experiment
/// is replaced, never another TileDB group.
pub const REPLACE_EXPERIMENT: Existing = Existing::Replace(Replaceable {
    what: "the folder of an experiment",
    check: |place| match Experiment::open(place, &OpenOptions::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    },
});

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use storage::{Destination, DestinationError};

    use super::*;

    /// A TileDB group, with or without a SOMA type, and a file in its folder.
    fn group(at: &Path, object_type: Option<&str>) {
        fs::create_dir_all(at).unwrap();
        let context = tiledb::Context::new(&tiledb::Config::new()).unwrap();
        let uri = at.to_str().unwrap();
        tiledb::Group::create(&context, uri).unwrap();
        let group = tiledb::Group::open_for_writing(&context, uri).unwrap();
        if let Some(object_type) = object_type {
            group.put_metadata("soma_object_type", &object_type.into()).unwrap();
            group.put_metadata("soma_encoding_version", &"1.1.0".into()).unwrap();
        }
        group.close().unwrap();
        fs::write(at.join("content"), "kept").unwrap();
    }

    #[test]
    fn only_an_experiment_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let refused = |place: &Path, why: &str| {
            let claimed = Destination::claim(place.to_str().unwrap(), REPLACE_EXPERIMENT, &[]);
            let refused = claimed.unwrap_err();
            assert!(matches!(refused, DestinationError::Irreplaceable { .. }), "{refused}");
            let refused = refused.to_string();
            assert!(refused.contains(why) && refused.contains("choose another place"), "{refused}");
        };
        let kinds = [
            (None, "neither a TileDB group nor an array"),
            (Some(None), "not of SOMA"),
            (Some(Some("SOMACollection")), "SOMACollection"),
            (Some(Some("SOMAMeasurement")), "SOMAMeasurement"),
        ];
        for (kind, why) in kinds {
            match kind {
                None => fs::create_dir(&target).unwrap(),
                Some(object_type) => group(&target, object_type),
            }
            // Like a collection of experiments.
            group(&target.join("inner"), Some("SOMAExperiment"));
            refused(&target, why);
            assert!(target.join("inner/content").exists());
            fs::remove_dir_all(&target).unwrap();
        }
        // Parts of an experiment.
        group(&target, Some("SOMAExperiment"));
        for part in ["ms", "ms/RNA/X"] {
            group(&target.join(part), Some("SOMACollection"));
            refused(&target.join(part), "SOMACollection");
            assert!(target.join(part).join("__group").exists());
        }
        let claimed = Destination::claim(target.to_str().unwrap(), REPLACE_EXPERIMENT, &[]);
        let claimed = claimed.unwrap();
        group(Path::new(claimed.uri()), Some("SOMAExperiment"));
        fs::write(Path::new(claimed.uri()).join("content"), "new").unwrap();
        claimed.publish().unwrap();
        assert_eq!(fs::read_to_string(target.join("content")).unwrap(), "new");
        assert!(!target.join("ms").exists());
    }
}
