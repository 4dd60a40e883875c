//! `--link`: local data read over a link with a shape.

use std::io::ErrorKind;
use std::net::TcpListener;

use bench_report::{Measured, Status, read};

use crate::bed::{Bed, N_CELLS, SMALL_BUFFERS, stderr};

const LINK: &str = "2ms,20MB/s,40MB/s";

#[test]
fn a_sweep_over_a_link_tells_what_it_asked_of_it() {
    let bed = Bed::new();
    let arguments = ["--link", LINK, "-b", "4x16", "-m", "native", "-E", "2", "-B", "64"];
    let rows = bed.sweep("out", &arguments);
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let measured = &row.measured;
        assert_eq!((measured.status, measured.n_rows), (Status::Ok, Some(N_CELLS)), "{row:?}");
        assert_eq!(row.point.settings.get("link"), Some(LINK));
        assert!(row.data.uri.ends_with("experiment"), "{}", row.data.uri);
        let requests = measured.link_requests.unwrap();
        let under_way = measured.link_most_under_way.unwrap();
        assert!(1 <= under_way && under_way <= requests, "{row:?}");
        let needed = measured.link_needed_bytes.unwrap();
        assert_eq!(measured.link_bytes_floor_secs, Some(needed as f64 / 40e6));
        let latency = requests as f64 / under_way as f64 * 0.002;
        assert!((measured.link_latency_floor_secs.unwrap() - latency).abs() < 1e-9, "{row:?}");
        assert!(0.0 <= measured.link_server_cpu_share.unwrap(), "{row:?}");
        assert_eq!(measured.link_faults_met, None);
    }
    // The second epoch's first blocks are read in the first one's time.
    let sum = |of: fn(&Measured) -> Option<u64>| -> u64 {
        rows.iter().map(|row| of(&row.measured).unwrap()).sum()
    };
    assert!(sum(|measured| measured.requests) <= sum(|measured| measured.link_requests));
    assert!(sum(|measured| measured.bytes_read) <= sum(|measured| measured.link_bytes));
    assert!(sum(|measured| measured.link_needed_bytes) <= sum(|measured| measured.bytes_read));
    assert!(0 < rows[0].measured.link_open_requests.unwrap());
    assert_eq!(rows[1].measured.link_open_requests, None);
    let readme = std::fs::read_to_string(bed.path("out/README.md")).unwrap();
    assert!(readme.contains(&format!("over {LINK}")), "{readme}");
    assert!(readme.contains("requests (opening)"), "{readme}");
    let page = std::fs::read_to_string(bed.path("out/report.html")).unwrap();
    assert!(page.contains("link_requests"));

    // The server has another port each time; the conditions are the same.
    let again = ["sweep", "--uri", "experiment", "--results", "out", "--config", SMALL_BUFFERS];
    let output = bed.run(&[&again[..], &["--resume"], &arguments].concat());
    assert!(stderr(&output).contains("resume: 1 of 1 points are measured"), "{}", stderr(&output));
    assert_eq!(read(&bed.path("out")).unwrap().len(), 2);
}

#[test]
fn each_repetition_meets_the_same_faults() {
    let bed = Bed::new();
    let settings = ["--link", "1ms", "-b", "4x16", "-m", "native"];
    let [row] = &bed.sweep("calm", &settings)[..] else { panic!("one point") };
    let n_requests = row.measured.link_requests.unwrap() + row.measured.link_open_requests.unwrap();
    // Credentials that a single process does not outlive, but two together do.
    let faults = format!("expired={},seed=1", n_requests * 3 / 2);
    let repeated = ["--link-faults", &faults, "--repeat", "3"];
    let rows = bed.sweep("repeated", &[&settings[..], &repeated].concat());
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row.measured.status, Status::Ok, "{row:?}");
        assert_eq!(row.measured.link_faults_met, Some(0), "{row:?}");
    }
}

#[test]
fn a_proxy_of_the_environment_is_left_out() {
    let bed = Bed::new();
    // Nobody answers there.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let link = ["--link", "1ms", "--config", SMALL_BUFFERS, "-q"];
    let sweep = ["sweep", "--uri", "experiment", "--results", "out", "-b", "4x16", "-m", "native"];
    let readers = ["bench-readers", "experiment", "--reads", "2x16", "--repetitions", "1"];
    for command in [&sweep[..], &readers] {
        let mut command = bed.command(&[command, &link].concat());
        let ran = command
            .envs(["HTTP_PROXY", "http_proxy", "all_proxy"].map(|name| (name, &address)))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", stderr(&ran));
    }
    assert_eq!(read(&bed.path("out")).unwrap().len(), 1);
    proxy.set_nonblocking(true).unwrap();
    let asked = proxy.accept().map_err(|error| error.kind());
    assert!(matches!(asked, Err(ErrorKind::WouldBlock)), "{asked:?}");
}

#[test]
fn faults_of_the_link_are_in_the_row() {
    let bed = Bed::new();
    let faults = "refused=1/9,cut=1/9,storm=4:1,seed=2";
    let arguments = ["--link", "1ms", "--link-faults", faults, "-b", "4x16", "-m", "native"];
    // Which request meets which fault depends on their order, so one may fail several times in a
    // row: twenty times less than once in 10^7 requests.
    let tries = ["--config", "vfs.s3.connect_max_tries=20"];
    let arguments = [&arguments[..], &tries].concat();
    let rows = bed.sweep("out", &arguments);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!(row.point.settings.get("link_faults"), Some(faults));
    assert_eq!((row.measured.status, row.measured.n_rows), (Status::Ok, Some(N_CELLS)), "{row:?}");
    // Whether any of so few requests is refused or cut depends on the names of the files; but after
    // every four the next is answered by 503.
    let (met, requests) = (row.measured.link_faults_met, row.measured.link_requests);
    assert!(Some(0) < met && met < requests, "{row:?}");
    assert_eq!(row.measured.link_bytes_floor_secs, None);
    assert!(
        row.point.id().contains(&format!("link=1ms link_faults={faults}")),
        "{}",
        row.point.id()
    );
}

#[test]
fn a_link_takes_local_data_only() {
    let bed = Bed::new();
    for (arguments, code, part) in [
        (&["sweep", "--uri", "s3://bucket/x", "--link", "1ms"][..], 2, "a local disk"),
        (&["sweep", "--uri", "absent", "--link", "1ms"], 1, "cannot serve absent"),
        (
            &["sweep", "--uri", "experiment", "--link", "1ms", "--config", "vfs.s3.region=x"],
            2,
            "leave out --config vfs.s3.region",
        ),
    ] {
        let output = bed.run(arguments);
        let printed = stderr(&output);
        assert!(output.status.code() == Some(code) && printed.contains(part), "{printed}");
    }
}

#[test]
fn readers_are_compared_over_a_link() {
    let bed = Bed::new();
    let arguments = ["bench-readers", "experiment", "--reads", "2x16,whole", "--repetitions", "1"];
    let output = bed.run(&[&arguments[..], &["--link", "1ms", "-q"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("read over a link of 1ms, whose server"), "{printed}");
    let asked: Vec<&str> = printed.lines().filter(|line| line.contains("| native    |")).collect();
    assert_eq!(asked.len(), 2, "{printed}");
}
