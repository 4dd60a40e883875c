//! Writes the files of a generated data set.

use std::path::Path;

use serde_json::json;

use super::GenerateSpec;
use super::cube::{domain_of, fill, subject_of};
use super::spec::CubeSpec;
use crate::Error;
use crate::form_folder::FormFolder;
use crate::forms::{CubeWriter, Forms, NewImage};
use crate::image_list::{ImageList, LIST_FILE, ListedImage};
use crate::precision::Precision;
use crate::segmentation::{SEGMENTATIONS, write_segmentation};
use crate::zarr_store::ZarrSpec;
use bench_run::Threads;
use images::Form;

/// Writes everything. Returns the error of the 16-bit forms, if one was written. Calls `progress`
/// with the number of images written so far.
pub(crate) fn write_images(
    folder: &Path,
    spec: &GenerateSpec,
    threads: &Threads,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<Precision>, Error> {
    let CubeSpec { shape, n_images, .. } = spec.cubes;
    let root = FormFolder::whole(folder.to_owned())?;
    let segmentations = FormFolder::whole(folder.join(SEGMENTATIONS))?;
    let list = image_list(spec);
    let text = list.to_text().map_err(|error| Error::write(&folder.join(LIST_FILE), error))?;
    root.write(LIST_FILE, text.as_bytes())?;
    let zarr = ZarrSpec::new(n_images, shape, &spec.forms, true);
    let forms = Forms::open(folder, &spec.forms, &zarr, FormFolder::whole)?;
    let write = |(writer, cube): &mut (CubeWriter<'_>, Vec<f32>), image: u64| {
        threads.check_interrupted()?;
        let segmentation = fill(&spec.cubes, image, cube)?;
        let name = &list.images[image as usize].name;
        write_segmentation(&segmentations, name, shape, &segmentation)?;
        let segmentation = Some(&segmentation);
        let forms = &spec.forms.forms;
        let image = NewImage { idx: image, name, path: folder, segmentation, forms };
        writer.write(&image, cube)
    };
    let mut precisions = vec![None; n_images as usize];
    let mut n_done = 0;
    let done = &mut |image: u64, written: Result<_, Error>| {
        let written: crate::forms::WrittenImage = written?;
        precisions[image as usize] = written.precision;
        n_done += 1;
        progress(n_done);
        Ok(())
    };
    threads.each(n_images, || (CubeWriter::new(&forms, threads), Vec::new()), write, done)?;
    Ok(Precision::sum(precisions.into_iter().flatten()))
}

/// The list of the images, with the settings of all forms.
fn image_list(spec: &GenerateSpec) -> ImageList {
    let cubes = &spec.cubes;
    let image = |image: u64| {
        let subject = format!("P{:03}", subject_of(image) + 1);
        let domain = format!("camera_{}", char::from(b'a' + domain_of(cubes, image) as u8));
        ListedImage::new(format!("{subject}_{:06}", image + 1), domain, subject)
    };
    let mut list = ImageList::new(cubes.shape, (0..cubes.n_images).map(image).collect());
    list.n_classes = cubes.n_classes;
    list.classes = (0..cubes.n_classes).map(|class| format!("tissue_{class}")).collect();
    for form in Form::ALL.into_iter().filter(|form| spec.forms.forms.contains(form)) {
        list.forms.insert(form.name().to_owned(), spec.forms.settings(form));
    }
    let generator = json!({ "name": "cubes generate", "seed": cubes.seed, "noise": cubes.noise });
    list.others.insert("generator".to_owned(), generator);
    list
}
