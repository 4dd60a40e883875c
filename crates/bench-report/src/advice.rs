//! What a reader should know before the figures: why they may mislead, and which settings they
//! recommend.

use crate::{
    EpochRecord, IO_LIMIT, OWN_LOADER, PointSummary, Source,
    picture::{NamedPoint, form_title, name_points},
    series::loader,
    source::summarize_all,
    table::{decimal, grouped},
};

/// Epochs shorter than this say little.
const SHORT_SECS: f64 = 1.0;
/// A recommendation needs this many points.
const LEAST_POINTS: usize = 3;
/// The best trade is the point with the least memory that has this share of the highest speed. It
/// must have less than this share of the fastest point's memory.
const NEARLY: f64 = 0.9;
/// Batches are well mixed if each label has this share of a perfect shuffle's entropy.
const WELL_MIXED: f64 = 0.95;
/// Largest numbers of memory limits, and of sets of conditions, that are recommended for.
const MOST_LIMITS: usize = 3;
const MOST_CONDITIONS: usize = 4;

/// Sentences about some rows, each without its full stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// Why the figures may mislead, and what to do; empty if nothing is known against them.
    pub cautions: Vec<String>,
    /// The fastest settings within some limits of memory, and the best trade of speed against
    /// memory, from medians; if all epochs were short, what mixes well in the least memory. Empty
    /// if too few points were measured.
    pub recommendations: Vec<String>,
}

impl Advice {
    /// The advice of the epochs of one run.
    pub fn from_records(records: &[EpochRecord]) -> Self {
        let source = Source { name: String::new(), records: records.to_vec() };
        let sources = [source];
        Self::new(&sources, &summarize_all(&sources))
    }

    /// The advice of `points`, which summarize the epochs of `sources`.
    pub(crate) fn new(sources: &[Source], points: &[PointSummary]) -> Self {
        Self {
            cautions: [large_blocks(points), short_epochs(points)].into_iter().flatten().collect(),
            recommendations: recommendations(sources, points),
        }
    }
}

fn large_blocks(points: &[PointSummary]) -> Option<String> {
    let is_large = |point: &&PointSummary| {
        let n_ranks = point.point.world_size.unwrap_or(1).max(1);
        let rows = point.data.total_rows / n_ranks;
        // Other loaders may keep all data by their design.
        loader(point) == OWN_LOADER && 0 < rows && rows <= point.point.block_size
    };
    let large: Vec<&PointSummary> = points.iter().filter(is_large).collect();
    let rows = grouped(large.first()?.data.total_rows);
    Some(format!(
        "{} of {} settings have blocks as large as the data ({rows} samples) or larger: such settings \
         are all alike; take larger data or smaller blocks",
        large.len(),
        points.len()
    ))
}

fn short_epochs(points: &[PointSummary]) -> Option<String> {
    let secs = |point: &PointSummary| point.elapsed_secs.map(|secs| secs.median);
    let short: Vec<f64> =
        points.iter().filter_map(secs).filter(|secs| *secs < SHORT_SECS).collect();
    let shortest = short.iter().copied().min_by(f64::total_cmp)?;
    Some(format!(
        "epochs of {} of {} settings lasted less than a second (the shortest {} s): such times are \
         mostly noise; take larger data or more epochs",
        short.len(),
        points.len(),
        decimal(shortest, 2)
    ))
}

/// A point that can be recommended.
struct Candidate {
    /// What must be equal for points to be comparable.
    conditions: Vec<String>,
    name: String,
    speed: f64,
    bytes: f64,
    /// The label that is mixed least, and its entropy as a share of that of a perfect shuffle.
    mixing: Option<(String, f64)>,
}

impl Candidate {
    fn new(one: &NamedPoint<'_>) -> Option<Self> {
        let shares = one.summary.order_entropy.iter().filter_map(|label| {
            let (mean, perfect) = (label.mean?.median, label.perfect?.median);
            (0.0 < perfect).then(|| (label.label.clone(), mean / perfect))
        });
        Some(Self {
            conditions: conditions(one.summary),
            name: name(one),
            speed: one.summary.samples_per_sec?.median,
            bytes: one.summary.max_mem.filter(|bytes| 0.0 < bytes.median)?.median,
            mixing: shares.min_by(|(_, a), (_, b)| a.total_cmp(b)),
        })
    }

    fn is_well_mixed(&self) -> bool {
        self.mixing.as_ref().is_none_or(|(_, share)| WELL_MIXED <= *share)
    }

    fn describe(&self) -> String {
        let mixing = self.mixing.as_ref().map_or_else(String::new, |(label, share)| {
            format!(", {label} mixed to {} % of a perfect shuffle", decimal(100.0 * share, 1))
        });
        let (speed, gigabytes) = (decimal(self.speed, 0), decimal(self.bytes * 1e-9, 2));
        format!("{} ({speed} samples/s, {gigabytes} GB{mixing})", self.name)
    }
}

fn recommendations(sources: &[Source], points: &[PointSummary]) -> Vec<String> {
    let named = name_points(sources, points);
    let is_long =
        |point: &PointSummary| point.elapsed_secs.is_none_or(|secs| SHORT_SECS <= secs.median);
    let (long, short): (Vec<_>, Vec<_>) = named.iter().partition(|one| is_long(one.summary));
    let candidates = |of: Vec<&NamedPoint<'_>>| -> Vec<Candidate> {
        of.into_iter().filter_map(Candidate::new).collect()
    };
    if long.is_empty() {
        // What is mixed and takes memory is known even where times are noise.
        of_groups(&candidates(short), recommend_without_times)
    } else {
        of_groups(&candidates(long), recommend)
    }
}

/// What `recommend` says of the candidates under each of the conditions, if there are enough.
fn of_groups(
    candidates: &[Candidate],
    recommend: impl Fn(&[&Candidate], &str) -> Vec<String>,
) -> Vec<String> {
    let mut groups: Vec<Vec<&Candidate>> = Vec::new();
    for one in candidates {
        match groups.iter_mut().find(|group| group[0].conditions == one.conditions) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.retain(|group| LEAST_POINTS <= group.len());
    if groups.len() > MOST_CONDITIONS {
        return Vec::new();
    }
    groups.iter().flat_map(|group| recommend(group, &distinguishing(group, &groups))).collect()
}

/// The least memory that mixes well, or the best mixed; the least memory if no mixing is known.
fn recommend_without_times(group: &[&Candidate], conditions: &str) -> Vec<String> {
    let share = |one: &Candidate| one.mixing.as_ref().map_or(1.0, |(_, share)| *share);
    let well = group.iter().copied().filter(|one| one.is_well_mixed());
    let least = well.min_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let best = || group.iter().copied().max_by(|a, b| share(a).total_cmp(&share(b)));
    let is_measured = group.iter().any(|one| one.mixing.is_some());
    let of_least = if is_measured {
        "mixes well in the least memory"
    } else {
        "takes the least memory (no mixing was measured: --entropy-of COLUMN does)"
    };
    let Some((what, one)) =
        least.map(|one| (of_least, one)).or_else(|| Some(("mixes best", best()?)))
    else {
        return Vec::new();
    };
    vec![format!("{conditions}for data of this size, take what {what}: {}", one.describe())]
}

/// The name of a point without what all points under its conditions share.
fn name(named: &NamedPoint<'_>) -> String {
    let point = &named.summary.point;
    let shared = [&point.form, &point.cache, &point.order, &named.summary.hostname];
    let prefixes = ["batch ", "consumer ", "ranks ", "io limit", "link"];
    let words = named.kind.split(", ").filter(|word| {
        !shared.iter().any(|known| known == word)
            && !prefixes.iter().any(|prefix| word.starts_with(prefix))
    });
    let words = words.collect::<Vec<_>>().join(", ");
    let chunks = match point.chunks_per_block {
        1 => "1 chunk".to_owned(),
        n => format!("{} chunks", grouped(n)),
    };
    format!("{words}, {chunks} of {} rows", grouped(point.chunk_size))
}

/// Settings that a user does not choose for their speed, or that change the work.
fn conditions(summary: &PointSummary) -> Vec<String> {
    let (point, data) = (&summary.point, &summary.data);
    let limit = point.settings.number(IO_LIMIT);
    let some = |words: Option<String>| words.unwrap_or_default();
    vec![
        summary.hostname.clone(),
        format!("{} samples × {}", grouped(data.total_rows), grouped(data.n_cols)),
        form_title(&point.form),
        format!("batches of {}", grouped(point.batch_size)),
        some(point.world_size.map(|n| format!("{n} ranks"))),
        some(point.consumer.as_ref().map(|name| format!("consumer {name}"))),
        point.order.clone(),
        format!("{} cache", point.cache),
        some(limit.map(|rate| format!("reads limited to {} MB/s", decimal(rate as f64 / 1e6, 1)))),
        some(point.format_link().map(|link| format!("over {link}"))),
    ]
}

/// The conditions of `group` in which other groups differ, like `dense, batches of 64: `.
fn distinguishing(group: &[&Candidate], groups: &[Vec<&Candidate>]) -> String {
    let own = &group[0].conditions;
    let differs = |idx: usize| groups.iter().any(|other| other[0].conditions[idx] != own[idx]);
    let words: Vec<&str> = own
        .iter()
        .enumerate()
        .filter(|(idx, word)| !word.is_empty() && differs(*idx))
        .map(|(_, word)| word.as_str())
        .collect();
    if words.is_empty() { String::new() } else { format!("{}: ", words.join(", ")) }
}

fn recommend(group: &[&Candidate], conditions: &str) -> Vec<String> {
    let fastest_of = |bytes: f64| {
        let within = group.iter().copied().filter(|one| one.bytes <= bytes);
        within.max_by(|a, b| a.speed.total_cmp(&b.speed))
    };
    let Some(fastest) = fastest_of(f64::INFINITY) else { return Vec::new() };
    let mut sentences = vec![format!("{conditions}the fastest is {}", fastest.describe())];
    let mut before = fastest;
    // From the largest power of two, in GB, that the fastest exceeds.
    let mut gigabytes = (fastest.bytes * 1e-9).log2().ceil().exp2() / 2.0;
    while let Some(one) = fastest_of(gigabytes * 1e9).filter(|_| sentences.len() <= MOST_LIMITS) {
        if !std::ptr::eq(one, before) {
            let limit =
                if gigabytes < 1.0 { format!("{gigabytes}") } else { decimal(gigabytes, 0) };
            sentences
                .push(format!("{conditions}within {limit} GB, the fastest is {}", one.describe()));
            before = one;
        }
        gigabytes /= 2.0;
    }
    if !fastest.is_well_mixed() {
        let mixed = group.iter().copied().filter(|one| one.is_well_mixed());
        sentences.push(match mixed.max_by(|a, b| a.speed.total_cmp(&b.speed)) {
            Some(one) => format!(
                "{conditions}the fastest that mixes all labels to {} % is {}",
                decimal(100.0 * WELL_MIXED, 0),
                one.describe()
            ),
            None => format!(
                "{conditions}none mixes all labels to {} % of a perfect shuffle: more chunks a block do",
                decimal(100.0 * WELL_MIXED, 0)
            ),
        });
    }
    let nearly = group.iter().copied().filter(|one| NEARLY * fastest.speed <= one.speed);
    if let Some(trade) = nearly.min_by(|a, b| a.bytes.total_cmp(&b.bytes)) {
        if NEARLY * fastest.bytes < trade.bytes {
            let percent = 100.0 * NEARLY;
            sentences[0] = format!(
                "{}, which is also the best trade of speed against memory: none has {percent:.0} % \
                 of its speed in {percent:.0} % of its memory",
                sentences[0]
            );
        } else {
            sentences.push(format!(
                "{conditions}the best trade of speed against memory is {}: {} % of the fastest one's speed \
                 in {} % of its memory",
                trade.describe(),
                decimal(100.0 * trade.speed / fastest.speed, 0),
                decimal(100.0 * trade.bytes / fastest.bytes, 0)
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// A point of `chunks` chunks per block whose epochs have this speed and memory.
    fn record(chunks: u64, speed: f64, gigabytes: f64) -> EpochRecord {
        let mut record = fixture::epoch("native", (64, chunks), 0.5);
        record.measured.samples_per_sec = Some(speed);
        record.measured.max_mem = Some((gigabytes * 1e9) as u64);
        record
    }

    fn points() -> Vec<EpochRecord> {
        vec![
            record(16, 4000.0, 0.4),
            record(32, 9_500.0, 1.5),
            record(64, 10_000.0, 3.0),
            record(64, 12_000.0, 3.0),
            record(64, 9_900.0, 3.0),
        ]
    }

    #[test]
    fn the_fastest_within_memory_and_the_best_trade_are_made_from_medians() {
        let Advice { cautions, recommendations } = Advice::from_records(&points());
        assert_eq!(cautions, Vec::<String>::new());
        let starts = [
            "the fastest is native, 64 chunks of 64 rows (10,000 samples/s, 3.00 GB, tissue mixed to",
            "within 2 GB, the fastest is native, 32 chunks of 64 rows (9,500 samples/s, 1.50 GB",
            "within 1 GB, the fastest is native, 16 chunks of 64 rows (4,000 samples/s, 0.40 GB",
            "the best trade of speed against memory is native, 32 chunks of 64 rows (9,500 samples/s",
        ];
        assert_eq!(recommendations.len(), starts.len(), "{recommendations:#?}");
        for (text, start) in recommendations.iter().zip(starts) {
            assert!(text.starts_with(start), "{text}");
        }
        assert!(
            recommendations[3].ends_with("95 % of the fastest one's speed in 50 % of its memory")
        );
    }

    #[test]
    fn what_is_mixed_least_is_named_and_the_fastest_that_is_mixed() {
        let mut all = points();
        let donors = |share: f64, record: &mut EpochRecord| {
            let perfect = record.measured.order_entropy[1].perfect.unwrap();
            record.measured.order_entropy[1].label = "donor_id".to_owned();
            record.measured.order_entropy[1].mean = Some(share * perfect);
        };
        for record in &mut all {
            donors(0.125, record);
        }
        let found = Advice::from_records(&all).recommendations;
        assert!(found[0].contains("3.00 GB, donor_id mixed to 12.5 % of a perfect"), "{found:#?}");
        let none = found.iter().any(|text| text.starts_with("none mixes all labels to 95 %"));
        assert!(none, "{found:#?}");
        donors(0.96, &mut all[0]);
        let found = Advice::from_records(&all).recommendations;
        let mixed = "the fastest that mixes all labels to 95 % is native, 16 chunks of 64 rows";
        assert!(found.iter().any(|text| text.starts_with(mixed)), "{found:#?}");
    }

    #[test]
    fn the_fastest_may_be_the_best_trade() {
        let all = [record(16, 4000.0, 0.4), record(32, 8000.0, 1.5), record(64, 10_000.0, 3.0)];
        let found = Advice::from_records(&all).recommendations;
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(
            found[0].ends_with("none has 90 % of its speed in 90 % of its memory"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn too_few_rows_recommend_nothing_and_short_ones_no_speed() {
        assert!(Advice::from_records(&points()[..2]).recommendations.is_empty());
        let mut short = points();
        for record in &mut short {
            record.measured.elapsed = Some(0.25);
        }
        let advice = Advice::from_records(&short);
        let [taken] = advice.recommendations.as_slice() else { panic!("{advice:?}") };
        let least =
            "for data of this size, take what mixes well in the least memory: native, 16 chunks";
        assert!(taken.starts_with(least), "{taken}");
        for record in &mut short {
            record.measured.order_entropy.clear();
        }
        let unmixed = Advice::from_records(&short).recommendations;
        let least = "for data of this size, take what takes the least memory (no mixing was measured: \
                     --entropy-of COLUMN does): native, 16 chunks";
        assert!(unmixed[0].starts_with(least), "{unmixed:?}");
        let [caution] = advice.cautions.as_slice() else { panic!("{advice:?}") };
        assert!(caution.starts_with(
            "epochs of 3 of 3 settings lasted less than a second (the shortest 0.25 s)"
        ));
        assert!(caution.ends_with("take larger data or more epochs"), "{caution}");
    }

    #[test]
    fn blocks_as_large_as_the_data_are_a_caution() {
        let mut all = points();
        for record in &mut all {
            record.data.total_rows = 64 * 32;
        }
        let advice = Advice::from_records(&all);
        let [caution] = advice.cautions.as_slice() else { panic!("{advice:?}") };
        assert!(
            caution.starts_with("2 of 3 settings have blocks as large as the data (2,048 samples)"),
            "{caution}"
        );
        // A loader that keeps all data by its design is no caution.
        for record in &mut all {
            record.point.loader = Some("other".to_owned());
        }
        assert!(Advice::from_records(&all).cautions.is_empty());
    }

    #[test]
    fn different_work_is_not_compared() {
        let mut all = points();
        let mut csr = points();
        for record in &mut csr {
            record.point.form = "csr".to_owned();
        }
        all.extend(csr);
        let found = Advice::from_records(&all).recommendations;
        assert_eq!(found.len(), 8, "{found:#?}");
        assert!(
            found[0].starts_with("dense batches: the fastest")
                && found[4].starts_with("CSR batches: the")
        );
    }
}
