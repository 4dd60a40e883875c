//! Copies arrays of strings, which have few chunks and no shards.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::Ordering;

use arrays::{Indices, Run};
use bench_run::check_interrupted;

use super::copy::{Form, each_run};
use super::plan::Region;
use super::run::Copying;
use super::target::{Encoded, Files, Target, write_error};
use super::variable::Variable;
use crate::Error;

impl Copying<'_> {
    /// Copies an array of strings chunk by chunk, or its selected strings as one chunk.
    pub(super) fn copy_strings(
        &self,
        target: &Target,
        done: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        let Variable { plan, source, .. } = self.variable;
        let array = &source.array;
        let failed = |error: arrays::Error| Error::Source {
            what: "fields",
            path: array.path().into(),
            source: error.into(),
        };
        let write = |chunk: Vec<u64>, strings: &[String]| {
            let bytes =
                target.encode_strings(strings).map_err(|cause| write_error(self.folder, cause))?;
            let mut files = Files::new(target);
            let (file, at) = target.place(&chunk);
            files.append(&[Encoded { file, at, bytes: 0..bytes.len() }], &bytes)?;
            files.finish()
        };
        let is_whole = |(selected, len): (&Indices, &u64)| *selected == Indices::Range(0..*len);
        if !source.selected.iter().zip(array.shape()).all(is_whole) {
            let (len, chunk_len) = (array.shape()[0], array.chunk_shape()[0]);
            let mut all = Vec::new();
            for chunk in 0..len.div_ceil(chunk_len) {
                self.counts.n_decoded.fetch_add(1, Ordering::Relaxed);
                all.extend(array.read_strings(&[chunk]).map_err(failed)?);
            }
            let picked: Vec<String> = plan.axes[0]
                .runs(&(0..plan.axes[0].len()))
                .into_iter()
                .flat_map(|of_chunk| {
                    let start = (of_chunk.chunk * plan.axes[0].source_chunk) as usize;
                    of_chunk.runs.into_iter().map(move |run| (run.dst, start + run.src, run.len))
                })
                .collect::<BTreeSet<_>>()
                .into_iter()
                .flat_map(|(_, src, len)| all.get(src..src + len).unwrap_or_default().to_vec())
                .collect();
            if !picked.is_empty() {
                write(vec![0], &picked)?;
            }
            done(1);
            return Ok(());
        }
        for region in plan.regions() {
            check_interrupted(self.spec.interrupted)?;
            let chunk: Vec<u64> = region
                .ranges
                .iter()
                .zip(&plan.axes)
                .map(|(range, axis)| range.start / axis.chunk)
                .collect();
            self.counts.n_decoded.fetch_add(1, Ordering::Relaxed);
            let strings = array.read_strings(&chunk).map_err(failed)?;
            write(chunk, &self.padded(&region, strings))?;
            done(1);
        }
        Ok(())
    }

    /// The strings of a chunk that may reach beyond the array's end, filled up with empty ones.
    fn padded(&self, region: &Region, strings: Vec<String>) -> Vec<String> {
        let axes = &self.variable.plan.axes;
        let chunk: Vec<usize> = axes.iter().map(|axis| axis.chunk as usize).collect();
        let inside: Vec<usize> = region
            .ranges
            .iter()
            .zip(axes)
            .map(|(range, axis)| (range.end.min(axis.len()) - range.start) as usize)
            .collect();
        if inside == chunk {
            return strings;
        }
        let mut padded = vec![String::new(); chunk.iter().product()];
        let runs: Vec<[Run; 1]> =
            inside.iter().map(|len| [Run { src: 0, dst: 0, len: *len }]).collect();
        let runs: Vec<&[Run]> = runs.iter().map(|run| &run[..]).collect();
        let form = |shape| Form { shape, element_bytes: 1 };
        let copied = each_run(form(&inside), form(&chunk), &runs, &mut |src, dst, n| {
            padded[dst..dst + n].clone_from_slice(&strings[src..src + n]);
            Ok::<_, Infallible>(())
        });
        match copied {
            Ok(()) => padded,
            Err(never) => match never {},
        }
    }
}
