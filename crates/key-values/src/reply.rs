//! What a server's reply to a command for one key means.

use redis::{ServerErrorKind, Value};

use crate::address::NodeAddress;

/// The meaning of a reply.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// The command was carried out.
    Done(Value),
    /// Another server owns the slot now.
    Moved(NodeAddress),
    /// The key may have moved already, with its slot to follow: ask there, this time only.
    Ask(NodeAddress),
    /// The cluster is changing: the same again, soon.
    Later(String),
    /// The limit on memory is reached.
    Full,
    /// Not as long as somebody changes something.
    Refused(String),
}

impl Reply {
    /// The meaning of `value`, which `answered` sent.
    pub(crate) fn classify(value: Value, answered: &NodeAddress) -> Self {
        let Value::ServerError(error) = value else { return Self::Done(value) };
        let detail = error.details().unwrap_or_default();
        let text = format!("{} {detail}", error.code());
        // A redirection is the slot and the place.
        let place = || {
            let (_slot, place) = detail.split_once(' ')?;
            NodeAddress::of_redirection(place, answered)
        };
        match error.kind() {
            Some(ServerErrorKind::Moved) => place().map_or(Self::Refused(text), Self::Moved),
            Some(ServerErrorKind::Ask) => place().map_or(Self::Refused(text), Self::Ask),
            Some(
                ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::BusyLoading
                | ServerErrorKind::ReadOnly,
            ) => Self::Later(text),
            None if error.code() == "OOM" => Self::Full,
            _ => Self::Refused(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wire: &str, expect: &Reply) {
        let answered = NodeAddress { host: "here".into(), port: 1 };
        let value = redis::parse_redis_value(wire.as_bytes()).unwrap();
        assert_eq!(Reply::classify(value, &answered), *expect, "{wire}");
    }

    #[test]
    fn replies_are_understood() {
        let place = |host: &str| NodeAddress { host: host.into(), port: 7002 };
        check("+OK\r\n", &Reply::Done(Value::Okay));
        check("$-1\r\n", &Reply::Done(Value::Nil));
        check("-MOVED 3999 10.0.0.2:7002\r\n", &Reply::Moved(place("10.0.0.2")));
        check("-MOVED 3999 :7002\r\n", &Reply::Moved(place("here")));
        check("-ASK 3999 10.0.0.2:7002\r\n", &Reply::Ask(place("10.0.0.2")));
        check("-MOVED nowhere\r\n", &Reply::Refused("MOVED nowhere".into()));
        for text in [
            "CLUSTERDOWN The cluster is down",
            "TRYAGAIN Multiple keys request during rehashing of slot",
            "LOADING Redis is loading the dataset in memory",
            "READONLY You can't write against a read only replica.",
        ] {
            check(&format!("-{text}\r\n"), &Reply::Later(text.into()));
        }
        check("-OOM command not allowed when used memory > 'maxmemory'.\r\n", &Reply::Full);
        check("-WRONGTYPE wrong kind\r\n", &Reply::Refused("WRONGTYPE wrong kind".into()));
        check("-ERR unknown\r\n", &Reply::Refused("ERR unknown".into()));
    }
}
