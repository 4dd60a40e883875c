//! The cache against all choices of what to keep, and its limit.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// The fewest values that any choice of `room` kept ones decodes, by trying all choices.
fn fewest_decoded(wanted: &[u8], room: usize) -> usize {
    // Each reachable set of kept values, as bits, with the fewest decoded so far.
    let mut reached = HashMap::from([(0_u32, 0)]);
    for value in wanted {
        let mut next: HashMap<u32, usize> = HashMap::new();
        for (kept, decoded) in reached {
            let is_kept = kept & 1 << value != 0;
            let decoded = decoded + usize::from(!is_kept);
            let there = kept | 1 << value;
            // Any part of what is there may stay.
            let mut stays = there;
            loop {
                if stays.count_ones() as usize <= room {
                    let fewest = next.entry(stays).or_insert(decoded);
                    *fewest = decoded.min(*fewest);
                }
                if stays == 0 {
                    break;
                }
                stays = (stays - 1) & there;
            }
        }
        reached = next;
    }
    reached.into_values().min().unwrap_or(0)
}

/// The time from the use `at` of a value to its next one.
fn until_next(wanted: &[u8], at: usize) -> u64 {
    let next = wanted[at + 1..].iter().position(|value| *value == wanted[at]);
    next.map_or(NEVER, |n| n as u64 + 1)
}

proptest! {
    #[test]
    fn as_few_values_are_decoded_as_possible(
        wanted in prop::collection::vec(0_u8..6, 0..20),
        room in 0_usize..5,
    ) {
        let cache = NextUseCache::default();
        cache.set_limit(room as u64 * 10);
        let mut n_decoded = 0;
        for (at, value) in wanted.iter().enumerate() {
            let read = cache.begin(1);
            let next = Some(read.start().saturating_add(until_next(&wanted, at)));
            if let Some(kept) = cache.get(value, next) {
                prop_assert_eq!(**kept, *value);
            } else {
                n_decoded += 1;
                let is_kept = cache.would_keep(10, next);
                prop_assert_eq!(cache.insert(*value, *value, 10, next).is_some(), is_kept);
            }
            prop_assert!(cache.n_bytes() <= room as u64 * 10);
        }
        prop_assert_eq!(n_decoded, fewest_decoded(&wanted, room));
    }

    /// With values of any size, limits that change and values that stay in use.
    #[test]
    fn no_more_is_kept_than_the_limit(
        steps in prop::collection::vec((0_u8..9, 1_u64..40, 0_u64..200, any::<bool>()), 0..60)
    ) {
        let cache = NextUseCache::default();
        let (mut limit, mut in_use) = (100, Vec::new());
        cache.set_limit(limit);
        for (key, n_bytes, at, is_new_limit) in steps {
            if is_new_limit {
                in_use.clear();
                limit = at;
                cache.set_limit(limit);
            }
            let next = (at > 20).then_some(at);
            in_use.extend(cache.get(&key, next).or_else(|| cache.insert(key, key, n_bytes, next)));
            prop_assert!(cache.n_bytes() <= limit);
            let state = cache.lock();
            let kept: HashSet<_> = state.values.iter().map(|(key, (at, _))| (*at, *key)).collect();
            prop_assert_eq!(kept, state.by_use.iter().copied().collect());
            let bytes: u64 = state.values.values().map(|(_, kept)| kept.n_bytes).sum();
            prop_assert_eq!(bytes, state.bytes);
        }
        drop(in_use);
        cache.set_limit(0);
        prop_assert_eq!(cache.n_bytes(), 0);
    }
}

#[test]
fn values_whose_use_did_not_come_make_room_first() {
    let cache = NextUseCache::default();
    cache.set_limit(2);
    let first = cache.begin(10);
    cache.insert("missed", (), 1, Some(5)).unwrap();
    cache.insert("later", (), 1, Some(30)).unwrap();
    assert!(cache.insert("latest", (), 1, Some(40)).is_none(), "a read may still use the first");
    drop(first);
    let second = cache.begin(10);
    assert_eq!(second.start(), 10);
    assert!(cache.would_keep(1, Some(40)));
    cache.insert("latest", (), 1, Some(40)).unwrap();
    let kept = ["missed", "later", "latest"].map(|key| cache.get(&key, None).is_some());
    assert_eq!(kept, [false, true, true]);
}
