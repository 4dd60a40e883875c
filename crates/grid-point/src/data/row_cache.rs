//! The cache of decoded rows: its flag, and its settings.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use bytesize::ByteSize;
use soma_io::{ROW_CACHE_DEFAULT_BYTES, ROW_CACHE_FOLDER, ROW_CACHE_LIMIT};

use super::Data;

/// The folder of a cache of rows and its limit, as `DIR` or `DIR,SIZE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowCacheFlag {
    folder: PathBuf,
    limit: ByteSize,
}

impl FromStr for RowCacheFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (folder, limit) = match text.rsplit_once(',') {
            Some((folder, size)) => {
                let problem = |_| format!("{size:?} is not a size like 100GiB");
                (folder, size.parse().map_err(problem)?)
            }
            None => (text, ByteSize(ROW_CACHE_DEFAULT_BYTES)),
        };
        if folder.is_empty() {
            return Err("a folder is missing before the size".to_owned());
        }
        Ok(Self { folder: folder.into(), limit })
    }
}

impl RowCacheFlag {
    /// Returns the settings of TileDB's config for it. Fails if the path is not UTF-8.
    pub(super) fn settings(&self) -> anyhow::Result<[(String, String); 2]> {
        let folder = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let folder = folder.to_str().context("the path of --row-cache is not UTF-8")?;
        Ok([
            (ROW_CACHE_FOLDER, folder.to_owned()),
            (ROW_CACHE_LIMIT, self.limit.as_u64().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value)))
    }
}

impl Data {
    /// Returns the limit in bytes of the cache of rows, if there is one.
    pub(crate) fn row_cache_limit(&self) -> Option<u64> {
        self.config.get(ROW_CACHE_FOLDER).filter(|folder| !folder.is_empty())?;
        Some(match self.config.get(ROW_CACHE_LIMIT) {
            Some(limit) => limit.parse().ok()?,
            None => ROW_CACHE_DEFAULT_BYTES,
        })
    }

    /// Returns the data read without a cache of rows.
    #[must_use]
    pub fn without_row_cache(mut self) -> Self {
        self.config.retain(|name, _| name != ROW_CACHE_FOLDER && name != ROW_CACHE_LIMIT);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_becomes_settings() {
        let flag: RowCacheFlag = "/cache/of,rows,2MiB".parse().unwrap();
        let config = flag.settings().unwrap().into();
        let data = Data { config, ..Data::default() };
        assert_eq!(data.config[ROW_CACHE_FOLDER], "/cache/of,rows");
        assert_eq!(data.row_cache_limit(), Some(2 << 20));
        let plain = data.without_row_cache();
        assert_eq!((plain.row_cache_limit(), plain.config.len()), (None, 0));
        let flag: RowCacheFlag = "here".parse().unwrap();
        let [(_, folder), (_, limit)] = flag.settings().unwrap();
        assert!(folder.ends_with("/here") && limit == (32_u64 << 30).to_string());
        for (bad, problem) in
            [("here,much", "like 100GiB"), (",1GiB", "folder is missing"), ("", "folder")]
        {
            let error = bad.parse::<RowCacheFlag>().unwrap_err();
            assert!(error.contains(problem), "{bad}: {error}");
        }
    }
}
