//! The files that all processes of a program use.

/// Libraries of a program: cc1's number, without the dynamic linker.
pub const LIBRARIES: usize = 8;

/// One file of each kind.
pub struct Files<F> {
    /// The program itself.
    pub program: F,
    /// The libraries that it is linked with.
    pub libraries: [F; LIBRARIES],
    /// The input of a compiler.
    pub sources: F,
}

/// Names one of the [`Files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The program itself.
    Program,
    /// One of [`Files::libraries`], by its number.
    Library(usize),
    /// The input of a compiler.
    Sources,
}

impl Input {
    /// Bytes of the file; whole pages.
    pub const fn size(self) -> usize {
        match self {
            Input::Program => 8 << 20,
            Input::Library(_) => 256 << 10,
            Input::Sources => 32 << 10,
        }
    }

    /// The byte with which each page begins; never 0, the content of a lost page.
    pub const fn byte(self, page: usize) -> u8 {
        let which = match self {
            Input::Program => 0,
            Input::Sources => 1,
            Input::Library(number) => 2 + number,
        };
        (page * 3 + which) as u8 | 0x80
    }
}

impl<F> Files<F> {
    /// The files, each made by `make`.
    pub fn try_new<E>(mut make: impl FnMut(Input) -> Result<F, E>) -> Result<Self, E> {
        let mut libraries = [const { None }; LIBRARIES];
        for (number, library) in libraries.iter_mut().enumerate() {
            *library = Some(make(Input::Library(number))?);
        }
        Ok(Files {
            program: make(Input::Program)?,
            libraries: libraries.map(|library| library.expect("made above")),
            sources: make(Input::Sources)?,
        })
    }

    /// All of them, in the order in which [`Files::try_new`] makes them.
    pub fn iter(&self) -> impl Iterator<Item = &F> {
        self.libraries.iter().chain([&self.program, &self.sources])
    }
}
