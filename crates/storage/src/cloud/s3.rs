//! S3, and other stores that speak its protocol.

use std::net::IpAddr;

use object_store::aws::{AmazonS3, AmazonS3Builder};

use super::aws::{Credentials, DEFAULT_REGION};

use super::http::Http;
use crate::address::Address;
use crate::environment::Environment;
use crate::error::Error;
use crate::profile::Keys;
use crate::settings::{Limits, Settings, refused};

/// The store of an address.
pub(super) fn store(
    address: &Address<'_>,
    settings: &Settings<'_>,
    environment: &Environment,
) -> Result<AmazonS3, Error> {
    check_known(settings)?;
    let credentials = Credentials::find(settings, environment)?;
    let region = settings.text("vfs.s3.region").unwrap_or(DEFAULT_REGION);
    let endpoint = Endpoint::from_settings(address.bucket, region, settings)?;
    let ca_file = settings.text("vfs.s3.ca_file").or_else(|| settings.text("ssl.ca_file"));
    let limits = limits(settings)?;
    let http = Http::new(limits, proxy(settings), ca_file, endpoint.url.starts_with("https:"))
        .map_err(|error| settings.client_error(error))?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(address.bucket)
        .with_region(region)
        .with_endpoint(endpoint.url)
        .with_virtual_hosted_style_request(endpoint.names_bucket)
        .with_request_payer(settings.truth("vfs.s3.requester_pays")?.unwrap_or(false))
        .with_retry(limits.retry())
        .with_client_options(http.options())
        .with_http_connector(http);
    builder = match credentials {
        Credentials::Unsigned => builder.with_skip_signature(true),
        Credentials::Keys(Keys { id, secret, token }) => {
            let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            match token {
                Some(token) => builder.with_token(token),
                None => builder,
            }
        }
        Credentials::Sources(sources) => sources
            .into_iter()
            .fold(builder, |builder, (key, value)| builder.with_config(key, value)),
    };
    builder.build().map_err(|error| settings.client_error(error))
}

/// Refuses parameters that would make libtiledb read in another way.
fn check_known(settings: &Settings<'_>) -> Result<(), Error> {
    for name in ["vfs.s3.aws_role_arn", "vfs.s3.ca_path", "ssl.ca_path"] {
        if settings.text(name).is_some() {
            return Err(settings.unknown(name));
        }
    }
    if let Some(name) = settings.below("vfs.s3.custom_headers.") {
        return Err(settings.unknown(name));
    }
    if settings.text("vfs.s3.config_source").is_some_and(|source| source != "auto") {
        return Err(settings.unknown("vfs.s3.config_source"));
    }
    for name in ["vfs.s3.verify_ssl", "ssl.verify"] {
        if settings.truth(name)? == Some(false) {
            return Err(settings.unknown(name));
        }
    }
    Ok(())
}

/// The bounds on tries and times of requests.
pub(super) fn limits(settings: &Settings<'_>) -> Result<Limits, Error> {
    let mut limits = Limits::from_settings(settings)?;
    settings.put(&mut limits.connect, "vfs.s3.connect_timeout_ms")?;
    settings.put(&mut limits.stall, "vfs.s3.request_timeout_ms")?;
    limits.tries = settings.number("vfs.s3.connect_max_tries")?.unwrap_or(limits.tries);
    Ok(limits)
}

fn proxy(settings: &Settings<'_>) -> Option<String> {
    let part = |name: &str| settings.text(&format!("vfs.s3.proxy_{name}"));
    let host = part("host")?;
    let user = match (part("username"), part("password")) {
        (Some(user), Some(password)) => format!("{user}:{password}@"),
        (Some(user), None) => format!("{user}@"),
        _ => String::new(),
    };
    let port = part("port").filter(|port| *port != "0").map(|port| format!(":{port}"));
    Some(format!("{}://{user}{host}{}", part("scheme").unwrap_or("http"), port.unwrap_or_default()))
}

/// The server that requests go to.
#[derive(Debug, PartialEq, Eq)]
struct Endpoint {
    url: String,
    /// Whether the bucket's name is the first part of the host's; otherwise it begins the path.
    names_bucket: bool,
}

impl Endpoint {
    fn from_settings(bucket: &str, region: &str, settings: &Settings<'_>) -> Result<Self, Error> {
        let given = settings.text("vfs.s3.endpoint_override");
        let (scheme, host) = match given.and_then(|given| given.split_once("://")) {
            Some((scheme, host)) => (scheme, host.to_owned()),
            None => (
                settings.text("vfs.s3.scheme").unwrap_or("https"),
                given.map_or_else(|| amazons(region), str::to_owned),
            ),
        };
        if !["http", "https"].contains(&scheme) {
            return Err(refused("vfs.s3.scheme", "it is neither http nor https"));
        }
        let host = host.trim_end_matches('/');
        // Amazon's own client decides in the same way: no name fits before an IP address, and no
        // certificate covers a bucket with dots.
        let is_covered = scheme == "http" || !bucket.contains('.');
        let names_bucket = is_covered
            && !is_ip_address(host)
            && settings.truth("vfs.s3.use_virtual_addressing")?.unwrap_or(true);
        let before = if names_bucket { format!("{bucket}.") } else { String::new() };
        Ok(Self { url: format!("{scheme}://{before}{host}"), names_bucket })
    }
}

/// Amazon's host of a region.
fn amazons(region: &str) -> String {
    let end = if region.starts_with("cn-") { ".cn" } else { "" };
    format!("s3.{region}.amazonaws.com{end}")
}

/// Whether a host, with or without a port, is an IP address.
fn is_ip_address(host: &str) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let address = match bracketed {
        Some((address, _)) => address,
        None => host.split([':', '/']).next().unwrap_or(host),
    };
    address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Config;

    fn config(parameters: &[(&str, &str)]) -> Config {
        parameters
            .iter()
            .map(|(name, value)| (format!("vfs.s3.{name}"), (*value).to_owned()))
            .collect()
    }

    #[track_caller]
    fn check_endpoint(bucket: &str, parameters: &[(&str, &str)], url: &str, names_bucket: bool) {
        let config = config(parameters);
        let found =
            Endpoint::from_settings(bucket, "eu-west-1", &Settings::new("s3://b/x", &config))
                .unwrap();
        assert_eq!(found, Endpoint { url: url.to_owned(), names_bucket });
    }

    #[test]
    fn endpoints_are_those_of_libtiledb() {
        check_endpoint("b", &[], "https://b.s3.eu-west-1.amazonaws.com", true);
        check_endpoint("a.b", &[], "https://s3.eu-west-1.amazonaws.com", false);
        let path = ("use_virtual_addressing", "false");
        check_endpoint("b", &[path], "https://s3.eu-west-1.amazonaws.com", false);
        let minio = ("endpoint_override", "minio.example:9000/");
        check_endpoint("b", &[minio], "https://b.minio.example:9000", true);
        check_endpoint("b", &[minio, path, ("scheme", "http")], "http://minio.example:9000", false);
        check_endpoint(
            "b",
            &[("endpoint_override", "http://minio.example")],
            "http://b.minio.example",
            true,
        );
        for host in ["127.0.0.1:9000", "[::1]:9000"] {
            let given = [("endpoint_override", host), ("scheme", "http")];
            check_endpoint("b", &given, &format!("http://{host}"), false);
        }
        let config = config(&[("scheme", "ftp")]);
        let error = Endpoint::from_settings("b", "x", &Settings::new("s3://b/x", &config))
            .unwrap_err()
            .to_string();
        assert!(error.contains("vfs.s3.scheme "), "{error}");
        assert_eq!(amazons("cn-north-1"), "s3.cn-north-1.amazonaws.com.cn");
    }

    #[test]
    fn parameters_that_only_libtiledb_knows_are_not_supported() {
        for (name, value) in [
            ("aws_role_arn", "arn:aws:iam::1:role/x"),
            ("custom_headers.x-tenant", "y"),
            ("config_source", "config_files"),
            ("verify_ssl", "false"),
        ] {
            let config = config(&[(name, value)]);
            match check_known(&Settings::new("s3://b/x", &config)) {
                Err(Error::Unsupported { reason, .. }) => {
                    assert!(reason.contains(name), "{reason}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        let config = config(&[("config_source", "auto"), ("verify_ssl", "true")]);
        check_known(&Settings::new("s3://b/x", &config)).unwrap();
    }

    #[test]
    fn a_proxy_is_an_address_with_its_user() {
        let proxy_of =
            |parameters: &[(&str, &str)]| proxy(&Settings::new("s3://b/x", &config(parameters)));
        assert_eq!(proxy_of(&[("proxy_port", "3128")]), None);
        let host = ("proxy_host", "proxy.example");
        assert_eq!(proxy_of(&[host, ("proxy_port", "0")]).unwrap(), "http://proxy.example");
        let full = [
            host,
            ("proxy_port", "3128"),
            ("proxy_scheme", "https"),
            ("proxy_username", "ada"),
            ("proxy_password", "secret"),
        ];
        assert_eq!(proxy_of(&full).unwrap(), "https://ada:secret@proxy.example:3128");
    }
}
