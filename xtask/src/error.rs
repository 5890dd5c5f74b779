//! What can go wrong in a project command.
//!
//! Every variant says what was tried, what came back, and what to do about it: these texts are read
//! by people who have just cloned the repository.

use std::path::PathBuf;
use std::process::ExitStatus;

/// The result of a project command.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a project command ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line is not understood.
    #[error("{message}; `cargo xtask --help` lists the commands")]
    Usage {
        /// What is wrong with it.
        message: String,
    },
    /// A program could not be started.
    #[error("`{program}` cannot be started: {source}. {help}")]
    CannotStart {
        /// The program.
        program: String,
        /// What the operating system said.
        source: std::io::Error,
        /// How to get the program.
        help: &'static str,
    },
    /// A program ended with a failure; it has printed why.
    #[error("{what} failed ({status}). {help}")]
    Failed {
        /// What was being done.
        what: String,
        /// How the program ended.
        status: ExitStatus,
        /// What to do.
        help: &'static str,
    },
    /// A file is no notebook, or its outputs are none that it can have.
    #[error("{}: {message}. Repair it in Jupyter", path.display())]
    Notebook {
        /// The notebook.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Kiln cannot be compiled for notebooks.
    #[error("Kiln cannot be compiled for notebooks: {found}. See `cargo build -p kiln-notebook`")]
    NotPrepared {
        /// What is wrong.
        found: String,
    },
    /// Tests failed.
    #[error("{failed} failed; see the output above")]
    TestsFailed {
        /// The number of failed tests and of steps that failed without naming a test.
        failed: u64,
    },
    /// mdBook warns of something in the guide, and has said of what.
    #[error("mdBook printed {warnings} warnings or errors, see above. Correct docs/guide")]
    GuideWarns {
        /// The number of warnings and errors.
        warnings: usize,
    },
    /// A document has no longer what is taken from it.
    #[error("{what}. Correct the document, or xtask/src/newcomer.rs, which reads it")]
    Document {
        /// What is missing or other than it was.
        what: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {source}. Check its permissions and the free disk space", path.display())]
    Io {
        /// Read, write, create, and so on.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Python is there, but it can make no environment and has no pip.
    #[error(
        "python3 has neither `venv` nor `pip`, so {what} cannot be installed. Install them \
         (Debian and Ubuntu: apt-get install python3-venv) and try again"
    )]
    NoPip {
        /// What comes as wheels.
        what: &'static str,
    },
    /// Python is there, but it can make no environment.
    #[error(
        "python3 cannot make an environment (`venv`), so {what} cannot be installed. Install it \
         (Debian and Ubuntu: apt-get install python3-venv) and try again"
    )]
    NoVenv {
        /// What comes as wheels.
        what: &'static str,
    },
    /// Some peers of the CPU bench are not ready.
    #[error(
        "not set up: {}. What is missing is said above; the bench leaves these peers out", names.join(", ")
    )]
    PeersMissing {
        /// The peers.
        names: Vec<&'static str>,
    },
    /// A peer does not answer as it should.
    #[error("`{peer}` was started to try it and answered `{answer}`. {help}")]
    PeerSilent {
        /// The peer.
        peer: &'static str,
        /// The first line of its output.
        answer: String,
        /// What to do.
        help: &'static str,
    },
    /// What an installation should have brought is missing.
    #[error("no `{file}` under {}. Remove that folder and try again", folder.display())]
    MissingFile {
        /// The file's name.
        file: &'static str,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A tool is missing after its installation.
    #[error(
        "`{tool}` is not under {} after the installation. Remove that folder and try again; NVIDIA \
         publishes these tools for Linux on x86-64 and aarch64 only", folder.display()
    )]
    MissingTool {
        /// The tool's file name.
        tool: &'static str,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Cargo printed something that is not the JSON it documents.
    #[error("cargo's answer to `{command}` is not understood: {source}. Use the pinned toolchain")]
    CargoOutput {
        /// The cargo command.
        command: &'static str,
        /// Where reading it failed.
        source: serde_json::Error,
    },
    /// What programs of users are made into folders by has failed.
    #[error(transparent)]
    Bundle(#[from] kiln_bundle::Error),
    /// Two programs of the bundle have the same name.
    #[error("two targets are named `{name}`, and the bundle has one folder for both. Rename one")]
    DuplicateProgram {
        /// The name.
        name: String,
    },
    /// The bundle is larger than its limit.
    #[error("the bundle has {size} bytes, the limit is {limit}. The largest files:\n{largest}")]
    BundleTooLarge {
        /// Bytes of all files.
        size: u64,
        /// Bytes allowed.
        limit: u64,
        /// One file a line, largest first.
        largest: String,
    },
}

impl Error {
    /// Turns an I/O error on `path` into an error that names it.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }
}
