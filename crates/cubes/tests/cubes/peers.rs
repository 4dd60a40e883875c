//! The command `peers`, with a stand-in for the script that runs the readers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use bench_report::{EpochRecord, Status, read};
use cubes::Form;
use images::files::{CubeFile, DecodeScratch, FileFormat};

use crate::{forms, write};

/// Repeats the checksums of `sums.json`. `wrong` changes one, `dead` ends without a word, `late`
/// dies when it is measured.
const STAND_IN: &str = r#"
import json, sys
reader = sys.argv[sys.argv.index("--reader") + 1]
order = json.load(sys.stdin)
task = order["task"]
assert task["format"] == "raw16" and task["workers"] == 3 and task["codec_threads"] is None, task
assert task["shuffled"] and task["seed"] == 7, task
def event(event):
    print(json.dumps(event), flush=True)
if reader == "dead" or reader == "late" and not task["check"]:
    sys.exit("no more")
if task["check"]:
    with open("sums.json") as file:
        sums = json.load(file)
    for sample in task["epochs"][0]:
        sums[str(sample)][1] += reader == "wrong"
        event({"Answer": {"Checksum": {"sample": sample, "crc32": sums[str(sample)]}}})
else:
    for epoch, samples in enumerate(task["epochs"]):
        event({"Answer": {"Read": {
            "epoch": epoch, "open_secs": 0.1, "versions": {"stand-in": "1.0", "cache": order["cache"]},
            "file_bytes": 7, "batches": [[2.0, 0.0, len(samples)]], "end_wait_secs": 0.0,
            "n_bytes": 1, "start_time": 0.0, "end_time": 1.0, "cpu_user_secs": 0.5,
            "cpu_system_secs": 0.5, "start_mem_bytes": 1000, "max_mem": 3000000000}}})
event("Done")
"#;

/// The checksums of a sample's cube, labels (as i64) and valid pixels.
fn checksums(data: &Path, name: &str) -> Vec<u32> {
    let array = |folder: &str, array: &str| {
        let bytes = fs::read(data.join(folder).join(format!("{name}.blosc"))).unwrap();
        let file = CubeFile::parse(FileFormat::Blosc, &bytes).unwrap();
        let idx = file.index(array).unwrap();
        let mut into = vec![0; file.arrays()[idx].n_bytes().unwrap()];
        file.decode(idx, &mut into, &mut DecodeScratch::default()).unwrap();
        into
    };
    let labels = array("segmentations", "labels").into_iter();
    let labels: Vec<u8> = labels.flat_map(|class| i64::from(class).to_ne_bytes()).collect();
    [array("raw16", ""), labels, array("segmentations", "valid_pixels")]
        .map(|bytes| crc32fast::hash(&bytes))
        .into()
}

/// Compares `readers` of the stand-in with our loader on a small data set.
fn peers(folder: &Path, readers: &str) -> Output {
    let data = folder.join("data");
    write(&data, forms(&[Form::Raw16])).unwrap();
    let list = fs::read_to_string(data.join("images.json")).unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let names = list["images"].as_array().unwrap().iter();
    let sums: BTreeMap<usize, Vec<u32>> = names
        .enumerate()
        .map(|(idx, image)| (idx, checksums(&data, image["name"].as_str().unwrap())))
        .collect();
    fs::write(folder.join("sums.json"), serde_json::to_string(&sums).unwrap()).unwrap();
    fs::write(folder.join("stand_in.py"), STAND_IN).unwrap();
    let arguments = "peers data --python python3 --script stand_in.py -d out -E 2 -w 3 -B 2 \
                     --repetitions 2 --shuffled --seed 7 --mode collaborative --cold advise -q \
                     --readers";
    Command::new(env!("CARGO_BIN_EXE_cubes"))
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .arg(readers)
        .output()
        .unwrap()
}

fn records(folder: &Path, loader: &str) -> Vec<EpochRecord> {
    let records = read(&folder.join("out")).unwrap();
    records.into_iter().filter(|record| record.point.loader.as_deref() == Some(loader)).collect()
}

#[test]
fn readers_that_deliver_the_same_are_measured_beside_ours() {
    let folder = tempfile::tempdir().unwrap();
    let output = peers(folder.path(), "one,other");
    let (table, messages) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{table}{messages}");
    for name in ["ours", "ours, collated", "one", "other"] {
        assert!(table.contains(&format!("| {name} |")), "{table}");
    }
    let one = records(folder.path(), "one");
    assert_eq!(one.len(), 2 * 2, "two epochs in two rounds");
    for record in &one {
        assert_eq!(record.measured.samples_per_sec, Some(2.5), "5 cubes in 2 s");
        assert_eq!(record.point.workload.as_deref(), Some("cubes"));
        let settings = &record.point.settings;
        assert_eq!((settings.get("strategy"), settings.get("slots")), (None, None));
        assert!(record.versions.peer.as_ref().unwrap().contains("cache cold"));
    }
    assert!(table.contains("| one | 2.50 (2.50 to 2.50) |"), "{table}");
    let ours = records(folder.path(), "somafeed");
    assert_eq!(ours.len(), 2 * 2 * 2);
    assert!(ours.iter().all(|record| record.measured.n_rows == Some(5)));
    let sharing = |record: &EpochRecord| record.point.settings.get("sharing").map(str::to_owned);
    assert!(ours.iter().all(|record| sharing(record).as_deref() == Some("collaborative")));
    let page = fs::read_to_string(folder.path().join("out/README.md")).unwrap();
    assert!(page.contains("stand-in 1.0") && page.contains("cubes peers data"), "{page}");
}

#[test]
fn others_are_refused_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let output = peers(folder.path(), "wrong,dead,late");
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("wrong is not measured: it delivers other values of labels"), "{table}");
    assert!(table.contains("dead is not measured: "), "{table}");
    assert!(table.contains("| late | failed |"), "{table}");
    assert!(records(folder.path(), "wrong").is_empty());
    let late = records(folder.path(), "late");
    assert!(late.iter().all(|record| record.measured.status != Status::Ok) && late.len() == 2);
}
