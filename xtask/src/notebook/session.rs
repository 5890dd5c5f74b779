//! A running evcxr, and what came of each cell that it was given.
//!
//! evcxr's own option for programs, `--ide-mode`, takes a cell as one line and ends each with a mark
//! that says whether the cell compiled and the process lived. Of a panic and of an error at `?` it says
//! nothing, as of those Jupyter says nothing: both are only text on standard error. Text of a cell
//! arrives at any time, also after the mark, since threads of evcxr pass it on. So each cell is
//! followed by one that prints a line on both streams; what comes before the line is the cell's.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::document::Outputs;
use crate::error::{Error, Result};
use crate::workspace::{cannot_start, target_folder};

/// What evcxr writes before it reads a cell.
const PROMPT: &str = ">> ";
/// What evcxr writes after a cell that ran.
const RAN: char = '\u{91}';
/// What evcxr writes after a cell that did not compile, or of which the process died.
const REFUSED: char = '\u{92}';
const MARKS: [char; 2] = [RAN, REFUSED];
/// How evcxr takes the line breaks inside a cell.
const LINE_BREAK: &str = "\u{2028}";
/// How long a cell may take. The first compiles Kiln.
const LIMIT: Duration = Duration::from_secs(900);
/// Where shared libraries are looked for first.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// A running evcxr.
pub(crate) struct Session {
    process: Child,
    input: Option<ChildStdin>,
    output: Receiver<(Stream, Vec<u8>)>,
    cells: usize,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// What came of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It compiled and the process lives; it may have panicked.
    Ran(Outputs),
    /// The process that runs the cells died of it.
    Crashed(String),
    /// evcxr itself ended, or was ended since it took too long.
    Ended(String),
}

impl Session {
    /// Starts evcxr in the notebook's folder, with the folder in which it compiles cells.
    pub(crate) fn start(evcxr: &Path, notebooks: &Path, build: &Path) -> Result<Session> {
        let mut command = Command::new(evcxr);
        command
            .args(["--ide-mode", "--disable-readline"])
            .current_dir(notebooks);
        command.env("EVCXR_TMPDIR", build);
        // The settings and the history of the user are left alone.
        command.env("EVCXR_CONFIG_DIR", build.join("config"));
        command.env_remove("NO_COLOR");
        if let Some(places) = std::env::var_os(LIBRARY_PATH) {
            command.env(LIBRARY_PATH, without_build(&places, &target_folder())?);
        }
        Session::of(command)
    }

    fn of(mut command: Command) -> Result<Session> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let help = "Remove the folder it is in; it is installed again";
        let mut process = command
            .spawn()
            .map_err(|source| cannot_start(&command, source, help))?;
        let (send, output) = channel();
        if let Some(out) = process.stdout.take() {
            pass_on(Stream::Out, out, send.clone());
        }
        if let Some(err) = process.stderr.take() {
            pass_on(Stream::Err, err, send);
        }
        Ok(Session {
            input: process.stdin.take(),
            process,
            output,
            cells: 0,
        })
    }

    /// Runs a cell.
    pub(crate) fn run(&mut self, code: &str) -> Outcome {
        self.cells += 1;
        let end = format!("kiln: end of cell {}", self.cells);
        let follower = format!("println!(\"\\u{{1}}{end}\"); eprintln!(\"\\u{{1}}{end}\");");
        let lines = format!(
            "{}\n{follower}\n",
            code.trim_end().replace('\n', LINE_BREAK)
        );
        // If evcxr has ended, its output says why.
        let _ = (self.input.as_mut()).map(|input| input.write_all(lines.as_bytes()));
        let deadline = Instant::now() + LIMIT;
        let end = format!("\u{1}{end}");
        let mut heard = Heard::default();
        loop {
            let (out, err) = (heard.out(), heard.err());
            match out
                .chars()
                .filter(|c| MARKS.contains(c))
                .collect::<Vec<_>>()[..]
            {
                [_, REFUSED, ..] => return Outcome::Ended(plain(&format!("{out}{err}"))),
                // The follower's mark, too, or it would be taken for the next cell's.
                [mark, RAN, ..] if out.contains(&end) && err.contains(&end) => {
                    let mut out = until(&out, &end);
                    if self.cells == 1 {
                        // evcxr greets.
                        out = out.split_once(PROMPT).map_or(out, |(_, cell)| cell);
                    }
                    return outcome(mark == RAN, out, until(&err, &end));
                }
                _ => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok((stream, bytes)) => heard.add(stream, &bytes),
                Err(reason) => {
                    let text = plain(&format!("{}{}", heard.out(), heard.err()));
                    if reason == RecvTimeoutError::Disconnected {
                        return Outcome::Ended(text);
                    }
                    let _ = self.process.kill();
                    let seconds = LIMIT.as_secs();
                    return Outcome::Ended(format!("it was ended after {seconds} s\n{text}"));
                }
            }
        }
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

/// What came on both streams since a cell was sent.
#[derive(Default)]
struct Heard {
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Heard {
    fn add(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Out => self.out.extend(bytes),
            Stream::Err => self.err.extend(bytes),
        }
    }

    fn out(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.out)
    }

    fn err(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.err)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input.take();
        let _ = self.process.wait();
    }
}

/// Reads a stream to its end on a thread of its own.
fn pass_on(name: Stream, mut stream: impl Read + Send + 'static, to: Sender<(Stream, Vec<u8>)>) {
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            if to.send((name, bytes[..count].to_vec())).is_err() {
                break;
            }
        }
    });
}

fn until<'a>(text: &'a str, end: &str) -> &'a str {
    text.split(end).next().unwrap_or(text)
}

/// What came of a cell, from its text on both streams.
fn outcome(ran: bool, out: &str, err: &str) -> Outcome {
    let (out, err) = (plain(out), errors(err));
    if ran {
        let refused = None;
        return Outcome::Ran(Outputs { out, err, refused });
    }
    // Compile errors are on standard output, all else is on standard error.
    if err.contains("Subprocess terminated") {
        return Outcome::Crashed(format!("{out}{err}"));
    }
    Outcome::Ran(Outputs {
        refused: Some(format!("{out}{err}")),
        ..Outputs::default()
    })
}

/// Whether a line is cargo's, which evcxr passes on while it compiles what cells depend on.
fn is_progress(line: &str) -> bool {
    const VERBS: &[&str] = &[
        "Adding",
        "Blocking",
        "Building",
        "Checking",
        "Compiling",
        "Downloaded",
        "Downloading",
        "Finished",
        "Locking",
        "Updating",
    ];
    // cargo ends its verbs at the twelfth column.
    let verb = line.get(..12).map(str::trim_start);
    verb.is_some_and(|verb| VERBS.contains(&verb)) && line[12..].starts_with(' ')
}

/// What cells wrote to standard error.
fn errors(text: &str) -> String {
    let text = plain(text);
    let lines = text.split_inclusive('\n').filter(|line| !is_progress(line));
    lines.collect()
}

/// The text without what evcxr and its colours add.
fn plain(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `[` parameters, then one letter.
        let letter = part.find(|c: char| c.is_ascii_alphabetic());
        let (code, rest) = part.split_at(letter.map_or(0, |at| at + 1));
        // evcxr's prompt is the only yellow text that is `>> `.
        let rest = match code {
            "[33m" => rest.strip_prefix(PROMPT).unwrap_or(rest),
            _ => rest,
        };
        plain.push_str(rest);
    }
    plain.retain(|c| !MARKS.contains(&c) && c != '\u{1}');
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Speaks as evcxr does: a prompt, text of both streams, a mark. What it does is in the cell's text.
    const STAND_IN: &str = r#"
        echo Welcome
        while printf '\033[33m>> \033[0m' && read -r cell; do
            mark='\302\221'
            case "$cell" in
                *"end of cell"*)
                    end=$(printf '%s' "$cell" | sed 's/.*\(kiln: end of cell [0-9]*\).*/\1/')
                    printf '\001%s\n' "$end"
                    printf '\001%s\n' "$end" >&2 ;;
                lines*) printf '%s\n' "$cell" | sed 's/\xe2\x80\xa8/\n/g' ;;
                refused) printf '\033[91mmismatched types\033[0m\n'; mark='\302\222' ;;
                builds) printf '   Compiling kiln v0.1.0 (/kiln)\n' >&2; echo 'an error' >&2 ;;
                panic) printf '\033[91mthread panicked at src/lib.rs:1:1\033[0m\n' >&2 ;;
                dead) echo 'Subprocess terminated with status: signal: 6' >&2; mark='\302\222' ;;
                end) echo 'no rustc' >&2; exit 1 ;;
            esac
            printf "$mark"
        done
    "#;

    fn session() -> Session {
        let mut command = Command::new("sh");
        command.args(["-c", STAND_IN]);
        Session::of(command).expect("sh starts")
    }

    fn ran(out: &str, err: &str) -> Outcome {
        let (out, err) = (out.to_owned(), err.to_owned());
        let refused = None;
        Outcome::Ran(Outputs { out, err, refused })
    }

    #[test]
    fn cells_keep_their_lines_and_their_order() {
        let mut session = session();
        assert_eq!(session.run("lines\nä"), ran("lines\nä\n", ""));
        assert_eq!(session.run("nothing"), ran("", ""));
        assert_eq!(session.run("lines"), ran("lines\n", ""));
        assert_eq!(session.run("builds"), ran("", "an error\n"));
    }

    #[test]
    fn libraries_that_cargo_built_are_out_of_the_way() {
        let places = OsStr::new("/a/target/debug/deps:/opt/lib:/a/target:/a/target2");
        let kept = without_build(places, Path::new("/a/target"));
        assert_eq!(kept.expect("no name has a colon"), "/opt/lib:/a/target2");
    }

    #[test]
    fn what_went_wrong_is_told_apart() {
        let mut session = session();
        let refused = Some("mismatched types\n".to_owned());
        let outputs = Outputs {
            refused,
            ..Outputs::default()
        };
        assert_eq!(session.run("refused"), Outcome::Ran(outputs));
        assert_eq!(
            session.run("panic"),
            ran("", "thread panicked at src/lib.rs:1:1\n")
        );
        let dead = session.run("dead");
        assert!(
            matches!(&dead, Outcome::Crashed(text) if text.contains("signal: 6")),
            "{dead:?}"
        );
        let ended = session.run("end");
        assert!(
            matches!(&ended, Outcome::Ended(text) if text.contains("no rustc")),
            "{ended:?}"
        );
        let ended = session.run("lines");
        assert!(matches!(&ended, Outcome::Ended(_)), "{ended:?}");
    }
}
