//! The workspace's own commands.
//!
//! xtask fetches the native libraries, so it must compile and run quickly without them. Each
//! subcommand has a module. Below them are `cache` (the user's cache folder and its lock),
//! `interpreter` (python3 and pip), `environment` (Python environments of pinned packages),
//! `progress` (messages while it runs) and `cargo` (cargo in the prepared environment).

mod cache;
mod cargo;
mod chromium;
mod ci;
mod debian;
mod ecosystem;
mod environment;
mod fuzz;
mod git;
mod gpu;
mod instructions;
mod interpreter;
mod launchers;
mod lines;
mod lint;
mod mpirun;
mod native;
mod packages;
mod peers;
mod platforms;
mod programs;
mod progress;
mod python;
mod read_chunks;
mod redis;
mod release;
mod scvi;
mod site;
mod sweep;
mod tar;
mod test;
mod tidy;
mod versions;
mod wheel;

use std::ffi::OsString;
use std::process::ExitCode;

use progress::{print_answer, print_message};

const USAGE: &str = "\
cargo xtask: the commands of this workspace

Usage: cargo xtask <COMMAND> [ARGUMENTS]

Commands:
  demo      write a small experiment and measure it: a first look, in seconds
              cargo xtask demo
  sweep     measure the loader over a grid of settings; without --uri, on a generated example experiment
              cargo xtask sweep
              cargo xtask sweep --uri ~/census/experiment -b '65536 / [64,1024]' -m np.array,csr
  tune      propose chunk size, chunks per block, read-ahead and reader for a memory limit and a randomness of
            batches, from a short probe, and verify the proposal
              cargo xtask tune --uri ~/census/experiment --memory 4GiB
              cargo xtask tune --uri ~/census/experiment --memory 2GiB --entropy 3.4 --label tissue
  growth    generate and sweep experiments of several sizes: time per cell and memory against size
              cargo xtask growth --data /scratch --cells 100000,300000 -- -b 1024x64 -m csr
  ranks     let several ranks load one store at the same time, on this machine or under srun and mpirun: samples/s of
            all, accelerator utilisation (AU) of each, the most ranks that still have one
              cargo xtask ranks --uri ~/census/experiment -n 8 --consumer 20ms
              cargo xtask ranks --uri ~/census/experiment --least-au 90% --consumer 20ms
  generate  write a Census-shaped experiment
              cargo xtask generate ~/data/example --cells 100000 --genes 20000 --seed 7
  fields    write weather-like fields as Zarr arrays, and measure reading them: one read for a batch or for each
            sample, how a queue of batches drains, other readers beside the loader
              cargo xtask fields generate ~/data/weather --samples 64
              cargo xtask fields relayout ~/data/weather ~/data/laid --chunks sample=1 --shards sample=32
              cargo xtask fields sweep ~/data/weather -B 16 -t 1,2
              cargo xtask fields queue ~/data/weather --consumer 500
              cargo xtask fields tune ~/data/weather --memory 4GiB
              cargo xtask fields sweep ~/data/weather -w 4 --queue 4 --link 30ms,90MB/s,1GB/s
              cargo xtask fields peers ~/data/weather
  cubes     write hyperspectral image cubes with labels, in the formats of htc and in others; htc's benchmark of
            feeding them to a device, Python's ways to feed them beside the loader
              cargo xtask cubes generate ~/data/cubes --images 64
              cargo xtask cubes preprocess ~/data/cubes --to raw16,zarr
              cargo xtask cubes sweep ~/data/cubes --io-limit none,1000MiB/s --published
              cargo xtask cubes sweep ~/data/cubes --strategies event-ring --consumer none -w 1,2,4
              cargo xtask cubes sweep ~/data/cubes --consumer cuda
              cargo xtask cubes tune ~/data/cubes --memory 4GiB --form raw16
              cargo xtask cubes peers ~/data/cubes
  sequences write DNA and RNA, import files of sequences, count words; measure feeding them, beside Python's ways
              cargo xtask sequences generate ~/data/dna.txt --size 0.125GB
              cargo xtask sequences import ~/data/dna.txt ~/data/dna
              cargo xtask sequences words ~/data/dna --write words.tsv
              cargo xtask sequences sweep ~/data/dna --form tokens,windows -w 1,2 -B 4,256
              cargo xtask sequences tune ~/data/dna --memory 1GiB
              cargo xtask sequences peers ~/data/dna
  preprocess
            the same as `cubes preprocess`: write the cubes of Tivita's files in other forms
              cargo xtask preprocess ~/data/tivita --to raw32,raw16
  import    turn a 10x Genomics folder or an AnnData (h5ad, Zarr) into an experiment
              cargo xtask import ~/data/filtered_feature_bc_matrix ~/data/pbmc
              cargo xtask import ~/data/cells.h5ad ~/data/cells
  slice     copy some cells and genes of an experiment, local or in an object store, to a new one
              cargo xtask slice ~/census/experiment ~/data/lung --obs-filter 'nnz > 500' -v 20000
              cargo xtask slice census://2023-12-15/homo_sapiens ~/data/small -S -e 10
  relayout  rewrite an experiment's X in the order in which training reads it, shuffled once if requested
              cargo xtask relayout ~/census/experiment ~/data/for-training
              cargo xtask relayout ~/census/experiment ~/data/shuffled --shuffle 42
  bench-readers
            compare the native reader of X with libtiledb on the same rows; without --uri, on the example experiment
              cargo xtask bench-readers --uri ~/census/experiment
  peers     compare the loader with others side by side: the same cells, then speed and memory
              cargo xtask peers --uri ~/census/experiment
  read-chunks
            read all rows in tiledbsoma's four ways and by both readers of X, and check that all agree
              cargo xtask read-chunks ~/census/experiment -s
  scvi      train scVI by somafeed's data module and by that of scvi-tools, dense and sparse: time, waiting, memory,
            loss, and a figure of them; without --uri, on a generated example experiment
              cargo xtask scvi --uri ~/census/experiment --repetitions 5 --out ~/scvi
  report    redraw results, or draw several side by side: a page, pictures and tables
              cargo xtask report results/2026-11-21-vm-example --baseline
              cargo xtask report results/before results/after --results compared
  test      run every test of the workspace; installs mpirun, Redis and Chromium if missing; further arguments go to `cargo test`
              cargo xtask test
              cargo xtask test -p somafeed-loader -- --nocapture
  test-launchers
            sweep under mpirun and Slurm on this machine; installs them if missing
              cargo xtask test-launchers
  test-ecosystem
            test the Python package in Lightning, scvi-tools, Ray and Accelerate, which are 1.2 GB of packages;
            further arguments go to pytest
              cargo xtask test-ecosystem -k lightning
  test-wheel
            pack the Python package, build the wheel for users from that, and check both: licences, bill of materials,
            twine, abi3audit; test the wheel in empty environments and beside tiledbsoma, AnnData and torch, by each
            Python from 3.11 to 3.13 that is here: every command's help, a sweep, the README's program, programs that
            end while daemon threads wait
              cargo xtask test-wheel
              cargo xtask test-wheel --dev
  package   pack the published crates, build each from its package, and build a program outside the workspace on
            them, with the default features and with each other
              cargo xtask package
  release-check
            what must hold before a release, beside the tests: versions, tag, changelog; test-wheel, package, platforms,
            gpu-bundle; the files to upload
              cargo xtask release-check
  platforms check the published crates and the Python module for macOS and Linux on arm64, and test the crates
            without I/O on an emulated arm64; installs qemu if missing
              cargo xtask platforms
  fuzz      run the fuzz targets in turn, each for a minute, and count their executions
              cargo xtask fuzz
              cargo xtask fuzz tile array --seconds 600 --keep
              cargo xtask fuzz --executions 100000000
  ci        formatting, tidy, lint, clippy, documentation, each bench once, the site: everything but the tests
              cargo xtask ci
  lint      check Python (ruff, mypy, basedpyright), words (typos), licences (cargo-deny) and workflows, by pinned programs
              cargo xtask lint
  site      build the documentation site from docs, the commands' help and the Python package; prints its first page
              cargo xtask site
  tidy      check the project's rules that lints cannot
              cargo xtask tidy
  instructions
            count the instructions of ten hot kernels under valgrind, at a revision (the parent commit) and now; fails
            where there are 3 % more and benches/kernels/accepted.txt does not say why
              cargo xtask instructions
              cargo xtask instructions origin/main
  versions  measure six fixed works with this version (cells, fields, cubes, sequences), add the rows to results/versions,
            and draw speed and memory of each work by version
              cargo xtask versions
  lines     count the lines of code by crate, outside of tests, now or at a revision
              cargo xtask lines b5d9576e
  native    put libtiledb and libtorch into the user's cache, and record their places for cargo
              cargo xtask native
              LIBTORCH=/opt/libtorch cargo xtask native
  python    make the Python environment with tiledbsoma for the interoperability tests
              cargo xtask python
  wheel     build the wheel of the Python package and print its path
              pip install $(cargo xtask wheel)
  gpu-bundle
            build what benches/gpu/run.py needs, to check and measure on a machine with a GPU and PyTorch, and print
            the folder
              cargo xtask gpu-bundle
  gpu-check run what the bundle runs, on the CPU with little data, as `test` does at its end
              cargo xtask gpu-check
  pytest    test the Python package; further arguments go to pytest
              cargo xtask pytest -k fork

With --no-install, test, test-launchers and sequences install no program by apt: one that is missing is an error.
Everything but tidy, site, lines, instructions, fuzz, python, wheel, test-wheel, scvi, fields and cubes (unless it trains on the batches) runs `native` first. Downloads go to $XDG_CACHE_HOME/somafeed, by default ~/.cache/somafeed.
Environment: LIBTORCH or LIBTORCH_USE_PYTORCH, SOMAFEED_LIBTILEDB and SOMAFEED_PYTHON name libraries and a Python to use instead,
SOMAFEED_PYTHON_TILEDBSOMA_ML (and so on) a Python for one of `peers`, SOMAFEED_CHROMIUM a browser for `test`.
The choice is recorded in .cargo/native.toml; delete that file to choose again.";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next();
    let mut rest: Vec<OsString> = arguments.collect();
    if let Some(flag) =
        rest.iter().take_while(|of| *of != "--").position(|of| of == debian::NO_INSTALL)
    {
        rest.remove(flag);
        debian::install_nothing();
    }
    let outcome = match command.as_deref().and_then(|c| c.to_str()) {
        None | Some("help" | "-h" | "--help") => print_answer(USAGE).map(|()| ExitCode::SUCCESS),
        Some("native") => without_arguments("native", &rest, || {
            native::prepare(native::Wanted::Both).map(|_| ExitCode::SUCCESS)
        }),
        Some("python") => without_arguments("python", &rest, || {
            print_answer(python::prepare()?.display())?;
            Ok(ExitCode::SUCCESS)
        }),
        Some("wheel") => without_arguments("wheel", &rest, wheel::run),
        Some("gpu-bundle") => without_arguments("gpu-bundle", &rest, gpu::bundle),
        Some("gpu-check") => without_arguments("gpu-check", &rest, gpu::check),
        Some("pytest") => wheel::pytest(&rest),
        Some("test-wheel") => wheel::test_matrix(&rest),
        Some("test-ecosystem") => ecosystem::run(&rest),
        Some("peers") => peers::run(&rest),
        Some("read-chunks") => read_chunks::run(&rest),
        Some("scvi") => scvi::run(&rest),
        Some(name @ ("fields" | "cubes" | "sequences")) => programs::run(name, &rest),
        Some("preprocess") => programs::preprocess(&rest),
        Some("fuzz") => fuzz::run(&rest),
        Some("versions") => without_arguments("versions", &rest, versions::run),
        Some("instructions") => instructions::run(&rest),
        Some("lines") => lines::run(&rest),
        Some("test") => test::run(&rest),
        Some("package") => without_arguments("package", &rest, packages::run),
        Some("release-check") => without_arguments("release-check", &rest, release::run),
        Some("platforms") => without_arguments("platforms", &rest, platforms::run),
        Some("lint") => without_arguments("lint", &rest, lint::run),
        Some("ci") => without_arguments("ci", &rest, ci::run),
        Some("test-launchers") => without_arguments("test-launchers", &rest, launchers::run),
        Some("site") => without_arguments("site", &rest, site::run),
        Some("tidy") => without_arguments("tidy", &rest, tidy::run),
        Some(
            name @ ("demo" | "sweep" | "tune" | "growth" | "ranks" | "report" | "generate"
            | "import" | "slice" | "relayout" | "bench-readers"),
        ) => sweep::run(name, &rest),
        Some(other) => Err(unknown(other)),
    };
    outcome.unwrap_or_else(|error| {
        print_message(format_args!("error: {error:#}"));
        if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

/// An error in the command line itself; exit code 2.
#[derive(Debug)]
struct UsageError(String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; see `cargo xtask --help`", self.0)
    }
}

impl std::error::Error for UsageError {}

fn unknown(command: &str) -> anyhow::Error {
    UsageError(format!("no such command: `{command}`")).into()
}

/// Fails if there are arguments for a subcommand that takes none.
fn without_arguments(
    name: &str,
    rest: &[OsString],
    run: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    if let Some(first) = rest.first() {
        let message = format!("`cargo xtask {name}` takes no arguments, got `{}`", first.display());
        return Err(UsageError(message).into());
    }
    run()
}
