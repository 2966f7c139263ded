//! Chromium as a process, and the DevTools protocol to it.

use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};

/// No message for longer means that something is wrong.
const PATIENCE: Duration = Duration::from_secs(100);

/// A browser with one page.
pub struct Process {
    child: Child,
    folder: PathBuf,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    calls: u64,
    loaded: bool,
    /// Everything that went wrong: errors, exceptions, console messages, requests to other hosts.
    pub trouble: Vec<String>,
}

impl Process {
    /// Starts Chromium, which keeps its files in `folder`.
    pub fn start(folder: &Path) -> Self {
        // The folder is missing, or a killed test has left it.
        let _ = fs::remove_dir_all(folder);
        let child = Command::new(chromium())
            .args(["--headless=new", "--disable-gpu", "--disable-dev-shm-usage"])
            // Root, as in containers, has no sandbox; scalevm wrote the page.
            .args(["--no-sandbox", "--hide-scrollbars", "--no-first-run"])
            .args([
                "--remote-debugging-port=0",
                "--disable-background-networking",
            ])
            .arg(format!("--user-data-dir={}", folder.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Chromium starts");
        let (port, path) = address(&folder.join("DevToolsActivePort"));
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let url = format!("ws://127.0.0.1:{port}{path}");
        let (socket, _) = tungstenite::client(url, stream).expect("a socket");
        Process {
            child,
            folder: folder.to_owned(),
            socket,
            session: None,
            calls: 0,
            loaded: false,
            trouble: Vec::new(),
        }
    }

    /// Opens a page and waits until it has loaded.
    pub fn open(&mut self, url: &str) {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", attach);
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Log", "Runtime", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.loaded = false;
        self.call("Page.navigate", json!({ "url": url }));
        while !self.loaded {
            self.receive();
        }
    }

    /// Calls a method and waits for its answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            call["sessionId"] = json!(session);
        }
        let text = Message::text(call.to_string());
        self.socket.send(text).expect("Chromium listens");
        loop {
            let answer = self.receive();
            if answer["id"] == self.calls {
                let error = answer.get("error");
                assert!(error.is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The next message; records an error.
    fn receive(&mut self) -> Value {
        let message = self.socket.read().expect("Chromium answers");
        let text = message.to_text().expect("text");
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.loaded = true,
            "Log.entryAdded" | "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" => {
                self.trouble.push(parameters.to_string());
            }
            "Network.requestWillBeSent" => {
                let url = parameters["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with("file:") && !url.starts_with("data:") {
                    self.trouble.push(format!("request: {url}"));
                }
            }
            _ => {}
        }
        message
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its children may still write for a moment; the next start clears the folder anyway.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The port and path that Chromium writes to a file once it listens.
fn address(file: &Path) -> (u16, String) {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some((port, path)) = text.split_once('\n') {
            let port = port.trim().parse().expect("a port");
            return (port, path.trim().to_owned());
        }
        sleep(Duration::from_millis(50));
    }
    panic!("Chromium does not listen after {PATIENCE:?}");
}

fn chromium() -> PathBuf {
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut all =
        std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    let found = all.find(|path| path.is_file());
    found.expect("this test needs Chromium: apt-get install chromium")
}
