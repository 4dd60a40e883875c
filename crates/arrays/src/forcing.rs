//! Variables that are computed from the times of steps and the places of a grid.

use std::f64::consts::{PI, TAU};
use std::sync::Arc;

use crate::convert::Convert;
use crate::coordinates::Coordinates;
use crate::difference::{Difference, all_steps};
use crate::element::ElementType;
use crate::error::Error;
use crate::function::Function;
use crate::packing::Packing;
use crate::patches::OpenPatches;
use crate::rollout;
use crate::spec::{Forcing, Variable};
use crate::times::{Moment, TimeSpan, Times};
use crate::variable::OpenVariable;
use crate::window::SampleSteps;

/// Names of latitudes and of longitudes, and their units by the CF conventions (1.12, sections 4.1
/// and 4.2).
const LATITUDE: [&[&str]; 2] = [
    &["latitude", "lat"],
    &["degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN"],
];
const LONGITUDE: [&[&str]; 2] = [
    &["longitude", "lon"],
    &["degrees_east", "degree_east", "degree_E", "degrees_E", "degreeE", "degreesE"],
];

/// What is computed of a row.
#[derive(Debug)]
pub(crate) struct OpenForcing {
    kind: Forcing,
    /// The times of all steps.
    times: Arc<Times>,
    /// The points of a row; `None` if it is a single number.
    grid: Option<Grid>,
    to: ElementType,
    packing: Option<Packing>,
    /// The number of the variable's arrays that come before it in a row.
    pub(crate) n_before: usize,
}

#[derive(Debug)]
struct Grid {
    latitude: Axis,
    longitude: Axis,
    is_latitude_first: bool,
}

/// Latitudes or longitudes, in radians.
#[derive(Debug)]
struct Axis {
    dimension: String,
    radians: Vec<f64>,
}

/// A grid, and the coordinates of its dimensions in their order.
type Found = (Grid, [Arc<Coordinates>; 2]);

/// The patches of samples, and where that of one begins.
pub(crate) type PatchAt<'a> = (&'a OpenPatches, &'a [i64]);

impl OpenVariable {
    /// A variable that is computed at the times of `timed`, on the first grid that a variable of
    /// `gridded` has.
    pub(crate) fn computed(
        spec: &Variable,
        kind: Forcing,
        (gridded, timed): (&[&Self], &Self),
    ) -> Result<Self, Error> {
        let refused = |reason: String| Error::Spec { reason: format!("{}: {reason}", spec.name) };
        if !spec.select.is_empty() || !spec.order.is_empty() || !spec.stack.is_empty() {
            let reason = "it is computed on the grid of another variable: select and order there";
            return Err(refused(reason.to_owned()));
        }
        rollout::check(spec)?;
        let difference = Difference::of(spec)?;
        let times = match timed.step_coordinates.as_deref() {
            Some(coordinates) => Times::of(coordinates),
            None => Err("the dimension of its steps has no coordinates".to_owned()),
        };
        let times = times.map_err(|reason| {
            refused(format!("it needs the times of {}: {reason}", timed.path()))
        })?;
        let (mut dimensions, mut coordinates, mut row_shape) = Default::default();
        let mut grid = None;
        if kind == Forcing::Time {
            times.check_gregorian().map_err(refused)?;
        } else {
            let found = gridded.iter().find_map(|of| Grid::of(of)).ok_or_else(|| {
                let names: Vec<&str> = gridded.iter().map(|of| &*of.name).collect();
                refused(format!(
                    "it needs a grid, and {} have none: two dimensions named latitude and \
                     longitude, lat and lon, or whose coordinates have the units degrees_north and \
                     degrees_east",
                    names.join(", ")
                ))
            })?;
            let (of_grid, both) = found.map_err(refused)?;
            dimensions = both.iter().map(|of| of.dimension().to_owned()).collect();
            row_shape = both.iter().map(|of| of.len()).collect();
            coordinates = both.into_iter().map(Some).collect();
            grid = Some(of_grid);
        }
        let function = Function::of(spec).map_err(refused)?;
        let packing = function.map(|function| Packing::with_function(None, function));
        let is_time = kind == Forcing::Time;
        let is_changed = packing.is_some() || difference.is_some() || !spec.normalize.is_empty();
        let own = match (is_time, is_changed) {
            (true, false) => ElementType::I64,
            (true, true) => ElementType::F64,
            (false, _) => ElementType::F32,
        };
        let element = spec.element.unwrap_or(own);
        let times = Arc::new(times);
        let forcing = OpenForcing { kind, times, grid, to: element, packing, n_before: 0 };
        let (steps, spans) = all_steps(spec);
        let made = Self {
            name: spec.name.clone(),
            steps: SampleSteps::Relative(steps),
            spans,
            rollout: spec.rollout.clone(),
            element,
            dimensions,
            coordinates,
            step_coordinates: timed.step_coordinates.clone(),
            n_steps: timed.n_steps,
            leads: timed.leads.clone(),
            row_shape,
            members: Vec::new(),
            forcings: vec![forcing],
            difference,
            values: None,
            channel_dimensions: Vec::new(),
            patch: None,
            pool: Arc::default(),
        };
        if spec.normalize.is_empty() {
            return Ok(made);
        }
        made.normalized(&spec.normalize, Some(element)).map_err(refused)
    }

    /// The coordinates of its latitudes and of its longitudes, if it has both.
    pub(crate) fn grid(&self) -> Option<[&Arc<Coordinates>; 2]> {
        let of = |names| self.coordinates.iter().flatten().find(|of| is(of, names));
        Some([of(LATITUDE)?, of(LONGITUDE)?])
    }

    /// Whether nothing of it is stored.
    pub(crate) fn is_computed(&self) -> bool {
        self.members.is_empty()
    }
}

impl Grid {
    /// The latitudes and longitudes of a variable, if it has both, with their coordinates in the
    /// order of its dimensions.
    fn of(variable: &OpenVariable) -> Option<Result<Found, String>> {
        let [of_latitude, of_longitude] = variable.grid()?;
        let (latitude, longitude) = (Axis::of(of_latitude)?, Axis::of(of_longitude)?);
        let place =
            |of: &Coordinates| variable.dimensions.iter().position(|name| name == of.dimension());
        let is_latitude_first = place(of_latitude) < place(of_longitude);
        if let Some(at) = latitude.radians.iter().find(|at| PI / 2.0 + 1e-6 < at.abs()) {
            let degrees = at.to_degrees();
            return Some(Err(format!(
                "the latitude {degrees} of {} is not between -90 and 90 degrees",
                variable.name
            )));
        }
        let mut both = [of_latitude, of_longitude].map(Arc::clone);
        if !is_latitude_first {
            both.reverse();
        }
        Some(Ok((Self { latitude, longitude, is_latitude_first }, both)))
    }
}

/// Whether coordinates are called one of these, or have one of the units.
fn is(coordinates: &Coordinates, [names, units]: [&[&str]; 2]) -> bool {
    let is_of = |text: &str, all: &[&str]| all.iter().any(|one| one.eq_ignore_ascii_case(text));
    let standard_name = coordinates.attribute("standard_name");
    is_of(coordinates.dimension(), names)
        || standard_name.is_some_and(|name| is_of(name, names))
        || coordinates.attribute("units").is_some_and(|unit| is_of(unit, units))
}

impl Axis {
    /// `None` if the coordinates are no numbers.
    fn of(coordinates: &Coordinates) -> Option<Self> {
        let radians = coordinates.values().numbers()?.into_iter().map(f64::to_radians).collect();
        Some(Self { dimension: coordinates.dimension().to_owned(), radians })
    }

    /// Those of a patch, or all.
    fn part(&self, variable: &OpenVariable, patch: Option<PatchAt<'_>>) -> Vec<f64> {
        let cut = variable.number_of_cut(&self.dimension).zip(patch);
        let Some((of, (patches, starts))) = cut else { return self.radians.clone() };
        let start = starts.get(of).copied();
        let at = start.into_iter().flat_map(|start| patches.places(of, start));
        at.filter_map(|at| self.radians.get(usize::try_from(at).ok()?).copied()).collect()
    }
}

impl OpenForcing {
    /// Less a mean and divided by a deviation.
    pub(crate) fn normalize(&mut self, by: &[(f64, f64)]) -> Result<(), String> {
        let &[(mean, deviation)] = by else {
            return Err(format!("it is normalised by {} pairs: one is expected", by.len()));
        };
        self.packing = Some(Packing::normalized(self.packing.as_ref(), (mean, deviation)));
        Ok(())
    }

    /// The same after so many of the variable's arrays in a row.
    pub(crate) fn after(self, n_before: usize) -> Self {
        Self { n_before, ..self }
    }

    /// Converts elements to a floating point type.
    pub(crate) fn deliver_as(&mut self, to: ElementType) {
        self.to = to;
    }

    /// What distinguishes it from others.
    pub(crate) fn fingerprint(&self) -> String {
        let Self { kind, to, packing, .. } = self;
        format!("{kind:?} as {to} by {packing:?}")
    }

    /// Elements of a row, of this part of the grid.
    fn n_elements(&self, variable: &OpenVariable) -> usize {
        let shape = &variable.row_shape;
        let n_grid = if self.grid.is_some() { 2 } else { 0 };
        shape[shape.len().saturating_sub(n_grid)..].iter().product()
    }

    /// Bytes of a row.
    pub(crate) fn row_bytes(&self, variable: &OpenVariable) -> usize {
        self.n_elements(variable) * self.to.n_bytes()
    }

    /// Puts what is computed at a step into its row.
    pub(crate) fn put(
        &self,
        (variable, patch): (&OpenVariable, Option<PatchAt<'_>>),
        step: u64,
        into: &mut [u8],
    ) {
        // A forecast has it at the time that it is about.
        let after = variable.lead_time(step).unwrap_or(TimeSpan { micros: 0 });
        let step = variable.row_of(step);
        let Some(Grid { latitude, longitude, is_latitude_first }) = &self.grid else {
            let micros = [self.times.gregorian_micros(step, after).unwrap_or(i64::MIN)];
            return self.convert(ElementType::I64, bytemuck::bytes_of(&micros), into);
        };
        let (latitudes, longitudes) =
            (latitude.part(variable, patch), longitude.part(variable, patch));
        let Terms { plus, times, of_longitude } =
            Terms::of(self.kind, self.times.moment(step, after), &latitudes, &longitudes);
        let (n_outer, n_inner) = match is_latitude_first {
            true => (latitudes.len(), longitudes.len()),
            false => (longitudes.len(), latitudes.len()),
        };
        let mut line = vec![0.0_f64; n_inner];
        let lines = into.chunks_exact_mut((n_inner * self.to.n_bytes()).max(1));
        for (outer, into) in (0..n_outer).zip(lines) {
            if *is_latitude_first {
                let (plus, times) = (plus[outer], times[outer]);
                for (to, of_longitude) in line.iter_mut().zip(&of_longitude) {
                    *to = plus + times * of_longitude;
                }
            } else {
                let of_longitude = of_longitude[outer];
                for ((to, plus), times) in line.iter_mut().zip(&plus).zip(&times) {
                    *to = plus + times * of_longitude;
                }
            }
            self.convert(ElementType::F64, bytemuck::cast_slice(&line), into);
        }
    }

    /// Puts numbers of a type into their place.
    fn convert(&self, from: ElementType, numbers: &[u8], into: &mut [u8]) {
        let convert = match &self.packing {
            None if self.to == from => Convert::Copy,
            packing => Convert::Floats { to: self.to, packing: packing.clone() },
        };
        convert.run(from, numbers, (into, 0));
    }
}

/// What makes a number of each point: `plus` and `times` of its latitude, the rest of its
/// longitude.
struct Terms {
    plus: Vec<f64>,
    times: Vec<f64>,
    of_longitude: Vec<f64>,
}

impl Terms {
    fn of(kind: Forcing, moment: Moment, latitudes: &[f64], longitudes: &[f64]) -> Self {
        let Moment { year_day, year_days, day } = moment;
        let (n_latitudes, n_longitudes) = (latitudes.len(), longitudes.len());
        let same = |number: f64| Self {
            plus: vec![number; n_latitudes],
            times: vec![0.0; n_latitudes],
            of_longitude: vec![0.0; n_longitudes],
        };
        let of_day = |of: fn(f64) -> f64| Self {
            plus: vec![0.0; n_latitudes],
            times: vec![1.0; n_latitudes],
            of_longitude: longitudes.iter().map(|at| of(TAU * day + at)).collect(),
        };
        match kind {
            Forcing::YearSine => same((TAU * year_day / year_days).sin()),
            Forcing::YearCosine => same((TAU * year_day / year_days).cos()),
            Forcing::DaySine => of_day(f64::sin),
            Forcing::DayCosine => of_day(f64::cos),
            Forcing::CosineZenith | Forcing::Time => {
                let (declination, equation_of_time) = sun(moment);
                let (sine, cosine) = declination.sin_cos();
                let noon = TAU * day - PI + equation_of_time;
                Self {
                    plus: latitudes.iter().map(|at| at.sin() * sine).collect(),
                    times: latitudes.iter().map(|at| at.cos() * cosine).collect(),
                    of_longitude: longitudes.iter().map(|at| (noon + at).cos()).collect(),
                }
            }
        }
    }
}

/// The sun's declination and the equation of time, in radians.
///
/// Source: see [`Forcing::CosineZenith`]. There, the year has 365 or 366 days, and the angle is
/// that of the middle of the day at noon.
fn sun(Moment { year_day, year_days, .. }: Moment) -> (f64, f64) {
    let angle = TAU / year_days * (year_day - 0.5);
    let ((s1, c1), (s2, c2), (s3, c3)) =
        (angle.sin_cos(), (2.0 * angle).sin_cos(), (3.0 * angle).sin_cos());
    let declination = 0.006_918 - 0.399_912 * c1 + 0.070_257 * s1 - 0.006_758 * c2 + 0.000_907 * s2
        - 0.002_697 * c3
        + 0.001_48 * s3;
    let equation = 0.000_075 + 0.001_868 * c1 - 0.032_077 * s1 - 0.014_615 * c2 - 0.040_849 * s2;
    (declination, equation)
}
