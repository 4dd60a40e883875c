//! Variables of which a sample has a patch.

use std::cmp::Ordering;

use crate::error::Error;
use crate::member::Member;
use crate::open_array::{OpenArray, check_planes};
use crate::part::{DimPlace, Part};
use crate::patches::{OpenPatches, PatchShape};
use crate::selection::{ChunkRuns, Indices};
use crate::spec::{Dimension, Patches};
use crate::variable::OpenVariable;

/// Cuts those of the variables that have a dimension of the patches.
pub(crate) fn cut_variables(
    variables: &mut [OpenVariable],
    spec: &Patches,
) -> Result<OpenPatches, Error> {
    let failed = |reason: String| Error::Spec { reason };
    // The dimensions that each variable has.
    let mut places: Vec<Vec<(usize, usize)>> = variables.iter().map(|_| Vec::new()).collect();
    let mut lens = Vec::with_capacity(spec.dimensions.len());
    for (of, dimension) in spec.dimensions.iter().enumerate() {
        let dimension = &dimension.dimension;
        let refused = |reason: String| failed(format!("patches of {dimension}: {reason}"));
        let mut found: Option<(&str, usize)> = None;
        for (variable, places) in variables.iter().zip(&mut places) {
            let Some(at) = variable.place_of(dimension).map_err(refused)? else { continue };
            if places.iter().any(|(other, _)| *other == at) {
                return Err(refused("it is cut twice".to_owned()));
            }
            places.push((at, of));
            let len = variable.whole_shape()[at];
            match found {
                Some((other, n)) if n != len => {
                    let name = &variable.name;
                    return Err(refused(format!(
                        "{other} has {n} indices of it and {name} has {len}: those that are cut \
                         alike have equally many"
                    )));
                }
                _ => found = Some((&variable.name, len)),
            }
        }
        let (_, len) = found.ok_or_else(|| {
            refused("no variable has this dimension beside that of the steps".to_owned())
        })?;
        lens.push(len as u64);
    }
    let patches = OpenPatches::new(spec, &lens)?;
    for (variable, places) in variables.iter_mut().zip(places) {
        if !places.is_empty() {
            variable
                .cut(places, &patches)
                .map_err(|reason| failed(format!("{} in patches: {reason}", variable.name)))?;
        }
    }
    Ok(patches)
}

impl OpenVariable {
    /// The place of a dimension of the patches among those of a sample but the steps; `None` if
    /// there is no such dimension.
    fn place_of(&self, dimension: &Dimension) -> Result<Option<usize>, String> {
        match dimension {
            Dimension::Name(name) if self.channel_dimensions.contains(name) => {
                Err(format!("it makes channels of {}, which are not cut", self.name))
            }
            Dimension::Name(name) => {
                let is_it = |known: &String| known == name && !name.is_empty();
                Ok(self.dimensions.iter().position(is_it))
            }
            Dimension::Position(_)
                if self.is_static()
                    || self.is_computed()
                    || !self.channel_dimensions.is_empty() =>
            {
                let name = &self.name;
                Err(format!("{name} has no steps, or is stacked or computed: name the dimension"))
            }
            Dimension::Position(at) => {
                let Some(geometry) = self.arrays().next().map(|array| &array.chunks.geometry)
                else {
                    return Ok(None);
                };
                match at.cmp(&geometry.axis) {
                    Ordering::Equal => Err("samples are made of it".to_owned()),
                    Ordering::Less => Ok(self.place_in_step(geometry.delivered_dim(*at))),
                    Ordering::Greater => Ok(self.place_in_step(geometry.delivered_dim(at - 1))),
                }
            }
        }
    }

    /// The place of a dimension of a row among those of a step, which are without the lead times.
    fn place_in_step(&self, in_row: Option<usize>) -> Option<usize> {
        in_row?.checked_sub(usize::from(self.leads.is_some()))
    }

    /// The selected indices of each dimension but that of the steps.
    fn whole_shape(&self) -> Vec<usize> {
        let outer = self.values.as_ref().map(|values| values.n_outer);
        outer.into_iter().chain(self.row_shape.iter().copied()).collect()
    }

    /// The selected elements of a step, before it is cut.
    pub(crate) fn step_elements(&self) -> usize {
        let shape = self.patch.as_ref().map_or(&self.row_shape, |patch| &patch.whole);
        shape.iter().product()
    }

    /// Cuts samples along some dimensions, each of which has a number among those of the patches.
    fn cut(&mut self, dims: Vec<(usize, usize)>, patches: &OpenPatches) -> Result<(), String> {
        let too_large = || "a patch takes more bytes than this machine can address".to_owned();
        let whole = self.whole_shape();
        let mut shape = whole.clone();
        for (at, of) in &dims {
            let size = patches.dimensions().get(*of).map_or(0, |cut| cut.size);
            shape[*at] = usize::try_from(size).map_err(|_| too_large())?;
        }
        let n_bytes = shape.iter().try_fold(8_usize, |n, len| n.checked_mul(*len));
        n_bytes.filter(|n| isize::try_from(*n).is_ok()).ok_or_else(too_large)?;
        if let Some(difference) = &self.difference {
            check_planes(difference.n_planes(), &whole, &dims)?;
        }
        if !self.is_static() {
            for array in self.members.iter_mut().flat_map(Member::arrays_mut) {
                // Dimensions of the grid are the last ones, also of an array that is channels.
                let own = array.step_shape().to_vec();
                let in_array = |at: usize| (at + own.len()).checked_sub(shape.len());
                let mut patch_shape = own.clone();
                let mut of_array = Vec::with_capacity(dims.len());
                for (at, of) in &dims {
                    let in_array = in_array(*at).ok_or("it lacks the dimension")?;
                    patch_shape[in_array] = shape[*at];
                    of_array.push((in_array, *of));
                }
                array.cut(of_array, &patch_shape)?;
            }
            self.row_shape.clone_from(&shape);
        }
        self.patch = Some(PatchShape { dims, whole, shape });
        Ok(())
    }

    /// The number of a dimension among those of the patches; `None` if it is not cut.
    pub(crate) fn number_of_cut(&self, dimension: &str) -> Option<usize> {
        let at = self.dimensions.iter().position(|name| name == dimension)?;
        let mut dims = self.patch.iter().flat_map(|patch| &patch.dims);
        dims.find(|(cut, _)| *cut == at).map(|(_, of)| *of)
    }

    /// Whether all patches of a step lie in the same chunks.
    pub(crate) fn has_patches_in_one_chunk(&self) -> bool {
        self.arrays().all(OpenArray::has_patches_in_one_chunk)
    }

    /// The chunks of a step in which the patch of a sample lies, of a grid of patches.
    pub(crate) fn chunks_in_row(&self, patches: &OpenPatches, sample: u64) -> Vec<Vec<u64>> {
        let starts = patches.starts(sample, 0);
        let chunks = self.arrays().flat_map(|array| array.chunks_of(Some(patches), (&starts, 0)));
        chunks.map(|chunk| chunk.indices).collect()
    }

    /// The part of the values without steps that is the patch which begins at these places.
    pub(crate) fn part_of(&self, patches: &OpenPatches, starts: &[i64]) -> Option<Part> {
        let PatchShape { dims, whole, shape } = self.patch.as_ref()?;
        let runs = whole.iter().enumerate().map(|(at, len)| {
            let all = Indices::Range(0..*len as u64);
            let cut = dims.iter().find(|(dim, _)| *dim == at);
            let indices = match cut.and_then(|(_, of)| Some((*of, *starts.get(*of)?))) {
                Some((of, start)) => patches.indices(of, start, &all),
                None => all,
            };
            // The whole dimension is one chunk.
            indices.by_chunk(*len as u64).pop()
        });
        let runs = runs.collect::<Option<Vec<ChunkRuns>>>()?;
        let mut row_stride: usize = shape.iter().product();
        let places = whole.iter().zip(shape).map(|(chunk_len, row_len)| {
            row_stride /= row_len.max(&1);
            DimPlace { chunk_len: *chunk_len, row_len: *row_len, row_stride }
        });
        let places: Vec<DimPlace> = places.collect();
        Some(Part::new(&runs.iter().collect::<Vec<_>>(), &places, (0, 0)))
    }
}
