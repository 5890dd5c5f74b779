//! A kernel of Jupyter that runs, and what came of each cell that it was given.
//!
//! The kernel is started and spoken to by Jupyter's own client, a Python program (`client.py`), so that
//! what is tried is what people use. Of a panic and of an error at `?` Jupyter says nothing: both are
//! only text on standard error.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::document::Outputs;
use super::evcxr::Programs;
use super::kernel::{self, Kernel};
use crate::error::{Error, Result};
use crate::workspace::{cannot_start, root, target_folder};

/// Where shared libraries are looked for first.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
const CLIENT_HELP: &str = "Remove the folder it is in; it is installed again";

/// A running kernel.
pub(crate) struct Session {
    client: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    log: PathBuf,
    /// Why it ended, once it has.
    ended: Option<String>,
}

/// What came of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It compiled and the process lives; it may have panicked.
    Ran(Outputs),
    /// The process that runs the cells died of it.
    Crashed(String),
    /// The kernel itself ended, or was ended since it took too long.
    Ended(String),
}

impl Session {
    /// Starts a kernel in the notebook's folder; `name` tells its files from those of other sessions.
    ///
    /// # Errors
    /// Files that cannot be written, or a client that does not start. A kernel that does not start is
    /// what the first cell comes to.
    pub(crate) fn start(
        programs: &Programs,
        kernel: &Kernel,
        folder: &Path,
        name: &str,
    ) -> Result<Session> {
        let jupyter = kernel::folders().join("jupyter").join(name);
        let empty = jupyter.join("config");
        fs::create_dir_all(&empty).map_err(Error::io("create", &empty))?;
        kernel.describe(&jupyter)?;
        let log = jupyter.join("log");
        File::create(&log).map_err(Error::io("create", &log))?;
        let mut command = Command::new(&programs.python);
        command.arg(root().join("xtask/src/notebook/client.py"));
        command.arg(jupyter.join("kernels")).arg(kernel::NAME);
        command.arg(folder).arg(&log);
        // What the user has set for evcxr, Jupyter and Python is left alone.
        command.env("EVCXR_CONFIG_DIR", &empty);
        for variable in [
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
        ] {
            command.env(variable, &jupyter);
        }
        for variable in ["EVCXR_TMPDIR", "JUPYTER_PATH", "NO_COLOR", "PYTHONPATH"] {
            command.env_remove(variable);
        }
        if let Some(places) = std::env::var_os(LIBRARY_PATH) {
            command.env(LIBRARY_PATH, without_build(&places, &target_folder())?);
        }
        Session::of(command, log)
    }

    fn of(mut command: Command, log: PathBuf) -> Result<Session> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = command
            .spawn()
            .map_err(|source| cannot_start(&command, source, CLIENT_HELP))?;
        let (Some(requests), Some(answers)) = (client.stdin.take(), client.stdout.take()) else {
            unreachable!("both are pipes");
        };
        let mut session = Session {
            client,
            requests: Some(requests),
            answers: BufReader::new(answers),
            log,
            ended: None,
        };
        // A kernel that does not start is what the first cell comes to.
        let _ = session.answer();
        Ok(session)
    }

    /// Runs a cell.
    pub(crate) fn run(&mut self, code: &str) -> Outcome {
        match self.request(&json!({"run": code})) {
            Ok(answer) => outcome(&answer),
            Err(text) => Outcome::Ended(text),
        }
    }

    /// Restarts the kernel as Jupyter's "Restart kernel" does.
    ///
    /// # Errors
    /// Why it did not come up.
    pub(crate) fn restart(&mut self) -> std::result::Result<(), String> {
        self.request(&json!({"restart": ""})).map(|_| ())
    }

    fn request(&mut self, request: &Value) -> std::result::Result<Value, String> {
        if let Some(text) = &self.ended {
            return Err(text.clone());
        }
        // If the client has ended, there is no answer.
        let _ = (self.requests.as_mut()).map(|requests| writeln!(requests, "{request}"));
        self.answer()
    }

    fn answer(&mut self) -> std::result::Result<Value, String> {
        let mut line = String::new();
        let _ = self.answers.read_line(&mut line);
        let answer = serde_json::from_str(&line).unwrap_or(json!({"ended": "its client ended"}));
        match answer["ended"].as_str() {
            None => Ok(answer),
            Some(text) => {
                let log = fs::read(&self.log).unwrap_or_default();
                let text = format!("{text}\n{}", plain(&String::from_utf8_lossy(&log)));
                self.ended = Some(text.clone());
                Err(text)
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.requests.take();
        let _ = self.client.wait();
    }
}

/// The places of shared libraries without those in which cargo builds, which it adds for the programs
/// that it runs: Kiln's library there is another build than the cells'.
fn without_build(places: &OsStr, build: &Path) -> Result<OsString> {
    let kept = std::env::split_paths(places).filter(|place| !place.starts_with(build));
    std::env::join_paths(kept).map_err(|error| Error::Usage {
        message: format!("{LIBRARY_PATH} cannot be passed on: {error}"),
    })
}

/// What came of a cell, from the client's answer.
fn outcome(answer: &Value) -> Outcome {
    let Some(outputs) = Outputs::of(&answer["outputs"]) else {
        return Outcome::Ended(format!("no outputs of a notebook: {answer}"));
    };
    match &outputs.refused {
        Some(text) if text.contains("Subprocess terminated") => {
            Outcome::Crashed(format!("{text}\n{}{}", outputs.out, outputs.err))
        }
        _ => Outcome::Ran(outputs),
    }
}

/// The text without colours.
pub(super) fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `[` parameters, then one letter.
        let letter = part.find(|c: char| c.is_ascii_alphabetic());
        let rest = &part[letter.map_or(0, |at| at + 1)..];
        plain.push_str(rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers as the client does; what it does is in the request's text.
    const STAND_IN: &str = r#"
        say() { printf '%s\n' "$1"; }
        outputs() { say "{\"outputs\": [{\"output_type\": $1}]}"; }
        say '{}'
        while read -r request; do
            case "$request" in
                *lines*) outputs '"stream", "name": "stdout", "text": ["a\n", "b\n"]' ;;
                *refused*) outputs '"error", "traceback": ["\u001b[91mmismatched\u001b[0m", "types"]' ;;
                *dead*) outputs '"error", "traceback": ["Subprocess terminated with status: signal: 6"]' ;;
                *restart*) say '{}' ;;
                *end*) say 'no rustc' >>"$LOG"; say '{"ended": "it ended"}'; exit ;;
                *) say '{"outputs": []}' ;;
            esac
        done
    "#;

    fn session(name: &str) -> Session {
        let log = std::env::temp_dir().join(format!("kiln-xtask-{name}-{}", std::process::id()));
        File::create(&log).expect("a temporary file");
        let mut command = Command::new("sh");
        command.args(["-c", STAND_IN]).env("LOG", &log);
        Session::of(command, log).expect("sh starts")
    }

    fn ran(out: &str, refused: Option<&str>) -> Outcome {
        let (out, refused) = (out.to_owned(), refused.map(str::to_owned));
        let err = String::new();
        Outcome::Ran(Outputs { out, err, refused })
    }

    #[test]
    fn cells_have_the_outputs_that_jupyter_keeps() {
        let mut session = session("outputs");
        assert_eq!(session.run("lines"), ran("a\nb\n", None));
        assert_eq!(session.run("nothing"), ran("", None));
        assert_eq!(session.run("refused"), ran("", Some("mismatched\ntypes")));
        fs::remove_file(&session.log).expect("it was made above");
    }

    #[test]
    fn libraries_that_cargo_built_are_out_of_the_way() {
        let places = OsStr::new("/a/target/debug/deps:/opt/lib:/a/target:/a/target2");
        let kept = without_build(places, Path::new("/a/target"));
        assert_eq!(kept.expect("no name has a colon"), "/opt/lib:/a/target2");
    }

    #[test]
    fn what_ended_is_told_apart() {
        let mut session = session("ended");
        let dead = session.run("dead");
        assert!(
            matches!(&dead, Outcome::Crashed(text) if text.contains("signal: 6")),
            "{dead:?}"
        );
        for cell in ["end", "lines"] {
            let ended = session.run(cell);
            assert!(
                matches!(&ended, Outcome::Ended(text) if text.contains("no rustc")),
                "{ended:?}"
            );
        }
        assert!(session.restart().is_err());
        fs::remove_file(&session.log).expect("it was made above");
    }
}
