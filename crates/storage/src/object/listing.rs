//! Listings of an object store: the names in one folder, and all files.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use object_store::ListResult;
use object_store::path::Path;
use tokio::time::Sleep;

use super::request;
use super::requests::Requests;
use crate::storage::{Entry, ListedFile};

/// Keys in one answer of a store.
const PAGE_KEYS: u64 = 1000;

/// The pause before the second try of a list; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(15);

/// How often a list is tried. The store's client repeats requests by the same settings, and the
/// rest of an object whose body was cut, but not a list whose body was cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListTries {
    pub(super) most: usize,
    /// No try begins later than this after the first.
    pub(super) limit: Duration,
}

impl Requests {
    /// The names in `folder`. A folder that does not exist lists as empty; the store says "not
    /// found" of a whole bucket, which is an error.
    pub(super) async fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let key = self.key(folder)?;
        let mut tries = Tries::new(self.client.list_tries()).await;
        loop {
            // A list that waits for its next try has no permit.
            let permit = self.client.turn().await?;
            self.count_sent(1);
            let listed = self.client.store.list_with_delimiter(Some(&key)).await;
            drop(permit);
            match listed {
                Ok(listed) => return Ok(entries(&key, &listed)),
                Err(error) if tries.again(&error).await => {}
                Err(error) => return Err(request::failure(&key, &error)),
            }
        }
    }

    /// All files, if they are at most `most`.
    pub(super) async fn list_all(&self, most: usize) -> io::Result<Option<Vec<ListedFile>>> {
        let mut tries = Tries::new(self.client.list_tries()).await;
        loop {
            let permit = self.client.turn().await?;
            let listed = self.list_below(most).await;
            drop(permit);
            match listed {
                Err(error) if tries.again(&error).await => {}
                found => return found.map_err(|error| request::failure(&self.prefix, &error)),
            }
        }
    }

    async fn list_below(&self, most: usize) -> object_store::Result<Option<Vec<ListedFile>>> {
        let mut listed = self.client.store.list(Some(&self.prefix));
        let (mut files, mut n_keys) = (Vec::new(), 0);
        let found = loop {
            match listed.try_next().await {
                Ok(Some(_)) if files.len() >= most => break Ok(None),
                Ok(Some(object)) => {
                    n_keys += 1;
                    // Some tools leave an empty object in place of a folder.
                    if let Some(path) = below(&self.prefix, &object.location) {
                        files.push(ListedFile { path, bytes: object.size });
                    }
                }
                Ok(None) => break Ok(Some(files)),
                Err(error) => break Err(error),
            }
        };
        self.count_sent(1 + n_keys / PAGE_KEYS);
        found
    }
}

/// The tries of one list.
struct Tries {
    left: usize,
    pause: Duration,
    /// Over when no further try may begin.
    limit: Pin<Box<Sleep>>,
}

impl Tries {
    async fn new(tries: ListTries) -> Self {
        let limit = Box::pin(tokio::time::sleep(tries.limit));
        let mut tries = Self { left: tries.most.saturating_sub(1), pause: FIRST_PAUSE, limit };
        // The time counts from the first poll on.
        tries.is_late().await;
        tries
    }

    async fn is_late(&mut self) -> bool {
        poll_fn(|context| Poll::Ready(self.limit.as_mut().poll(context).is_ready())).await
    }

    /// Whether to list again after `error`; waits before.
    async fn again(&mut self, error: &object_store::Error) -> bool {
        if self.left == 0 || !request::is_cut(error) || self.is_late().await {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.left -= 1;
        self.pause = LAST_PAUSE.min(2 * self.pause);
        !self.is_late().await
    }
}

/// The path from the folder; `None` for the folder itself.
fn below(folder: &Path, path: &Path) -> Option<String> {
    let parts = path.prefix_match(folder)?;
    let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The names of `listed` in `folder`.
fn entries(folder: &Path, listed: &ListResult) -> Vec<Entry> {
    // Some tools leave an empty object in place of the folder itself. It has no name below it.
    let name = |path: &Path| {
        path.prefix_match(folder).and_then(|mut parts| Some(parts.next()?.as_ref().to_owned()))
    };
    let files = listed.objects.iter().filter_map(|object| {
        let (name, bytes) = (name(&object.location)?, Some(object.size));
        Some(Entry { name, is_folder: false, bytes })
    });
    let folders = listed.common_prefixes.iter().filter_map(name);
    files.chain(folders.map(|name| Entry { name, is_folder: true, bytes: None })).collect()
}
