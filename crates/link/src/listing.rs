//! `ListObjectsV2`: the keys below a prefix, page by page.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::BUCKET;
use crate::files::{Facts, Folder, metadata};
use crate::request_path::{decoded, is_below, parameter};

/// The most keys of a page, and their number if the request names none.
const PAGE_KEYS: usize = 1000;

/// A request for a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListRequest {
    prefix: String,
    /// Whether keys with a `/` behind the prefix are given as their folder.
    by_folder: bool,
    /// Only keys greater than this one.
    after: String,
    most: usize,
}

impl ListRequest {
    /// The list that a query asks for; `None` if it asks for another delimiter than `/`, or is not
    /// UTF-8.
    pub(crate) fn of_query(query: &str) -> Option<Self> {
        decoded(query)?;
        let text = |name: &str| parameter(query, name).unwrap_or_default();
        let delimiter = text("delimiter");
        if !["", "/"].contains(&delimiter.as_str()) {
            return None;
        }
        let most = text("max-keys").parse().unwrap_or(PAGE_KEYS).min(PAGE_KEYS);
        // A token is the last key of the page before.
        let after = text("start-after").max(text("continuation-token"));
        Some(Self { prefix: text("prefix"), by_folder: !delimiter.is_empty(), after, most })
    }
}

/// A file, or a folder, whose key ends with `/`.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    key: String,
    /// `None` for a folder.
    facts: Option<Facts>,
}

/// The list as S3 writes it.
pub(crate) fn list(folder: &Folder, request: &ListRequest) -> io::Result<String> {
    let mut all = Vec::new();
    // Folders of the prefix; the rest of it is the beginning of a name.
    let base = request.prefix.rfind('/').map_or("", |at| &request.prefix[..at]);
    if base.is_empty() {
        collect_all(folder, request, &mut all)?;
    } else if is_below(base)
        && let Ok(path) = folder.path(base)
    {
        collect(folder, &path, &format!("{base}/"), request, &mut all)?;
    }
    all.retain(|listed| request.after < listed.key);
    all.sort_by(|a, b| a.key.cmp(&b.key));
    let is_truncated = 0 < request.most && request.most < all.len();
    all.truncate(request.most);
    Ok(xml(request, &all, is_truncated))
}

/// Adds the whole folder, or its name.
fn collect_all(folder: &Folder, request: &ListRequest, into: &mut Vec<Listed>) -> io::Result<()> {
    if folder.name().is_empty() {
        return collect(folder, folder.root(), "", request, into);
    }
    let key = format!("{}/", folder.name());
    if !key.starts_with(&request.prefix) {
        return Ok(());
    }
    if request.by_folder {
        into.push(Listed { key, facts: None });
        return Ok(());
    }
    collect(folder, folder.root(), &key, request, into)
}

/// Adds the files below `path`, whose keys begin with `base`.
fn collect(
    folder: &Folder,
    path: &Path,
    base: &str,
    request: &ListRequest,
    into: &mut Vec<Listed>,
) -> io::Result<()> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let key = format!("{base}{name}");
        // A link that leads nowhere or out of the folder, or a file that was removed meanwhile.
        let Ok(metadata) = folder.path(&key).and_then(|path| metadata(&path)) else {
            continue;
        };
        if metadata.is_file() && key.starts_with(&request.prefix) {
            into.push(Listed { key, facts: Some(Facts::from_metadata(&metadata)) });
        } else if metadata.is_dir() {
            let key = format!("{key}/");
            let is_wanted = key.starts_with(&request.prefix);
            if is_wanted && request.by_folder {
                into.push(Listed { key, facts: None });
            } else if is_wanted && !entry.file_type()?.is_symlink() {
                collect(folder, &entry.path(), &key, request, into)?;
            }
        }
    }
    Ok(())
}

fn xml(request: &ListRequest, listed: &[Listed], is_truncated: bool) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>{BUCKET}</Name>\
         <Prefix>{}</Prefix><KeyCount>{}</KeyCount><MaxKeys>{}</MaxKeys>\
         <IsTruncated>{is_truncated}</IsTruncated>",
        escaped(&request.prefix),
        listed.len(),
        request.most,
    );
    if let Some(last) = listed.last().filter(|_| is_truncated) {
        let token = escaped(&last.key);
        let _ = write!(text, "<NextContinuationToken>{token}</NextContinuationToken>");
    }
    for Listed { key, facts } in listed {
        let key = escaped(key);
        // Writing to a text cannot fail.
        let _ = match facts {
            None => write!(text, "<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
            Some(facts) => write!(
                text,
                "<Contents><Key>{key}</Key><LastModified>{}</LastModified><ETag>{}</ETag>\
                 <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
                facts.list_date(),
                escaped(&facts.etag()),
                facts.size,
            ),
        };
    }
    text.push_str("</ListBucketResult>");
    text
}

/// `text` as the content of an XML element.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(folder: &Folder, query: &str) -> (Vec<String>, bool) {
        let text = list(folder, &ListRequest::of_query(query).unwrap()).unwrap();
        let values = |name: &str| -> Vec<String> {
            let (open, close) = (format!("<{name}>"), format!("</{name}>"));
            let ends = text.split(&open).skip(1).filter_map(|rest| rest.split_once(&close));
            ends.map(|(value, _)| value.to_owned()).collect()
        };
        let mut all = values("Key");
        all.extend(values("CommonPrefixes"));
        (all, values("IsTruncated") == ["true"])
    }

    #[test]
    fn lists_are_by_folder_or_deep_and_in_pages() {
        let root = tempfile::tempdir().unwrap();
        for file in ["a/c/0", "a/c/1", "a/zarr.json", "ab", "b&c"] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let folder = Folder::new(root.path(), "").unwrap();
        let all = |query| keys(&folder, query);
        let deep = ["a/c/0", "a/c/1", "a/zarr.json", "ab", "b&amp;c"];
        assert_eq!(all("list-type=2").0, deep);
        assert_eq!(all("prefix=a%2F").0, deep[..3]);
        assert_eq!(all("prefix=a").0, deep[..4]);
        assert_eq!(all("prefix=a/z").0, deep[2..3]);
        assert_eq!(all("prefix=a/&delimiter=/").0, ["a/zarr.json", "<Prefix>a/c/</Prefix>"]);
        assert_eq!(all("prefix=absent/").0, [""; 0]);
        assert_eq!(all("prefix=../").0, [""; 0]);
        assert_eq!(
            all("max-keys=2"),
            (deep[..2].iter().map(|key| (*key).to_owned()).collect(), true)
        );
        assert_eq!(all("max-keys=2&continuation-token=a%2Fc%2F1").0, deep[2..4]);
        assert_eq!(all("max-keys=0"), (Vec::new(), false));
        let named = Folder::new(root.path(), "data").unwrap();
        let all = |query| keys(&named, query).0;
        assert_eq!(all("prefix=data/a/z"), ["data/a/zarr.json"]);
        assert_eq!(
            all("prefix=data/a/&delimiter=/"),
            ["data/a/zarr.json", "<Prefix>data/a/c/</Prefix>"]
        );
        assert_eq!(all("delimiter=/"), ["<Prefix>data/</Prefix>"]);
        assert_eq!(all("prefix=data/"), deep.map(|key| format!("data/{key}")));
        assert_eq!(all("prefix=da"), all("prefix=data/"));
        assert_eq!(all("prefix=a/"), [""; 0]);
        assert!(ListRequest::of_query("delimiter=x").is_none());
        assert!(ListRequest::of_query("prefix=%ff").is_none());
    }
}
