//! Decides by a setting's name whether its value may be recorded, and records command lines.

use std::collections::BTreeMap;

use super::HIDDEN;
use super::address::one_without_credentials;

/// Parameters of TileDB, tiledbsoma and ours whose values are not secret. A dot at the end allows
/// all parameters with this prefix. Any other value may be secret: keys, tokens, headers, and
/// parameters of later versions.
const RECORDED: [&str; 57] = [
    "config.logging_format",
    "config.logging_level",
    "py.",
    "sm.check_coord_dups",
    "sm.check_coord_oob",
    "sm.check_global_order",
    "sm.compute_concurrency_level",
    "sm.consolidation.",
    "sm.dedup_coords",
    "sm.encryption_type",
    "sm.fragment_info.",
    "sm.group.",
    "sm.io_concurrency_level",
    "sm.max_tile_overlap_size",
    "sm.mem.",
    "sm.memory_budget",
    "sm.memory_budget_var",
    "sm.partial_tile_offsets_loading",
    "sm.query.",
    "sm.read_range_oob",
    "sm.skip_checksum_validation",
    "sm.skip_est_size_partitioning",
    "sm.skip_unary_partitioning_budget_check",
    "sm.tile_cache_size",
    "sm.vacuum.",
    "sm.var_offsets.",
    "soma.",
    "ssl.ca_file",
    "ssl.ca_path",
    "ssl.verify",
    "vfs.azure.blob_endpoint",
    "vfs.azure.max_parallel_ops",
    "vfs.azure.max_retries",
    "vfs.disable_batching",
    "vfs.file.",
    "vfs.gcs.endpoint",
    "vfs.gcs.max_parallel_ops",
    "vfs.gcs.request_timeout_ms",
    "vfs.max_batch_size",
    "vfs.min_batch_gap",
    "vfs.min_batch_size",
    "vfs.min_parallel_size",
    "vfs.read_ahead_cache_size",
    "vfs.read_ahead_size",
    "vfs.s3.ca_file",
    "vfs.s3.ca_path",
    "vfs.s3.connect_max_tries",
    "vfs.s3.connect_timeout_ms",
    "vfs.s3.endpoint_override",
    "vfs.s3.max_parallel_ops",
    "vfs.s3.no_sign_request",
    "vfs.s3.region",
    "vfs.s3.request_timeout_ms",
    "vfs.s3.requester_pays",
    "vfs.s3.scheme",
    "vfs.s3.use_virtual_addressing",
    "vfs.s3.verify_ssl",
];

/// Flags that take a setting, whose name decides whether its value is recorded.
const TAKE_SETTINGS: [&str; 2] = ["--config", "--peer-variable"];

/// Words in the names of secrets, anywhere on a command line.
const SECRETS: [&str; 5] = ["secret", "password", "token", "access_key", "account_key"];

/// Prefixes of parameters' names.
const PARAMETERS: [&str; 7] = ["config.", "py.", "rest.", "sm.", "soma.", "ssl.", "vfs."];

/// Whether the value of a parameter, or of an environment variable for peers, may be recorded.
pub(super) fn is_recorded(key: &str) -> bool {
    let is_one = |known: &&str| match known.strip_suffix('.') {
        Some(_) => key.starts_with(*known),
        None => key == *known,
    };
    // Numbers of threads of other libraries, and settings of glibc's allocator.
    let is_variable = key.starts_with("MALLOC_") || key.ends_with("_NUM_THREADS");
    !looks_secret(key) && (is_variable || RECORDED.iter().any(is_one))
}

/// Whether `key`, in a place where no setting is expected, names a value that may be secret.
fn is_misplaced(key: &str) -> bool {
    let is_parameter = PARAMETERS.iter().any(|start| key.starts_with(start));
    looks_secret(key) || (is_parameter && !is_recorded(key))
}

/// Whether a name says that its value is a secret.
pub(super) fn looks_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRETS.iter().any(|word| key.contains(word))
}

/// Returns the value of a setting for a record: hidden, or without credentials.
pub fn recorded(key: &str, value: &str) -> String {
    if !is_recorded(key) {
        return HIDDEN.to_owned();
    }
    if value.contains("://") {
        return one_without_credentials(value);
    }
    // An endpoint may be written without its scheme.
    let is_endpoint = key.ends_with("endpoint") || key.ends_with("endpoint_override");
    if is_endpoint && value.contains(['@', '?']) {
        let whole = one_without_credentials(&format!("://{value}"));
        return whole.trim_start_matches("://").to_owned();
    }
    value.to_owned()
}

/// Returns `key=value` for a record. Hides a text without a `=`.
fn setting(text: &str) -> String {
    match text.split_once('=') {
        Some((key, value)) => format!("{key}={}", recorded(key, value)),
        None => HIDDEN.to_owned(),
    }
}

/// Returns the user's metadata for a record, without credentials.
pub(crate) fn noted(metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let value = |key: &str, value: &str| {
        if looks_secret(key) { HIDDEN.to_owned() } else { one_without_credentials(value) }
    };
    metadata.iter().map(|(key, text)| (key.clone(), value(key, text))).collect()
}

/// Returns the words of a command line for a record, without credentials.
pub(crate) fn command_words(words: &[String]) -> Vec<String> {
    let mut takes_setting = false;
    let mut recorded = Vec::with_capacity(words.len());
    for word in words {
        let (flag, value) = word.split_once('=').unwrap_or((word, ""));
        recorded.push(if takes_setting {
            setting(word)
        } else if TAKE_SETTINGS.contains(&flag) && word.contains('=') {
            format!("{flag}={}", setting(value))
        } else if is_misplaced(flag) && word.contains('=') {
            format!("{flag}={HIDDEN}")
        } else {
            one_without_credentials(word)
        });
        takes_setting = !takes_setting && TAKE_SETTINGS.contains(&word.as_str());
    }
    recorded
}

/// Returns the first word of a command line with a hidden part, in its recorded form.
pub fn first_hidden(words: &[String]) -> Option<String> {
    let recorded = command_words(words);
    recorded
        .into_iter()
        .zip(words)
        .find_map(|(recorded, word)| (recorded != *word).then_some(recorded))
}

/// Finds the settings among the words of a command line.
pub(super) fn of_words(words: &[String]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (idx, word) in words.iter().enumerate() {
        let before = idx.checked_sub(1).and_then(|idx| words.get(idx));
        let follows = before.is_some_and(|flag| TAKE_SETTINGS.contains(&flag.as_str()));
        let joined = word.split_once('=').filter(|(flag, _)| TAKE_SETTINGS.contains(flag));
        let text = if follows { Some(word.as_str()) } else { joined.map(|(_, text)| text) };
        if let Some(text) = text {
            // Without a name, the whole text may be a secret.
            found.push(text.split_once('=').unwrap_or(("", text)));
        } else if let Some((key, value)) = word.split_once('=').filter(|(key, _)| is_misplaced(key))
        {
            found.push((key, value));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_known_by_name_alone() {
        let check = |key: &str, value: &str, expect: &str| assert_eq!(recorded(key, value), expect);
        check("soma.init_buffer_bytes", "5", "5");
        check("vfs.s3.region", "eu-1", "eu-1");
        check("vfs.s3.endpoint_override", "a:b@minio:9000", "minio:9000");
        check("vfs.azure.blob_endpoint", "https://x.net/?sv=1&sig=2", "https://x.net/");
        check("vfs.azure.blob_endpoint", "https://x.net/?sig='2 3", "https://x.net/");
        check("vfs.s3.endpoint_override", "http://ada:pa'ss@minio", "http://minio");
        check("vfs.s3.endpoint_override", "ada:pa'ss@minio", "minio");
        check("MALLOC_MMAP_MAX_", "0", "0");
        for key in [
            "sm.encryption_key",
            "vfs.s3.custom_headers.x",
            "vfs.s3.aws_access_key_id",
            "vfs.s3.proxy_password",
            "vfs.azure.storage_sas_token",
            "vfs.gcs.service_account_key",
            "rest.token",
            "soma.new_token",
            "AWS_PROFILE",
            "sm.memory_budgets",
        ] {
            check(key, "x", HIDDEN);
        }
        assert_eq!(setting("sm.encryption_key=a=b"), "sm.encryption_key=***");
        assert_eq!(setting("whatever"), HIDDEN);
    }

    #[test]
    fn the_list_is_in_order_and_has_each_once() {
        assert!(RECORDED.is_sorted() && RECORDED.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_note_loses_the_credentials_of_its_addresses() {
        let check = |note: &str, expect: &str| {
            let metadata = [("source".to_owned(), note.to_owned())].into();
            assert_eq!(noted(&metadata)["source"], expect);
        };
        check("s3://ada:pa'ss@bucket/x", "s3://bucket/x");
        check("s3://bucket/x?sig=a 'b c'", "s3://bucket/x");
        check("http://a/b and s3://ada:pa'ss@c/d", "http://a/b and s3://c/d");
        check("a fast disk", "a fast disk");
    }

    #[test]
    fn a_command_keeps_what_it_is_typed_again_by() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let check = |typed: &str, expect: &str| {
            assert_eq!(command_words(&words(typed)).join(" "), expect);
        };
        check("sweep --uri s3://a:b@c/d?e -b 4x4", "sweep --uri s3://c/d -b 4x4");
        check("sweep --uri=s3://a@c/d -us3://a@c/e?f", "sweep --uri=s3://c/d -us3://c/e");
        check(
            "--config sm.encryption_key=x --config=rest.token=y --config soma.x=1",
            "--config sm.encryption_key=*** --config=rest.token=*** --config soma.x=1",
        );
        check("--config nonsense --peer-variable A=b", "--config *** --peer-variable A=***");
        check("sweep rest.username=x", "sweep rest.username=***");
        check("-M my_password=x -M disk=fast", "-M my_password=*** -M disk=fast");
        check("--config --config -q", "--config *** -q");
        check("--uri s3://ada:hunter'22@bucket/x -q", "--uri s3://bucket/x -q");
        let spaced = ["--uri=s3://ada:hunter 22@bucket/x?sig=\"a b".to_owned()];
        assert_eq!(command_words(&spaced), ["--uri=s3://bucket/x"]);
    }
}
