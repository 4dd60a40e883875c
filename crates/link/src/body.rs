//! Bodies of answers: pieces of a file or of a text, each sent when the rates allow it.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::Frame;

use crate::counts::{Counters, UnderWay};
use crate::pace::Pace;

/// The body of an answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// The most and the least bytes of a piece.
const PIECE_BYTES: Range<u64> = 4 << 10..128 << 10;

/// A piece takes no longer than this at the rate, unless it has the least bytes.
const PIECE_TIME: Duration = Duration::from_millis(5);

/// Pause before the end of a body that is cut.
const CUT_PAUSE: Duration = Duration::from_millis(1);

/// Buffers kept for later pieces, at most.
const KEPT_BUFFERS: usize = 64;

/// The rates that a connection keeps.
#[derive(Debug, Clone)]
pub(crate) struct Rates {
    pub(crate) connection: Option<Arc<Pace>>,
    pub(crate) total: Option<Arc<Pace>>,
}

impl Rates {
    /// Waits until `n_bytes` may be sent.
    async fn wait(&self, n_bytes: u64) {
        // Its own rate first: a sender that waits for its own rate must not delay others.
        for pace in [&self.connection, &self.total].into_iter().flatten() {
            pace.wait(n_bytes).await;
        }
    }

    /// The most bytes of a piece.
    fn piece_bytes(&self) -> u64 {
        let least = [&self.connection, &self.total].into_iter().flatten();
        let least = least.map(|pace| pace.bytes_per_sec()).min().map_or(u64::MAX, NonZeroU64::get);
        let of_time = u128::from(least) * PIECE_TIME.as_millis() / 1000;
        u64::try_from(of_time).unwrap_or(u64::MAX).clamp(PIECE_BYTES.start, PIECE_BYTES.end)
    }
}

/// Buffers of pieces that were sent, to be filled again: fresh memory would cost as much as
/// reading into it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A part of a buffer, which goes back when it was sent.
struct Filled {
    buffer: Vec<u8>,
    len: usize,
    buffers: Buffers,
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        let mut kept = self.buffers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_BUFFERS {
            kept.push(std::mem::take(&mut self.buffer));
        }
    }
}

impl Buffers {
    /// Reads a range of a file, which is not longer than a piece.
    fn read(&self, file: &File, range: &Range<u64>) -> io::Result<Bytes> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let buffer = kept.unwrap_or_else(|| vec![0; PIECE_BYTES.end as usize]);
        let len = ((range.end - range.start) as usize).min(buffer.len());
        let mut filled = Filled { buffer, len, buffers: self.clone() };
        file.read_exact_at(&mut filled.buffer[..len], range.start)?;
        Ok(Bytes::from_owner(filled))
    }
}

/// Where the bytes of a body come from.
#[derive(Debug)]
pub(crate) enum Content {
    File { file: File, range: Range<u64> },
    Text(Bytes),
}

impl Content {
    /// Bytes that are left.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File { range, .. } => range.end - range.start,
            Self::Text(text) => text.len() as u64,
        }
    }

    /// Takes the next `n_bytes`, which are left.
    fn take(&mut self, n_bytes: u64, buffers: &Buffers) -> io::Result<Bytes> {
        match self {
            Self::Text(text) => Ok(text.split_to((n_bytes as usize).min(text.len()))),
            Self::File { file, range } => {
                let start = range.start;
                range.start += n_bytes;
                buffers.read(file, &(start..start + n_bytes))
            }
        }
    }
}

/// A body without bytes.
pub(crate) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A short text, sent at once.
pub(crate) fn text_body(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}

/// A body that is being sent.
struct Sending {
    content: Content,
    rates: Rates,
    buffers: Buffers,
    counters: Arc<Counters>,
    /// Bytes after which the connection is closed; `None` sends the whole body.
    cut_after: Option<u64>,
    /// Its request is under way until the body is sent or given up.
    _under_way: UnderWay,
}

impl Sending {
    /// The next piece, of at most `most` bytes, when the rates allow it; `None` at the end.
    async fn next(&mut self, most: u64) -> io::Result<Option<Bytes>> {
        let most = match &mut self.cut_after {
            Some(0) => {
                // What came before is sent while this waits; an error would take it along.
                tokio::time::sleep(CUT_PAUSE).await;
                return Err(io::Error::other("the link is cut here"));
            }
            Some(left) => {
                let n_bytes = self.content.len().min(most).min(*left);
                *left -= n_bytes;
                n_bytes
            }
            None => most,
        };
        let n_bytes = self.content.len().min(most);
        if n_bytes == 0 {
            return Ok(None);
        }
        self.rates.wait(n_bytes).await;
        let piece = self.content.take(n_bytes, &self.buffers)?;
        self.counters.bytes_sent.fetch_add(n_bytes, Ordering::Relaxed);
        Ok(Some(piece))
    }
}

/// The body of `content`, in pieces at `rates`; sent bytes are counted. It ends in the middle, with
/// its connection, if `is_cut`.
pub(crate) fn body(
    content: Content,
    rates: Rates,
    buffers: Buffers,
    (counters, under_way): (Arc<Counters>, UnderWay),
    is_cut: bool,
) -> Body {
    let most = rates.piece_bytes();
    let cut_after = is_cut.then(|| content.len() / 2);
    let sending = Sending { content, rates, buffers, counters, cut_after, _under_way: under_way };
    let pieces = stream::try_unfold(sending, move |mut sending| async move {
        let piece = sending.next(most).await?;
        Ok(piece.map(|piece| (Frame::data(piece), sending)))
    });
    StreamBody::new(pieces).boxed_unsync()
}
