//! Credentials given to the program appear nowhere but on the stdin of its children.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use bench_report::{EpochRecord, read};

use crate::bed::{Bed, SMALL_BUFFERS, stderr};

/// Part of every secret in these tests.
const MARK: &str = "TOPSECRET";

/// Settings that may hold a secret, one of them in an address.
const SETTINGS: [&str; 7] = [
    "vfs.s3.custom_headers.x-tenant=TOPSECRET-of-header",
    "vfs.s3.aws_secret_access_key=TOPSECRET-of-key",
    "vfs.s3.proxy_username=TOPSECRET-of-user",
    "vfs.azure.storage_sas_token=sig=TOPSECRET-of-sas",
    "rest.token=TOPSECRET-of-token",
    "vfs.s3.endpoint_override=http://ada:pa'TOPSECRET-of-endpoint@127.0.0.1:1",
    "of.another.version=TOPSECRET-of-later",
];

/// Returns the experiment's address with a query, which libtiledb takes for part of the folder's
/// name.
fn address(bed: &Bed) -> String {
    let signed = bed.path("experiment?X-Amz-Signature=a'TOPSECRET-of-query&ttl=5");
    if !signed.exists() {
        fs::rename(bed.path("experiment"), &signed).unwrap();
    }
    format!("file://{}", signed.display())
}

fn with_settings(arguments: &[&str]) -> Vec<String> {
    let settings = SETTINGS.iter().flat_map(|setting| ["--config", setting]);
    let settings = settings.chain(["--config", SMALL_BUFFERS]);
    arguments.iter().copied().chain(settings).map(str::to_owned).collect()
}

/// Output of a command, and the command lines of all processes it started.
struct Ran {
    output: Output,
    command_lines: BTreeSet<String>,
}

/// Runs a command to its end and records its children's command lines.
fn run(mut command: Command) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut command_lines = BTreeSet::new();
    let mut own = BTreeSet::new();
    while child.try_wait().unwrap().is_none() {
        add_command_lines(child.id(), &mut command_lines);
        own.extend(command_line(child.id()));
        sleep(Duration::from_millis(3));
    }
    // Between fork and exec, a child has its parent's command line, of which exec may leave only
    // the beginning to be read.
    command_lines.retain(|line| !own.iter().any(|own| own.starts_with(line)));
    Ran { output: child.wait_with_output().unwrap(), command_lines }
}

fn add_command_lines(parent: u32, into: &mut BTreeSet<String>) {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return };
    for thread in threads.flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            into.extend(command_line(child));
            add_command_lines(child, into);
        }
    }
}

fn command_line(id: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).replace('\0', " "))
}

impl Ran {
    /// Checks that no secret is in stdout, stderr or a child's command line.
    ///
    /// At least one child must have had `child` in its command line.
    #[track_caller]
    fn kept_secrets(&self, child: &str) {
        let Output { stdout, stderr, .. } = &self.output;
        for said in [stdout, stderr] {
            let said = String::from_utf8_lossy(said);
            assert!(!said.contains(MARK), "{said}");
        }
        let lines = &self.command_lines;
        assert!(lines.iter().any(|line| line.contains(child)), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains(MARK)), "{lines:?}");
    }
}

/// Checks that no file in a folder has a secret in its name or content.
///
/// For Parquet files, every value is checked.
#[track_caller]
fn search(folder: &Path) {
    let mut n_files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(!path.to_string_lossy().contains(MARK), "{}", path.display());
        if path.is_dir() {
            search(&path);
            continue;
        }
        n_files += 1;
        let bytes = fs::read(&path).unwrap();
        let found = bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes());
        assert!(!found, "{}", path.display());
    }
    if folder.join("epochs.parquet").is_file() {
        // Parquet is compressed, so its values are read.
        let rows = read(folder).unwrap();
        assert!(!rows.is_empty() && !format!("{rows:?}").contains(MARK), "{rows:?}");
    }
    assert!(0 < n_files || fs::read_dir(folder).unwrap().next().is_some());
}

fn rows(bed: &Bed, folder: &str) -> Vec<EpochRecord> {
    read(&bed.path(folder)).unwrap()
}

#[test]
fn a_sweep_keeps_secrets_and_says_what_else_it_was_given() {
    let bed = Bed::new();
    let uri = address(&bed);
    let arguments = with_settings(&[
        "sweep",
        "--uri",
        &uri,
        "--results",
        "out",
        "-b",
        "64",
        "-m",
        "native",
        "-M",
        "disk=fast",
        "-M",
        "source=s3://ada:pa'TOPSECRET-of-note@bucket/x",
        "-M",
        "signed=s3://bucket/x?sig=a 'TOPSECRET-of-note'",
    ]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = run(bed.command(&arguments));
    assert!(ran.output.status.success(), "{}", stderr(&ran.output));
    ran.kept_secrets(" point");
    search(&bed.path("out"));
    let row = &rows(&bed, "out")[0];
    assert!(row.data.uri.ends_with("/experiment"), "{}", row.data.uri);
    assert!(row.run.command.contains(SMALL_BUFFERS), "{}", row.run.command);
    assert!(row.run.command.contains("'rest.token=***'"), "{}", row.run.command);
    assert!(row.run.command.contains("http://127.0.0.1:1"), "{}", row.run.command);
    assert_eq!(row.run.metadata["source"], "s3://bucket/x");
    assert_eq!(row.run.metadata["signed"], "s3://bucket/x");
    assert_eq!(row.point.settings.number("soma_buffer_size"), Some(1_000_000));

    let report = run(bed.command(&["report", "out"]));
    assert!(report.output.status.success(), "{}", stderr(&report.output));
    search(&bed.path("out"));
}

/// Errors from libtiledb, from the store's client and from this program name the place.
#[test]
fn what_fails_is_said_without_secrets() {
    let bed = Bed::new();
    let uri = "s3://ada:pa'TOPSECRET-of-user@bucket/x?sig=a 'TOPSECRET-of-query";
    let local = format!("{}/none", address(&bed));
    let (sweep, read_chunks) = (["sweep", "--uri"], ["read-chunks", "-w", "native-csr"]);
    let mut all = vec![
        with_settings(&[&sweep[..], &[uri, "--results", "out"]].concat()),
        with_settings(&[&sweep[..], &[&local, "--results", "out"]].concat()),
        with_settings(&[&read_chunks[..], &[uri]].concat()),
        with_settings(&["bench-readers", "--uri", uri]),
        with_settings(&["tune", "--uri", uri, "--memory", "1GiB"]),
        with_settings(&["slice", &local, "to", "--obs-filter", "nnz > 1"]),
        with_settings(&["relayout", &local, "to"]),
        with_settings(&["import", "nowhere", uri]),
    ];
    for setting in &mut all {
        setting.push("--config=vfs.s3.connect_max_tries=1".to_owned());
        setting.push("--config=soma.retry_limit_ms=1".to_owned());
    }
    for arguments in all {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = bed.command(&arguments).output().unwrap();
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {printed}");
        assert!(printed.contains("error: ") && !printed.contains(MARK), "{arguments:?}: {printed}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains(MARK));
    }
}

/// Starts a server that answers like S3 after a session has expired.
///
/// The answer contains the session's key and token.
fn expired_session() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            while !request.windows(4).any(|part| part == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(n) if 0 < n => request.extend_from_slice(&buffer[..n]),
                    _ => break,
                }
            }
            let body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>ExpiredToken</Code>\
                <Message>The token TOPSECRET/of+session== of TOPSECRET-ID has expired.</Message>\
                <Token-0>TOPSECRET/of+session==</Token-0></Error>";
            let head =
                "HTTP/1.1 400 Bad Request\r\nContent-Type: application/xml\r\nConnection: close";
            let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            // The client may have disconnected.
            let _written = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn an_error_of_the_store_is_said_without_the_session_of_the_environment() {
    let bed = Bed::new();
    let server = expired_session();
    let home = bed.path("home");
    fs::create_dir_all(home.join(".aws")).unwrap();
    let profile = "[lab]\naws_access_key_id=TOPSECRET-ID\naws_secret_access_key=TOPSECRET-key\n\
        aws_session_token=TOPSECRET/of+session==\n";
    fs::write(home.join(".aws/credentials"), profile).unwrap();
    let by_variables = [
        ("AWS_ACCESS_KEY_ID", "TOPSECRET-ID"),
        ("AWS_SECRET_ACCESS_KEY", "TOPSECRET-key"),
        ("AWS_SESSION_TOKEN", "TOPSECRET/of+session=="),
    ];
    for variables in [&by_variables[..], &[("AWS_PROFILE", "lab")]] {
        let endpoint = format!("--config=vfs.s3.endpoint_override={server}");
        let arguments = [
            &["sweep", "--uri", "s3://bucket/x", "--results", "out", &endpoint][..],
            &["--config=vfs.s3.scheme=http", "--config=vfs.s3.use_virtual_addressing=false"],
            &["--config=vfs.s3.connect_max_tries=1"],
        ];
        let mut command = bed.command(&arguments.concat());
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("AWS_")) {
                command.env_remove(name);
            }
        }
        command.env("HOME", &home).env("AWS_EC2_METADATA_DISABLED", "true");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(
            printed.contains("The token *** of *** has expired") && !printed.contains(MARK),
            "{printed}"
        );
    }
}

#[test]
fn a_setting_that_is_refused_is_named_and_not_shown() {
    let bed = Bed::new();
    for (arguments, name) in [
        (&["--config", "TOPSECRET"][..], "--config"),
        (&["--config==TOPSECRET"], "--config"),
        (&["--config", "rest.token:TOPSECRET"], "--config"),
        (&["--config", "rest.token=a", "--config", "rest.token=TOPSECRET"], "rest.token"),
        (&["x", "vfs.s3.custom_headers.a=TOPSECRET"], "vfs.s3.custom_headers.a"),
        (&["--config", "vfs.s3.region=\u{1}", "sm.encryption_key=TOPSECRET"], "sm.encryption_key"),
        (
            // Only libtiledb decrypts.
            &[
                "experiment",
                "--reader",
                "libtiledb",
                "--config",
                "sm.encryption_key=TOPSECRET",
                "--config",
                "sm.encryption_type=AES",
            ],
            "EncryptionType",
        ),
    ] {
        let all = [&["sweep", "--results", "out"], arguments].concat();
        let output = bed.command(&all).current_dir(bed.path("")).output().unwrap();
        let printed = stderr(&output);
        assert!(!output.status.success(), "{arguments:?}: {printed}");
        assert!(printed.contains(name) && !printed.contains(MARK), "{arguments:?}: {printed}");
    }
}

/// Uses stand-ins for the scripts that need only Python's standard library.
///
/// They fail with a Python error that contains everything they know.
#[test]
fn scripts_get_secrets_on_stdin_and_their_words_are_searched() {
    let bed = Bed::new();
    let uri = address(&bed);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweep");
    fs::create_dir(bed.path("scripts")).unwrap();
    fs::copy(tests.join("peers/fake.peer.py"), bed.path("scripts/fake.peer.py")).unwrap();
    let program = format!("SWEEP={}", env!("CARGO_BIN_EXE_sweep"));
    let log = format!("LOG={}", bed.path("log").display());
    for (fault, status) in [("none", Some(0)), ("tells", Some(1)), ("tells stderr", Some(1))] {
        let fault = format!("FAULT={fault}");
        let mut arguments = with_settings(&["peers", "--uri", &uri, "--results", "out"]);
        for word in ["--scripts", "scripts", "--environment", "fake=python3", "--peer", "fake"] {
            arguments.push(word.to_owned());
        }
        for word in ["--copies", "copies", "--work", "csr-all-8x4", "--repetitions", "1"] {
            arguments.push(word.to_owned());
        }
        for variable in [&program, &log, &fault, "KEY=TOPSECRET-of-variable"] {
            arguments.extend(["--peer-variable".to_owned(), variable.to_owned()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ran = run(bed.command(&arguments));
        assert_eq!(ran.output.status.code(), status, "{}", stderr(&ran.output));
        ran.kept_secrets("fake.peer.py measure");
        search(&bed.path("out"));
        fs::remove_dir_all(bed.path("out")).unwrap();
    }
    // The stand-in received the secrets.
    let log = fs::read_to_string(bed.path("log")).unwrap();
    assert!(log.contains("csr"), "{log}");
}

#[test]
fn ways_of_reading_get_secrets_on_stdin() {
    let bed = Bed::new();
    let uri = address(&bed);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweep/read_chunks/fake.py");
    let script = script.to_str().unwrap();
    let arguments = with_settings(&[
        "read-chunks",
        &uri,
        "-w",
        "csr,native-csr",
        "--repetitions",
        "1",
        "--python",
        "python3",
        "--script",
        script,
        "--json",
    ]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = bed.command(&arguments);
    command.env("SWEEP", env!("CARGO_BIN_EXE_sweep")).env("LOG", bed.path("log"));
    let ran = run(command);
    assert!(ran.output.status.success(), "{}", stderr(&ran.output));
    ran.kept_secrets("fake.py csr");
    let log = fs::read_to_string(bed.path("log")).unwrap();
    assert!(log.contains("rest.token=TOPSECRET-of-token"), "the script has them: {log}");
}
