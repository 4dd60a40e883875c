//! The folder by itself: its limit, its order, and its number of bytes.

use std::fs::FileTimes;

use super::*;

const LEN: usize = 4000;
/// What a block of [`LEN`] takes.
const COST: u64 = 4096;

fn id(idx: u64) -> BlockId {
    BlockId { object: [9; 16], idx }
}

#[track_caller]
fn open(folder: &Path, n_blocks: u64) -> BlockStore {
    open_with(folder, n_blocks, Eviction::LongestUnread)
}

#[track_caller]
fn open_with(folder: &Path, n_blocks: u64, eviction: Eviction) -> BlockStore {
    BlockStore::open(folder, n_blocks * COST, eviction).unwrap().0
}

#[track_caller]
fn keep(store: &BlockStore, idx: u64) -> u64 {
    match store.keep(&id(idx), &[idx as u8; LEN]) {
        KeepOutcome::Yes { n_removed, n_left_out: 0 } => n_removed,
        other => panic!("block {idx}: {other:?}"),
    }
}

fn find(store: &BlockStore, idx: u64) -> Lookup {
    let mut file = Vec::new();
    let found = store.find(&id(idx), LEN, &mut file);
    if found == Lookup::Whole {
        assert!(file[HEADER_BYTES..] == [idx as u8; LEN], "block {idx}");
    }
    found
}

fn kept(store: &BlockStore, indices: std::ops::Range<u64>) -> Vec<u64> {
    indices.filter(|&idx| store.has(&id(idx))).collect()
}

#[track_caller]
fn check_usage(store: &BlockStore) {
    let locked = store.usage.lock(0).unwrap().unwrap();
    assert_eq!(locked.used().unwrap(), Some(Scan::new(&store.blocks).unwrap().cost));
    assert!(locked.used().unwrap() <= Some(store.limit_bytes));
}

/// Makes the block look as if it was last read `minutes` minutes ago.
fn age(store: &BlockStore, idx: u64, minutes: u64) {
    let file = File::open(store.path(&id(idx))).unwrap();
    let when = SystemTime::now() - Duration::from_mins(minutes);
    file.set_times(FileTimes::new().set_modified(when)).unwrap();
}

#[test]
fn the_longest_unread_go_first() {
    let folder = tempfile::tempdir().unwrap();
    // A sixteenth is two blocks.
    let store = open(folder.path(), 32);
    for idx in 0..32 {
        assert_eq!(keep(&store, idx), 0);
        age(&store, idx, 100 - idx);
    }
    check_usage(&store);
    assert_eq!(find(&store, 0), Lookup::Whole);
    assert_eq!(find(&store, 2), Lookup::Whole);
    assert_eq!(keep(&store, 32), 2);
    assert_eq!(keep(&store, 33), 0);
    check_usage(&store);
    let expect: Vec<u64> = (0..34).filter(|idx| ![1, 3].contains(idx)).collect();
    assert_eq!(kept(&store, 0..34), expect);
    assert_eq!((find(&store, 1), find(&store, 32)), (Lookup::Absent, Lookup::Whole));
}

#[test]
fn a_block_kept_again_takes_its_room_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 3);
    for _ in 0..10 {
        assert_eq!(keep(&store, 1), 0);
        check_usage(&store);
    }
    // The block replaces something larger that is not a block.
    fs::write(store.path(&id(1)), [0; 7000]).unwrap();
    drop(store);
    let store = open(folder.path(), 3);
    assert_eq!(find(&store, 1), Lookup::Damaged);
    keep(&store, 1);
    check_usage(&store);
    assert_eq!(find(&store, 1), Lookup::Whole);
}

#[test]
fn a_number_that_is_wrong_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 8);
    for idx in 0..8 {
        keep(&store, idx);
    }
    let usage = folder.path().join("usage");
    // Damaged while others are at it, and too low after a power failure.
    fs::write(&usage, "nonsense").unwrap();
    assert_eq!(keep(&store, 8), 1);
    check_usage(&store);
    store.usage.lock(0).unwrap().unwrap().set(0).unwrap();
    drop(store);
    let store = open(folder.path(), 8);
    check_usage(&store);
    // A number that is too high, as a killed process leaves it, costs one look and no more.
    store.usage.lock(0).unwrap().unwrap().set(u64::MAX).unwrap();
    keep(&store, 20);
    check_usage(&store);
}

#[test]
fn a_smaller_limit_holds_from_the_start_and_what_is_not_ours_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 20);
    for idx in 0..20 {
        keep(&store, idx);
        age(&store, idx, 100 - idx);
    }
    let foreign = [folder.path().join("notes"), folder.path().join("blocks/00/notes")];
    for path in &foreign {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, [0; 9000]).unwrap();
    }
    drop(store);
    let (store, n_removed) =
        BlockStore::open(folder.path(), 4 * COST, Eviction::LongestUnread).unwrap();
    assert_eq!(n_removed, 16);
    assert_eq!(kept(&store, 0..20), [16, 17, 18, 19]);
    keep(&store, 20);
    check_usage(&store);
    assert!(foreign.iter().all(|path| path.exists()));
}

#[test]
fn two_open_stores_share_one_limit() {
    let folder = tempfile::tempdir().unwrap();
    let stores = [open(folder.path(), 10), open(folder.path(), 10)];
    let unfinished = folder.path().join("unfinished");
    fs::create_dir(unfinished.join("of-a-killed-one")).unwrap();
    for idx in 0..50 {
        keep(&stores[idx as usize % 2], idx);
        check_usage(&stores[0]);
    }
    assert!(kept(&stores[0], 0..50).len() >= 9);
    assert_eq!(fs::read_dir(unfinished).unwrap().count(), 2);
}

#[test]
fn nobody_waits_long_for_one_that_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let stores = [open(folder.path(), 10), open(folder.path(), 10)];
    let locked = stores[0].usage.lock(0).unwrap().unwrap();
    assert!(matches!(stores[1].keep(&id(0), &[0; LEN]), KeepOutcome::Busy));
    drop(locked);
    keep(&stores[1], 0);
    for store in &stores {
        assert_eq!(fs::read_dir(folder.path().join("unfinished")).unwrap().count(), 2);
        assert!(!store.is_paused());
    }
}

#[test]
fn blocks_that_cannot_be_removed_are_not_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 2);
    // Nothing that can be removed explains the number.
    let locked = store.usage.lock(0).unwrap().unwrap();
    locked.set(0).unwrap();
    drop(locked);
    let blocks = store.blocks.clone();
    fs::rename(&blocks, folder.path().join("elsewhere")).unwrap();
    fs::write(&blocks, "in the way").unwrap();
    assert!(matches!(store.keep(&id(1), &[1; LEN]), KeepOutcome::Failed(_)));
    assert!(store.is_paused());
    assert_eq!(find(&store, 1), Lookup::Damaged);
    fs::remove_file(&blocks).unwrap();
    fs::rename(folder.path().join("elsewhere"), &blocks).unwrap();
    store.leave_out(PAUSE_BLOCKS - 1);
    assert!(store.is_paused());
    store.leave_out(5);
    assert!(!store.is_paused());
    keep(&store, 1);
    assert_eq!(find(&store, 1), Lookup::Whole);
}

/// Block `idx` of an object.
fn block(object: u8, idx: u64) -> BlockId {
    BlockId { object: [object; 16], idx }
}

#[test]
fn blocks_in_use_stay_and_others_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let open = || open_with(folder.path(), 32, Eviction::Unused);
    let [one, other] = [open(), open()];
    let put = |store: &BlockStore, id: BlockId| match store.keep(&id, &[0; LEN]) {
        KeepOutcome::Yes { n_removed, n_left_out } => (n_removed, n_left_out),
        other => panic!("{id:?}: {other:?}"),
    };
    // The first object, of which no process says that it uses it, makes room for the second.
    for idx in 0..32 {
        assert_eq!(put(&one, block(1, idx)), (0, 0));
    }
    one.note_use(&[2; 16]).unwrap();
    assert_eq!(put(&one, block(2, 0)), (2, 0));
    for idx in 1..32 {
        assert_eq!(put(&one, block(2, idx)).1, 0);
    }
    assert_eq!((0..32).filter(|idx| one.has(&block(1, *idx))).count(), 0);
    check_usage(&one);
    // The second is in use: neither its own blocks nor those of a third replace it.
    other.note_use(&[3; 16]).unwrap();
    for (store, id) in [(&one, block(2, 32)), (&other, block(3, 0))] {
        assert_eq!(put(store, id), (0, 1));
        assert!(store.is_paused() && !store.has(&id));
    }
    // Blocks left out are counted without another scan.
    assert_eq!(put(&other, block(3, 1)), (0, 1));
    let written = [2, 3].map(|idx| other.write(&block(3, idx), &[0; LEN]).unwrap());
    let KeepOutcome::Yes { n_removed: 0, n_left_out: 2 } = other.keep_written(written.into())
    else {
        panic!("there is room")
    };
    assert_eq!(fs::read_dir(folder.path().join("unfinished/1")).unwrap().count(), 1);
    // When its last process ends, it makes room.
    drop(one);
    other.leave_out(PAUSE_BLOCKS);
    assert_eq!(put(&other, block(3, 0)), (2, 0));
    assert!(other.has(&block(3, 0)));
    check_usage(&other);
}

#[test]
fn the_start_of_a_block_is_read_without_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 4);
    keep(&store, 1);
    let mut start = Vec::new();
    assert_eq!(store.read_start(&id(1), 10, &mut start), Lookup::Whole);
    assert_eq!(BlockStore::payload(&start), [1; 10]);
    assert_eq!(store.read_start(&id(1), LEN + 1, &mut start), Lookup::Whole);
    assert_eq!(BlockStore::payload(&start), [1; LEN]);
    assert_eq!(store.read_start(&id(2), 10, &mut start), Lookup::Absent);
    // The file is another block's, then one that was cut short.
    fs::create_dir_all(store.path(&id(2)).parent().unwrap()).unwrap();
    fs::copy(store.path(&id(1)), store.path(&id(2))).unwrap();
    assert_eq!(store.read_start(&id(2), 10, &mut start), Lookup::Damaged);
    let file = fs::OpenOptions::new().write(true).open(store.path(&id(1))).unwrap();
    file.set_len(2000).unwrap();
    assert_eq!(store.read_start(&id(1), 10, &mut start), Lookup::Damaged);
    assert_eq!(store.read(&id(1), &mut start), Lookup::Damaged);
}
