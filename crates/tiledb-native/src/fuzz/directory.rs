//! Listings of an array's folders, with commit, ignore and vacuum files.

use std::sync::Arc;

use storage::Files;

use super::{first_byte, split_at_most};
use crate::directory::Directory;
use crate::timestamped_name::{self, is_in_fragment};
use storage::MemoryStorage;

/// Input: files one after another, each as folder (1 byte), length of the name (1 byte) and of the
/// content (1 byte), name, content.
pub(super) fn directory(input: &[u8]) {
    let mut served = MemoryStorage::default();
    let mut rest = input;
    while !rest.is_empty() {
        let (folder, after) = first_byte(rest);
        let (name_len, after) = first_byte(after);
        let (content_len, after) = first_byte(after);
        let (name, after) = split_at_most(after, name_len.into());
        let (content, after) = split_at_most(after, content_len.into());
        rest = after;
        let name = String::from_utf8_lossy(name);
        check_name(&name);
        let path = match folder % 4 {
            0 => name.into_owned(),
            1 => format!("{name}/file"),
            2 => format!("__schema/{name}"),
            _ => format!("__commits/{name}"),
        };
        served.files.insert(path, Arc::new(content.to_vec()));
    }
    let files = Files::new(Arc::new(served));
    for timestamp in [u64::MAX, 0, 1_000] {
        let Ok(directory) = Directory::load(&files, timestamp) else { continue };
        assert!(directory.latest_schema < directory.schemas.len());
        let starts = directory.fragments.iter().map(|fragment| fragment.times.start);
        assert!(starts.is_sorted());
        for fragment in &directory.fragments {
            assert!(fragment.times.start <= timestamp, "{fragment:?} counts at {timestamp}");
            assert!(fragment.path.ends_with(&fragment.name));
            assert_eq!(timestamped_name::parse(&fragment.name), Some(fragment.times));
        }
    }
}

fn check_name(name: &str) {
    let _ = is_in_fragment(name);
    if let Some(times) = timestamped_name::parse(name) {
        assert!(times.start <= times.end, "{name}: {times:?}");
    }
}
