//! Files and folders of a test's own.

use std::fs;
use std::path::PathBuf;

/// A file or folder of this test's own, gone when it ends.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Not there yet.
    pub fn new(name: &str) -> Self {
        let name = format!("scalevm-{}-{name}", std::process::id());
        let scratch = Scratch(std::env::temp_dir().join(name));
        // An earlier test of this number may have left files.
        scratch.remove();
        scratch
    }

    /// A file.
    pub fn file(name: &str, content: &str) -> Self {
        let scratch = Scratch::new(name);
        fs::write(&scratch.0, content).expect("a file");
        scratch
    }

    /// An empty folder.
    pub fn folder(name: &str) -> Self {
        let scratch = Scratch::new(name);
        fs::create_dir(&scratch.0).expect("a folder");
        scratch
    }

    /// Its name.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    /// The name of a file in the folder.
    pub fn inside(&self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    /// Writes a file in the folder; its name.
    pub fn write(&self, name: &str, content: &str) -> String {
        let path = self.inside(name);
        fs::write(&path, content).expect("a file");
        path
    }

    /// The files in the folder, by name.
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        files.sort();
        files
    }

    /// A leftover in the temporary directory does no harm, so this may fail.
    fn remove(&self) {
        let _ = if self.0.is_dir() {
            fs::remove_dir_all(&self.0)
        } else {
            fs::remove_file(&self.0)
        };
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
    }
}
