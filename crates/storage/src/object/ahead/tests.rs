//! Tests of fetching ahead, and of making room.

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

fn announce<const N: usize>(ahead: &mut Ahead, ranges: [Range<u64>; N]) -> u64 {
    ahead.announce(&ranges.map(piece), &pace())
}

fn begin(ahead: &mut Ahead) -> Vec<Begun> {
    ahead.begin(&pace()).0
}

fn ranges(begun: &[Begun]) -> Vec<Range<u64>> {
    begun.iter().map(|begun| begun.range.clone()).collect()
}

fn arrive(ahead: &mut Ahead, begun: Vec<Begun>) {
    for Begun { id, promise, .. } in begun {
        promise.keep(Ok(Bytes::new()));
        ahead.ended(id, true);
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
    let of = |sources: Vec<&Source>| sources.iter().map(|one| one.range().clone()).collect();
    let answer = [of(holes), of(found), ranges(&begun)];
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
    assert_eq!(announce(&mut ahead, [0..10, 15..20, 15..18, 60..70, 75..80, 72..73]), 5);
    let begun = begin(&mut ahead);
    assert_eq!(ranges(&begun), [0..20, 60..70, 75..80, 72..73]);
    arrive(&mut ahead, begun);
    assert_eq!(ahead.held_bytes, 36);
    assert_eq!(taken(&mut ahead, 0..10), (vec![], vec![0..10]));
    assert_eq!(taken(&mut ahead, 15..20), (vec![], vec![15..20]));
    assert_eq!(ahead.held_bytes, 16, "all that was announced was taken");
    assert_eq!(taken(&mut ahead, 0..10), (vec![0..10], vec![]));
}

#[test]
fn what_was_taken_makes_room() {
    let mut ahead = ahead(200);
    announce(&mut ahead, [0..500]);
    let begun = begin(&mut ahead);
    assert_eq!(ranges(&begun), [0..100, 100..200]);
    arrive(&mut ahead, begun);
    assert!(begin(&mut ahead).is_empty());
    assert_eq!(taken(&mut ahead, 0..100), (vec![], vec![0..100]));
    let begun = begin(&mut ahead);
    assert_eq!(ranges(&begun), [200..300]);
    arrive(&mut ahead, begun);
    // What waits for room is requested at once if it is read.
    assert_eq!(taken_and_begun(&mut ahead, 310..400), [vec![], vec![310..400], vec![300..400]]);
    assert_eq!(ahead.held_bytes, 300, "ten bytes of it are still wanted");
    for range in [100..200, 200..300, 300..310] {
        taken(&mut ahead, range);
    }
    assert_eq!(ranges(&begin(&mut ahead)), [400..500]);
}

#[test]
fn parts_that_are_not_read_go_when_room_is_needed() {
    let mut ahead = ahead(300);
    announce(&mut ahead, [0..300]);
    let begun = begin(&mut ahead);
    arrive(&mut ahead, begun);
    // Of this one something is left, which stays: it is wanted.
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
fn few_requests_at_once_and_failures_are_forgotten() {
    let mut ahead = ahead(10_000);
    announce(&mut ahead, [0..1000]);
    let (begun, is_full) = ahead.begin(&pace());
    assert_eq!((begun.len(), is_full), (4, true));
    for begun in begun {
        ahead.ended(begun.id, false);
    }
    assert_eq!((ahead.held_bytes, ahead.under_way), (0, 0));
    assert_eq!(taken(&mut ahead, 0..300), (vec![0..300], vec![]));
    assert_eq!(ranges(&begin(&mut ahead)), [400..500, 500..600, 600..700, 700..800]);
    // Taken while it is under way: ends without a trace.
    taken(&mut ahead, 400..800);
    assert_eq!((ahead.held_bytes, ahead.parts.len(), ahead.under_way), (0, 2, 4));
}

#[test]
fn a_reader_that_waits_for_nothing_uses_less_of_the_link() {
    let pace = Pace { link: Link::default(), bounds: ObjectOptions::default() };
    let mut ahead = ahead(1 << 30);
    let mut read = |arrives: bool| {
        ahead.announce(&[piece(0..JUDGED_BYTES)], &pace);
        let (begun, _) = ahead.begin(&pace);
        if arrives {
            arrive(&mut ahead, begun);
            ahead.take("a", &(0..JUDGED_BYTES), &mut Vec::new());
        } else {
            ahead.take("a", &(0..JUDGED_BYTES), &mut Vec::new());
            arrive(&mut ahead, begun);
        }
        ahead.rate_share
    };
    assert_eq!((read(true), read(true)), (1.0, STEP));
    let least = (0..30).map(|_| read(true)).fold(1.0, f64::min);
    assert_eq!(least, LEAST_RATE_SHARE);
    let most = (0..30).map(|_| read(false)).fold(0.0, f64::max);
    assert_eq!(most, 1.0);
}
