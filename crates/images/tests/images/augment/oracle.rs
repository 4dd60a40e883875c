//! The rules of torch's `grid_sample` and Kornia's `RandomAffine`, written once more: in f64, and
//! as they are documented.

use images::augment::Parameters;

/// The position in the source of a pixel of the result, before reflection.
fn source_position(
    parameters: &Parameters,
    [height, width]: [usize; 2],
    [row, column]: [usize; 2],
) -> [f64; 2] {
    // The flips come after the map, so they are undone before it.
    let row = if parameters.vertical_flip { height - 1 - row } else { row };
    let column = if parameters.horizontal_flip { width - 1 - column } else { column };
    let position = [column as f64, row as f64];
    let Some(affine) = parameters.affine else { return position };
    let center = [(width as f64 - 1.0) / 2.0, (height as f64 - 1.0) / 2.0];
    // Result = centre + matrix * (source - centre) + shift, solved for the source.
    let (sin, cos) = affine.degrees.to_radians().sin_cos();
    let matrix = [[cos, -sin], [sin, cos]].map(|row| row.map(|value| value * affine.scale));
    let from_center: [f64; 2] =
        std::array::from_fn(|axis| position[axis] - affine.translation[axis] - center[axis]);
    let determinant = matrix[0][0] * matrix[1][1] - matrix[0][1] * matrix[1][0];
    let inverse = [[matrix[1][1], -matrix[0][1]], [-matrix[1][0], matrix[0][0]]];
    std::array::from_fn(|axis| {
        let [of_x, of_y] = inverse[axis];
        center[axis] + (of_x * from_center[0] + of_y * from_center[1]) / determinant
    })
}

/// Mirrors a position at the outer edges of the outermost pixels until it is inside, then clips it
/// to their centres.
fn reflected(mut position: f64, size: usize) -> f64 {
    let (low, high) = (-0.5, size as f64 - 0.5);
    while !(low..=high).contains(&position) {
        position = if position < low { 2.0 * low - position } else { 2.0 * high - position };
    }
    position.clamp(0.0, size as f64 - 1.0)
}

/// Positions in the source of all pixels of the result: column and row.
pub(super) fn positions(parameters: &Parameters, shape: [usize; 2]) -> Vec<[f64; 2]> {
    let [height, width] = shape;
    let pixels = (0..height).flat_map(|row| (0..width).map(move |column| [row, column]));
    let position = |pixel| source_position(parameters, shape, pixel);
    pixels.map(position).map(|[x, y]| [reflected(x, width), reflected(y, height)]).collect()
}

/// The warped image: all pixels of the source, each with the weight that falls to it.
pub(super) fn image(parameters: &Parameters, shape: [usize; 3], image: &[f32]) -> Vec<f64> {
    let [height, width, channels] = shape;
    let hat = |distance: f64| (1.0 - distance.abs()).max(0.0);
    let mut warped = Vec::with_capacity(image.len());
    for [x, y] in positions(parameters, [height, width]) {
        let mut sums = vec![0.0; channels];
        for (pixel, values) in image.chunks(channels).enumerate() {
            let weight = hat(x - (pixel % width) as f64) * hat(y - (pixel / width) as f64);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += weight * f64::from(*value);
            }
        }
        warped.append(&mut sums);
    }
    warped
}

/// Whether a position is so near to the middle between two pixels that rounding decides.
pub(super) fn is_tie([x, y]: [f64; 2], tolerance: f64) -> bool {
    let is_middle = |position: f64| ((position - position.floor()) - 0.5).abs() < tolerance;
    is_middle(x) || is_middle(y)
}
