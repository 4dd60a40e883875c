//! Fetches chunks from a storage that answers late, many at a time.

use std::io;

use storage::{FailedPiece, Piece, Storage};

use crate::chunk_files::ChunkFile;
use crate::error::Cause;
use crate::memory::zeroed;

/// The bytes of a file, or of a part of it; `None` if the file does not exist.
type FetchedFile = io::Result<Option<Vec<u8>>>;

/// The files, or parts of them, in their order; `None` for files that do not exist. An error of
/// parts, which are read together, comes with the place of the part among `files`.
pub(crate) fn fetch_all(
    storage: &dyn Storage,
    files: &[&ChunkFile],
) -> Result<Vec<FetchedFile>, (usize, Cause)> {
    let names = files.iter().filter(|file| file.in_shard.is_none());
    let names: Vec<&str> = names.map(|file| file.file.as_str()).collect();
    let mut whole = storage.read_files(&names).into_iter();
    let (places, pieces): (Vec<usize>, Vec<Piece<'_>>) = files
        .iter()
        .enumerate()
        .filter_map(|(at, file)| {
            let range = file.in_shard.as_ref()?.range.clone();
            Some((at, Piece { file: &file.file, range }))
        })
        .unzip();
    let parts = read_pieces(storage, &pieces);
    let mut parts = parts
        .map_err(|(at, error)| (places.get(at).copied().unwrap_or(0), error.into()))?
        .into_iter();
    let absent = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let each = files.iter().map(|file| {
        if file.in_shard.is_some() {
            return parts.next().ok_or_else(absent).map(Some);
        }
        match whole.next().unwrap_or_else(|| Err(absent())) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    });
    Ok(each.collect())
}

/// Reads pieces together, each into its own buffer. An error comes with the place of its piece.
pub(crate) fn read_pieces(
    storage: &dyn Storage,
    pieces: &[Piece<'_>],
) -> Result<Vec<Vec<u8>>, (usize, io::Error)> {
    let len = |piece: &Piece<'_>| (piece.range.end - piece.range.start) as usize;
    let mut all = zeroed(pieces.iter().map(len).sum()).map_err(|error| (0, error))?;
    storage.read(pieces, &mut all).map_err(|error| (failed_at(pieces, &error), error))?;
    let mut rest = all.as_slice();
    let each = pieces.iter().map(|piece| {
        let (bytes, after) = rest.split_at(len(piece));
        rest = after;
        bytes.to_vec()
    });
    Ok(each.collect())
}

/// The place of the piece that failed; the first if the storage does not say.
fn failed_at(pieces: &[Piece<'_>], error: &io::Error) -> usize {
    let failed = error.get_ref().and_then(|inner| inner.downcast_ref::<FailedPiece>());
    let is_it = |piece: &Piece<'_>, failed: &FailedPiece| {
        piece.file == failed.file
            && piece.range.start < failed.range.end
            && failed.range.start < piece.range.end
    };
    failed.and_then(|failed| pieces.iter().position(|piece| is_it(piece, failed))).unwrap_or(0)
}
