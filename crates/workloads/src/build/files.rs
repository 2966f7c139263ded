//! The files that all compilers of a build use.

/// One of each.
pub struct Files<F> {
    /// The compiler itself.
    pub program: F,
    /// What it is linked with.
    pub library: F,
    /// What it reads.
    pub sources: F,
}

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// See [`Files::program`].
    Program,
    /// See [`Files::library`].
    Library,
    /// See [`Files::sources`].
    Sources,
}

impl Input {
    /// Bytes of the file; whole pages.
    pub const fn len(self) -> usize {
        match self {
            Input::Program => 8 << 20,
            Input::Library => 256 << 10,
            Input::Sources => 32 << 10,
        }
    }

    /// The byte with which each page begins; never 0, what a lost page holds.
    pub const fn byte(self, page: usize) -> u8 {
        (page * 3 + self as usize) as u8 | 0x80
    }
}

impl<F> Files<F> {
    /// Each as `make` makes it.
    pub fn try_new<E>(mut make: impl FnMut(Input) -> Result<F, E>) -> Result<Self, E> {
        Ok(Files {
            program: make(Input::Program)?,
            library: make(Input::Library)?,
            sources: make(Input::Sources)?,
        })
    }
}
