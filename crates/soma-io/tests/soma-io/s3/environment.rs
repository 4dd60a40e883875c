//! Settings that the config lacks come from Amazon's variables and files, for both readers.

use std::fs;
use std::process::Command;

use soma_io::{Config, Experiment, OpenOptions};

use crate::s3::places::{READERS, Stored, every_cell, reader_of};
use test_storage::{KEY_ID, PRIVATE, SECRET};

/// Names the experiment for a child process that runs with other variables.
const CHILD: &str = "SOMAFEED_TEST_URI";

/// The parent starts the server, and itself again for each set of variables; variables belong to a
/// process.
#[test]
fn the_variables_say_where_and_who() {
    if let Ok(uri) = std::env::var(CHILD) {
        return read_with_an_empty_config(&uri);
    }
    let stored = Stored::new(PRIVATE);
    let url = format!("http://{}", stored.server.address);
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    let profile = format!("[profile lab]\nregion = eu-lab-1\nendpoint_url = {url}\n");
    fs::write(home.path().join(".aws/config"), profile).unwrap();
    let keys = format!("[lab]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n");
    fs::write(home.path().join(".aws/credentials"), keys).unwrap();
    let home = home.path().to_str().unwrap();
    let variables: [&[(&str, &str)]; 3] = [
        &[
            ("AWS_ENDPOINT_URL", &url),
            ("AWS_REGION", "eu-test-1"),
            ("AWS_ACCESS_KEY_ID", KEY_ID),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
        ],
        &[
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
            ("AWS_ENDPOINT_URL_S3", &url),
            ("AWS_DEFAULT_REGION", "eu-test-2"),
            ("AWS_ACCESS_KEY_ID", KEY_ID),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
        ],
        &[("AWS_PROFILE", "lab")],
    ];
    for variables in variables {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "s3::environment::the_variables_say_where_and_who",
            "--nocapture",
        ]);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("AWS_")) {
                command.env_remove(name);
            }
        }
        command.env(CHILD, stored.uri()).env("HOME", home);
        command.env("AWS_EC2_METADATA_DISABLED", "true").envs(variables.iter().copied());
        drop(stored.server.seen());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variables:?}: {said}");
        let seen = stored.server.seen();
        assert!(!seen.is_empty() && seen.iter().all(|seen| seen.is_signed), "{variables:?}");
    }
}

fn read_with_an_empty_config(uri: &str) {
    let options = OpenOptions { config: Config::new(), ..OpenOptions::default() };
    let experiment = Experiment::open(uri, &options).unwrap();
    let [native, libtiledb] = READERS.map(|choice| {
        let reader = reader_of(&experiment, choice).unwrap();
        every_cell(&*reader).unwrap()
    });
    assert!(!native.is_empty() && native == libtiledb);
}
