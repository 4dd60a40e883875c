//! Names that contain times: `__t1_t2_uuid`, or `__t1_t2_uuid_version` for fragments and their
//! commits.
//!
//! Specification: `format_spec/timestamped_name.md`. Fragments of formats 1 and 2 (`__uuid_t1`) are
//! older than any that are read here.

/// The times of a file or folder, in milliseconds since 1970, and the format version if its name
/// has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) version: Option<u32>,
}

/// The times in `name`, which may have a suffix after a dot; `None` if it is not such a name.
pub(crate) fn parse(name: &str) -> Option<Times> {
    let stem = name.split('.').next()?.strip_prefix("__")?;
    let mut parts = stem.split('_');
    let start = parts.next()?.parse().ok()?;
    let end = parts.next()?.parse().ok()?;
    let uuid = parts.next()?;
    let version = match parts.next() {
        Some(version) => Some(version.parse().ok()?),
        None => None,
    };
    (uuid.len() == 32 && parts.next().is_none() && start <= end).then_some(Times {
        start,
        end,
        version,
    })
}

/// Whether `file`, a path from the array's folder, lies in the folder of a fragment. TileDB writes
/// such a file once and never changes it, so a cache may keep its bytes.
pub fn is_in_fragment(file: &str) -> bool {
    let Some((folders, _)) = file.rsplit_once('/') else { return false };
    folders.split('/').any(|name| !name.contains('.') && parse(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_fragments_are_written_once() {
        let fragment = "__1_2_70f1b2c0f0669ba097275f1a0db8dd1c";
        assert!(is_in_fragment(&format!("__fragments/{fragment}_22/a0.tdb")));
        assert!(is_in_fragment(&format!("{fragment}_5/__fragment_metadata.tdb")));
        for other in [
            format!("{fragment}_5.ok"),
            format!("__schema/{fragment}"),
            format!("__commits/{fragment}_22.con"),
            format!("__fragment_meta/{fragment}_22.meta"),
            format!("{fragment}.old/a0.tdb"),
            "__array_schema.tdb".to_owned(),
            "__fragments/a0.tdb".to_owned(),
            String::new(),
        ] {
            assert!(!is_in_fragment(&other), "{other}");
        }
    }

    #[test]
    fn names() {
        let with = "__1795231330418_1795231330420_70f1b2c0f0669ba097275f1a0db8dd1c_22.wrt";
        assert_eq!(
            parse(with),
            Some(Times { start: 1_795_231_330_418, end: 1_795_231_330_420, version: Some(22) })
        );
        let without = "__1_2_70f1b2c0f0669ba097275f1a0db8dd1c";
        assert_eq!(parse(without), Some(Times { start: 1, end: 2, version: None }));
        for bad in [
            "",
            "__",
            "__schema",
            "__fragments",
            "__1_2_short",
            "__2_1_70f1b2c0f0669ba097275f1a0db8dd1c",
            "__array_schema.tdb",
            "__70f1b2c0f0669ba097275f1a0db8dd1c_17",
            "__1_2_70f1b2c0f0669ba097275f1a0db8dd1c_x",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
