//! Tests of fetching ahead, and of making room.

use proptest::prelude::*;

use super::super::ObjectOptions;
use super::super::pace::Link;
use super::*;

fn ahead(bytes: u64) -> Ahead {
    Ahead::new(bytes)
}

/// Parts of 100 bytes, gaps up to 9, four at once.
fn pace() -> Pace {
    let bounds = ObjectOptions {
        request_bytes: 100,
        gap_bytes: 9,
        max_requests: 4,
        ..ObjectOptions::default()
    };
    Pace { link: Link::default(), bounds }
}

fn piece(range: Range<u64>) -> Piece<'static> {
    Piece { file: "a", range }
}

fn announce<const N: usize>(ahead: &mut Ahead, ranges: [Range<u64>; N]) {
    ahead.announce(&ranges.map(piece), Expected::Now, &pace());
}

fn announce_next<const N: usize>(ahead: &mut Ahead, ranges: [Range<u64>; N]) {
    ahead.announce(&ranges.map(piece), Expected::Next, &pace());
}

fn begin(ahead: &mut Ahead) -> Vec<Begun> {
    ahead.begin(&pace()).0
}

fn ranges(begun: &[Begun]) -> Vec<Range<u64>> {
    begun.iter().map(|begun| begun.range.clone()).collect()
}

fn arrive(ahead: &mut Ahead, begun: Vec<Begun>) {
    for Begun { id, range, promise, .. } in begun {
        promise.keep(Ok(Bytes::new()));
        ahead.ended(id, range.end - range.start, true);
    }
}

/// The holes and the ranges fetched ahead in `range`, and those begun for it.
fn taken_and_begun(ahead: &mut Ahead, range: Range<u64>) -> [Vec<Range<u64>>; 3] {
    let mut begun = Vec::new();
    let sources = ahead.take("a", &range, &mut begun);
    assert_eq!(sources.first().map_or(range.start, |first| first.range().start), range.start);
    assert!(sources.windows(2).all(|pair| pair[0].range().end == pair[1].range().start));
    assert_eq!(sources.last().map_or(range.end, |last| last.range().end), range.end);
    let (holes, found): (Vec<_>, Vec<_>) =
        sources.iter().partition(|source| matches!(source, Source::Hole(_)));
    let ranges_of = |sources: Vec<&Source>| sources.iter().map(|one| one.range().clone()).collect();
    let answer = [ranges_of(holes), ranges_of(found), ranges(&begun)];
    arrive(ahead, begun);
    answer
}

fn taken(ahead: &mut Ahead, range: Range<u64>) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let [holes, found, begun] = taken_and_begun(ahead, range);
    assert_eq!(begun, []);
    (holes, found)
}

#[test]
fn nothing_is_asked_for_twice() {
    let mut ahead = ahead(1000);
    announce(&mut ahead, [0..150, 300..350]);
    announce(&mut ahead, [100..320]);
    assert_eq!(ranges(&begin(&mut ahead)), [0..75, 75..150, 300..350, 150..225]);
    assert_eq!(taken(&mut ahead, 70..160), (vec![], vec![70..75, 75..150, 150..160]));
    assert_eq!(taken(&mut ahead, 340..400), (vec![350..400], vec![340..350]));
}

#[test]
fn ranges_between_announced_ones_are_fetched_and_not_waited_for() {
    let mut ahead = ahead(1000);
    // The second is announced twice, and the third lies in a gap.
    announce(&mut ahead, [0..10, 15..20, 15..18, 60..70, 75..80, 72..73, 1000..1200]);
    let begun = begin(&mut ahead);
    assert_eq!(ranges(&begun), [0..20, 60..70, 75..80, 72..73]);
    arrive(&mut ahead, begun);
    assert_eq!(ahead.held_bytes(), 36);
    let begun = begin(&mut ahead);
    arrive(&mut ahead, begun);
    assert_eq!(taken(&mut ahead, 0..10), (vec![], vec![0..10]));
    assert_eq!(taken(&mut ahead, 15..20), (vec![], vec![15..20]));
    assert_eq!(ahead.held_bytes(), 236, "a part that was taken whole is kept for a while");
    assert_eq!(taken(&mut ahead, 5..10), (vec![], vec![5..10]));
    taken(&mut ahead, 1000..1100);
    assert_eq!(ahead.held_bytes(), 236);
    taken(&mut ahead, 1100..1130);
    assert_eq!(taken(&mut ahead, 0..10), (vec![0..10], vec![]));
    announce(&mut ahead, [2000..2010]);
    let begun = begin(&mut ahead);
    arrive(&mut ahead, begun);
    taken(&mut ahead, 2000..2010);
    assert_eq!(taken(&mut ahead, 2000..2010), (vec![], vec![2000..2010]));
    announce(&mut ahead, []);
    assert_eq!(taken(&mut ahead, 2000..2010), (vec![2000..2010], vec![]), "another read began");
}

#[test]
fn what_was_taken_makes_room() {
    let mut ahead = ahead(200);
    announce(&mut ahead, [0..500]);
    let begun = begin(&mut ahead);
    assert_eq!(ranges(&begun), [0..100, 100..200]);
    arrive(&mut ahead, begun);
    assert!(begin(&mut ahead).is_empty());
    taken(&mut ahead, 0..100);
    assert!(begin(&mut ahead).is_empty(), "kept for a while");
    taken(&mut ahead, 100..130);
    let begun = begin(&mut ahead);
    assert_eq!(ranges(&begun), [200..300]);
    arrive(&mut ahead, begun);
    // What waits for room is requested at once if it is read.
    assert_eq!(taken_and_begun(&mut ahead, 310..400), [vec![], vec![310..400], vec![300..400]]);
    assert_eq!(ahead.held_bytes(), 300, "ten bytes of it are still wanted");
    // Reads have passed 70 bytes of the second part by, for half of the memory.
    taken(&mut ahead, 200..250);
    assert_eq!(ranges(&begin(&mut ahead)), []);
    taken(&mut ahead, 250..300);
    taken(&mut ahead, 300..310);
    taken(&mut ahead, 300..310);
    taken(&mut ahead, 300..310);
    assert_eq!(ranges(&begin(&mut ahead)), [400..500]);
    assert_eq!(taken(&mut ahead, 130..140), (vec![130..140], vec![]));
}

#[test]
fn parts_that_are_not_read_go_when_room_is_needed() {
    let mut ahead = ahead(300);
    announce(&mut ahead, [0..300]);
    let begun = begin(&mut ahead);
    arrive(&mut ahead, begun);
    // The rest of this range is wanted, so it stays.
    taken(&mut ahead, 120..150);
    announce(&mut ahead, [2000..2100]);
    assert!(begin(&mut ahead).is_empty());
    for _ in 2..=RECENT_CALLS {
        announce(&mut ahead, []);
    }
    announce(&mut ahead, [2000..2100]);
    assert_eq!(ranges(&begin(&mut ahead)), [2000..2100]);
    assert_eq!(taken(&mut ahead, 0..100), (vec![0..100], vec![]), "the oldest");
    assert_eq!(taken(&mut ahead, 200..300), (vec![], vec![200..300]));
}

#[test]
fn the_next_read_has_a_plan_of_its_own_in_half_of_the_memory() {
    let mut ahead = ahead(400);
    announce(&mut ahead, [0..50, 200..250]);
    announce_next(&mut ahead, [30..130, 300..400, 500..600]);
    let begun = begin(&mut ahead);
    // What both want is fetched for each.
    assert_eq!(ranges(&begun), [0..50, 200..250, 30..130, 300..400]);
    arrive(&mut ahead, begun);
    assert_eq!(taken(&mut ahead, 0..100), (vec![50..100], vec![0..50]));
    assert_eq!(begin(&mut ahead).len(), 0, "the next read has its half");
    // The next read begins: what is left of the one before is dropped.
    announce(&mut ahead, [30..80, 500..550, 700..800, 900..1000]);
    assert_eq!((ahead.held_bytes(), ahead.next.held_bytes), (200, 0));
    // The read did not announce 300..400 itself, so that it makes room.
    assert_eq!(ranges(&begin(&mut ahead)), [500..600, 700..800, 900..1000]);
    assert_eq!(ahead.held_bytes(), 400);
    assert_eq!(taken(&mut ahead, 30..130), (vec![], vec![30..130]));
    assert_eq!(taken(&mut ahead, 300..400), (vec![300..400], vec![]));
}

#[test]
fn few_requests_at_once_and_failures_are_forgotten() {
    let mut ahead = ahead(10_000);
    announce(&mut ahead, [0..1000]);
    let (begun, is_full) = ahead.begin(&pace());
    assert_eq!((begun.len(), is_full), (4, false), "four short ones do not fill the link");
    for begun in begun {
        ahead.ended(begun.id, begun.range.end - begun.range.start, false);
    }
    assert_eq!((ahead.held_bytes(), ahead.under_way), (0, 0));
    assert_eq!(taken(&mut ahead, 0..300), (vec![0..300], vec![]));
    assert_eq!(ranges(&begin(&mut ahead)), [400..500, 500..600, 600..700, 700..800]);
    // Taken while it is under way: kept for a while all the same.
    taken(&mut ahead, 400..800);
    assert_eq!((ahead.held_bytes(), ahead.parts.len(), ahead.under_way), (400, 6, 4));
}

#[derive(Debug, Clone)]
enum Step {
    Announce(Vec<(bool, u64, u64)>, Expected),
    Take(bool, Range<u64>),
    /// Some of the requests under way end.
    End(Vec<(prop::sample::Index, bool)>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let read = || prop_oneof![Just(Expected::Now), Just(Expected::Next)];
    let pieces = || prop::collection::vec((any::<bool>(), 0..900_u64, 1..250_u64), 0..8);
    let end = || prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..5);
    let step = prop_oneof![
        (pieces(), read()).prop_map(|(pieces, read)| Step::Announce(pieces, read)),
        (any::<bool>(), 0..900_u64, 0..250_u64)
            .prop_map(|(file, start, len)| Step::Take(file, start..start + len)),
        end().prop_map(Step::End),
    ];
    prop::collection::vec(step, 0..40)
}

/// Compares all counts with those of the parts.
fn check(ahead: &Ahead, under_way: &[Begun]) {
    for (read, plan) in [(Expected::Now, &ahead.now), (Expected::Next, &ahead.next)] {
        let of_plan = || ahead.parts.iter().filter(|(_, part)| part.read == read);
        let ids = |is_waiting: bool| {
            let is_one = move |part: &Part| matches!(part.state, State::Waiting) == is_waiting;
            of_plan().filter(move |(_, part)| is_one(part))
        };
        let waiting: BTreeSet<u64> = ids(true).map(|(&id, _)| id).collect();
        assert_eq!(waiting, plan.waiting);
        assert_eq!(ids(false).map(|(_, part)| part.len()).sum::<u64>(), plan.held_bytes);
        let n_places: usize = plan.places.values().map(BTreeMap::len).sum();
        assert_eq!(n_places, of_plan().count());
        for (file, places) in &plan.places {
            let ranges: Vec<_> = places.values().map(|id| ahead.parts[id].range.clone()).collect();
            assert!(
                ranges.windows(2).all(|pair| pair[0].end <= pair[1].start),
                "{file} {ranges:?}"
            );
        }
    }
    let waiting = ahead.now.waiting.iter().chain(&ahead.next.waiting);
    assert_eq!(waiting.map(|id| ahead.parts[id].len()).sum::<u64>(), ahead.waiting_bytes);
    let bytes = |ranges: &mut dyn Iterator<Item = &Begun>| {
        ranges.map(|begun| begun.range.end - begun.range.start).sum::<u64>()
    };
    assert_eq!(ahead.under_way, under_way.len());
    assert_eq!(ahead.under_way_bytes, bytes(&mut under_way.iter()));
    let mut removed = under_way.iter().filter(|begun| ahead.removed.contains(&begun.id));
    assert_eq!(ahead.removed_bytes, bytes(&mut removed));
    assert_eq!(ahead.removed.iter().filter(|id| ahead.parts.contains_key(id)).count(), 0);
}

proptest! {
    /// Whatever is announced, taken and answered in whatever order: each byte has a source, counts
    /// are those of the parts, and the memory is exceeded only by what a read needs at once.
    #[test]
    fn counts_are_those_of_the_parts(steps in steps(), most in 0..1500_u64) {
        let mut ahead = ahead(most);
        let file = |is_a: bool| if is_a { "a" } else { "b" };
        let mut under_way: Vec<Begun> = Vec::new();
        let mut at_once = 0;
        for step in steps {
            match step {
                Step::Announce(pieces, read) => {
                    let piece = |(is_a, start, len)| {
                        Piece { file: file(is_a), range: start..start + len }
                    };
                    let pieces: Vec<_> = pieces.into_iter().map(piece).collect();
                    ahead.announce(&pieces, read, &pace());
                }
                Step::Take(is_a, range) => {
                    let mut begun = Vec::new();
                    let sources = ahead.take(file(is_a), &range, &mut begun);
                    let n: u64 =
                        sources.iter().map(|one| one.range().end - one.range().start).sum();
                    prop_assert_eq!(n, range.end - range.start);
                    at_once += begun.iter().map(|one| one.range.end - one.range.start).sum::<u64>();
                    under_way.extend(begun);
                }
                Step::End(which) => {
                    for (idx, arrived) in which {
                        if under_way.is_empty() {
                            break;
                        }
                        let one = under_way.swap_remove(idx.index(under_way.len()));
                        ahead.ended(one.id, one.range.end - one.range.start, arrived);
                    }
                }
            }
            check(&ahead, &under_way);
            under_way.extend(begin(&mut ahead));
            check(&ahead, &under_way);
            prop_assert!(ahead.held_bytes() <= most + at_once);
            prop_assert!(ahead.next.held_bytes <= most / NEXT_SHARE);
        }
        for one in under_way {
            ahead.ended(one.id, one.range.end - one.range.start, true);
        }
        check(&ahead, &[]);
    }
}
