//! Texts encoded here value by value come back; damage is an error.

use proptest::prelude::*;

use super::*;

/// Encodes texts as the specification has it, with numbers of `width` bytes.
fn encode(texts: &[&str], coding: Coding, width: usize) -> (Vec<u8>, Vec<u8>) {
    let number = |n: usize| n.to_be_bytes()[8 - width..].to_vec();
    let mut data = Vec::new();
    let mut dictionary: Vec<&str> = Vec::new();
    match coding {
        Coding::RunLengths => {
            for run in texts.chunk_by(|a, b| a == b) {
                data.extend(number(run.len()));
                data.extend(number(run[0].len()));
                data.extend(run[0].as_bytes());
            }
        }
        Coding::Dictionary => {
            for text in texts {
                let known = dictionary.iter().position(|word| word == text);
                let code = known.unwrap_or(dictionary.len());
                if known.is_none() {
                    dictionary.push(text);
                }
                data.extend(number(code));
            }
        }
    }
    let lengths = [0, 1, texts.concat().len(), data.len(), texts.len() * 8];
    let mut metadata: Vec<u8> =
        lengths.into_iter().flat_map(|len| (len as u32).to_le_bytes()).collect();
    metadata.extend([width as u8; 2]);
    if coding == Coding::Dictionary {
        let words: Vec<u8> = dictionary
            .iter()
            .flat_map(|word| [number(word.len()), word.as_bytes().to_vec()].concat())
            .collect();
        metadata.extend((words.len() as u32).to_le_bytes());
        metadata.extend(words);
    }
    (metadata, data)
}

fn filter(coding: Coding) -> Filter {
    match coding {
        Coding::RunLengths => Filter::Compress(Codec::Rle, -1),
        Coding::Dictionary => Filter::Dictionary,
    }
}

fn pipeline(coding: Coding) -> TextPipeline {
    bind_texts(&[filter(coding)], Datatype::UTF8, UTF8).unwrap().unwrap()
}

fn decode(
    coding: Coding,
    (metadata, data): (&[u8], &[u8]),
    (original_len, n_texts): (usize, usize),
) -> Result<Texts, Fault> {
    pipeline(coding).decode(Filtered { original_len, metadata, data }, n_texts)
}

fn any_coding() -> impl Strategy<Value = Coding> {
    prop_oneof![Just(Coding::RunLengths), Just(Coding::Dictionary)]
}

proptest! {
    #[test]
    fn texts_come_back(
        texts in prop::collection::vec("[ab]{0,2}", 1..60),
        coding in any_coding(),
        width in prop_oneof![Just(1_usize), Just(2), Just(4), Just(8)],
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (metadata, data) = encode(&texts, coding, width);
        let whole = texts.concat();
        let found = decode(coding, (&metadata, &data), (whole.len(), texts.len())).unwrap();
        prop_assert_eq!(&found.bytes, whole.as_bytes());
        let found: Vec<&[u8]> =
            found.offsets.windows(2).map(|pair| &found.bytes[pair[0]..pair[1]]).collect();
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        prop_assert_eq!(found, texts);
    }

    #[test]
    fn damage_is_an_error_or_other_texts_of_the_same_size(
        texts in prop::collection::vec("[ab]{0,2}", 1..40),
        coding in any_coding(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (mut metadata, mut data) = encode(&texts, coding, 1);
        let at = at.index(metadata.len() + data.len());
        let n = metadata.len();
        let (part, at) = if at < n { (&mut metadata, at) } else { (&mut data, at - n) };
        if cut { part.truncate(at) } else { part[at] = byte }
        let sizes = (texts.concat().len(), texts.len());
        if let Ok(found) = decode(coding, (&metadata, &data), sizes) {
            prop_assert_eq!((found.bytes.len(), found.offsets.len() - 1), sizes);
            prop_assert!(found.offsets.is_sorted());
        }
    }
}

/// A few bytes claim more texts, or longer ones, than memory has room for.
#[test]
fn claims_are_checked_before_memory_is_requested() {
    let (metadata, mut data) = encode(&["ab"; 3], Coding::RunLengths, 8);
    data[..8].copy_from_slice(&(u64::MAX / 4).to_be_bytes());
    let fault = decode(Coding::RunLengths, (&metadata, &data), (6, 3)).unwrap_err();
    assert!(fault.what.contains("instead of 3 of 6"), "{}", fault.what);
    let (metadata, data) = encode(&["ab"; 3], Coding::Dictionary, 1);
    let fault = decode(Coding::Dictionary, (&metadata, &data), (1 << 40, 3)).unwrap_err();
    assert!(fault.what.contains("6 bytes of texts"), "{}", fault.what);
    let (mut metadata, data) = encode(&["a", "b"], Coding::Dictionary, 1);
    metadata[20..22].copy_from_slice(&[3, 1]);
    let fault = decode(Coding::Dictionary, (&metadata, &data), (2, 2)).unwrap_err();
    assert!(fault.what.contains("are 3"), "{}", fault.what);
}

#[test]
fn pipelines_that_libtiledb_does_not_write_are_declined() {
    let zstd = Filter::Compress(Codec::Zstd, 3);
    let bound = |filters: &[Filter], datatype, version| bind_texts(filters, datatype, version);
    let rle = || filter(Coding::RunLengths);
    assert_eq!(bound(std::slice::from_ref(&zstd), Datatype::UTF8, 22), Ok(None));
    assert_eq!(bound(&[rle()], Datatype::UINT8, 22), Ok(None));
    assert!(bound(&[Filter::Dictionary, zstd.clone()], Datatype::UTF8, 17).unwrap().is_some());
    assert!(bound(&[Filter::Dictionary], Datatype::UTF8, 16).is_err());
    assert!(bound(&[rle()], Datatype::ASCII, 12).unwrap().is_some());
    assert!(bound(&[rle()], Datatype::ASCII, 11).is_err());
    assert!(bound(&[zstd, Filter::Dictionary], Datatype::UTF8, 22).is_err());
    assert!(bound(&[Filter::Dictionary, rle()], Datatype::UTF8, 22).is_err());
    assert!(bound(&[Filter::Dictionary, Filter::PositiveDelta], Datatype::UTF8, 22).is_err());
}
