//! A page in a headless browser.

mod process;

use process::Process;
use report::{Page, Source};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// One test uses a browser at a time: a browser is many processes.
static TURN: Mutex<()> = Mutex::new(());

/// An open page.
pub struct Opened {
    process: RefCell<Process>,
    _turn: MutexGuard<'static, ()>,
}

impl Opened {
    /// Makes a page from files in `tests/data` and opens it. `name` is unique to the test.
    pub fn page_of(name: &str, files: &[&str]) -> Self {
        Self::page_from(name, files, |text| text)
    }

    /// As [`page_of`](Self::page_of), with each file's path and text changed by `change`.
    pub fn page_from(name: &str, files: &[&str], change: impl Fn(String) -> String) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
        let read = |file: &&str| {
            let path = format!("{folder}/{file}.jsonl");
            let text = fs::read_to_string(&path).expect("a file");
            Source::parse(&change(path), change(text).as_bytes())
        };
        let sources: Result<Vec<Source>, _> = files.iter().map(read).collect();
        let html = Page::new(&sources.expect("sound files")).html();
        let path = scratch(&format!("{name}.html"));
        fs::write(&path, html).expect("a page");
        // A failed test does not keep the others from running.
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut process = Process::start(&scratch(&format!("{name}-browser")));
        process.open(&format!("file://{}", path.display()));
        let opened = Opened {
            process: RefCell::new(process),
            _turn: turn,
        };
        opened.screen(1200, 900);
        opened
    }

    fn call(&self, method: &str, parameters: Value) -> Value {
        self.process.borrow_mut().call(method, parameters)
    }

    /// The value of an expression, as JSON.
    pub fn get(&self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", wanted);
        let thrown = answer.get("exceptionDetails");
        assert!(thrown.is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The value of an expression that is a number.
    pub fn number(&self, expression: &str) -> f64 {
        let value = self.get(expression);
        let number = value.as_f64();
        number.unwrap_or_else(|| panic!("{expression}: {value}"))
    }

    /// The value of an expression that is a text.
    pub fn text(&self, expression: &str) -> String {
        let value = self.get(expression);
        let text = value.as_str().map(str::to_owned);
        text.unwrap_or_else(|| panic!("{expression}: {value}"))
    }

    /// The number of elements that match a selector.
    pub fn count(&self, selector: &str) -> f64 {
        self.number(&format!("document.querySelectorAll('{selector}').length"))
    }

    /// The number of visible elements that match a selector.
    pub fn shown(&self, selector: &str) -> f64 {
        self.number(&format!(
            "[...document.querySelectorAll('{selector}')].filter(one => \
             one.getClientRects().length).length"
        ))
    }

    /// Focuses the element that an expression yields.
    pub fn focus(&self, expression: &str) {
        let there = format!("{expression}.focus(), document.activeElement === {expression}");
        assert_eq!(self.get(&there), true, "{expression} takes the focus");
    }

    /// Presses a key at the focus.
    pub fn press(&self, key: &str) {
        // Enter has an effect only if it also inserts text.
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowLeft" => (37, ""),
            "ArrowUp" => (38, ""),
            "ArrowRight" => (39, ""),
            _ => (40, ""),
        };
        for (kind, text) in [("keyDown", text), ("keyUp", "")] {
            let event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types at the focus.
    pub fn type_text(&self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Clicks the middle of the element that an expression yields.
    pub fn click(&self, expression: &str) {
        let place = format!(
            "(one => (one.scrollIntoView({{ block: 'center' }}), one = \
             one.getBoundingClientRect(), [one.x + one.width / 2, one.y + one.height / \
             2]))({expression})"
        );
        let place = self.get(&place);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Emulates another medium and colour scheme.
    pub fn media(&self, media: &str, scheme: &str) {
        let features = [
            json!({ "name": "prefers-color-scheme", "value": scheme }),
            json!({ "name": "prefers-reduced-motion", "value": "reduce" }),
        ];
        let media = json!({ "media": media, "features": features });
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Emulates another screen.
    pub fn screen(&self, width: u32, height: u32) {
        let screen = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", screen);
    }

    /// Saves a picture of the whole page with the tests' files, for a person to look at.
    pub fn picture(&self, name: &str) {
        let whole = json!({ "captureBeyondViewport": true, "clip": self.size() });
        let picture = self.call("Page.captureScreenshot", whole);
        keep(&picture, name);
    }

    /// Saves the page as printed.
    pub fn print(&self, name: &str) {
        keep(&self.call("Page.printToPDF", json!({})), name);
    }

    fn size(&self) -> Value {
        let root = "document.documentElement";
        self.get(&format!(
            "({{ x: 0, y: 0, scale: 1, width: {root}.scrollWidth, height: {root}.scrollHeight }})"
        ))
    }

    /// Errors, exceptions and requests so far.
    pub fn trouble(&self) -> Vec<String> {
        self.get("0"); // events before the answer arrive with it
        self.process.borrow().trouble.clone()
    }
}

/// The path of a file for this test alone.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn keep(answer: &Value, name: &str) {
    let data = answer["data"].as_str().expect("data");
    fs::write(scratch(name), decoded(data)).expect("a file");
}

/// Decodes base 64.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let four = |four: &[u8]| -> Vec<u8> {
        let held: Vec<u8> = four.iter().copied().filter(|&byte| byte != b'=').collect();
        let bits = held.iter().fold(0, |bits, &byte| bits << 6 | digit(byte));
        let bits = bits << (6 * (4 - held.len()));
        bits.to_be_bytes()[1..held.len()].to_vec()
    };
    text.as_bytes().chunks(4).flat_map(four).collect()
}
