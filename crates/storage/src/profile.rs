//! Amazon's profile files.

use std::collections::BTreeMap;

use crate::environment::Environment;

/// Keys that sign requests. Not to be printed: they are secrets.
#[cfg(feature = "s3")]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: Option<String>,
}

#[cfg(feature = "s3")]
impl Keys {
    pub(crate) fn new(id: &str, secret: &str, token: Option<&str>) -> Self {
        Self { id: id.to_owned(), secret: secret.to_owned(), token: token.map(str::to_owned) }
    }
}

/// A profile of Amazon's files. Not to be printed: it may hold secrets.
pub(crate) struct Profile {
    #[cfg(feature = "s3")]
    name: String,
    values: BTreeMap<String, String>,
}

impl Profile {
    /// Reads the profile that `AWS_PROFILE` names, else `default`. The credentials file goes
    /// before the config file.
    pub(crate) fn read(environment: &Environment) -> Self {
        let name = environment.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]).unwrap_or("default");
        let mut values = BTreeMap::new();
        let sections = [format!("profile {name}"), name.to_owned()];
        if let Some(text) = environment.file("AWS_CONFIG_FILE", ".aws/config") {
            let wanted = if name == "default" { &sections[..] } else { &sections[..1] };
            add_sections(&text, wanted, &mut values);
        }
        if let Some(text) = environment.file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials") {
            add_sections(&text, &sections[1..], &mut values);
        }
        Self {
            #[cfg(feature = "s3")]
            name: name.to_owned(),
            values,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The keys in the profile; `None` if it has nothing to do with credentials. The error says
    /// by which unsupported way the profile signs in.
    #[cfg(feature = "s3")]
    pub(crate) fn keys(&self) -> Result<Option<Keys>, String> {
        let pair = (self.get("aws_access_key_id"), self.get("aws_secret_access_key"));
        if let (Some(id), Some(secret)) = pair {
            return Ok(Some(Keys::new(id, secret, self.get("aws_session_token"))));
        }
        let ways = ["role_arn", "credential_process", "sso_session", "sso_start_url"];
        match ways.into_iter().find(|way| self.get(way).is_some()) {
            None => Ok(None),
            Some(way) => Err(format!(
                "the AWS profile {:?} gives credentials by {way}, which only libtiledb can follow",
                self.name
            )),
        }
    }
}

/// The key id, secret key and token of the profile, if it has them.
pub(crate) fn secrets(environment: &Environment) -> Vec<String> {
    let profile = Profile::read(environment);
    let names = ["aws_access_key_id", "aws_secret_access_key", "aws_session_token"];
    names.into_iter().filter_map(|name| profile.get(name).map(str::to_owned)).collect()
}

/// Adds the values in the sections `wanted` of a profile file.
fn add_sections(text: &str, wanted: &[String], values: &mut BTreeMap<String, String>) {
    let mut is_wanted = false;
    for line in text.lines() {
        // Indented lines belong to the value before them; none of ours has such lines.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(section) = line.trim_end().strip_prefix('[') {
            let name = section.split(']').next().unwrap_or(section);
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            is_wanted = wanted.contains(&name);
        } else if is_wanted && let Some((name, value)) = line.split_once('=') {
            values.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
}
