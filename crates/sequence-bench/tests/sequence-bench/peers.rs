//! The command `peers`, with a stand-in for the script that runs the readers.

use std::fs;
use std::path::Path;

use bench_report::{EpochRecord, Status, read};

use crate::{run, store};

/// A reader that makes words from their definition. `wrong` changes one, `dead` ends without a
/// word, `late` dies when it is measured.
const STAND_IN: &str = r#"
import json, struct, sys, zlib
reader = sys.argv[sys.argv.index("--reader") + 1]
order = json.load(sys.stdin)
task = order["task"]
assert task["workers"] == 3 and task["batch"] == 2 and len(task["words"]) == len(task["counts"])
assert task["shuffled"] and (task["chunk"], task["chunks_per_block"], task["seed"]) == (3, 4, 0)
def event(event):
    print(json.dumps(event), flush=True)
def crc32(numbers):
    return zlib.crc32(struct.pack(f"<{len(numbers)}I", *numbers))
def frames(text):
    k, padding = task["k"], task["k"] * task["padding"]
    text = "X" * padding + text + "Y" * padding
    words = [text[at:at + k] for at in range(len(text) - k + 1)]
    return [[task["words"].index(word) for word in words[f::task["stride"]]] for f in range(task["n_frames"])]
if reader == "dead" or reader == "late" and not task["check"]:
    sys.exit("no more")
if task["check"]:
    with open(task["store"] + "/letters") as letters, open(task["store"] + "/letter-ends", "rb") as ends:
        letters, ends = letters.read(), ends.read()
    ends = (0, *struct.unpack(f"<{len(ends) // 8}Q", ends))
    c = task["context"]
    for row in task["epochs"][0]:
        of_row = frames(letters[ends[row]:ends[row + 1]])
        if task["form"] == "tokens":
            parts = [[len(frame) for frame in of_row], sum(of_row, [])]
        else:
            places = [(frame, at) for frame in of_row for at in range(c, len(frame) - c)]
            parts = [[frame[at] for frame, at in places],
                     [word for frame, at in places for word in frame[at - c:at] + frame[at + 1:at + c + 1]]]
        parts[1][5] += reader == "wrong"
        event({"Answer": {"Checksum": {"sample": row, "crc32": [crc32(part) for part in parts]}}})
else:
    for epoch, rows in enumerate(task["epochs"]):
        event({"Answer": {"Read": {
            "epoch": epoch, "open_secs": 0.1, "versions": {"stand-in": "1.0", "cache": order["cache"]},
            "file_bytes": 7, "batches": [[2.0, 0.0, len(rows)]], "end_wait_secs": 0.0,
            "n_bytes": 1, "start_time": 0.0, "end_time": 1.0, "cpu_user_secs": 0.5,
            "cpu_system_secs": 0.5, "start_mem_bytes": 1000, "max_mem": 3000000000}}})
event("Done")
"#;

/// Compares `readers` of the stand-in with our loader on a small store.
fn peers(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    store(folder);
    fs::write(folder.join("stand_in.py"), STAND_IN).unwrap();
    let always = "peers store --python python3 --script stand_in.py -d out -E 2 -w 3 -B 2 \
                  --repetitions 2 --check 10 --chunk 3 --chunks-per-block 4 -q";
    run(folder, &format!("{always} {arguments}"))
}

fn records(folder: &Path, loader: &str) -> Vec<EpochRecord> {
    let records = read(&folder.join("out")).unwrap();
    records.into_iter().filter(|record| record.point.loader.as_deref() == Some(loader)).collect()
}

#[test]
fn readers_that_deliver_the_same_are_measured_beside_ours() {
    for form in ["windows", "tokens"] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let arguments = format!("--readers one,other --at-most other=8 --form {form}");
        let (code, table, messages) = peers(folder, &arguments);
        assert_eq!(code, Some(0), "{table}{messages}");
        for name in ["ours", "one", "other"] {
            assert!(table.contains(&format!("| {name} |")), "{table}");
        }
        let one = records(folder, "one");
        assert_eq!(one.len(), 2 * 2, "two epochs in two rounds");
        for record in &one {
            assert_eq!(record.measured.samples_per_sec, Some(24.0), "48 documents in 2 s");
            assert_eq!(record.point.workload.as_deref(), Some("sequences"));
            let ahead = record.point.settings.get("prefetch_blocks");
            assert_eq!((record.point.form.as_str(), ahead), (form, None));
        }
        assert!(table.contains("| one | 24 (24 to 24) |"), "{table}");
        assert!(table.contains("| other | 4 (4 to 4) |"), "cut off after 8: {table}");
        let ours = records(folder, "somafeed");
        assert_eq!(ours.len(), 2 * 2);
        assert!(ours.iter().all(|record| record.measured.n_rows == Some(48)));
        let page = fs::read_to_string(folder.join("out/README.md")).unwrap();
        assert!(page.contains("stand-in 1.0") && page.contains("sequences peers store"), "{page}");
    }
}

#[test]
fn others_are_refused_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let (code, table, _) = peers(folder.path(), "--readers wrong,dead,late");
    assert_eq!(code, Some(1));
    let wrong = "wrong is not measured: it delivers other values of contexts in sample ";
    assert!(table.contains(wrong), "{table}");
    assert!(table.contains("dead is not measured: "), "{table}");
    assert!(table.contains("| late | failed |"), "{table}");
    assert!(records(folder.path(), "wrong").is_empty());
    let late = records(folder.path(), "late");
    assert!(late.iter().all(|record| record.measured.status != Status::Ok) && late.len() == 2);
}
