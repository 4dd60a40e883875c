//! Patches of the grid as samples: plain data.

use super::Dimension;

/// Patches of the selected part of the grid. A sample is a step and a patch: all patches of the
/// first step that samples are about come first, in C order, then those of the second.
///
/// ```
/// use arrays::{Padding, PatchDimension, Patches};
///
/// let lat = PatchDimension::new("lat", 64).overlapping(16);
/// let lon = PatchDimension::new("lon", 64).padded(Padding::Periodic { before: 0 });
/// let tiles = Patches::grid([lat.clone(), lon.clone()]);
/// let boxes = Patches::random([lat, lon], 4, 42); // 4 of each step, others in each epoch
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patches {
    /// The dimensions that are cut. All variables that have one are cut alike, also those without
    /// steps, and have equally many selected indices of it; those that have none are not cut.
    pub dimensions: Vec<PatchDimension>,
    /// Boxes at random places; `None` is a grid of patches.
    pub random: Option<RandomPatches>,
}

impl Patches {
    /// A grid of patches.
    pub fn grid(dimensions: impl IntoIterator<Item = PatchDimension>) -> Self {
        Self { dimensions: dimensions.into_iter().collect(), random: None }
    }

    /// `n` boxes of each step, at places drawn from `seed`.
    pub fn random(dimensions: impl IntoIterator<Item = PatchDimension>, n: u64, seed: u64) -> Self {
        Self { random: Some(RandomPatches { n, seed }), ..Self::grid(dimensions) }
    }
}

/// Boxes at random places, all of which are equally likely.
///
/// A place depends on the seed, the epoch and the number of the sample alone: it is the same for
/// any number of ranks and threads, and after resuming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomPatches {
    /// Boxes of each step.
    pub n: u64,
    /// The seed of the places.
    pub seed: u64,
}

/// A dimension that is cut into patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchDimension {
    /// The dimension. By position only if no variable is stacked or without steps.
    pub dimension: Dimension,
    /// Indices of a patch.
    pub size: u64,
    /// Indices from a patch of the grid to the next; less than `size` if patches overlap.
    pub step: u64,
    /// What lies beyond the ends of the selected indices.
    pub padding: Padding,
}

impl PatchDimension {
    /// Patches of `size` indices side by side, within the selected ones.
    pub fn new(dimension: impl Into<Dimension>, size: u64) -> Self {
        Self { dimension: dimension.into(), size, step: size, padding: Padding::None }
    }

    /// The same with neighbours that share `n` indices.
    #[must_use]
    pub fn overlapping(self, n: u64) -> Self {
        Self { step: self.size.saturating_sub(n), ..self }
    }

    /// The same with indices beyond the ends.
    #[must_use]
    pub fn padded(self, padding: Padding) -> Self {
        Self { padding, ..self }
    }
}

/// What patches have beyond the ends of a dimension's selected indices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: patches lie within. Indices after the last patch that are too few for another are
    /// left out, and counted ([`ArraySamples::patches`](crate::ArraySamples::patches)).
    #[default]
    None,
    /// The indices again, in the other direction from the end on, which does not come twice: like
    /// `numpy.pad` with `mode="reflect"`.
    Reflect {
        /// Indices before the first one; fewer than are selected.
        before: u64,
        /// Indices after the last one; fewer than are selected. `None` is as many as the last patch
        /// of the grid lacks.
        after: Option<u64>,
    },
    /// The dimension is a circle, like longitudes: after the last index comes the first. As many
    /// patches begin on it as steps fit, and a random box begins anywhere.
    Periodic {
        /// The first patch of the grid begins this many indices before the first one; fewer than
        /// are selected.
        before: u64,
    },
}
