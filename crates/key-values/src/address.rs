//! Addresses of servers, and what of an address may be shown.

use std::fmt;

/// Host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeAddress {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl NodeAddress {
    /// Parses the place in a redirection, like `127.0.0.1:7001`, `::1:7001` or, for the host that
    /// answered, `:7001`.
    pub(crate) fn of_redirection(text: &str, answered: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = if matches!(host, "" | "?") { &answered.host } else { host };
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }
}

/// The URL without user, password and query.
pub(crate) fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(s, rest)| (s, rest));
    // A password may contain any character, so everything before the last @ is hidden.
    let (user, place) = rest.rsplit_once('@').map_or(("", rest), |(_, place)| ("***@", place));
    let place = place.split(['?', '#']).next().unwrap_or_default();
    // No server has an empty name: it is a password whose @ is missing.
    let place = if place.starts_with(':') { "***" } else { place };
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    format!("{scheme}{user}{place}")
}

/// Whether a `/`, `?` or `#` stands as such in the user or password. Parsers of addresses would
/// take the text before it for the server.
pub(crate) fn has_plain_separator(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').is_some_and(|(login, _)| login.contains(['/', '?', '#']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_cut_out() {
        for (url, shown) in [
            ("redis://127.0.0.1:7001", "redis://127.0.0.1:7001"),
            ("rediss://me:s3cret@host:1/0?x=s3cret", "rediss://***@host:1/0"),
            ("redis://:s3/c@r:et@host", "redis://***@host"),
            ("s3cret@host", "***@host"),
            ("redis://:s3cret", "redis://***"),
            ("host", "host"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }

    #[test]
    fn separators_before_the_last_at_are_of_the_login() {
        for (url, expect) in [
            ("redis://host:1/0", false),
            ("redis://me:s3%2Fcret@host:1/0", false),
            ("redis://me:s3/cret@host", true),
            ("redis://me:12?x@host", true),
            ("redis://me:12#x@host", true),
        ] {
            assert_eq!(has_plain_separator(url), expect, "{url}");
        }
    }

    #[test]
    fn redirections_are_parsed() {
        let answered = NodeAddress { host: "here".into(), port: 1 };
        for (text, expect) in [
            ("10.0.0.1:7001", Some("10.0.0.1:7001")),
            (":7001", Some("here:7001")),
            ("?:7001", Some("here:7001")),
            ("::1:7001", Some("[::1]:7001")),
            ("name", None),
            ("name:port", None),
        ] {
            let found = NodeAddress::of_redirection(text, &answered);
            assert_eq!(found.map(|place| place.to_string()).as_deref(), expect, "{text}");
        }
    }
}
