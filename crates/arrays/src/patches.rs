//! Where the patches of each step lie.

use shuffle::RandomKey;

use crate::error::Error;
use crate::selection::Indices;
use crate::spec::{Dimension, Padding, PatchDimension, Patches, RandomPatches};

/// Keeps the places of boxes apart from other users of the same seed.
const DOMAIN: [u8; 16] = *b"somafeed patches";

/// A dimension that is cut into patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutDimension {
    /// The dimension.
    pub dimension: Dimension,
    /// The number of selected indices.
    pub len: u64,
    /// Indices of a patch.
    pub size: u64,
    /// Patches of a grid along it; of random boxes, the places where one may begin.
    pub n: u64,
    /// Indices after the last patch of a grid, too few for another one.
    pub left_out: u64,
}

/// A dimension with the places of its patches.
#[derive(Debug)]
struct Cut {
    of: CutDimension,
    /// The first index of the first patch; before the first selected one if negative.
    first: i64,
    step: u64,
    padding: Padding,
}

/// The shape of a variable's patches.
#[derive(Debug)]
pub(crate) struct PatchShape {
    /// The dimensions that are cut, each with its number among those of the patches.
    pub(crate) dims: Vec<(usize, usize)>,
    /// The selected indices of each dimension.
    pub(crate) whole: Vec<usize>,
    /// The indices of a patch in each dimension.
    pub(crate) shape: Vec<usize>,
}

/// The patches of each step.
#[derive(Debug)]
pub(crate) struct OpenPatches {
    dims: Vec<Cut>,
    cut: Vec<CutDimension>,
    random: Option<RandomPatches>,
    /// Patches of a step.
    pub(crate) n: u64,
}

impl OpenPatches {
    /// The patches of dimensions with these numbers of selected indices.
    pub(crate) fn new(spec: &Patches, lens: &[u64]) -> Result<Self, Error> {
        if spec.dimensions.is_empty() {
            return Err(refused("patches need a dimension that is cut".to_owned()));
        }
        let is_random = spec.random.is_some();
        let dims = spec.dimensions.iter().zip(lens).map(|(of, len)| {
            Cut::new(of, *len, is_random)
                .map_err(|reason| refused(format!("patches of {}: {reason}", of.dimension)))
        });
        let dims = dims.collect::<Result<Vec<_>, _>>()?;
        let n = match spec.random {
            Some(RandomPatches { n: 0, .. }) => {
                return Err(refused("there must be at least one random box of a step".to_owned()));
            }
            Some(RandomPatches { n, .. }) => Some(n),
            None => dims.iter().try_fold(1_u64, |n, dim| n.checked_mul(dim.of.n)),
        };
        let n = n.ok_or_else(|| refused("there are more than 2^64 patches".to_owned()))?;
        let cut = dims.iter().map(|dim| dim.of.clone()).collect();
        Ok(Self { dims, cut, random: spec.random, n })
    }

    /// The dimensions that are cut.
    pub(crate) fn dimensions(&self) -> &[CutDimension] {
        &self.cut
    }

    /// Whether the places of boxes depend on the epoch.
    pub(crate) fn is_random(&self) -> bool {
        self.random.is_some()
    }

    /// The first index of a sample's patch in each dimension, counted from the first selected one;
    /// negative if the patch begins in the padding.
    pub(crate) fn starts(&self, sample: u64, epoch: u64) -> Vec<i64> {
        let steps: Vec<u64> = if let Some(RandomPatches { seed, .. }) = self.random {
            let key = RandomKey { domain: DOMAIN, seed, number: epoch };
            key.draws_below(sample, self.dims.iter().map(|dim| dim.of.n)).collect()
        } else {
            let mut rest = sample % self.n;
            let mut steps: Vec<u64> = self.dims.iter().map(|_| 0).collect();
            for (step, dim) in steps.iter_mut().zip(&self.dims).rev() {
                *step = rest % dim.of.n * dim.step;
                rest /= dim.of.n;
            }
            steps
        };
        self.dims.iter().zip(steps).map(|(dim, by)| dim.first.saturating_add_unsigned(by)).collect()
    }

    /// The name of a sample's patch within its step.
    pub(crate) fn name(&self, sample: u64) -> String {
        if self.is_random() {
            return format!("box {}", sample % self.n);
        }
        let starts = self.starts(sample, 0).into_iter().zip(&self.cut);
        let each: Vec<String> =
            starts.map(|(start, cut)| format!("{} from {start}", cut.dimension)).collect();
        each.join(", ")
    }

    /// The indices of a patch in dimension `dim` that begins at `start`, of those `selected`.
    pub(crate) fn indices(&self, dim: usize, start: i64, selected: &Indices) -> Indices {
        let Some(cut) = self.dims.get(dim) else { return selected.clone() };
        let CutDimension { len, size, .. } = cut.of;
        match (u64::try_from(start), selected) {
            (Ok(start), Indices::Range(_)) if start.saturating_add(size) <= len => {
                selected.slice(start..start + size)
            }
            _ => Indices::List(cut.places(start).filter_map(|at| selected.get(at)).collect()),
        }
    }

    /// The selected indices of a patch in dimension `dim` that begins at `start`, by their places
    /// among all selected ones.
    pub(crate) fn places(&self, dim: usize, start: i64) -> impl Iterator<Item = u64> {
        self.dims.get(dim).into_iter().flat_map(move |cut| cut.places(start))
    }

    /// What distinguishes the patches from others.
    pub(crate) fn fingerprint(&self) -> String {
        let each = self.dims.iter().map(|dim| {
            let Cut { of, first, step, padding } = dim;
            let CutDimension { dimension, len, size, n, .. } = of;
            format!("{dimension} {len} {n} of {size} from {first} by {step} {padding:?}")
        });
        let each: Vec<String> = each.collect();
        match self.random {
            Some(RandomPatches { n, seed }) => format!("{n} boxes {seed}: {}", each.join(", ")),
            None => format!("patches: {}", each.join(", ")),
        }
    }
}

impl Cut {
    fn new(of: &PatchDimension, len: u64, is_random: bool) -> Result<Self, String> {
        let PatchDimension { ref dimension, size, step, padding } = *of;
        // Numbers of indices and their sums then fit into 64 bits with a sign.
        let most = 1 << 60;
        if size == 0 || most < size {
            return Err(format!("a patch cannot have {size} indices"));
        }
        if step == 0 || most < step {
            return Err(format!("the step from one to the next cannot be {step}"));
        }
        if most < len {
            return Err(format!("{len} indices are too many"));
        }
        let short = |what: &str, n: u64| format!("{what} {n} needs more indices than {len}");
        let (before, padded) = match padding {
            Padding::None => (0, len),
            Padding::Periodic { before } => (before, len),
            Padding::Reflect { before, after } => {
                let own = before.min(most) + len;
                let n_filling = if is_random { 1 } else { n_filling(own, size, step) };
                let end = (n_filling - 1).saturating_mul(step).saturating_add(size);
                let after = after.unwrap_or_else(|| end.saturating_sub(own));
                if len <= after {
                    return Err(short("padding by reflection of", after));
                }
                (before, own + after)
            }
        };
        if len <= before {
            return Err(short("padding of", before));
        }
        let is_periodic = matches!(padding, Padding::Periodic { .. });
        if !is_periodic && padded < size {
            return Err(format!(
                "a patch has {size} indices and the dimension {padded}: make patches smaller, or pad \
                 it"
            ));
        }
        let n = match (is_random, is_periodic) {
            (true, true) => len,
            (true, false) => padded - size + 1,
            (false, true) => len.div_ceil(step),
            (false, false) => (padded - size) / step + 1,
        };
        let end = if is_random { padded } else { (n - 1) * step + size };
        let end_of_own = if is_periodic { len } else { before + len };
        let left_out = end_of_own.saturating_sub(end);
        let dimension = dimension.clone();
        let of = CutDimension { dimension, len, size, n, left_out };
        Ok(Self { of, first: -before.cast_signed(), step, padding })
    }

    /// The indices of a patch that begins at `start`, of the selected ones.
    fn places(&self, start: i64) -> impl Iterator<Item = u64> {
        let (len, padding) = (self.of.len, self.padding);
        let signed = len.cast_signed();
        (start..start.saturating_add_unsigned(self.of.size)).map(move |at| {
            let place = match padding {
                Padding::Periodic { .. } => at.rem_euclid(signed),
                Padding::None | Padding::Reflect { .. } if at < 0 => -at,
                Padding::None | Padding::Reflect { .. } if signed <= at => 2 * (signed - 1) - at,
                Padding::None | Padding::Reflect { .. } => at,
            };
            place.cast_unsigned()
        })
    }
}

/// The fewest patches that leave none of `len` indices after the last of them.
fn n_filling(len: u64, size: u64, step: u64) -> u64 {
    (len.saturating_sub(size).div_ceil(step) + 1).min(len.div_ceil(step)).max(1)
}

fn refused(reason: String) -> Error {
    Error::Spec { reason }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn cut(len: u64, dimension: PatchDimension) -> Result<CutDimension, String> {
        let opened = OpenPatches::new(&Patches::grid([dimension]), &[len]);
        opened.map(|patches| patches.cut[0].clone()).map_err(|error| error.to_string())
    }

    fn lat(size: u64, overlap: u64, padding: Padding) -> PatchDimension {
        PatchDimension::new("lat", size).overlapping(overlap).padded(padding)
    }

    #[test]
    fn a_rest_is_counted_or_padded() {
        let reflect = |before, after| Padding::Reflect { before, after };
        let n_left = |len, of| cut(len, of).map(|cut| (cut.n, cut.left_out)).unwrap();
        assert_eq!(n_left(721, lat(64, 16, Padding::None)), (14, 33));
        assert_eq!(n_left(721, lat(64, 16, reflect(0, None))), (15, 0));
        assert_eq!(n_left(721, lat(64, 16, reflect(8, Some(0)))), (14, 41));
        assert_eq!(n_left(721, lat(64, 16, reflect(8, Some(8)))), (15, 0));
        assert_eq!(n_left(1440, lat(64, 16, Padding::Periodic { before: 8 })), (30, 0));
        // A step beyond the patch leaves gaps, and no patch lies in the padding alone.
        let sparse = PatchDimension { step: 7, ..lat(2, 0, reflect(0, None)) };
        assert_eq!(n_left(10, sparse), (2, 1));
        assert_eq!(n_left(8, PatchDimension { step: 7, ..lat(2, 0, reflect(0, None)) }), (2, 0));
        assert_eq!(n_left(3, lat(5, 0, reflect(0, None))), (1, 0));
    }

    #[test]
    fn indices_beyond_the_ends() {
        let places = |len, of: PatchDimension| -> Vec<Vec<u64>> {
            let patches = OpenPatches::new(&Patches::grid([of]), &[len]).unwrap();
            let starts = (0..patches.n).map(|sample| patches.starts(sample, 0)[0]);
            starts.map(|start| patches.places(0, start).collect()).collect()
        };
        let circle = lat(12, 4, Padding::Periodic { before: 2 });
        assert_eq!(places(8, circle), [[6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1]]);
        let reflected = lat(7, 0, Padding::Reflect { before: 2, after: Some(2) });
        assert_eq!(places(3, reflected), [[2, 1, 0, 1, 2, 1, 0]]);
        let last = lat(4, 1, Padding::Reflect { before: 0, after: None });
        assert_eq!(places(6, last), [[0, 1, 2, 3], [3, 4, 5, 4]]);
    }

    #[test]
    fn all_boxes_occur_and_depend_on_seed_epoch_and_sample_alone() {
        let of = |seed| Patches::random([lat(64, 0, Padding::None)], 4, seed);
        let patches = OpenPatches::new(&of(3), &[721]).unwrap();
        let starts: HashSet<i64> = (0..20_000).map(|sample| patches.starts(sample, 5)[0]).collect();
        assert_eq!(starts, (0..=721 - 64).collect());
        let first = |seed, epoch| -> Vec<i64> {
            let patches = OpenPatches::new(&of(seed), &[721]).unwrap();
            (0..20).map(|sample| patches.starts(sample, epoch)[0]).collect()
        };
        assert_eq!(first(3, 5), first(3, 5));
        assert_ne!(first(3, 5), first(3, 6));
        assert_ne!(first(3, 5), first(4, 5));
        let circle = Patches::random([lat(5, 0, Padding::Periodic { before: 0 })], 1, 0);
        let circle = OpenPatches::new(&circle, &[8]).unwrap();
        let starts: HashSet<i64> = (0..200).map(|sample| circle.starts(sample, 0)[0]).collect();
        assert_eq!(starts, (0..8).collect());
    }

    #[test]
    fn what_cannot_be_is_named() {
        let refused = |len, of, words: &str| {
            let text = cut(len, of).unwrap_err();
            assert!(text.contains("patches of lat") && text.contains(words), "{text}");
        };
        refused(10, lat(11, 0, Padding::None), "11 indices and the dimension 10");
        refused(10, lat(0, 0, Padding::None), "0 indices");
        refused(10, lat(4, 4, Padding::None), "cannot be 0");
        let reflect = |before, after| Padding::Reflect { before, after };
        refused(10, lat(4, 0, reflect(10, None)), "padding of 10");
        refused(10, lat(4, 0, reflect(0, Some(10))), "reflection of 10");
        refused(3, lat(9, 0, reflect(0, None)), "reflection of 6");
        refused(10, lat(4, 0, reflect(u64::MAX, Some(u64::MAX))), "reflection");
        refused(10, lat(4, 0, Padding::Periodic { before: 10 }), "padding of 10");
        refused(10, lat(u64::MAX, 0, Padding::Periodic { before: 0 }), "indices");
        let none = OpenPatches::new(&Patches::grid([]), &[]).unwrap_err().to_string();
        assert!(none.contains("need a dimension"), "{none}");
        let no_box = OpenPatches::new(&Patches::random([lat(4, 0, Padding::None)], 0, 1), &[9]);
        assert!(no_box.unwrap_err().to_string().contains("at least one random box"));
    }
}
