//! Region, endpoint and credentials for S3, from the config, Amazon's variables and profile files.
//!
//! Credentials are searched as libtiledb's own client does, in this order: the config, the
//! variables, the profile, a web identity, the container, the machine. Profiles that sign in by
//! single sign-on, by a program, or by assuming a role are not supported.

use object_store::aws::AmazonS3ConfigKey;

use crate::environment::Environment;
use crate::error::Error;
use crate::options::Config;
use crate::profile::{Keys, Profile};
use crate::settings::{Settings, refused};

/// The region if nothing names one, as in Amazon's own tools.
pub(super) const DEFAULT_REGION: &str = "us-east-1";

const REGION: &str = "vfs.s3.region";
const ENDPOINT: &str = "vfs.s3.endpoint_override";
const SCHEME: &str = "vfs.s3.scheme";

/// Variables that lead to credentials of a service, and the client's name for each.
const SOURCES: [(&str, AmazonS3ConfigKey); 8] = [
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    ("AWS_ENDPOINT_URL_STS", AmazonS3ConfigKey::StsEndpoint),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AmazonS3ConfigKey::ContainerCredentialsFullUri),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", AmazonS3ConfigKey::ContainerAuthorizationTokenFile),
    ("AWS_EC2_METADATA_SERVICE_ENDPOINT", AmazonS3ConfigKey::MetadataEndpoint),
];

/// `config` with the region and endpoint of the environment, if it names none itself.
pub(crate) fn complete_s3(config: &Config, environment: &Environment) -> Config {
    let mut out = config.clone();
    let (settings, profile) = (Settings::new("", config), Profile::read(environment));
    if settings.text(REGION).is_none() {
        let region = environment
            .first(&["AWS_REGION", "AWS_DEFAULT_REGION"])
            .or_else(|| profile.get("region"))
            .unwrap_or(DEFAULT_REGION);
        out.insert(REGION.to_owned(), region.to_owned());
    }
    if settings.text(ENDPOINT).is_none() {
        let endpoint = environment
            .first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
            .or_else(|| profile.get("endpoint_url"));
        if let Some(endpoint) = endpoint {
            let (scheme, host) = endpoint.split_once("://").unwrap_or(("https", endpoint));
            out.insert(ENDPOINT.to_owned(), host.trim_end_matches('/').to_owned());
            out.insert(SCHEME.to_owned(), scheme.to_owned());
        }
    }
    out
}

/// Who signs requests. Not to be printed: it holds secrets.
pub(super) enum Credentials {
    /// Nobody.
    Unsigned,
    /// The owner of these keys.
    Keys(Keys),
    /// Whoever a service of the web, the container or the machine names.
    Sources(Vec<(AmazonS3ConfigKey, String)>),
}

impl Credentials {
    /// The first credentials in the order of libtiledb's client.
    pub(super) fn find(settings: &Settings<'_>, environment: &Environment) -> Result<Self, Error> {
        if settings.truth("vfs.s3.no_sign_request")? == Some(true) {
            return Ok(Self::Unsigned);
        }
        let given = ["vfs.s3.aws_access_key_id", "vfs.s3.aws_secret_access_key"];
        match given.map(|name| settings.text(name)) {
            [Some(id), Some(secret)] => {
                let token = settings.text("vfs.s3.aws_session_token");
                return Ok(Self::Keys(Keys::new(id, secret, token)));
            }
            [Some(_), None] => return Err(refused(given[1], "the key's id needs it")),
            [None, Some(_)] => return Err(refused(given[0], "the secret key needs it")),
            [None, None] => {}
        }
        let found =
            ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| environment.get(name));
        if let [Some(id), Some(secret)] = found {
            return Ok(Self::Keys(Keys::new(id, secret, environment.get("AWS_SESSION_TOKEN"))));
        }
        let profile = Profile::read(environment);
        if let Some(keys) = profile.keys().map_err(|reason| settings.unsupported(reason))? {
            return Ok(Self::Keys(keys));
        }
        let sources: Vec<_> = SOURCES
            .into_iter()
            .filter_map(|(name, key)| Some((key, environment.get(name)?.to_owned())))
            .collect();
        // Only the machine is left to ask. A client that may not ask it does not sign, like
        // libtiledb's.
        let has_service =
            sources.iter().any(|(key, _)| !matches!(key, AmazonS3ConfigKey::MetadataEndpoint));
        if !has_service && environment.is_true("AWS_EC2_METADATA_DISABLED") {
            return Ok(Self::Unsigned);
        }
        Ok(Self::Sources(sources))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(parameters: &[(&str, &str)]) -> Config {
        let owned = |(name, value): &(&str, &str)| (format!("vfs.s3.{name}"), (*value).to_owned());
        parameters.iter().map(owned).collect()
    }

    #[track_caller]
    fn check_completed(
        given: &[(&str, &str)],
        variables: &[(&str, &str)],
        expect: &[(&str, &str)],
    ) {
        let mut variables = variables.to_vec();
        variables.push(("HOME", "/nowhere"));
        assert_eq!(
            complete_s3(&config(given), &Environment::from_variables(&variables)),
            config(expect)
        );
    }

    #[test]
    fn the_config_goes_before_the_variables() {
        check_completed(&[], &[], &[("region", "us-east-1")]);
        let regions = [("AWS_REGION", "a"), ("AWS_DEFAULT_REGION", "b")];
        check_completed(&[], &regions, &[("region", "a")]);
        check_completed(&[], &regions[1..], &[("region", "b")]);
        check_completed(&[("region", "c")], &regions, &[("region", "c")]);
        let endpoints = [
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/"),
            ("AWS_ENDPOINT_URL_S3", "https://s3.example"),
        ];
        let place = |host, scheme| {
            [("region", "us-east-1"), ("endpoint_override", host), ("scheme", scheme)]
        };
        check_completed(&[], &endpoints[..1], &place("127.0.0.1:9000", "http"));
        check_completed(&[], &endpoints, &place("s3.example", "https"));
        let given = [("region", "x"), ("endpoint_override", "other")];
        check_completed(&given, &endpoints, &given);
    }

    fn found(given: &[(&str, &str)], variables: &[(&str, &str)]) -> String {
        let config = config(given);
        match Credentials::find(
            &Settings::new("s3://b/x", &config),
            &Environment::from_variables(variables),
        ) {
            Ok(Credentials::Unsigned) => "unsigned".to_owned(),
            Ok(Credentials::Keys(Keys { id, secret, token })) => format!("{id} {secret} {token:?}"),
            Ok(Credentials::Sources(sources)) => format!("{sources:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn credentials_are_sought_in_order() {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("AWS_SESSION_TOKEN", "t"),
        ];
        let given = [("aws_access_key_id", "mine"), ("aws_secret_access_key", "own")];
        assert_eq!(found(&[("no_sign_request", "true")], &variables), "unsigned");
        // A token of the variables does not fit the keys of the config.
        assert_eq!(found(&given, &variables), "mine own None");
        assert_eq!(found(&[], &variables), "id s Some(\"t\")");
        let half = found(&given[..1], &variables);
        assert!(half.contains("vfs.s3.aws_secret_access_key"), "{half}");
        assert_eq!(found(&[], &[]), "[]");
        assert_eq!(found(&[], &[("AWS_EC2_METADATA_DISABLED", "true")]), "unsigned");
        let web = [
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/token"),
            ("AWS_ROLE_ARN", "arn"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ];
        assert_eq!(found(&[], &web), "[(WebIdentityTokenFile, \"/token\"), (RoleArn, \"arn\")]");
    }

    #[test]
    fn profiles_give_keys_region_and_endpoint() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        let config_file = "# mine\n[default]\nregion = eu-1\naws_access_key_id = old\n\
            [ profile  lab ]\nregion=eu-2\nendpoint_url = http://lab:9000\ns3 =\n  region = nested\n\
            [profile sso]\nsso_session = corp\n[lab]\nregion = not this one\n";
        std::fs::write(home.path().join(".aws/config"), config_file).unwrap();
        let credentials = "[default]\naws_access_key_id = id\naws_secret_access_key = s=/+\n\
            [lab]\naws_access_key_id=lab\naws_secret_access_key=secret\naws_session_token=t\n";
        std::fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
        let home = ("HOME", home.path().to_str().unwrap());
        let lab = [home, ("AWS_PROFILE", "lab")];
        assert_eq!(found(&[], &[home]), "id s=/+ None");
        assert_eq!(found(&[], &lab), "lab secret Some(\"t\")");
        assert_eq!(
            crate::profile::secrets(&Environment::from_variables(&lab)),
            ["lab", "secret", "t"]
        );
        let sso = found(&[], &[home, ("AWS_PROFILE", "sso")]);
        assert!(sso.contains("\"sso\"") && sso.contains("sso_session"), "{sso}");
        let place = |variables: &[(&str, &str)]| {
            let completed = complete_s3(&Config::new(), &Environment::from_variables(variables));
            (completed[REGION].clone(), completed.get(ENDPOINT).cloned())
        };
        assert_eq!(place(&[home]), ("eu-1".to_owned(), None));
        assert_eq!(place(&lab), ("eu-2".to_owned(), Some("lab:9000".to_owned())));
    }
}
