//! Short names of the CELLxGENE Census: `census://2025-11-08/homo_sapiens`.
//!
//! The Census publishes each release as a folder of a public bucket, with one experiment per
//! organism. Unless the config says otherwise, a short name sets the bucket's region and unsigned
//! requests.

use std::borrow::Cow;

use storage::Config;

use crate::Error;

const SCHEME: &str = "census://";
const BUCKET: &str = "s3://cellxgene-census-public-us-west-2/cell-census";

/// Resolves a short name to its address and config; returns any other address unchanged.
pub(crate) fn resolved<'a>(
    uri: &'a str,
    config: &'a Config,
) -> Result<(Cow<'a, str>, Cow<'a, Config>), Error> {
    let Some(name) = uri.strip_prefix(SCHEME) else {
        return Ok((Cow::Borrowed(uri), Cow::Borrowed(config)));
    };
    let failed = |problem: String| Error::Census { uri: uri.to_owned(), problem };
    let mut parts = name.split('/');
    let (release, organism) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if ["latest", "stable"].contains(&release) {
        return Err(failed(format!(
            "{release:?} refers to a release through a directory on the web, which is not read; name the release by its date"
        )));
    }
    if !is_date(release) {
        return Err(failed(format!("{release:?} is not the date of a release")));
    }
    if organism.is_empty() {
        return Err(failed("it names no organism".to_owned()));
    }
    if !organism.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
        return Err(failed(format!("{organism:?} is not an organism's name in lower case with _")));
    }
    if let Some(more) = parts.next() {
        return Err(failed(format!(
            "{more:?} follows the organism; measurements and layers are named elsewhere"
        )));
    }
    let mut config = config.clone();
    config.entry("vfs.s3.region".to_owned()).or_insert_with(|| "us-west-2".to_owned());
    let is_signed = ["vfs.s3.aws_access_key_id", "vfs.s3.aws_role_arn", "vfs.s3.config_source"];
    if !is_signed.iter().any(|name| config.get(*name).is_some_and(|value| !value.is_empty())) {
        config.entry("vfs.s3.no_sign_request".to_owned()).or_insert_with(|| "true".to_owned());
    }
    let address = format!("{BUCKET}/{release}/soma/census_data/{organism}");
    Ok((Cow::Owned(address), Cow::Owned(config)))
}

/// Whether the text has the form of 2025-11-08.
fn is_date(text: &str) -> bool {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<_> = text.split('-').collect();
    let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
    lengths == [4, 2, 2] && parts.into_iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(parameters: &[(&str, &str)]) -> Config {
        let owned = |(name, value): &(&str, &str)| (format!("vfs.s3.{name}"), (*value).to_owned());
        parameters.iter().map(owned).collect()
    }

    #[track_caller]
    fn check_config(given: &[(&str, &str)], expect: &[(&str, &str)]) {
        let given = config(given);
        let (uri, found) = resolved("census://2025-11-08/homo_sapiens", &given).unwrap();
        assert_eq!(
            uri,
            "s3://cellxgene-census-public-us-west-2/cell-census/2025-11-08/soma/census_data/homo_sapiens"
        );
        assert_eq!(*found, config(expect));
    }

    #[test]
    fn a_name_is_an_address_and_the_users_config_wins() {
        check_config(&[], &[("region", "us-west-2"), ("no_sign_request", "true")]);
        let own = [("region", "eu-west-1"), ("no_sign_request", "false")];
        check_config(&own, &own);
        let keys = [("aws_access_key_id", "id"), ("aws_secret_access_key", "secret")];
        check_config(&keys, &[keys[0], keys[1], ("region", "us-west-2")]);
    }

    #[test]
    fn other_addresses_stay() {
        let config = config(&[("region", "x")]);
        for uri in ["s3://b/x", "/x/census", "census", ""] {
            let (address, found) = resolved(uri, &config).unwrap();
            assert_eq!((&*address, &*found), (uri, &config));
        }
    }

    #[test]
    fn other_names_are_errors_that_show_the_form() {
        for (name, problem) in [
            ("", "\"\" is not the date"),
            ("2025-11-08", "no organism"),
            ("2025-11-08/", "no organism"),
            ("homo_sapiens", "\"homo_sapiens\" is not the date"),
            ("2025-11-8/homo_sapiens", "is not the date"),
            ("2025-1a-08/homo_sapiens", "is not the date"),
            ("2025-11-08/Homo sapiens", "lower case"),
            ("2025-11-08/homo_sapiens/ms", "\"ms\" follows"),
            ("stable/homo_sapiens", "by its date"),
            ("latest", "by its date"),
        ] {
            let uri = format!("census://{name}");
            let error = resolved(&uri, &Config::new()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(
                error.contains(&uri) && error.contains("census://2025-11-08/homo_sapiens"),
                "{error}"
            );
        }
    }
}
