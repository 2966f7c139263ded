//! The computer that is examined.

use stats::environment::{Environment, Tool, collect_below};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

/// The time for which the load of others is watched.
const WINDOW: Duration = Duration::from_secs(1);

/// A computer, and a process's view of it.
pub struct Host {
    /// The directory that stands for `/`.
    root: PathBuf,
    /// The environment that results record.
    pub environment: Environment,
    /// Where temporary files go.
    pub temporary: PathBuf,
    /// This program.
    pub executable: PathBuf,
    /// Where programs are looked for.
    pub path: OsString,
    /// Tries to count cycles.
    pub cycles: fn() -> io::Result<()>,
    /// Tries to open the tracepoints, mounted or not; none where only files are looked at.
    pub tracepoints: Option<fn() -> io::Result<()>>,
}

impl Host {
    /// This computer; watches its load for a while.
    pub fn here() -> Self {
        Host {
            temporary: env::temp_dir(),
            executable: env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into()),
            path: env::var_os("PATH").unwrap_or_default(),
            cycles: perf::support::cycles,
            tracepoints: Some(perf::support::tracepoints),
            ..Host::below(Path::new("/"), WINDOW)
        }
    }

    /// The computer whose files are copied to `root`; only those files are read.
    pub fn below(root: &Path, window: Duration) -> Self {
        let tool = Tool {
            version: env!("CARGO_PKG_VERSION"),
            commit: None,
            arguments: &[],
        };
        Host {
            environment: collect_below(root, &tool, window),
            temporary: root.join("tmp"),
            executable: root.join("scalevm"),
            path: root.join("bin").into(),
            cycles: || Err(io::ErrorKind::NotFound.into()),
            tracepoints: None,
            root: root.into(),
        }
    }

    /// A file's text without its line end, or why there is none.
    pub fn text(&self, path: &str) -> Result<String, String> {
        let text = fs::read_to_string(self.root.join(path));
        text.map(|text| text.trim().to_owned())
            .map_err(|error| format!("/{path}: {error}"))
    }

    /// A file's number.
    pub fn number(&self, path: &str) -> Result<i64, String> {
        let text = self.text(path)?;
        text.parse().map_err(|_| format!("/{path}: `{text}`"))
    }

    /// Returns true if there is such a file or folder.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The value of a line `key: value …` of a file, up to its unit.
    pub fn field(&self, path: &str, key: &str) -> Result<String, String> {
        let text = self.text(path)?;
        let value = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let word = value.split_whitespace().next()?;
            (name == key).then(|| word.to_owned())
        };
        let found = text.lines().find_map(value);
        found.ok_or_else(|| format!("/{path}: no `{key}`"))
    }

    /// CPUs online; one at least.
    pub fn cpus(&self) -> u64 {
        u64::from(self.environment.cpus.unwrap_or(1).max(1))
    }

    /// Why a value of the environment is not known.
    pub fn unknown(&self, field: &str) -> String {
        let reason = self.environment.missing.get(field);
        format!("not known ({})", reason.map_or("no reason", String::as_str))
    }
}
