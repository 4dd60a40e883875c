//! Rank 0 as the other ranks of a launcher see it.

use std::io::BufReader;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use bench_report::HostInfo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::gathering::RanksEnd;
use super::meeting::Place;
use super::message::{
    ALIVE, FromZero, INTRODUCTION, Introduction, LONGEST_SILENCE, RankEvent, read_message,
    write_message,
};
use super::process::RankProcess;
use crate::process::ProcessSpec;

/// Interval at which the file of the meeting is looked for.
const AGAIN: Duration = Duration::from_millis(50);

/// Longest time that a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(2);

/// Interval at which the user's wish to stop is checked.
const GLANCE: Duration = Duration::from_millis(50);

/// A connection to rank 0.
#[derive(Debug)]
pub struct RankZero {
    stream: TcpStream,
    from: BufReader<TcpStream>,
}

impl RankZero {
    /// Finds the meeting that rank 0 has announced in `folder`, and joins it as `rank` of
    /// `world_size`. Returns `None` after Ctrl-C.
    ///
    /// # Errors
    /// There is no rank 0 within this time, or it refuses this rank.
    pub fn join(
        folder: &Path,
        host: &HostInfo,
        (rank, world_size): (u64, u64),
        settings: &str,
        (within, interrupted): (Duration, &AtomicBool),
    ) -> anyhow::Result<Option<Self>> {
        let deadline = Instant::now() + within;
        while !interrupted.load(Ordering::Relaxed) {
            if let Some(place) = Place::read(folder) {
                let introduction = Introduction {
                    key: place.key.clone(),
                    rank,
                    world_size,
                    settings: settings.to_owned(),
                    host: host.clone(),
                };
                // An old file names a port where nobody answers, or a stranger.
                if let Ok((joined, answer)) = introduce(&place, &introduction) {
                    match answer {
                        FromZero::Stop { reason } => {
                            bail!("rank 0 refuses rank {rank} of {world_size}: {reason}")
                        }
                        _ => return Ok(Some(joined)),
                    }
                }
            }
            if deadline <= Instant::now() {
                let file: PathBuf = Place::file(folder);
                bail!(
                    "rank {rank} of {world_size} found no rank 0 within {} s: rank 0 writes its address to {}, so all ranks need \
                     the same --results, on a file system that they share, and the machine of rank 0 must let them connect",
                    within.as_secs_f64(),
                    file.display()
                );
            }
            thread::sleep(AGAIN);
        }
        Ok(None)
    }
}

/// Connects to rank 0 and waits for its answer.
fn introduce(place: &Place, introduction: &Introduction) -> anyhow::Result<(RankZero, FromZero)> {
    let host = if place.hostname == introduction.host.hostname {
        "127.0.0.1"
    } else {
        place.hostname.as_str()
    };
    let mut addresses = (host, place.port).to_socket_addrs()?;
    let connected = addresses.find_map(|at| TcpStream::connect_timeout(&at, CONNECTING).ok());
    let mut stream = connected.context("nobody answers")?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(LONGEST_SILENCE))?;
    stream.set_read_timeout(Some(INTRODUCTION))?;
    write_message(&mut stream, introduction)?;
    let mut from = BufReader::new(stream.try_clone()?);
    let answer = read_message(&mut from)?.context("it is not our rank 0")?;
    stream.set_read_timeout(Some(LONGEST_SILENCE))?;
    Ok((RankZero { stream, from }, answer))
}

/// An event that a rank waits for.
enum Incoming<Answer> {
    Process(RankEvent<Answer>),
    Zero(FromZero),
    /// The connection to rank 0 ended.
    ZeroGone(String),
}

/// Runs the process of a rank, reports its events to rank 0, and obeys it.
///
/// # Errors
/// The run has failed, by the reason that rank 0 gives; or rank 0 has ended.
pub fn follow_rank_zero<Answer>(
    zero: RankZero,
    process: ProcessSpec<'static>,
    interrupted: &AtomicBool,
) -> anyhow::Result<RanksEnd>
where
    Answer: Serialize + DeserializeOwned + Send + 'static,
{
    let RankZero { mut stream, from } = zero;
    let (sender, incoming) = channel::<Incoming<Answer>>();
    let to_self = sender.clone();
    let process =
        RankProcess::spawn(process, move |event| to_self.send(Incoming::Process(event)).is_ok())?;
    let listening = Builder::new().name("rank-zero".to_owned());
    listening
        .spawn(move || listen(from, &sender))
        .context("cannot start a thread that listens to rank 0")?;
    let mut last_sent = Instant::now();
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(RanksEnd::Interrupted);
        }
        let message = match incoming.recv_timeout(GLANCE) {
            Ok(Incoming::Process(event)) => event,
            Ok(Incoming::Zero(FromZero::Start)) => {
                process.start();
                continue;
            }
            Ok(Incoming::Zero(FromZero::Finished)) => return Ok(RanksEnd::Done),
            Ok(Incoming::Zero(FromZero::Stop { reason })) => return Err(anyhow!(reason)),
            Ok(Incoming::ZeroGone(why)) => return Err(anyhow!(why)),
            Err(RecvTimeoutError::Timeout) if ALIVE <= last_sent.elapsed() => RankEvent::Alive,
            Ok(Incoming::Zero(FromZero::Alive | FromZero::Welcome))
            | Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => bail!("rank 0 is gone"),
        };
        // A broken connection is noticed when it is read, with the last message of rank 0.
        let _sent = write_message(&mut stream, &message);
        last_sent = Instant::now();
    }
}

/// Passes on the messages of rank 0 until its connection ends.
fn listen<Answer>(mut from: BufReader<TcpStream>, sender: &Sender<Incoming<Answer>>) {
    loop {
        let (message, is_last) = match read_message(&mut from) {
            Ok(Some(message)) => (Incoming::Zero(message), false),
            Ok(None) => {
                (Incoming::ZeroGone("rank 0 ended before the run was over".to_owned()), true)
            }
            Err(error) => {
                let why = format!("nothing comes from rank 0, or its connection broke: {error:#}");
                (Incoming::ZeroGone(why), true)
            }
        };
        // Fails only if this rank has ended.
        if sender.send(message).is_err() || is_last {
            return;
        }
    }
}
