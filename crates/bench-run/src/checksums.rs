//! Checksums of samples, by which a reader shows that it delivers what our loader delivers.

use std::collections::BTreeMap;

/// The checksums of samples, by their numbers: one for each part of a sample.
pub type Checksums = BTreeMap<u64, Vec<u32>>;

/// Says how `theirs` differ from `ours`; `None` if all samples are there and equal. `parts` are the
/// names of a sample's checksums.
pub(crate) fn difference(ours: &Checksums, theirs: &Checksums, parts: &[&str]) -> Option<String> {
    for (sample, expected) in ours {
        let Some(found) = theirs.get(sample) else {
            return Some(format!("it does not deliver sample {sample}"));
        };
        if found.len() != expected.len() {
            return Some(format!("it delivers {} arrays of sample {sample}", found.len()));
        }
        let both = parts.iter().zip(expected.iter().zip(found));
        if let Some((part, (expected, found))) = both.into_iter().find(|(_, (a, b))| a != b) {
            return Some(format!(
                "it delivers other values of {part} in sample {sample}: their crc32 is \
                 {found:08x}, ours {expected:08x}"
            ));
        }
    }
    let extra = theirs.keys().find(|sample| !ours.contains_key(sample));
    extra.map(|sample| format!("it delivers sample {sample}, which was not asked for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_named() {
        let parts = ["features", "labels", "valid_pixels"];
        let ours = Checksums::from([(3, vec![1, 2, 3]), (5, vec![3, 4, 5])]);
        assert_eq!(difference(&ours, &ours.clone(), &parts), None);
        for (theirs, part) in [
            (vec![(3, vec![1, 2, 3])], "does not deliver sample 5"),
            (vec![(3, vec![1]), (5, vec![3, 4, 5])], "1 arrays of sample 3"),
            (
                vec![(3, vec![1, 2, 3]), (5, vec![3, 10, 5])],
                "labels in sample 5: their crc32 is 0000000a",
            ),
            (vec![(3, vec![1, 2, 3]), (5, vec![3, 4, 5]), (6, vec![])], "sample 6, which was not"),
        ] {
            let found = difference(&ours, &theirs.into_iter().collect(), &parts).unwrap();
            assert!(found.contains(part), "{found}");
        }
    }
}
