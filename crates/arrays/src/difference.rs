//! Differences: the numbers at some steps less those at others, normalised by statistics of their
//! own.

use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use half::{bf16, f16};

use crate::convert::Float;
use crate::element::ElementType;
use crate::error::Error;
use crate::function::Function;
use crate::member::Member;
use crate::open_array::{OpenArray, check_normalized};
use crate::packing::Packing;
use crate::spec::Variable;
use crate::times::TimeSpan;
use crate::variable::OpenVariable;

/// Bytes that justify another thread: starting one takes as long as copying these.
const BYTES_PER_THREAD: usize = 1 << 20;

/// What is subtracted from the steps of a sample.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// Steps that are subtracted, the last ones of a sample: one from all others, or as many as
    /// there are others, one from each.
    n_steps: usize,
    /// The type in which rows are read: each number is exact in it.
    read_as: ElementType,
    /// A mean and a deviation for each plane of a row, or one pair for all.
    by: Vec<(f64, f64)>,
}

/// All steps of a variable, those that are subtracted last, and the same by their times.
pub(crate) fn all_steps(spec: &Variable) -> (Vec<i64>, Vec<TimeSpan>) {
    let spans = [&spec.spans[..], &spec.minus_spans].concat();
    // Those of spans are set once the times are known.
    let steps = if spans.is_empty() {
        [&spec.steps[..], &spec.minus].concat()
    } else {
        vec![0; spans.len()]
    };
    (steps, spans)
}

/// The array with elements as they are delivered: unpacked, by the function that is asked for,
/// normalised and of the type. If there is a difference, that is normalised instead.
pub(crate) fn delivered(
    array: OpenArray,
    spec: &Variable,
    packing: Option<(ElementType, Option<Packing>)>,
    difference: Option<Difference>,
) -> Result<(OpenArray, Option<Difference>), String> {
    let array = match packing {
        Some((element, packing)) => array.unpacked(element, packing),
        None => array,
    };
    let array = match Function::of(spec)? {
        Some(function) => array.with_function(function),
        None => array,
    };
    let by = &spec.normalize;
    if !by.is_empty() {
        check_normalized(by, array.step_shape())?;
    }
    if let Some(mut difference) = difference {
        if !by.is_empty() {
            difference.normalize(by)?;
        }
        return Ok((array, Some(difference)));
    }
    let mut array = if by.is_empty() { array } else { array.normalized(by)? };
    if let Some(element) = spec.element {
        array.deliver_as(element);
    }
    Ok((array, None))
}

/// The type of elements as delivered, of a variable whose arrays have elements of type `of_array`.
pub(crate) fn element(
    spec: &Variable,
    difference: Option<&Difference>,
    of_array: ElementType,
) -> ElementType {
    let Some(_) = difference else { return of_array };
    spec.element.unwrap_or_else(|| of_array.computed())
}

impl Difference {
    /// What a variable subtracts, if anything. Fails if steps do not fit, or elements are to be of
    /// a type that is not one of floating point numbers.
    pub(crate) fn of(spec: &Variable) -> Result<Option<Self>, Error> {
        let refused = |reason: String| Error::Spec { reason: format!("{}: {reason}", spec.name) };
        if let Some(element) = spec.element.filter(|element| !element.is_float()) {
            return Err(refused(format!(
                "elements are converted to floating point numbers, not to {element}"
            )));
        }
        let counted = (spec.steps.len(), spec.minus.len());
        let timed = (spec.spans.len(), spec.minus_spans.len());
        let ((n, n_steps), (_, others)) =
            if timed.0 == 0 { (counted, timed) } else { (timed, counted) };
        if 0 < others {
            return Err(refused(
                "its steps and those that are subtracted must both be numbers, or both be times"
                    .to_owned(),
            ));
        }
        if 1 < n_steps && n_steps != n {
            return Err(refused(format!(
                "{n_steps} steps are subtracted from {n}: give one for all, or one for each"
            )));
        }
        let (read_as, by) = (ElementType::F64, vec![(0.0, 1.0)]);
        Ok((0 < n_steps).then_some(Self { n_steps, read_as, by }))
    }

    /// Normalises by a mean and a deviation, or by those of each plane of a row.
    pub(crate) fn normalize(&mut self, by: &[(f64, f64)]) -> Result<(), String> {
        if self.is_normalized() {
            return Err("it is normalised by itself and in its stack".to_owned());
        }
        self.by = by.to_vec();
        Ok(())
    }

    fn is_normalized(&self) -> bool {
        self.by != [(0.0, 1.0)]
    }

    /// Adds the pairs of a variable whose `n_next` equal parts of a row, channels or members, come
    /// after the `n` of these. Parts may have several pairs, each for a plane of theirs.
    pub(crate) fn stack(&mut self, n: usize, next: &Self, n_next: usize) {
        let of_part = |by: &[(f64, f64)], n: usize| by.len().checked_div(n).unwrap_or(0).max(1);
        let n_planes = of_part(&self.by, n).max(of_part(&next.by, n_next));
        let of_each = |by: &[(f64, f64)], n: usize| -> Vec<(f64, f64)> {
            let n_equal = (n * n_planes).checked_div(by.len()).unwrap_or(0);
            by.iter().flat_map(|pair| std::iter::repeat_n(*pair, n_equal)).collect()
        };
        self.by = [of_each(&self.by, n), of_each(&next.by, n_next)].concat();
    }

    /// The number of pairs by which it is normalised.
    pub(crate) fn n_planes(&self) -> usize {
        self.by.len()
    }

    /// What distinguishes it from others.
    pub(crate) fn fingerprint(&self, element: ElementType) -> String {
        format!(" less the last {} as {element} by {:?}", self.n_steps, self.by)
    }
}

impl OpenVariable {
    /// The number of steps that are delivered of a sample, without a rollout.
    pub(crate) fn n_delivered_steps(&self) -> usize {
        self.steps.len() - self.difference.as_ref().map_or(0, |difference| difference.n_steps)
    }

    /// Reads rows in the smallest type in which each number is exact, if they are subtracted.
    pub(crate) fn choose_read_element(&mut self) {
        let Some(difference) = &mut self.difference else { return };
        let is_exact = |member: &Member| member.arrays().all(|(_, array)| array.is_exact_as_f32());
        if self.forcings.is_empty() && self.members.iter().all(is_exact) {
            difference.read_as = ElementType::F32;
        }
        let read_as = difference.read_as;
        for array in self.members.iter_mut().flat_map(Member::arrays_mut) {
            array.deliver_as(read_as);
        }
        for forcing in &mut self.forcings {
            forcing.deliver_as(read_as);
        }
    }

    /// The numbers of the steps that are read in an epoch, among all steps of a sample.
    pub(crate) fn steps_read_in(&self, epoch: Option<u64>) -> impl Iterator<Item = usize> + use<> {
        let (n, first) = (self.n_steps_in(epoch), self.n_delivered_steps());
        let n_subtracted = self.difference.as_ref().map_or(0, |difference| difference.n_steps);
        (0..n).chain(first..first + n_subtracted.min(n))
    }

    /// Bytes of a row as it is read.
    pub(crate) fn read_row_bytes(&self) -> usize {
        let element =
            self.difference.as_ref().map_or(self.element, |difference| difference.read_as);
        self.row_shape.iter().product::<usize>() * element.n_bytes()
    }

    /// Bytes of the rows of a sample that are read before some are subtracted; none if none are.
    pub(crate) fn rows_bytes_in(&self, epoch: Option<u64>) -> u64 {
        match self.difference {
            Some(_) => self.steps_read_in(epoch).count() as u64 * self.read_row_bytes() as u64,
            None => 0,
        }
    }

    /// Subtracts rows that were read of samples in an epoch, and puts the differences into their
    /// place. Works on up to `n_threads` threads.
    pub(crate) fn subtract(
        &self,
        rows: &[u8],
        epoch: Option<u64>,
        (into, n_threads): (&mut [u8], usize),
    ) {
        let Some(difference) = &self.difference else { return };
        let (n, n_read) = (self.n_steps_in(epoch), self.steps_read_in(epoch).count());
        let (read_bytes, row_bytes) = (self.read_row_bytes(), self.row_bytes());
        if read_bytes == 0 {
            return;
        }
        let samples = rows.chunks_exact(n_read * read_bytes);
        let work = samples.zip(into.chunks_exact_mut(n * row_bytes)).flat_map(|(rows, into)| {
            let row = move |at: usize| &rows[at * read_bytes..][..read_bytes];
            let each = into.chunks_exact_mut(row_bytes).enumerate();
            each.map(move |(at, into)| {
                let less = if n_read == n + 1 { n } else { n + at };
                (row(at), row(less), into)
            })
        });
        let work: Vec<_> = work.collect();
        let n_threads = n_threads.min(work.len()).min(1 + rows.len() / BYTES_PER_THREAD).max(1);
        let queue = Mutex::new(work.into_iter());
        let drain = || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((row, less, into)) = next else { return };
                difference.put((row, less), self.element, into);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..n_threads {
                let thread = std::thread::Builder::new().name("arrays-subtract".to_owned());
                // Without it, the others do its share.
                let _is_running = thread.spawn_scoped(scope, drain).is_ok();
            }
            drain();
        });
    }
}

impl Difference {
    /// Puts the difference of two rows into its place.
    fn put(&self, (row, less): (&[u8], &[u8]), element: ElementType, into: &mut [u8]) {
        let n_read = self.read_as.n_bytes();
        let plane_len = (row.len() / n_read / self.by.len().max(1)).max(1);
        let planes = row.chunks(plane_len * n_read).zip(less.chunks(plane_len * n_read));
        let into = into.chunks_mut(plane_len * element.n_bytes());
        for (((row, less), into), by) in planes.zip(into).zip(&self.by) {
            match self.read_as {
                ElementType::F32 => put_as::<f32>((row, less), *by, element, into),
                _ => put_as::<f64>((row, less), *by, element, into),
            }
        }
    }
}

/// Puts normalised differences of numbers of a type into their place, as elements of another.
fn put_as<T: Pod + Into<f64>>(
    (row, less): (&[u8], &[u8]),
    by: (f64, f64),
    element: ElementType,
    into: &mut [u8],
) {
    let rows: (&[T], &[T]) = (bytemuck::cast_slice(row), bytemuck::cast_slice(less));
    match element {
        ElementType::F16 => each::<T, f16>(rows, by, bytemuck::cast_slice_mut(into)),
        ElementType::BF16 => each::<T, bf16>(rows, by, bytemuck::cast_slice_mut(into)),
        ElementType::F64 => each::<T, f64>(rows, by, bytemuck::cast_slice_mut(into)),
        _ => each::<T, f32>(rows, by, bytemuck::cast_slice_mut(into)),
    }
}

fn each<T: Copy + Into<f64>, F: Float>(
    (row, less): (&[T], &[T]),
    (mean, deviation): (f64, f64),
    into: &mut [F],
) {
    for ((to, number), less) in into.iter_mut().zip(row).zip(less) {
        *to = F::nearest(((*number).into() - (*less).into() - mean) / deviation);
    }
}
