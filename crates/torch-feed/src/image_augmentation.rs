//! The random maps of crate `images` as operations of torch.

use images::augment::Parameters;
use tch::{Device, Kind, TchError, Tensor};

use crate::error::Error;

/// The interpolation of torch's `grid_sampler` that is bilinear.
const BILINEAR: i64 = 0;

/// The padding of torch's `grid_sampler` that clips positions to the border.
const BORDER: i64 = 1;

/// The maps of a batch's samples, ready on a device for the batch's images and masks.
///
/// The result is that of `images::augment`: bit for bit for masks and for samples that are only
/// flipped, and for interpolated images within the error of positions in `f32`, some 2e-5 pixels
/// in images of 640 columns.
///
/// Positions are computed in `f64`, so a device must have it: CPUs and CUDA do.
#[derive(Debug)]
pub struct ImageMaps {
    n_samples: i64,
    height: i64,
    width: i64,
    groups: Vec<Group>,
}

/// Samples of a batch that are mapped together.
#[derive(Debug)]
struct Group {
    /// Numbers of the samples in the batch; `None` for all of them in their order.
    samples: Option<Tensor>,
    map: GroupMap,
}

#[derive(Debug)]
enum GroupMap {
    /// Reverses these axes of `[samples, rows, columns]`.
    Flip(Vec<i64>),
    /// Resamples.
    Affine {
        /// Positions in the source from -1 to 1, of shape `[samples, rows, columns, 2]`.
        grid: Tensor,
        /// Numbers of the nearest pixels of the source, of shape `[samples, pixels]`.
        nearest: Tensor,
    },
}

impl ImageMaps {
    /// Prepares the maps of a batch's samples, for images of `[height, width]` pixels.
    ///
    /// Only the parameters are copied to the device, 48 bytes for a sample with an affine map.
    ///
    /// # Errors
    /// torch's errors, if the device is absent or has no memory or no `f64`.
    pub fn new(
        parameters: &[Parameters],
        [height, width]: [usize; 2],
        device: Device,
    ) -> Result<Self, Error> {
        let error = || Error::torch("the positions of an augmentation");
        let mut groups = Vec::new();
        for [is_affine, horizontal, vertical] in GROUPS {
            let is_of_group = |of: &Parameters| {
                of.affine.is_some() == is_affine
                    && (is_affine
                        || (of.horizontal_flip, of.vertical_flip) == (horizontal, vertical))
            };
            let numbered = (0_i64..).zip(parameters).filter(|(_, of)| is_of_group(of));
            let (samples, members): (Vec<i64>, Vec<&Parameters>) = numbered.unzip();
            if samples.is_empty() {
                continue;
            }
            let map = if is_affine {
                affine(&members, [height, width], device).map_err(error())?
            } else {
                let axes = [(vertical, 1), (horizontal, 2)];
                GroupMap::Flip(axes.iter().filter(|axis| axis.0).map(|axis| axis.1).collect())
            };
            let samples = (samples.len() < parameters.len())
                .then(|| Tensor::f_from_slice(&samples).and_then(|of| of.f_to(device)))
                .transpose();
            groups.push(Group { samples: samples.map_err(error())?, map });
        }
        let [n_samples, height, width] = [parameters.len(), height, width].map(|size| size as i64);
        Ok(Self { n_samples, height, width, groups })
    }

    /// Maps images of shape `[samples, rows, columns, channels]` and any type of numbers, on the
    /// device of the maps, into numbers of type `kind`.
    ///
    /// The result has the same shape; in memory channels come first, so that
    /// `permute([0, 3, 1, 2])` is the contiguous tensor that models take. Values are interpolated
    /// in `f32`.
    ///
    /// # Errors
    /// The images are of another number or size, or torch's errors.
    pub fn warp_images(&self, images: &Tensor, kind: Kind) -> Result<Tensor, Error> {
        let shape = images.size();
        let channels = match shape[..] {
            [_, _, _, channels] if shape[..3] == self.shape() => channels,
            _ => return Err(self.wrong_shape("images", ", channels", shape)),
        };
        let warp = || {
            let size = [self.n_samples, channels, self.height, self.width];
            let mut warped = Tensor::f_empty(size, (kind, images.device()))?;
            for group in &self.groups {
                let source = group.select(images)?;
                let of_group = match &group.map {
                    GroupMap::Flip(axes) => source.f_flip(axes)?.f_permute([0, 3, 1, 2])?,
                    GroupMap::Affine { grid, .. } => {
                        let source = source.f_permute([0, 3, 1, 2])?.f_to_kind(Kind::Float)?;
                        source.f_grid_sampler(grid, BILINEAR, BORDER, false)?
                    }
                };
                group.insert(&of_group.f_to_kind(kind)?, &mut warped)?;
            }
            warped.f_permute([0, 2, 3, 1])
        };
        warp().map_err(Error::torch("augmented images"))
    }

    /// Maps masks of shape `[samples, rows, columns]` and any type, on the device of the maps.
    ///
    /// # Errors
    /// The masks are of another number or size, or torch's errors.
    pub fn warp_masks(&self, masks: &Tensor) -> Result<Tensor, Error> {
        let shape = masks.size();
        if shape != self.shape() {
            return Err(self.wrong_shape("masks", "", shape));
        }
        let warp = || {
            let mut warped = masks.f_empty_like()?;
            for group in &self.groups {
                let source = group.select(masks)?;
                let of_group = match &group.map {
                    GroupMap::Flip(axes) => source.f_flip(axes)?,
                    GroupMap::Affine { nearest, .. } => {
                        let size = [-1, self.height, self.width];
                        source.f_flatten(1, 2)?.f_gather(1, nearest, false)?.f_view(size)?
                    }
                };
                group.insert(&of_group, &mut warped)?;
            }
            Ok(warped)
        };
        warp().map_err(Error::torch("augmented masks"))
    }

    fn shape(&self) -> [i64; 3] {
        [self.n_samples, self.height, self.width]
    }

    fn wrong_shape(&self, what: &'static str, rest: &str, found: Vec<i64>) -> Error {
        let [n_samples, height, width] = self.shape();
        Error::ImageShape {
            what,
            expected: format!("[{n_samples}, {height}, {width}{rest}]"),
            found,
        }
    }
}

/// Whether a group's samples have an affine map, and if not, which flips.
const GROUPS: [[bool; 3]; 5] = [
    [true, false, false],
    [false, false, false],
    [false, true, false],
    [false, false, true],
    [false, true, true],
];

impl Group {
    /// The group's samples of a batch.
    fn select(&self, batch: &Tensor) -> Result<Tensor, TchError> {
        match &self.samples {
            Some(samples) => batch.f_index_select(0, samples),
            None => Ok(batch.shallow_clone()),
        }
    }

    /// Writes the group's samples into a batch.
    fn insert(&self, of_group: &Tensor, batch: &mut Tensor) -> Result<(), TchError> {
        match &self.samples {
            Some(samples) => batch.f_index_copy_(0, samples, of_group).map(drop),
            None => batch.f_copy_(of_group),
        }
    }
}

/// The positions of samples with an affine map; the numbers of `images::augment`, bit for bit.
fn affine(
    members: &[&Parameters],
    [height, width]: [usize; 2],
    device: Device,
) -> Result<GroupMap, TchError> {
    let matrices: Vec<f64> = members
        .iter()
        .flat_map(|of| of.source_matrix([height, width]).into_iter().flatten())
        .collect();
    let matrices = Tensor::f_from_slice(&matrices)?.f_view([-1, 6])?.f_to(device)?;
    let (height, width) = (height as i64, width as i64);
    let rows = Tensor::f_arange(height, (Kind::Double, device))?.f_view([1, -1, 1])?;
    let columns = Tensor::f_arange(width, (Kind::Double, device))?.f_view([1, 1, -1])?;
    let position = |first: i64| {
        let part = |part: i64| matrices.f_select(1, first + part)?.f_view([-1, 1, 1]);
        let of_row = part(2)?.f_add(&part(1)?.f_mul(&rows)?)?;
        of_row.f_add(&part(0)?.f_mul(&columns)?)
    };
    let x = reflect(&position(0)?, width)?;
    let y = reflect(&position(3)?, height)?;
    let nearest = y.f_round()?.f_mul_scalar(width)?.f_add(&x.f_round()?)?;
    let nearest = nearest.f_to_kind(Kind::Int64)?.f_flatten(1, 2)?;
    let grid = Tensor::f_stack(&[normalise(&x, width)?, normalise(&y, height)?], -1)?;
    Ok(GroupMap::Affine { grid: grid.f_to_kind(Kind::Float)?, nearest })
}

/// Reflects positions at the outer edges of the outermost pixels, and clips them to their centres.
fn reflect(position: &Tensor, size: i64) -> Result<Tensor, TchError> {
    let span = size as f64;
    let from_edge = position.f_add_scalar(0.5)?.f_abs()?.f_fmod(2.0 * span)?;
    let mirrored = from_edge.f_neg()?.f_add_scalar(2.0 * span)?;
    from_edge.f_minimum(&mirrored)?.f_sub_scalar(0.5)?.f_clamp(0.0, span - 1.0)
}

/// Positions from -1 to 1, the outer edges of the outermost pixels.
fn normalise(position: &Tensor, size: i64) -> Result<Tensor, TchError> {
    position.f_mul_scalar(2.0)?.f_add_scalar(1.0)?.f_div_scalar(size as f64)?.f_sub_scalar(1.0)
}
