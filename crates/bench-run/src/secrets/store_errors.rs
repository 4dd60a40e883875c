//! Hides key and session in object stores' error bodies, which name the signer of the request.

use super::HIDDEN;

/// Parts of the names of XML elements that identify the signer, in lower case.
const SIGNERS: [&str; 3] = ["accesskey", "signature", "token"];

/// Hides the content of elements like `<AWSAccessKeyId>` and `<Token-0>` in `text`. A store's
/// client may assume a role by itself, whose keys and tokens `Secrets` does not contain.
pub(super) fn without_signers(text: &str) -> String {
    let (mut kept, mut left) = (String::with_capacity(text.len()), text);
    while let Some(start) = left.find('<') {
        let after = &left[start + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let name = &after[..after.find(|c| !is_name(c)).unwrap_or(after.len())];
        let lower = name.to_ascii_lowercase();
        let content = match after[name.len()..].strip_prefix('>') {
            Some(content) if SIGNERS.iter().any(|part| lower.contains(part)) => content,
            _ => {
                kept.push_str(&left[..=start]);
                left = after;
                continue;
            }
        };
        kept.push_str(&left[..left.len() - content.len()]);
        // A message that is cut to a line may lack the closing tag.
        let end = content.find('<').unwrap_or(content.len());
        if 0 < end {
            kept.push_str(HIDDEN);
        }
        left = &content[end..];
    }
    kept.push_str(left);
    kept
}

#[cfg(test)]
mod tests {
    use super::without_signers;

    #[test]
    fn who_signed_is_left_out_of_a_stores_error() {
        let check = |text: &str, expect: &str| assert_eq!(without_signers(text), expect);
        check(
            "400: <Error><Code>ExpiredToken</Code><Token-0>ab/+=</Token-0><HostId>x</HostId></Error>",
            "400: <Error><Code>ExpiredToken</Code><Token-0>***</Token-0><HostId>x</HostId></Error>",
        );
        check("<AWSAccessKeyId>ASIA1</AWSAccessKeyId>", "<AWSAccessKeyId>***</AWSAccessKeyId>");
        check("<SignatureProvided>ab", "<SignatureProvided>***");
        check("<Token-0></Token-0> 1 < 2 <", "<Token-0></Token-0> 1 < 2 <");
        check("<token", "<token");
    }
}
