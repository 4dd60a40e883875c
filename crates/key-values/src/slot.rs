//! Keys and their hash slots.

use std::fmt;

use crate::error::Error;

/// Number of hash slots of a cluster.
pub(crate) const N_SLOTS: usize = 16_384;

/// Longest namespace. It is a part of every key, so it should be short: a server keeps a key of up
/// to 14 bytes in 16, one of up to 22 in 24.
const LONGEST_NAMESPACE: usize = 40;

/// Bytes of the longest key: namespace, colon, and the digits of the largest number.
const LONGEST_KEY: usize = LONGEST_NAMESPACE + 1 + 20;

/// Name of the manifest's key after the colon.
const MANIFEST: &str = "manifest";

/// What a key of the namespace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// The value with this number.
    Value(u64),
    /// The description of the data set.
    Manifest,
}

/// The first part of all keys of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace {
    name: String,
    /// Checksum of the name and the colon, with which the checksums of all keys begin.
    checksum: u16,
}

/// A key as the server has it, and its slot.
#[derive(Clone, Copy)]
pub(crate) struct KeyText {
    bytes: [u8; LONGEST_KEY],
    n_bytes: usize,
    pub(crate) slot: u16,
}

impl KeyText {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.n_bytes]
    }
}

impl Namespace {
    /// Letters, digits, `_`, `-` and `.`: nothing that SCAN's patterns or hash tags give a meaning.
    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"_-.".contains(&c);
        if name.is_empty() || LONGEST_NAMESPACE < name.len() || !name.bytes().all(is_plain) {
            return Err(Error::Spec {
                what: format!("namespace `{name}`"),
                problem: format!(
                    "it must be 1 to {LONGEST_NAMESPACE} letters, digits or any of _ - ."
                ),
            });
        }
        let checksum = checksum(checksum(0, name.as_bytes()), b":");
        Ok(Self { name: name.to_owned(), checksum })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The server's key and its slot.
    pub(crate) fn key(&self, key: Key) -> KeyText {
        let mut text = KeyText { bytes: [0; LONGEST_KEY], n_bytes: 0, slot: 0 };
        text.append(self.name.as_bytes());
        text.append(b":");
        let start = text.n_bytes;
        match key {
            Key::Value(number) => text.append_number(number),
            Key::Manifest => text.append(MANIFEST.as_bytes()),
        }
        let checksum = checksum(self.checksum, &text.bytes[start..text.n_bytes]);
        text.slot = checksum % N_SLOTS as u16;
        text
    }

    /// A pattern of SCAN that all keys of the namespace match.
    pub(crate) fn pattern(&self) -> String {
        format!("{}:*", self.name)
    }

    /// The key whose text this is; `None` if the text is not one that [`key`](Self::key) makes.
    pub(crate) fn parse(&self, text: &[u8]) -> Option<Key> {
        let rest = text.strip_prefix(self.name.as_bytes())?.strip_prefix(b":")?;
        let rest = std::str::from_utf8(rest).ok()?;
        if rest == MANIFEST {
            return Some(Key::Manifest);
        }
        let number = rest.parse().ok()?;
        // `+1` and `007` are numbers, but not keys.
        (self.key(Key::Value(number)).as_bytes() == text).then_some(Key::Value(number))
    }

    /// The key as shown in an error.
    pub(crate) fn show(&self, key: Key) -> String {
        String::from_utf8_lossy(self.key(key).as_bytes()).into_owned()
    }
}

impl KeyText {
    fn append(&mut self, bytes: &[u8]) {
        self.bytes[self.n_bytes..self.n_bytes + bytes.len()].copy_from_slice(bytes);
        self.n_bytes += bytes.len();
    }

    fn append_number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.append(&digits[at..]);
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

/// Continues a CRC16 with the polynomial 0x1021, as the cluster specification defines it.
fn checksum(start: u16, bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .fold(start, |crc, byte| (crc << 8) ^ CHECKSUMS[usize::from((crc >> 8) as u8 ^ byte)])
}

/// Checksums of single bytes.
const CHECKSUMS: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_specified_one() {
        // The value in the cluster specification, appendix A.
        assert_eq!(checksum(0, b"123456789"), 0x31C3);
        assert_eq!(checksum(checksum(0, b"12345"), b"6789"), 0x31C3);
    }

    #[test]
    fn keys_are_parsed_back() {
        let namespace = Namespace::new("dna-1.0").unwrap();
        for number in [0, 7, 130_945, u64::MAX] {
            let text = namespace.key(Key::Value(number));
            assert_eq!(text.as_bytes(), format!("dna-1.0:{number}").as_bytes());
            assert_eq!(text.slot, checksum(0, text.as_bytes()) % 16_384);
            assert_eq!(namespace.parse(text.as_bytes()), Some(Key::Value(number)));
        }
        let manifest = namespace.key(Key::Manifest);
        assert_eq!(manifest.as_bytes(), b"dna-1.0:manifest");
        assert_eq!(namespace.parse(manifest.as_bytes()), Some(Key::Manifest));
        for foreign in ["dna-1.0:007", "dna-1.0:+1", "dna-1.0:x", "dna-1.0:", "dna:1", "dna-1.01:1"]
        {
            assert_eq!(namespace.parse(foreign.as_bytes()), None, "{foreign}");
        }
    }

    #[test]
    fn a_namespace_has_no_special_characters() {
        for name in ["", "a b", "a:b", "a{b}", "a*", "ä", &"x".repeat(41)] {
            let error = Namespace::new(name).unwrap_err().to_string();
            assert!(error.contains("namespace"), "{error}");
        }
        let longest = Namespace::new(&"x".repeat(40)).unwrap();
        assert_eq!(longest.key(Key::Value(u64::MAX)).as_bytes().len(), LONGEST_KEY);
    }

    #[test]
    fn numbers_spread_over_all_slots() {
        let namespace = Namespace::new("s").unwrap();
        let mut counts = vec![0_u32; N_SLOTS];
        (0..130_946).for_each(|i| counts[usize::from(namespace.key(Key::Value(i)).slot)] += 1);
        // Each third of the slots has a third of the keys, within one in a hundred.
        for third in counts.chunks(N_SLOTS.div_ceil(3)) {
            let n_keys: u32 = third.iter().sum();
            assert!((43_200..44_100).contains(&n_keys), "{n_keys}");
        }
    }
}
