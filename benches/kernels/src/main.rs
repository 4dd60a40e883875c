//! Ten hot kernels, for `cargo xtask instructions`, which counts their instructions.
//!
//! `kernels prepare FOLDER` writes the data, `kernels list` names the kernels, and `kernels NAME
//! REPEATS FOLDER` runs one. The preparation is the same for any number of repeats, so the
//! difference between two numbers is the kernel's alone.

mod cells;
mod files;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

/// One repeat of a kernel, with its data prepared.
type Kernel = Box<dyn FnMut() -> anyhow::Result<()>>;

/// Prepares a kernel from the folder of the data.
type Prepare = fn(&Path) -> anyhow::Result<Kernel>;

/// The kernels by their names.
const KERNELS: [(&str, Prepare); 10] = [
    ("plan", cells::plan),
    ("tile-decode", files::tile_decode),
    ("gather", cells::gather),
    ("densify", cells::densify),
    ("tokens", cells::tokens),
    ("blosc-into-slots", files::blosc_into_slots),
    ("k-mers", cells::k_mers),
    ("arrow-hand-over", files::arrow_hand_over),
    ("first-batch", files::first_batch),
    ("obs-decode", files::obs_decode),
];

fn main() -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["prepare", folder] => files::prepare(Path::new(folder))?,
        ["list"] => print(&KERNELS.map(|(name, _)| name).join("\n"))?,
        [name, repeats, folder] => {
            let (_, prepare) = KERNELS
                .iter()
                .find(|(known, _)| *known == name)
                .with_context(|| format!("there is no kernel {name}: see `kernels list`"))?;
            let mut kernel = prepare(Path::new(folder))?;
            for _ in 0..repeats.parse::<u32>().context("the number of repeats")? {
                kernel()?;
            }
        }
        _ => {
            print("usage: kernels list | prepare FOLDER | NAME REPEATS FOLDER")?;
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_runs_on_its_data() {
        let folder = std::env::temp_dir().join(format!("kernels-{}", std::process::id()));
        files::prepare(&folder).unwrap();
        for (name, prepare) in KERNELS {
            let mut kernel = prepare(&folder).unwrap();
            for _ in 0..2 {
                kernel().unwrap_or_else(|error| panic!("{name}: {error:#}"));
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
