//! The place where the ranks that a launcher started meet: a port of rank 0's machine, whose
//! address stands in a file of the results folder.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::message::{
    ALIVE, FromZero, INTRODUCTION, Introduction, LONGEST_SILENCE, RankEvent, read_introduction,
    read_message, write_message,
};

/// Interval at which a new connection is looked for.
const GLANCE: Duration = Duration::from_millis(10);

/// The file in the results folder.
const FILE: &str = ".meeting-of-ranks.json";

/// The content of the file: where rank 0 waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Name of the machine.
    pub(super) hostname: String,
    pub(super) port: u16,
    /// Only who can read the file may take part.
    pub(super) key: String,
}

impl Place {
    pub(super) fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Reads the file; `None` if there is none, or another program's.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::file(folder)).ok()?).ok()
    }

    /// Writes the file whole, readable for its owner alone.
    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let (path, new) = (Self::file(folder), folder.join(format!("{FILE}.{}", self.port)));
        let cannot = || format!("cannot write {}", path.display());
        let text = serde_json::to_vec(self).with_context(cannot)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new);
        file.with_context(cannot)?.write_all(&text).with_context(cannot)?;
        fs::rename(&new, &path).with_context(cannot)
    }
}

/// State that the threads of a meeting share.
#[derive(Debug)]
struct Shared {
    key: String,
    world_size: u64,
    /// Digest of the settings.
    settings: String,
    /// The connections of the ranks that have come.
    ranks: Mutex<Vec<(u64, TcpStream)>>,
    is_over: AtomicBool,
}

impl Shared {
    /// Sends a message to all ranks that have come.
    fn broadcast(&self, message: &FromZero) {
        let ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, stream) in ranks.iter() {
            let mut stream: &TcpStream = stream;
            // A broken connection is noticed when it is read.
            let _sent = write_message(&mut stream, message);
        }
    }

    /// Welcomes a rank on its connection; returns the reason if it cannot take part.
    fn admit(&self, introduction: &Introduction, stream: TcpStream) -> Result<(), String> {
        let Introduction { rank, world_size, settings, .. } = introduction;
        let mut ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        if *world_size != self.world_size {
            let ours = self.world_size;
            return Err(format!("it is one of {world_size} ranks, rank 0 is one of {ours}"));
        }
        if *rank == 0 || ranks.iter().any(|(known, _)| known == rank) {
            return Err(format!("two processes are rank {rank}"));
        }
        if self.world_size <= *rank {
            return Err(format!("there is no rank {rank} of {world_size}"));
        }
        if *settings != self.settings {
            return Err(
                "it was started with other settings, or as another program, than rank 0".to_owned()
            );
        }
        // Under the lock, so that no other message comes first.
        write_message(&mut &stream, &FromZero::Welcome).map_err(|error| format!("{error:#}"))?;
        ranks.push((*rank, stream));
        Ok(())
    }
}

/// A meeting of ranks, held by rank 0. Dropping it ends all connections.
#[derive(Debug)]
pub struct Meeting {
    folder: PathBuf,
    place: Place,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Meeting {
    /// Opens a meeting of `world_size` ranks with these settings, and writes its address to
    /// `folder`, which all ranks can read. The events of the other ranks are sent to `events`.
    ///
    /// # Errors
    /// No port is free, or the file cannot be written.
    pub fn open<Answer: DeserializeOwned + Send + 'static>(
        folder: &Path,
        hostname: &str,
        (world_size, settings): (u64, String),
        events: Sender<(u64, RankEvent<Answer>)>,
    ) -> anyhow::Result<Self> {
        // Other machines may come, too.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0));
        let listener = listener.context("cannot open a port for the meeting of the ranks")?;
        listener.set_nonblocking(true).context("cannot wait for connections")?;
        let port = listener.local_addr().context("a port has no address")?.port();
        let place = Place { hostname: hostname.to_owned(), port, key: new_key()? };
        let shared = Arc::new(Shared {
            key: place.key.clone(),
            world_size,
            settings,
            ranks: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name("meeting".to_owned())
            .spawn(move || accept(&listener, &of_thread, &events))
            .context("cannot start a thread for the meeting of the ranks")?;
        let meeting = Self { folder: folder.to_owned(), place, shared, thread: Some(thread) };
        meeting.place.write(folder)?;
        Ok(meeting)
    }

    /// Lets all ranks begin that have come.
    pub fn start(&self) {
        self.shared.broadcast(&FromZero::Start);
    }

    /// Ends the meeting: the ranks are done, or stop for this reason.
    pub fn end(self, reason: Option<String>) {
        self.shared
            .broadcast(&reason.map_or(FromZero::Finished, |reason| FromZero::Stop { reason }));
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        let ranks = self.shared.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, stream) in ranks.iter() {
            // Messages sent before still arrive. The rank then closes its end.
            let _closed = stream.shutdown(Shutdown::Write);
        }
        // Another run may have replaced the file.
        if Place::read(&self.folder).as_ref() == Some(&self.place) {
            let _removed = fs::remove_file(Place::file(&self.folder));
        }
    }
}

/// 128 random bits in hexadecimal digits.
fn new_key() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    random.context("cannot read /dev/urandom")?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Takes connections until the meeting is over. Each has a thread, which ends with its connection.
fn accept<Answer: DeserializeOwned + Send + 'static>(
    listener: &TcpListener,
    shared: &Arc<Shared>,
    events: &Sender<(u64, RankEvent<Answer>)>,
) {
    let mut last_alive = Instant::now();
    while !shared.is_over.load(Ordering::Relaxed) {
        if ALIVE <= last_alive.elapsed() {
            shared.broadcast(&FromZero::Alive);
            last_alive = Instant::now();
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let (shared, events) = (Arc::clone(shared), events.clone());
                let serve = move || serve_rank(&stream, &shared, &events);
                // Without a thread the connection is closed, and the rank tries again.
                let _thread = Builder::new().name("rank-connection".to_owned()).spawn(serve);
            }
            // Nobody connects, or a connection was given up before it was accepted.
            Err(_) => thread::sleep(GLANCE),
        }
    }
}

/// Passes on the events of a rank until its connection ends. A stranger is not answered.
fn serve_rank<Answer: DeserializeOwned>(
    stream: &TcpStream,
    shared: &Shared,
    events: &Sender<(u64, RankEvent<Answer>)>,
) {
    let Ok((mut from, introduction)) = introduced(stream) else { return };
    if introduction.key != shared.key {
        return;
    }
    let rank = introduction.rank;
    // Fails only if the command has ended.
    let report = |rank, event| drop(events.send((rank, event)));
    let Ok(writer) = stream.try_clone() else { return };
    if let Err(reason) = shared.admit(&introduction, writer) {
        let mut to = stream;
        let _sent = write_message(&mut to, &FromZero::Stop { reason: reason.clone() });
        // A rank outside of the world has no place among the events, but still ends the run.
        report(rank.min(shared.world_size - 1), RankEvent::lost(reason));
        return;
    }
    report(rank, RankEvent::Came(Box::new(introduction.host)));
    let mut is_over = false;
    loop {
        let event = match read_message::<RankEvent<Answer>>(&mut from) {
            Ok(Some(RankEvent::Alive)) => continue,
            Ok(Some(event)) => event,
            Ok(None) | Err(_) if is_over => return,
            Ok(None) => RankEvent::lost(
                "its connection closed before it was done: its process ended, or was killed",
            ),
            Err(error) => RankEvent::lost(format!(
                "nothing came from it for {} s, or its connection broke: {error:#}",
                LONGEST_SILENCE.as_secs()
            )),
        };
        // Messages after the last event are read and dropped: unread bytes would reset the
        // connection, and the last message to the rank would be lost.
        if !is_over {
            is_over = event.is_end();
            report(rank, event);
        }
    }
}

/// Reads the introduction of a new connection.
fn introduced(stream: &TcpStream) -> anyhow::Result<(BufReader<TcpStream>, Introduction)> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(LONGEST_SILENCE))?;
    stream.set_read_timeout(Some(INTRODUCTION))?;
    let mut from = BufReader::new(stream.try_clone()?);
    let introduction = read_introduction(&mut from)?;
    stream.set_read_timeout(Some(LONGEST_SILENCE))?;
    Ok((from, introduction))
}

#[cfg(test)]
mod tests;
