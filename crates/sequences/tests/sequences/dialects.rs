//! Files as many programs write them: random records in random dialects come back as they were, and
//! random lines are read as a plain parser reads them, or refused as it refuses them.
//!
//! `PROPTEST_CASES=100000 cargo test -p somafeed-sequences dialects` tries many.

use std::io::Write as _;

use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::select;
use sequences::{Error, RecordFormat, RecordReader};

type Records = Vec<(String, String)>;

fn read(bytes: &[u8]) -> Result<Records, Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let mut reader = RecordReader::open(file.path())?;
    let mut records = Records::new();
    while let Some(record) = reader.next_record()? {
        let [letters, name] =
            [record.letters, record.name].map(|of| String::from_utf8_lossy(of).into_owned());
        records.push((letters, name));
    }
    Ok(records)
}

/// How a program writes text.
#[derive(Debug, Clone)]
struct Dialect {
    format: RecordFormat,
    /// Letters of a line; not of the format that has a line for each record.
    width: usize,
    line_end: &'static str,
    /// Blanks before the end of a line.
    trailing: &'static str,
    /// Blanks after every third letter.
    within: &'static str,
    /// After names.
    description: &'static str,
    /// Before the first record.
    head: &'static str,
    /// Between lines of FASTA, and between records of FASTQ.
    between: &'static str,
    is_marked: bool,
    is_last_line_ended: bool,
}

prop_compose! {
    fn dialects()(
        format in select(&[RecordFormat::Lines, RecordFormat::Fasta, RecordFormat::Fastq][..]),
        width in prop_oneof![1_usize..12, Just(80)],
        line_end in select(&["\n", "\r\n", "\r"][..]),
        trailing in select(&["", "", " ", "\t", " \t \x0c"][..]),
        within in select(&["", "", " ", "\t"][..]),
        description in select(&["", " of some kind", "\t>x @y +z", " 1:N:0"][..]),
        head in select(&["", "", "\n", "; a comment\n", "\n#x\n \n!y\n"][..]),
        between in select(&["", "", "\n", " \n\n"][..]),
        is_marked in any::<bool>(),
        is_last_line_ended in any::<bool>(),
    ) -> Dialect {
        Dialect {
            format, width, line_end, trailing, within, description, head, between, is_marked,
            is_last_line_ended,
        }
    }
}

impl Dialect {
    fn write(&self, records: &Records) -> Vec<u8> {
        let mut text = String::new();
        if self.format != RecordFormat::Lines {
            text.push_str(self.head);
        }
        text.extend(records.iter().map(|(letters, name)| self.record(letters, name)));
        let mut text = text.replace('\n', &format!("{}{}", self.trailing, self.line_end));
        if !self.is_last_line_ended {
            text.truncate(text.trim_end().len());
        }
        let mark = if self.is_marked { "\u{feff}" } else { "" };
        format!("{mark}{text}").into_bytes()
    }

    fn record(&self, letters: &str, name: &str) -> String {
        let Self { within, description, between, .. } = self;
        // Qualities begin with characters that mean something at the start of other lines.
        let qualities: Vec<char> = "@+I>;#!,".chars().cycle().take(letters.len()).collect();
        let letters: Vec<char> = letters.chars().collect();
        let lines = |of: &[char], within: &str| -> Vec<String> {
            let threes = |line: &[char]| line.chunks(3).map(String::from_iter).collect::<Vec<_>>();
            of.chunks(self.width).map(|line| threes(line).join(within)).collect()
        };
        match self.format {
            RecordFormat::Lines => {
                let letters = letters.chunks(3).map(String::from_iter).collect::<Vec<_>>();
                format!("{},{name}\n", letters.join(within))
            }
            RecordFormat::Fasta => {
                let comment = if between.is_empty() { "" } else { "; >a comment\n" };
                let letters = lines(&letters, within).join(&format!("\n{between}{comment}"));
                format!(">{name}{description}\n{letters}\n{between}")
            }
            RecordFormat::Fastq => {
                let [letters, qualities] =
                    [lines(&letters, within), lines(&qualities, "")].map(|lines| lines.join("\n"));
                format!("@{name}{description}\n{letters}\n+\n{qualities}\n{between}")
            }
        }
    }
}

/// How a file is compressed, and where a new member begins.
#[derive(Debug, Clone, Copy)]
enum Compression {
    None,
    Gzip { n_zeros: usize },
    Bgzip { n_zeros: usize },
    Bzip2,
    Zstd,
}

fn compressions() -> impl Strategy<Value = Compression> {
    prop_oneof![
        Just(Compression::None),
        (0_usize..600).prop_map(|n_zeros| Compression::Gzip { n_zeros }),
        (0_usize..600).prop_map(|n_zeros| Compression::Bgzip { n_zeros }),
        Just(Compression::Bzip2),
        Just(Compression::Zstd),
    ]
}

impl Compression {
    /// Compresses two parts, each by itself.
    fn compress(self, parts: [&[u8]; 2]) -> Vec<u8> {
        match self {
            Self::None => parts.concat(),
            Self::Gzip { n_zeros } => parts.map(|part| padded(gzip(part), n_zeros)).concat(),
            Self::Bgzip { n_zeros } => padded(bgzip(parts), n_zeros),
            Self::Bzip2 => parts.map(bzip2).concat(),
            Self::Zstd => parts.map(|part| zstd::encode_all(part, 1).unwrap()).concat(),
        }
    }
}

fn gzip(part: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(part).unwrap();
    gzip.finish().unwrap()
}

fn bgzip(parts: [&[u8]; 2]) -> Vec<u8> {
    let mut bgzip = noodles_bgzf::io::Writer::new(Vec::new());
    for part in parts {
        bgzip.write_all(part).unwrap();
        bgzip.flush().unwrap();
    }
    bgzip.finish().unwrap()
}

fn bzip2(part: &[u8]) -> Vec<u8> {
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(part).unwrap();
    bzip2.finish().unwrap()
}

fn padded(mut bytes: Vec<u8>, n_zeros: usize) -> Vec<u8> {
    bytes.resize(bytes.len() + n_zeros, 0);
    bytes
}

/// Reads text in the plainest way: all lines at once, one after another.
fn oracle(text: &str) -> Option<Records> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = text.lines().map(|line| line.trim_start_matches('\u{feff}')).collect();
    let is_blank = |letter: char| letter.is_ascii_whitespace();
    let lines: Vec<&str> = lines.into_iter().map(|line| line.trim_matches(is_blank)).collect();
    let is_before = |line: &&&str| line.is_empty() || line.starts_with([';', '#', '!']);
    let n_before = lines.iter().take_while(is_before).count();
    let full: Vec<&str> = lines.iter().skip(n_before).copied().filter(|l| !l.is_empty()).collect();
    let records = match full.first() {
        None => return Some(Vec::new()),
        Some(line) if line.starts_with('>') => fasta(&full)?,
        Some(line) if line.starts_with('@') => fastq(&full)?,
        Some(_) if 0 < n_before || full.len() < lines.len() => return None,
        Some(_) => full
            .iter()
            .map(|line| line.split_once(',').map(|(a, b)| (compact(a), b.trim().to_owned())))
            .collect::<Option<Records>>()?,
    };
    let is_whole = |(letters, name): &(String, String)| {
        !name.is_empty() && !letters.is_empty() && letters.chars().all(|of| of.is_ascii_graphic())
    };
    records.iter().all(is_whole).then_some(records)
}

fn compact(letters: &str) -> String {
    letters.split_ascii_whitespace().collect()
}

fn name(title: &str) -> String {
    title[1..].split_ascii_whitespace().next().unwrap_or_default().to_owned()
}

fn fasta(lines: &[&str]) -> Option<Records> {
    let mut records = Records::new();
    for line in lines.iter().filter(|line| !line.starts_with(';')) {
        if line.starts_with('>') {
            records.push((String::new(), name(line)));
        } else if line.contains('>') || line.starts_with(['#', '!']) {
            return None;
        } else {
            records.last_mut()?.0 += &compact(line);
        }
    }
    Some(records)
}

fn fastq(mut lines: &[&str]) -> Option<Records> {
    let mut records = Records::new();
    while let Some((title, rest)) = lines.split_first() {
        let plus = rest.iter().position(|line| line.starts_with('+'))?;
        let is_wrong = |line: &&str| line.starts_with('@');
        if !title.starts_with('@') || rest[..plus].iter().any(is_wrong) {
            return None;
        }
        let letters = compact(&rest[..plus].concat());
        lines = &rest[plus + 1..];
        let (mut n_qualities, mut n_lines) = (0, 0);
        while n_qualities < letters.len() {
            n_qualities += compact(lines.get(n_lines)?).len();
            n_lines += 1;
        }
        if n_qualities != letters.len() || (plus == 1 && n_lines != 1) {
            return None;
        }
        lines = &lines[n_lines..];
        records.push((letters, name(title)));
    }
    Some(records)
}

const LINES: [&str; 26] = [
    "", " ", "; c", "#c", "!c", ">a", ">b c", "> d", ">", "@a", "@b\tc", "@", "ACG", "AC G ", "A",
    "AC>G", "AC\u{a0}", "acgtn-*.", "+", "+a", "III", "@II", "+I", "ACG,a", "A,b c ", ",x",
];

proptest! {
    #[test]
    fn records_come_back_in_every_dialect(
        records in proptest::collection::vec(("[ACGTNacgt*-]{1,40}", "[A-Za-z0-9_|:.]{1,8}"), 1..6),
        dialect in dialects(),
        compression in compressions(),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = dialect.write(&records);
        let parts = text.split_at(cut.index(text.len() + 1));
        let bytes = compression.compress([parts.0, parts.1]);
        prop_assert_eq!(read(&bytes).unwrap(), records, "{:?}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn lines_are_read_as_a_plain_parser_reads_them(
        lines in proptest::collection::vec((select(&LINES[..]), any::<bool>()), 0..14),
        line_end in select(&["\n", "\r\n", "\r"][..]),
        is_last_line_ended in any::<bool>(),
    ) {
        let marked = |(line, is_marked): &(&str, bool)| {
            format!("{}{line}", if *is_marked { "\u{feff}" } else { "" })
        };
        let mut text = lines.iter().map(marked).collect::<Vec<_>>().join(line_end);
        if is_last_line_ended {
            text.push_str(line_end);
        }
        prop_assert_eq!(read(text.as_bytes()).ok(), oracle(&text), "{:?}", text);
    }

    /// What is left of a damaged file is an error, or records that are none the worse for it.
    #[test]
    fn damaged_files_end_in_errors_or_records(
        text in "[>@+;#AC,x \r\n]{0,60}",
        compression in compressions(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = compression.compress([text.as_bytes(), b"\n>a\nACGT\n"]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for (letters, name) in read(&bytes).unwrap_or_default() {
            prop_assert!(!letters.is_empty() && letters.bytes().all(|of| of.is_ascii_graphic()));
            prop_assert!(!name.is_empty() && !name.contains(['\0', '\n', '\r']));
        }
    }
}

/// The inputs of bug reports.
#[test]
fn what_failed_once_is_read() {
    let one = |letters: &str| vec![(letters.to_owned(), "one".to_owned())];
    for (text, letters) in [
        (">one\nACG \nTAC\n", "ACGTAC"),
        ("\n>one\nACGT\n", "ACGT"),
        ("\u{feff}>one\nACGT\n", "ACGT"),
        ("\u{feff}ACGT,one\n", "ACGT"),
        ("; Pearson's\n>one\nACGT\n", "ACGT"),
        ("@one\nACG\nTAC\n+\nIII\nIII\n", "ACGTAC"),
        (">one\rACG\rTAC\r", "ACGTAC"),
    ] {
        assert_eq!(read(text.as_bytes()).unwrap(), one(letters), "{text:?}");
    }
}
