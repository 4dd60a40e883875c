//! What is computed from times and places, in place of an array.

use std::f64::consts::{PI, TAU};
use std::path::Path;
use std::sync::Arc;

use arrays::{
    ArrayBatch, ArraySamples, Direction, ElementType, Error, Forcing, Indices, Padding,
    PatchDimension, Patches, SampleSpec, TimeSpan, Variable,
};
use pipeline::{Pipeline, Source as _};
use storage::{LocalStorage, Storage};

use crate::timed::{Grid, write_grid, write_times};
use crate::{chain, in_order, open_with};

const ALL: [Forcing; 5] = [
    Forcing::CosineZenith,
    Forcing::YearSine,
    Forcing::YearCosine,
    Forcing::DaySine,
    Forcing::DayCosine,
];

const LATITUDES: [i16; 3] = [-90, 0, 45];
const LONGITUDES: [i16; 4] = [0, 90, 180, 270];

fn grid(values: usize, shape: &[u64], names: &[&str]) -> Grid {
    let values = (0..values as i16).collect();
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Grid { values, shape: shape.to_vec(), names, packing: None }
}

/// A field `t` (time, lat, lon), `u` (time, lon, level, lat) and a mask, at these hours.
fn store(hours: &[i64], units: &str, calendar: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let n = hours.len();
    let at = folder.path();
    write_grid(at, "t", &grid(n * 12, &[n as u64, 3, 4], &["time", "lat", "lon"]));
    let u = grid(n * 24, &[n as u64, 4, 2, 3], &["time", "lon", "level", "lat"]);
    write_grid(at, "u", &u);
    write_grid(at, "mask", &grid(12, &[3, 4], &["lat", "lon"]));
    let of = |values: &[i16], name: &str| Grid {
        values: values.to_vec(),
        ..grid(0, &[values.len() as u64], &[name])
    };
    write_grid(at, "lat", &of(&LATITUDES, "lat"));
    write_grid(at, "lon", &of(&LONGITUDES, "lon"));
    write_times(at, hours, units, calendar);
    folder
}

fn spec(variables: impl IntoIterator<Item = Variable>) -> SampleSpec {
    SampleSpec { along: Some("time".into()), ..SampleSpec::new(variables) }
}

/// The values of variables in all samples, in their order.
fn read(samples: ArraySamples, epoch: u64) -> Vec<(Vec<usize>, Vec<f64>)> {
    let pipeline = Pipeline::new(Arc::new(samples), in_order(), ArrayBatch::n_samples).unwrap();
    let mut all: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
    for batch in pipeline.epoch(epoch).unwrap() {
        for (at, of) in batch.unwrap().variables().enumerate() {
            let values: Vec<f64> = match of.element() {
                ElementType::F32 => {
                    of.values::<f32>().unwrap().iter().map(|x| f64::from(*x)).collect()
                }
                ElementType::F64 => of.values::<f64>().unwrap().to_vec(),
                ElementType::I64 => of.values::<i64>().unwrap().iter().map(|x| *x as f64).collect(),
                _ => Vec::new(),
            };
            match all.get_mut(at) {
                Some((shape, all)) => {
                    shape[0] += of.shape()[0];
                    all.extend(values);
                }
                None => all.push((of.shape(), values)),
            }
        }
    }
    all
}

fn are_near(found: &[f64], right: &[f64], by: f64) {
    assert_eq!(found.len(), right.len());
    for (found, right) in found.iter().zip(right) {
        assert!((found - right).abs() <= by, "{found} is not {right}");
    }
}

/// The progress of year and day by what each calendar counts; in another place for each longitude.
#[test]
fn progress_is_that_of_the_calendar() {
    for (calendar, days) in [("standard", 366.0), ("noleap", 365.0), ("360_day", 360.0)] {
        let folder = store(&[0, 6, 24 * 180 + 18], "hours since 2000-01-01", calendar);
        let forcings = ALL.map(|forcing| {
            Variable::computed(format!("{forcing:?}"), forcing).delivered_as(ElementType::F64)
        });
        let variables = [Variable::new("t").as_f32()].into_iter().chain(forcings);
        let found = read(open_with(folder.path(), &spec(variables)).unwrap(), 0);
        let hours = [0.0, 6.0, 24.0 * 180.0 + 18.0];
        let of = |right: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            let places = LATITUDES.iter().flat_map(|_| LONGITUDES);
            let each = hours
                .iter()
                .flat_map(|hour| places.clone().map(|lon| right(*hour, f64::from(lon))));
            each.collect()
        };
        let year = |hour: f64| TAU * hour / 24.0 / days;
        let day = |hour: f64, lon: f64| TAU * (hour / 24.0 + lon / 360.0);
        are_near(&found[2].1, &of(&|hour, _| year(hour).sin()), 1e-12);
        are_near(&found[3].1, &of(&|hour, _| year(hour).cos()), 1e-12);
        are_near(&found[4].1, &of(&|hour, lon| day(hour, lon).sin()), 1e-9);
        are_near(&found[5].1, &of(&|hour, lon| day(hour, lon).cos()), 1e-9);
        assert!(found.iter().all(|(shape, _)| *shape == [3, 3, 4]));
    }
}

/// Where the sun stands is known at the solstices, and at the equinox.
#[test]
fn the_sun_stands_where_it_does() {
    let noon = |date: &str| {
        let folder = store(&[0, 12], &format!("hours since {date}T12:00"), "standard");
        let sun = Variable::computed("sun", Forcing::CosineZenith);
        let found = read(open_with(folder.path(), &spec([Variable::new("t"), sun])).unwrap(), 0);
        found[1].1.clone()
    };
    let tilt = 23.44_f64.to_radians();
    for (date, declination) in [("2001-06-21", tilt), ("2001-12-21", -tilt), ("2001-03-20", 0.0)] {
        let found = noon(date);
        // The south pole all day; at the equator it is noon at Greenwich, then in the Pacific.
        are_near(&found[..4], &[-declination.sin(); 4], 1e-2);
        are_near(&found[12..16], &[-declination.sin(); 4], 1e-2);
        let (noon, night) = (declination.cos(), -declination.cos());
        are_near(&found[4..8], &[noon, 0.0, night, 0.0], 4e-2);
        are_near(&found[16..20], &[night, 0.0, noon, 0.0], 4e-2);
        let at_45 = (PI / 4.0 - declination).cos();
        are_near(&found[8..9], &[at_45], 1e-2);
    }
}

/// In patches, in stacks, turned round and transposed they lie under the fields beside them.
#[test]
fn forcings_have_the_axes_of_fields() {
    let folder = store(&[0, 6, 12, 30], "hours since 2003-05-01", "standard");
    let sun = || Variable::computed("sun", Forcing::CosineZenith).steps([0, 1]);
    let plain = read(open_with(folder.path(), &spec([Variable::new("t"), sun()])).unwrap(), 0);
    let (shape, whole) = &plain[1];
    assert_eq!(*shape, [3, 2, 3, 4]);

    // Levels beside it, longitudes first and from the east, in a stack with a field on either side.
    let part = |name: &str| Variable::new("u").named(name).select("level", Indices::List(vec![1]));
    let sun_in_stack = Variable::computed("sun", Forcing::CosineZenith);
    let stack = Variable::stacked("x", [part("a"), sun_in_stack.clone(), part("b")]);
    let first = Variable::stacked("y", [sun_in_stack, part("b")]).as_f32().steps([0, 1]);
    let turned = SampleSpec {
        directions: vec![("lon".to_owned(), Direction::Descending)],
        order: vec!["lon".to_owned(), "lat".to_owned()],
        ..spec([stack.as_f32().steps([0, 1]), first, sun()])
    };
    let samples = open_with(folder.path(), &turned).unwrap();
    assert_eq!(samples.sample_dimensions("sun").unwrap(), ["step", "lon", "lat"]);
    assert_eq!(samples.grid(), Some(("x", ["lat", "lon"])));
    let channels = samples.coordinates("x", "channel").unwrap();
    assert_eq!(channels.strings().unwrap(), ["a_0", "sun", "b_0"]);
    let found = read(samples, 0);
    let u = read(
        open_with(
            folder.path(),
            &SampleSpec {
                order: turned.order.clone(),
                directions: turned.directions,
                ..spec([part("u").as_f32().steps([0, 1])])
            },
        )
        .unwrap(),
        0,
    );
    for row in 0..6 {
        let right: Vec<f64> = (0..4)
            .rev()
            .flat_map(|lon| (0..3).map(move |lat| (lat, lon)))
            .map(|(lat, lon)| whole[row * 12 + lat * 4 + lon])
            .collect();
        let u = &u[0].1[row * 12..][..12];
        assert_eq!(&found[2].1[row * 12..][..12], &right);
        assert_eq!(&found[0].1[row * 36..][..36], [u, &right, u].concat());
        assert_eq!(&found[1].1[row * 24..][..24], [&right, u].concat());
    }

    let patches = Patches::grid([
        PatchDimension::new("lon", 3).overlapping(1).padded(Padding::Periodic { before: 1 }),
        PatchDimension::new("lat", 2).padded(Padding::Reflect { before: 1, after: None }),
    ]);
    let cut =
        SampleSpec { patches: Some(patches), threads: 2, ..spec([Variable::new("t"), sun()]) };
    let samples = open_with(folder.path(), &cut).unwrap();
    let starts: Vec<Vec<i64>> =
        (0..samples.n_samples()).map(|n| samples.patch_starts(n, 0)).collect();
    let steps: Vec<usize> = (0..samples.n_samples()).map(|n| samples.step(n) as usize).collect();
    let found = read(samples, 0);
    assert_eq!(found[1].0, [starts.len(), 2, 2, 3]);
    for (sample, start) in starts.iter().enumerate() {
        for (step, lat, lon) in (0..12).map(|at| (at / 6, at / 3 % 2, at % 3)) {
            let of_lat = (start[1] + lat as i64).unsigned_abs() as usize;
            let of_lon = (start[0] + lon as i64).rem_euclid(4) as usize;
            let right = whole[(steps[sample] * 2 + step) * 12 + of_lat * 4 + of_lon];
            assert_eq!(found[1].1[(sample * 2 + step) * 6 + lat * 3 + lon], right);
        }
    }
}

/// By their times, less another step, by rollout, over several stores, and alone in a stack.
#[test]
fn forcings_have_the_steps_of_fields() {
    let folder = store(&[0, 6, 12, 24, 30], "hours since 2003-05-01", "standard");
    let spans = [0, 6].map(TimeSpan::hours);
    let time = Variable::computed("time", Forcing::Time).spans(spans);
    let day = || Variable::computed("day", Forcing::DaySine).delivered_as(ElementType::F64);
    let less = Variable { minus_spans: spans[..1].to_vec(), ..day().spans(spans[1..].to_vec()) };
    let rolled = day().named("rolled").spans(spans).rollout([(0, 1), (1, 2)]);
    let variables = [time, Variable::new("t").as_f32(), less, rolled];
    let samples = open_with(folder.path(), &spec(variables)).unwrap();
    assert_eq!(samples.n_samples(), 3);
    assert_eq!(samples.left_out().gaps, 1);
    let found = read(samples.clone(), 0);
    let hour = 3_600e6;
    let start = 12_173.0 * 24.0 * hour;
    let right = [0.0, 6.0, 6.0, 12.0, 24.0, 30.0].map(|hours| start + hours * hour);
    assert_eq!(found[0].1, right);
    // From midnight to six at Greenwich, a quarter.
    are_near(&found[2].1[..2], &[1.0, -1.0], 1e-12);
    assert_eq!((&found[3].0[..2], &read(samples.clone(), 1)[3].0[..2]), (&[3, 1][..], &[3, 2][..]));
    assert_eq!(samples.store(1), 0);

    let other = store(&[12, 18], "hours since 2003-05-02", "standard");
    let both: Vec<Arc<dyn Storage>> = [&folder, &other]
        .map(|folder| Arc::new(LocalStorage::new(folder.path())) as Arc<dyn Storage>)
        .into();
    let stack = Variable::stacked("x", [Variable::computed("sun", Forcing::CosineZenith)]);
    let variables = [Variable::computed("time", Forcing::Time), stack, Variable::new("t").as_f32()];
    let samples = ArraySamples::open_all(&both, &spec(variables)).unwrap();
    assert_eq!((samples.n_samples(), samples.store(4), samples.store(5)), (7, 0, 1));
    // Reading ahead is by the chunks of arrays alone.
    assert_eq!(samples.unit_end(0), 3);
    let found = read(samples, 0);
    assert_eq!(found[0].1[5], start + 36.0 * hour);
    assert_eq!(found[1].0, [7, 1, 3, 4]);
}

/// Dates of a calendar without leap days are the same dates.
#[test]
fn times_are_dates_of_the_gregorian_calendar() {
    let folder = store(&[24 * 59, 24 * 60], "hours since 2000-01-01", "noleap");
    let variables = || [Variable::new("t"), Variable::computed("time", Forcing::Time)];
    let found = read(open_with(folder.path(), &spec(variables())).unwrap(), 0);
    let day = 86_400e6;
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].1, [11_017.0 * day, 11_018.0 * day]);
    let folder = store(&[0], "hours since 2000-01-01", "360_day");
    let text = chain(&open_with(folder.path(), &spec(variables())).unwrap_err());
    assert!(text.contains("time: the calendar 360_day"), "{text}");
}

#[test]
fn forcings_that_cannot_be_are_named() {
    let folder = store(&[0, 6], "hours since 2003-05-01", "standard");
    let sun = || Variable::computed("sun", Forcing::CosineZenith);
    let refused = |folder: &Path, variables: Vec<Variable>, words: &[&str]| {
        let text = match open_with(folder, &spec(variables)) {
            Err(error @ Error::Spec { .. }) => chain(&error),
            other => format!("{other:?}"),
        };
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    refused(folder.path(), vec![sun()], &["needs the times and the grid"]);
    refused(folder.path(), vec![Variable::new("mask"), sun()], &["sun needs the times"]);
    let t = || Variable::new("t");
    refused(
        folder.path(),
        vec![t(), sun().select("lat", Indices::List(vec![0]))],
        &["sun: ", "select and order there"],
    );
    refused(folder.path(), vec![t(), sun().normalized([(0.0, 1.0); 2])], &["2 pairs"]);
    refused(folder.path(), vec![t(), sun().normalized([(0.0, 0.0)])], &["deviation 0"]);
    let stack = Variable::stacked("x", [t(), sun()]);
    refused(folder.path(), vec![stack], &["x cannot be stacked", "float32"]);
    let by_place = SampleSpec {
        patches: Some(Patches::grid([PatchDimension::new(1, 2)])),
        ..spec([t(), sun()])
    };
    let text = chain(&open_with(folder.path(), &by_place).unwrap_err());
    assert!(text.contains("sun") && text.contains("name the dimension"), "{text}");
    std::fs::remove_dir_all(folder.path().join("lon")).unwrap();
    refused(
        folder.path(),
        vec![t(), sun()],
        &["sun: it needs a grid", "t have none", "degrees_north"],
    );
    let wide = store(&[0], "hours since 2003-05-01", "standard");
    let lat = Grid { values: vec![-90, 0, 91], ..grid(0, &[3], &["lat"]) };
    write_grid(wide.path(), "lat", &lat);
    refused(wide.path(), vec![t(), sun()], &["latitude 91"]);
    std::fs::remove_dir_all(wide.path().join("time")).unwrap();
    refused(wide.path(), vec![t(), sun()], &["the times of t", "no coordinates"]);
}
