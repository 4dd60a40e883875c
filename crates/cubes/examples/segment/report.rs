//! The files of a run: its scores and the picture.

use std::fs;
use std::path::Path;

use torch_feed::tch::{Tensor, vision};

use crate::Failure;
use crate::train::Scores;

/// Writes `scores.csv` and `segments.png` to a folder, each whole or not at all.
pub(crate) fn write(folder: &Path, scores: &Scores, picture: &Tensor) -> Result<(), Failure> {
    let mut csv = vec![
        "score,epochs,value".to_owned(),
        format!("accuracy of the most frequent class,,{}", scores.most_frequent),
    ];
    let n_epochs = scores.accuracy.len().saturating_sub(1);
    let accuracy = scores.accuracy.iter().enumerate();
    csv.extend(accuracy.map(|(epoch, value)| format!("accuracy,{epoch},{value}")));
    let losses = scores.losses.iter().enumerate();
    csv.extend(losses.map(|(step, loss)| {
        // The middle of the step's share.
        let at = (step as f64 + 0.5) * n_epochs as f64 / scores.losses.len() as f64;
        format!("loss,{at},{loss}")
    }));
    fs::create_dir_all(folder)?;
    let partial = folder.join("scores.csv.partial");
    fs::write(&partial, csv.join("\n") + "\n")?;
    fs::rename(&partial, folder.join("scores.csv"))?;
    // Its name tells torch the format.
    let partial = folder.join("segments.partial.png");
    vision::image::save(picture, &partial)?;
    Ok(fs::rename(&partial, folder.join("segments.png"))?)
}
