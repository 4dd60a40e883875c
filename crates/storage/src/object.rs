//! Files in an object store (S3, Google Cloud Storage, Azure, or any store of the crate
//! `object_store`), which answers late but many requests at a time.
//!
//! Requests run on a runtime of the storage's own, whose few named threads do nothing but wait and
//! copy. Callers block outside of it, so a call works from any thread, including those of another
//! runtime, and decoding stays with the caller. Announced ranges are fetched ahead ([`ahead`]).
//!
//! The storage measures latency and rates of its own requests ([`meter`]). From these it decides,
//! within [`ObjectOptions`], how many are under way, where long ranges are split, and which ranges
//! are read as one ([`pace`], [`join`]). A request that is late by the measured times is repeated;
//! the first answer counts, and the other request is cancelled ([`late`]).
//!
//! Every answer is checked to come from the version of its object that was read first
//! ([`versions`]). An object that is replaced while its data set is open is an error; bytes of two
//! versions are never mixed.
//!
//! Keys are not encoded: TileDB percent-encodes attribute names in some formats, and a second
//! encoding would miss those files.

mod ahead;
mod clock;
mod join;
mod late;
#[cfg(test)]
mod lies;
mod listing;
mod meter;
mod pace;
mod ranges;
mod request;
mod requests;
mod throttle;
mod versions;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::{Builder, Handle, Runtime};

use self::ahead::Source;
use self::join::join;
use self::request::Pending;
use self::requests::{Client, Requests, SentRequest};
use crate::storage::{
    Coalesce, Entry, Expected, FailedPiece, FileVersion, ListedFile, Piece, RequestCounts, Storage,
    too_large,
};

/// How long a dropped storage waits for its threads. Requests end as soon as they next wait for the
/// network.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The parameter for [`ObjectOptions::forbidden_is_missing`].
pub(crate) const FORBIDDEN_IS_MISSING: &str = "soma.forbidden_is_missing";

/// Requests for one file that are sent before more of it has arrived, at least.
const REST_REQUESTS: u64 = 16;

/// Bounds within which an [`ObjectStorage`] sends requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectOptions {
    /// Most requests under way at once.
    pub max_requests: usize,
    /// Most requests sent in a second, apart from short bursts. S3 allows 5,500 reads a second
    /// for each prefix, at least, and asks clients to slow down beyond that.
    pub max_requests_per_sec: u32,
    /// Most bytes of one request; longer ranges are requested in parts.
    pub request_bytes: u64,
    /// Ranges of one file are never read as one if more than this many bytes lie between them.
    pub gap_bytes: u64,
    /// Target bytes per call, which are decoded together.
    pub batch_bytes: u64,
    /// Most memory for ranges that are fetched ahead; 0 fetches nothing ahead. One large read
    /// may exceed this.
    pub prefetch_bytes: u64,
    /// Threads that wait for the network, decrypt and copy.
    pub n_threads: usize,
    /// Most tries of a list whose answer ends early. Other requests are repeated by the store.
    pub list_tries: usize,
    /// No try of a list begins later than this after the first.
    pub retry_limit: Duration,
    /// The answer 403 (forbidden) for an object means that it is missing: buckets that may not be
    /// listed answer so.
    pub forbidden_is_missing: bool,
}

impl Default for ObjectOptions {
    /// 256 requests of up to 8 MiB at once, 5,500 in a second, gaps up to 1 MiB, batches of 4 MiB,
    /// 128 MiB ahead, 2 threads; 8 tries of a list within a minute; the answer 403 is an error.
    fn default() -> Self {
        Self {
            max_requests: 256,
            max_requests_per_sec: 5500,
            request_bytes: 8 << 20,
            gap_bytes: 1 << 20,
            batch_bytes: 4 << 20,
            prefetch_bytes: 128 << 20,
            n_threads: 2,
            list_tries: 8,
            retry_limit: Duration::from_mins(1),
            forbidden_is_missing: false,
        }
    }
}

/// Files below a prefix of an object store.
#[derive(Debug)]
pub struct ObjectStorage {
    place: String,
    options: ObjectOptions,
    requests: Arc<Requests>,
    /// The threads, which end with the last storage that has them.
    threads: Arc<Threads>,
}

/// The threads that wait for the network.
#[derive(Debug)]
struct Threads {
    /// `Some` until they end.
    runtime: Option<Runtime>,
}

/// The source of `len` bytes at `at` of a read.
#[derive(Debug)]
struct Answer {
    at: usize,
    len: usize,
    /// The first of the bytes in the source.
    skip: usize,
    from: Origin,
}

/// The part of a file that follows its first bytes.
///
/// The store's word for the size may be wrong, so no more is requested, and no more memory taken,
/// than is in proportion to what has arrived.
#[derive(Debug)]
struct Rest<'a> {
    file: &'a str,
    size: u64,
    /// The end of the bytes that were requested.
    requested: u64,
    sent: VecDeque<SentRequest<Bytes>>,
}

impl Rest<'_> {
    /// Requests what is allowed once `arrived` bytes of the file have come.
    fn request_until(&mut self, storage: &ObjectStorage, arrived: u64) {
        let least = storage.options.request_bytes.max(1);
        let ahead = arrived.max(least.saturating_mul(REST_REQUESTS));
        let end = self.size.min(arrived.saturating_add(ahead));
        // Long requests rather than many short ones.
        if self.requested < end && (end == self.size || end - self.requested >= least) {
            let piece = Piece { file: self.file, range: self.requested..end };
            self.sent.extend(storage.request(&[piece], &mut |_, _, _, _| {}));
            self.requested = end;
        }
    }

    /// Waits for the rest, and returns the whole file.
    fn whole(mut self, storage: &ObjectStorage, first: &Bytes) -> io::Result<Vec<u8>> {
        let mut bytes = first.to_vec();
        while let Some(sent) = self.sent.pop_front() {
            let part = sent.wait()?;
            bytes.try_reserve(part.len()).map_err(|_| too_large(self.size))?;
            bytes.extend_from_slice(&part);
            self.request_until(storage, bytes.len() as u64);
        }
        Ok(bytes)
    }
}

#[derive(Debug)]
enum Origin {
    /// A request of the read, by its index.
    Sent(usize),
    /// `range` of the file of a piece was fetched ahead.
    Ahead { piece: usize, range: Range<u64>, pending: Arc<Pending<Bytes>> },
}

impl ObjectStorage {
    /// The files at `prefix` of `store`. Errors call it `place` ("s3://bucket/prefix"). Sends no
    /// request yet.
    ///
    /// # Errors
    /// If its threads cannot be started.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        prefix: Path,
        place: impl Into<String>,
        options: ObjectOptions,
    ) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.n_threads.max(1))
            .thread_name("storage-io")
            .enable_all()
            .build()?;
        let client = Arc::new(Client::new(store, runtime.handle().clone(), options));
        let requests = Arc::new(Requests::new(client, prefix));
        let threads = Arc::new(Threads { runtime: Some(runtime) });
        Ok(Self { place: place.into(), options, requests, threads })
    }

    /// The files in `folder`, with the same client: its threads, bounds, measurements and versions
    /// of objects. Counts and ranges fetched ahead are their own.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the store cannot name `folder`.
    pub fn below(&self, folder: &str) -> io::Result<Self> {
        let folder = folder.trim_matches('/');
        let prefix = self.requests.key(folder)?;
        let place = match folder {
            "" => self.place.clone(),
            folder => format!("{}/{folder}", self.place.trim_end_matches('/')),
        };
        let requests = Arc::new(Requests::new(Arc::clone(&self.requests.client), prefix));
        Ok(Self { place, options: self.options, requests, threads: Arc::clone(&self.threads) })
    }

    /// Requests the parts of `pieces` that were not fetched ahead. Returns the requests, and the
    /// sources that fill `pieces`, which lie one after another in `len` bytes.
    fn sources(
        &self,
        pieces: &[Piece<'_>],
        len: usize,
    ) -> io::Result<(Vec<SentRequest<Bytes>>, Vec<Answer>)> {
        // Pieces that were not fetched ahead, and their places.
        let (mut holes, mut places) = (Vec::new(), Vec::new());
        let (mut answers, mut begun) = (Vec::new(), Vec::new());
        let lens = piece_lens(pieces, len)?;
        let mut at = 0_usize;
        {
            let mut ahead = self.requests.ahead();
            for (idx, (piece, piece_len)) in pieces.iter().zip(lens).enumerate() {
                for source in ahead.take(piece.file, &piece.range, &mut begun) {
                    let at = at + (source.range().start - piece.range.start) as usize;
                    match source {
                        Source::Hole(range) => {
                            holes.push(Piece { file: piece.file, range });
                            places.push(at);
                        }
                        Source::Ahead { range, pending, skip } => answers.push(Answer {
                            at,
                            len: (range.end - range.start) as usize,
                            skip,
                            from: Origin::Ahead { piece: idx, range, pending },
                        }),
                    }
                }
                at += piece_len;
            }
        }
        self.requests.fetch_ahead(begun);
        let sent = self.request(&holes, &mut |hole, skipped, (request, skip), len| {
            let at = places[hole] + skipped;
            answers.push(Answer { at, len, skip, from: Origin::Sent(request) });
        });
        Ok((sent, answers))
    }

    /// Requests `pieces`, none of which is empty, several with one request or one with several.
    /// Calls `each` for each part of a piece: with the piece's index, the bytes of it before the
    /// part, the request's index with the bytes of it before the part, and the part's length.
    fn request(
        &self,
        pieces: &[Piece<'_>],
        each: &mut dyn FnMut(usize, usize, (usize, usize), usize),
    ) -> Vec<SentRequest<Bytes>> {
        let pace = (&self.requests.pace(), u64::MAX);
        let joined = join(pieces, pace, |_, _| false);
        let (mut piece, mut sent) = (0, Vec::with_capacity(joined.len()));
        for request in joined {
            for part in request.wanted {
                let skipped = (part.start - pieces[piece].range.start) as usize;
                let skip = (part.start - request.range.start) as usize;
                each(piece, skipped, (sent.len(), skip), (part.end - part.start) as usize);
                piece += usize::from(part.end == pieces[piece].range.end);
            }
            sent.push(self.requests.begin(request.file, request.range));
        }
        sent
    }
}

impl Storage for ObjectStorage {
    fn place(&self) -> String {
        self.place.clone()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.requests.begin_list(folder).wait()
    }

    fn list_each(&self, folders: &[&str]) -> Vec<io::Result<Vec<Entry>>> {
        let sent: Vec<_> = folders.iter().map(|folder| self.requests.begin_list(folder)).collect();
        // A store that cannot be reached is waited for once: the other requests are cancelled.
        let mut failed: Option<(io::ErrorKind, String)> = None;
        let listed = sent.into_iter().map(|sent| {
            if let Some((kind, text)) = &failed {
                return Err(io::Error::new(*kind, text.clone()));
            }
            sent.wait().inspect_err(|error| {
                let is_of_folder = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied]
                    .contains(&error.kind());
                failed = (!is_of_folder).then(|| (error.kind(), error.to_string()));
            })
        });
        listed.collect()
    }

    fn list_all(&self, most: usize) -> io::Result<Option<Vec<ListedFile>>> {
        self.requests.begin_list_all(most).wait()
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        Ok(self.requests.begin_version(file).wait()?.size)
    }

    fn sizes(&self, files: &[&str]) -> Vec<io::Result<u64>> {
        self.versions(files).into_iter().map(|version| Ok(version?.size)).collect()
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let sent: Vec<_> = files.iter().map(|file| self.requests.begin_version(file)).collect();
        sent.into_iter().map(|sent| sent.wait()).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let (sent, answers) = self.sources(pieces, into.len())?;
        // The ranges taken have made room.
        self.requests.begin_ahead();
        for Answer { at, len, skip, from } in answers {
            let (bytes, skip) = match from {
                Origin::Sent(idx) => (sent[idx].wait(), skip),
                // A failed prefetch is retried here; only the retry can fail the read.
                Origin::Ahead { piece, range, pending } => match pending.wait() {
                    Ok(bytes) => (Ok(bytes), skip),
                    Err(_) => (self.requests.begin(pieces[piece].file, range).wait(), 0),
                },
            };
            let bytes = bytes.map_err(|error| match piece_at(pieces, at) {
                Some(piece) => FailedPiece::wrap(piece, error),
                None => error,
            })?;
            let part = bytes.get(skip..skip + len).ok_or(io::ErrorKind::UnexpectedEof)?;
            into[at..at + len].copy_from_slice(part);
        }
        Ok(())
    }

    /// Sends a request for the beginning of each file at once. Its answer says how long the file
    /// is; the rest of a long one is requested in parts.
    fn read_files(&self, files: &[&str]) -> Vec<io::Result<Vec<u8>>> {
        let most = self.options.request_bytes.max(1);
        let firsts: Vec<_> =
            files.iter().map(|file| self.requests.begin_first(file, most)).collect();
        let begun = files.iter().copied().zip(firsts).map(|(file, first)| {
            let (first, size) = first.wait()?;
            let requested = first.len() as u64;
            let mut rest = Rest { file, size, requested, sent: VecDeque::new() };
            rest.request_until(self, requested);
            Ok((first, rest))
        });
        let begun: Vec<io::Result<_>> = begun.collect();
        let whole = begun.into_iter().map(|begun| {
            let (first, rest) = begun?;
            rest.whole(self, &first)
        });
        whole.collect()
    }

    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        if self.options.prefetch_bytes > 0 {
            self.requests.ahead().announce(pieces, read, &self.requests.pace());
            self.requests.begin_ahead();
        }
    }

    /// Readers need not bridge gaps: the storage does.
    fn coalesce(&self) -> Coalesce {
        let ObjectOptions { batch_bytes, prefetch_bytes, .. } = self.options;
        Coalesce { gap_bytes: 0, batch_bytes, prefetch_bytes }
    }

    /// Each answer is compared with the version that was read first.
    fn keeps_versions(&self) -> bool {
        true
    }

    fn request_counts(&self) -> Option<RequestCounts> {
        Some(self.requests.counts())
    }
}

/// The lengths of pieces, which `len` bytes must have room for.
fn piece_lens(pieces: &[Piece<'_>], len: usize) -> io::Result<Vec<usize>> {
    let mut left = len;
    let mut of_piece = |piece: &Piece<'_>| {
        let n_bytes = piece.range.end.checked_sub(piece.range.start)?;
        let n_bytes = usize::try_from(n_bytes).ok()?;
        left = left.checked_sub(n_bytes)?;
        Some(n_bytes)
    };
    let lens: Option<Vec<usize>> = pieces.iter().map(&mut of_piece).collect();
    lens.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// The piece whose bytes have place `at` among those of all pieces.
fn piece_at<'a, 'b>(pieces: &'a [Piece<'b>], at: usize) -> Option<&'a Piece<'b>> {
    let mut end = 0_u64;
    pieces.iter().find(|piece| {
        end += piece.range.end.saturating_sub(piece.range.start);
        (at as u64) < end
    })
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A thread of another runtime must not wait for this one.
            if Handle::try_current().is_ok() {
                runtime.shutdown_background();
            } else {
                runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
            }
        }
    }
}
