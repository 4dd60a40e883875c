//! Copies parts of arrays between memory of different shapes.

use arrays::Run;

/// Memory of an array in C order: its shape, and bytes of an element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form<'a> {
    pub(crate) shape: &'a [usize],
    pub(crate) element_bytes: usize,
}

/// Takes the first bytes of a run in both, and the number of its elements.
type Put<'a, E> = &'a mut dyn FnMut(usize, usize, usize) -> Result<(), E>;

/// Calls `put` with each pair of the longest runs that lie together in both: first elements of
/// `from`, then of `into`, both in bytes. `runs` has those of each dimension, in order.
pub(crate) fn each_run<E>(
    from: Form<'_>,
    into: Form<'_>,
    runs: &[&[Run]],
    put: Put<'_, E>,
) -> Result<(), E> {
    // Dimensions at the end that are whole on both sides make longer runs of those before them.
    let is_whole = |at: usize| {
        let whole = Run { src: 0, dst: 0, len: from.shape[at] };
        from.shape[at] == into.shape[at] && runs[at] == [whole]
    };
    let n_split = (0..runs.len()).rposition(|at| !is_whole(at)).map_or(0, |last| last + 1);
    let inner: usize = from.shape[n_split..].iter().product();
    let walk = Walk { from, into, runs: &runs[..n_split], inner };
    walk.go(0, 0, 0, put)
}

struct Walk<'a> {
    from: Form<'a>,
    into: Form<'a>,
    runs: &'a [&'a [Run]],
    /// Elements of the whole dimensions.
    inner: usize,
}

impl Walk<'_> {
    fn go<E>(&self, at: usize, src: usize, dst: usize, put: Put<'_, E>) -> Result<(), E> {
        let one = |src: usize, dst: usize, len: usize, put: Put<'_, E>| {
            let (src, dst) = (src * self.inner, dst * self.inner);
            put(src * self.from.element_bytes, dst * self.into.element_bytes, len * self.inner)
        };
        let Some(runs) = self.runs.get(at) else { return one(src, dst, 1, put) };
        for run in *runs {
            if at + 1 == self.runs.len() {
                one(src + run.src, dst + run.dst, run.len, put)?;
                continue;
            }
            for idx in 0..run.len {
                let src = (src + run.src + idx) * self.from.shape[at + 1];
                let dst = (dst + run.dst + idx) * self.into.shape[at + 1];
                self.go(at + 1, src, dst, put)?;
            }
        }
        Ok(())
    }
}

/// Fills memory with copies of an element.
pub(crate) fn fill(into: &mut [u8], element: &[u8]) {
    match element {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => into.fill(*first),
        _ => {
            for slot in into.chunks_exact_mut(element.len()) {
                slot.copy_from_slice(element);
            }
        }
    }
}

/// Whether memory has nothing but copies of an element, bit by bit.
pub(crate) fn is_filled(bytes: &[u8], element: &[u8]) -> bool {
    // Each is equal to the one before it.
    let n = element.len();
    bytes.starts_with(element) && bytes.get(n..).is_some_and(|rest| rest == &bytes[..rest.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(
        (shape, from): (&[usize], &[u8]),
        into_shape: &[usize],
        runs: &[&[Run]],
    ) -> (Vec<u8>, usize) {
        let mut into = vec![0; into_shape.iter().product()];
        let mut n_runs = 0;
        let form = |shape| Form { shape, element_bytes: 1 };
        each_run(form(shape), form(into_shape), runs, &mut |src, dst, n| {
            into[dst..dst + n].copy_from_slice(&from[src..src + n]);
            n_runs += 1;
            Ok::<_, ()>(())
        })
        .unwrap();
        (into, n_runs)
    }

    #[test]
    fn boxes_are_copied_in_the_longest_runs() {
        let from: Vec<u8> = (0..24).collect();
        let run = |src, dst, len| [Run { src, dst, len }];
        // The whole: one run.
        let whole = [&run(0, 0, 2)[..], &run(0, 0, 3), &run(0, 0, 4)];
        assert_eq!(copied((&[2, 3, 4], &from), &[2, 3, 4], &whole), (from.clone(), 1));
        // The second plane of two, into the first of one.
        let plane = [&run(1, 0, 1)[..], &run(0, 0, 3), &run(0, 0, 4)];
        assert_eq!(copied((&[2, 3, 4], &from), &[1, 3, 4], &plane), (from[12..].to_vec(), 1));
        // A column.
        let column = [&run(0, 0, 2)[..], &run(1, 0, 2), &run(3, 1, 1)];
        let expected = vec![0, 7, 0, 11, 0, 19, 0, 23];
        assert_eq!(copied((&[2, 3, 4], &from), &[2, 2, 2], &column), (expected, 4));
        // A single value.
        assert_eq!(copied((&[], &[7]), &[], &[]), (vec![7], 1));
    }

    #[test]
    fn fill_values_are_recognized_bit_by_bit() {
        let mut bytes = vec![9; 12];
        fill(&mut bytes, &[1, 2, 3]);
        assert!(is_filled(&bytes, &[1, 2, 3]));
        bytes[11] = 4;
        assert!(!is_filled(&bytes, &[1, 2, 3]));
        fill(&mut bytes, &[0, 0, 0]);
        assert_eq!(bytes, [0; 12]);
        assert!(!is_filled(&(-0.0_f32).to_ne_bytes(), &0.0_f32.to_ne_bytes()));
    }
}
