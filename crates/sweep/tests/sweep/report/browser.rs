//! Headless Chromium, controlled over the DevTools protocol.
//!
//! Messages are JSON, each ended by a zero byte, sent over two pipes.

use std::collections::VecDeque;
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Time to wait for an answer: long enough for a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);

/// Finds the Chromium named by `SOMAFEED_CHROMIUM`, or the first on the PATH.
///
/// Without one, prints a notice and returns `None`; fails if one is required.
pub(crate) fn find() -> Option<PathBuf> {
    let named = env::var_os("SOMAFEED_CHROMIUM").filter(|name| !name.is_empty());
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"].map(PathBuf::from);
    let runs = |program: &Path| {
        Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success())
    };
    let found = match named {
        Some(named) => Some(PathBuf::from(named)).filter(|named| runs(named)),
        None => names.into_iter().find(|name| runs(name)),
    };
    if found.is_none() {
        let absent = "no page was opened: no Chromium on the PATH nor by SOMAFEED_CHROMIUM (`cargo xtask test` installs one)";
        assert!(env::var_os("SOMAFEED_REQUIRE_BROWSER").is_none(), "{absent}");
        eprintln!("{absent}");
    }
    found
}

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    reader: Option<JoinHandle<()>>,
    last_id: u64,
    session: Option<String>,
    /// Events that no call has consumed yet.
    events: VecDeque<Value>,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // Chromium reads messages from file descriptor 3 and writes them to 4.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>&2 2>/dev/null";
        let mut process = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args([
                "--disable-sync",
                "--disable-quic",
                "--hide-scrollbars",
                "--disable-dev-shm-usage",
            ])
            // Chromium's sandbox does not work for root, the only user of many containers; the page
            // is ours.
            .arg("--no-sandbox")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = process.stdin.take();
        let mut pipe = BufReader::new(process.stdout.take().unwrap());
        let (sender, from) = channel();
        let reader = thread::Builder::new().name("devtools".to_owned()).spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let reader = Some(reader.unwrap());
        let events = VecDeque::new();
        let mut browser = Self {
            process,
            to,
            from,
            reader,
            last_id: 0,
            session: None,
            events,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command and waits for its answer.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method });
        message["params"] = parameters;
        if let Some(session) = &self.session {
            message["sessionId"] = Value::from(session.clone());
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.as_mut().unwrap().write_all(&bytes).unwrap();
        loop {
            let answer = self.from.recv_timeout(PATIENCE).expect(method);
            if answer["id"] == self.last_id {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }

    /// Waits for an event of this name.
    #[track_caller]
    fn wait_for(&mut self, name: &str) {
        if let Some(idx) = self.events.iter().position(|event| event["method"] == name) {
            self.events.remove(idx);
            return;
        }
        loop {
            let event = self.from.recv_timeout(PATIENCE).expect(name);
            if event["method"] == name {
                return;
            }
            self.events.push_back(event);
        }
    }

    /// Opens a local file with a fragment (`#...`).
    #[track_caller]
    pub(crate) fn open(&mut self, file: &Path, fragment: &str) {
        // A blank page first: an address that differs only in its fragment is not reloaded.
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.wait_for("Page.loadEventFired");
        let url = format!("file://{}{fragment}", file.display());
        self.call("Page.navigate", json!({ "url": url }));
        self.wait_for("Page.loadEventFired");
        self.settle();
    }

    /// Waits until the page has drawn pending changes.
    #[track_caller]
    pub(crate) fn settle(&mut self) {
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
    }

    pub(crate) fn size(&mut self, width: u32, height: u32, is_phone: bool) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": if is_phone { 2 } else { 1 }, "mobile": is_phone });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub(crate) fn media(&mut self, media: &str, color_scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": color_scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": media, "features": features }));
        self.settle();
    }

    /// Evaluates an expression in the page and awaits it if it is a promise.
    #[track_caller]
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let found = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true }),
        );
        assert!(found.get("exceptionDetails").is_none(), "{expression}: {found}");
        found["result"]["value"].clone()
    }

    pub(crate) fn point_at(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
        self.settle();
    }

    /// Scrolls the selected element into view and clicks its center.
    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        self.clicks(selector, 1);
    }

    #[track_caller]
    pub(crate) fn double_click(&mut self, selector: &str) {
        self.clicks(selector, 2);
    }

    #[track_caller]
    fn clicks(&mut self, selector: &str, n: u32) {
        let selector = serde_json::to_string(selector).unwrap();
        let middle = format!(
            "(() => {{ const found = document.querySelector({selector}); \
             found.scrollIntoView({{ block: 'center', inline: 'center' }}); \
             const box = found.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        );
        let at = self.eval(&middle);
        for count in 1..=n {
            for kind in ["mousePressed", "mouseReleased"] {
                let event = json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": count });
                self.call("Input.dispatchMouseEvent", event);
            }
        }
        self.settle();
    }

    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
        self.settle();
    }

    /// Saves a screenshot to the folder `SOMAFEED_SCREENSHOTS`, if set.
    pub(crate) fn screenshot(&mut self, name: &str) {
        let Some(folder) = env::var_os("SOMAFEED_SCREENSHOTS") else { return };
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let text = shot["data"].as_str().unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), from_base64(text)).unwrap();
    }

    /// Returns the exceptions, console messages and browser log entries that no call has consumed
    /// yet.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let names = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"];
        let all =
            self.events.iter().filter(|event| names.iter().any(|name| event["method"] == *name));
        all.map(ToString::to_string).collect()
    }

    /// Returns the requested addresses.
    pub(crate) fn requests(&self) -> Vec<String> {
        let asked = |event: &&Value| event["method"] == "Network.requestWillBeSent";
        let urls = self.events.iter().filter(asked);
        urls.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Child processes end with Chromium, which may have exited already.
        drop(self.to.take());
        drop(self.process.kill());
        drop(self.process.wait());
        if let Some(reader) = self.reader.take() {
            drop(reader.join());
        }
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|letter| *letter != b'=').map(digit).collect();
    digits
        .chunks(4)
        .flat_map(|four| {
            let bits = four.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit))
                << (6 * (4 - four.len()));
            bits.to_be_bytes()[1..four.len()].to_vec()
        })
        .collect()
}
