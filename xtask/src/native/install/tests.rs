//! Installs from wheels made here, with the real pip and a folder as its index: no network.

use std::ffi::OsString;

use super::*;
use tempfile::TempDir;

/// A wheel that pip accepts, with a library of a few bytes and two headers.
const MAKE_WHEEL: &str = r#"
import hashlib, sys, zipfile
path, content = sys.argv[1], sys.argv[2]
info = "fakelib-1.0.dist-info/"
with zipfile.ZipFile(path, "w") as wheel:
    wheel.writestr("fakelib/lib/libfake.so", content)
    wheel.writestr("fakelib/include/fake.h", "int fake(void);")
    wheel.writestr("fakelib/include/deep/er.h", "int deeper(void);")
    wheel.writestr("fakelib/other.py", "pass")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: fakelib\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux_2_28_x86_64\n")
    wheel.writestr(info + "RECORD", "")
print(hashlib.sha256(open(path, "rb").read()).hexdigest())
"#;

const FILE: &str = "fakelib-1.0-cp311-cp311-manylinux_2_28_x86_64.whl";

/// A package index in a folder, a cache, and the library in its only wheel.
struct Bed {
    folder: TempDir,
    cache: Cache,
    python: Python,
    library: Library,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index");
        fs::create_dir(&index).unwrap();
        let environment: Vec<(OsString, OsString)> = vec![
            ("PIP_NO_INDEX".into(), "1".into()),
            ("PIP_FIND_LINKS".into(), index.into()),
            ("PIP_NO_CACHE_DIR".into(), "1".into()),
            ("PIP_CONFIG_FILE".into(), "/dev/null".into()),
        ];
        let python = Python::probe(Path::new("python3"), environment).unwrap();
        let cache = Cache::at(folder.path());
        let library = Library {
            name: "fake".into(),
            folder: "fake-1.0".into(),
            wheels: Vec::new(),
            members: vec![
                Member {
                    wheel: 0,
                    from: "fakelib/lib/libfake.so".into(),
                    to: "lib/libfake.so".into(),
                },
                Member { wheel: 0, from: "fakelib/include/".into(), to: "include/".into() },
            ],
            texts: vec![("build-version".into(), "1.0\n".into())],
            unpacked_bytes: 1000,
        };
        let mut bed = Self { folder, cache, python, library };
        let sha256 = bed.publish("the library");
        bed.library.wheels.push(Wheel {
            project: "fakelib".into(),
            version: "1.0".into(),
            file: FILE.into(),
            sha256,
            bytes: 1000,
            platform: "manylinux_2_28_x86_64".into(),
        });
        bed
    }

    /// Adds a wheel with this library to the index; returns its sha256.
    fn publish(&self, content: &str) -> String {
        let path = self.folder.path().join("index").join(FILE);
        let output =
            self.python.command(["-c", MAKE_WHEEL]).arg(path).arg(content).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn install(&self) -> Result<PathBuf, String> {
        install(&self.library, &self.cache, &self.python).map_err(|error| format!("{error:#}"))
    }

    fn path(&self, below: &str) -> PathBuf {
        self.cache.root().join(below)
    }

    #[track_caller]
    fn fails(&self, expect: &str) {
        let message = self.install().unwrap_err();
        assert!(message.contains(expect) && message.lines().count() == 1, "{message}");
        assert_eq!(find(&self.library, &self.cache), None);
        assert!(!self.path("fake-1.0").exists());
    }

    #[track_caller]
    fn is_whole(&self, folder: &Path) {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read("lib/libfake.so"), "the library");
        assert_eq!(read("include/deep/er.h"), "int deeper(void);");
        assert_eq!(read("build-version"), "1.0\n");
        assert!(!folder.join("other.py").exists());
        assert_eq!(find(&self.library, &self.cache).as_deref(), Some(folder));
    }
}

#[test]
fn a_library_is_laid_out_and_found_again() {
    let bed = Bed::new();
    assert_eq!(find(&bed.library, &bed.cache), None);
    let folder = bed.install().unwrap();
    bed.is_whole(&folder);
    // A second time nothing is downloaded: the index may be gone.
    fs::remove_file(bed.folder.path().join("index").join(FILE)).unwrap();
    assert_eq!(bed.install().unwrap(), folder);
    let left: Vec<_> =
        fs::read_dir(bed.path("downloads")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn another_file_from_the_index_is_refused() {
    let bed = Bed::new();
    bed.publish("something else");
    bed.fails("than the pinned one (sha256 expected");
    assert!(!bed.path("downloads").join(FILE).exists());
}

#[test]
fn a_project_that_the_index_lacks_is_named() {
    let mut bed = Bed::new();
    bed.library.wheels[0].project = "absent-project".into();
    bed.fails("does not have fakelib-1.0");
}

#[test]
fn an_earlier_whole_download_is_taken_without_pip() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("downloads")).unwrap();
    fs::rename(bed.folder.path().join("index").join(FILE), bed.path("downloads").join(FILE))
        .unwrap();
    bed.is_whole(&bed.install().unwrap());
}

#[test]
fn an_earlier_truncated_download_is_replaced() {
    let bed = Bed::new();
    let whole = fs::read(bed.folder.path().join("index").join(FILE)).unwrap();
    fs::create_dir_all(bed.path("downloads")).unwrap();
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        remove(&bed.path("fake-1.0")).unwrap();
        fs::write(bed.path("downloads").join(FILE), &whole[..length]).unwrap();
        bed.is_whole(&bed.install().unwrap());
    }
}

#[test]
fn a_half_unpacked_library_is_made_anew() {
    let bed = Bed::new();
    // Like an xtask leaves it that is killed while unpacking, and like a damaged folder.
    for name in ["fake-1.0.partial", "fake-1.0"] {
        fs::create_dir_all(bed.path(name).join("lib")).unwrap();
        fs::write(bed.path(name).join("lib/libfake.so"), "the lib").unwrap();
    }
    assert_eq!(find(&bed.library, &bed.cache), None);
    let folder = bed.install().unwrap();
    bed.is_whole(&folder);
    fs::write(folder.join("lib/libfake.so"), "the lib").unwrap();
    assert_eq!(find(&bed.library, &bed.cache), None, "a file of another size");
    bed.is_whole(&bed.install().unwrap());
}

#[test]
fn other_pins_make_another_library() {
    let mut bed = Bed::new();
    bed.install().unwrap();
    bed.library.wheels[0].sha256 = "0".repeat(64);
    assert_eq!(find(&bed.library, &bed.cache), None);
}

#[test]
fn a_wheel_without_the_expected_files_is_named() {
    let mut bed = Bed::new();
    bed.library.members[0].from = "fakelib/lib/absent.so".into();
    bed.fails("has no file fakelib/lib/absent.so");
    bed.library.members[0].from = "absent/".into();
    bed.fails("has nothing in absent/");
}

#[test]
fn a_full_disk_is_said_before_anything_is_downloaded() {
    let mut bed = Bed::new();
    bed.library.unpacked_bytes = 1 << 60;
    bed.fails("the disk is too full for fake");
    assert!(!bed.path("downloads").exists());
}

#[test]
fn two_at_once_make_one_library() {
    let bed = Bed::new();
    let folders: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| bed.install().unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(folders.iter().all(|folder| *folder == folders[0]));
    bed.is_whole(&folders[0]);
}
