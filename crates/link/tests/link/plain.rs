//! Requests as any HTTP client sends them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use link::LinkServer;

use crate::{folder, serve};

/// Sends a request over a connection of its own; returns the head and the body of the answer.
pub(crate) fn request(server: &LinkServer, first_line: &str, header: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "{first_line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8(answer[..end].to_vec()).unwrap(), answer.split_off(end + 4))
}

#[test]
fn ranges_and_heads_are_answered() {
    let folder = folder(&[("a/b", 1000)]);
    let bytes = std::fs::read(folder.path().join("a/b")).unwrap();
    let server = serve(folder.path(), "0");
    for (header, status, range) in [
        ("", "200", 0..1000),
        ("Range: bytes=-7\r\n", "206", 993..1000),
        ("Range: bytes=990-\r\n", "206", 990..1000),
        ("Range: bytes=10-19\r\n", "206", 10..20),
        ("Range: bytes=10-9999\r\n", "206", 10..1000),
    ] {
        let (head, body) = request(&server, "GET /link/a/b", header);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        assert!(body == bytes[range.clone()], "{header}");
        let head = head.to_lowercase();
        assert!(head.contains("etag: \"") && head.contains("last-modified: "), "{head}");
        let of_part = format!("content-range: bytes {}-{}/1000", range.start, range.end - 1);
        assert_eq!(head.contains(&of_part), status == "206", "{head}");
    }
    let (head, body) = request(&server, "HEAD /link/a/b", "");
    assert!(head.to_lowercase().contains("content-length: 1000") && body.is_empty(), "{head}");
    let (head, _) = request(&server, "GET /link/a/b", "Range: bytes=1000-\r\n");
    assert!(head.starts_with("HTTP/1.1 416"), "{head}");
}

#[test]
fn bad_paths_are_refused() {
    let folder = folder(&[("served/a", 10), ("secret", 10)]);
    let server = serve(&folder.path().join("served"), "0");
    for (line, status, code) in [
        ("GET /link/absent", "404", "NoSuchKey"),
        ("GET /link/a/b", "404", "NoSuchKey"),
        ("GET /other/a", "404", "NoSuchBucket"),
        ("GET /link/../secret", "403", "AccessDenied"),
        ("GET /link/%2e%2e/secret", "403", "AccessDenied"),
        ("GET /link/..%2fsecret", "403", "AccessDenied"),
        ("GET /link//etc/passwd", "403", "AccessDenied"),
        ("GET /link/%2Fetc/passwd", "403", "AccessDenied"),
        ("GET /link/%ff", "400", "InvalidURI"),
        ("GET /link/a%00", "403", "AccessDenied"),
        ("GET /link", "400", "InvalidArgument"),
        ("PUT /link/a", "405", "MethodNotAllowed"),
        ("DELETE /link/a", "405", "MethodNotAllowed"),
    ] {
        let (head, body) = request(&server, line, "");
        let body = String::from_utf8(body).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {head}");
        assert!(body.contains(&format!("<Code>{code}</Code>")), "{line}: {body}");
    }
    assert!(LinkServer::start(folder.path().join("absent"), server.spec()).is_err());
    assert!(LinkServer::start(folder.path().join("secret"), server.spec()).is_err());
}

#[test]
fn a_dropped_server_frees_its_port_and_ends_its_threads() {
    let folder = folder(&[("a", 10_000_000)]);
    let server = serve(folder.path(), "10kB/s");
    let address = server.address();
    // A client in the middle of a body does not hold it.
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /link/a HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    drop(server);
    let mut rest = Vec::new();
    drop(stream.read_to_end(&mut rest));
    assert!(rest.len() < 10_000_000);
    assert!(TcpStream::connect(address).is_err());
    drop(std::net::TcpListener::bind(address).unwrap());
}
