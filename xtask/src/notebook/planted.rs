//! Cells with planted mistakes, to show that the runner sees each kind.

use std::time::SystemTime;

use super::compiled::problem_since;
use super::document::{Cell, Outputs};
use super::evcxr::{Programs, build_folder};
use super::kernel::{Kernel, folders};
use super::session::Session;
use super::{FOLDER, Problem, problem};
use crate::error::Result;
use crate::wheels::remove;
use crate::workspace::root;

/// A cell, what it is expected to print, and the mistake that must be seen, if there is one.
struct Planted {
    code: &'static str,
    out: &'static str,
    err: &'static str,
    mistake: Option<fn(&Problem) -> bool>,
}

const fn planted(code: &'static str, mistake: Option<fn(&Problem) -> bool>) -> Planted {
    Planted {
        code,
        out: "",
        err: "",
        mistake,
    }
}

const PLANTED: &[Planted] = &[
    planted(
        "let number: u32 = \"text\";",
        Some(|p| matches!(p, Problem::Refused(_))),
    ),
    planted(
        "panic!(\"planted\");",
        Some(|p| matches!(p, Problem::Panicked(_))),
    ),
    planted(
        "assert_eq!(1 + 1, 3);",
        Some(|p| matches!(p, Problem::Panicked(_))),
    ),
    planted(
        "let number: u32 = \"text\".parse()?;\nprintln!(\"{number}\");",
        Some(|p| matches!(p, Problem::Error(text) if text.contains("invalid digit"))),
    ),
    // An error without words.
    planted(
        "Err::<(), String>(String::new())?;",
        Some(|p| matches!(p, Problem::Error(_))),
    ),
    planted(
        "std::process::abort();",
        Some(|p| matches!(p, Problem::Crashed(_))),
    ),
    Planted {
        out: "3\n",
        ..planted(
            "println!(\"{}\", 1 + 1);",
            Some(|p| matches!(p, Problem::Printed { .. })),
        )
    },
    Planted {
        out: "2\n",
        ..planted(
            "let number = 2;",
            Some(|p| matches!(p, Problem::Printed { .. })),
        )
    },
    Planted {
        err: "an error\n",
        ..planted("let shown = 1;", Some(|p| matches!(p, Problem::NoError)))
    },
    // And cells that are right.
    Planted {
        out: "2\n2\n",
        ..planted(
            "let number = 1 + 1;\nprintln!(\"{number}\");\nprint!(\"{number}\");",
            None,
        )
    },
    Planted {
        err: "an error\n",
        ..planted("Err::<(), String>(\"an error\".to_owned())?;", None)
    },
    Planted {
        out: "2\n",
        ..planted("1 + 1", None)
    },
];

/// Runs the planted cells, and gives back those of which the runner says something else.
///
/// The kernel starts beside the project's notebooks, with nothing compiled before: what their
/// `evcxr.toml` says must not make a start compile anything, since Jupyter waits for it.
pub(super) fn run(programs: &Programs) -> Result<Vec<(usize, Problem)>> {
    let folder = folders().join("planted");
    remove(&folder)?;
    let build = build_folder(&folder.join("build"))?;
    let kernel = Kernel::in_folder(&programs.evcxr, &build);
    let before = SystemTime::now();
    let mut session = Session::start(programs, &kernel, &root().join(FOLDER), "planted")?;
    let mut unseen = Vec::new();
    let compiled = problem_since(before, "a start of the kernel");
    unseen.extend(compiled.map(|problem| (0, problem)));
    for (index, planted) in PLANTED.iter().enumerate() {
        let outputs = Outputs {
            out: planted.out.to_owned(),
            err: planted.err.to_owned(),
            refused: None,
        };
        let cell = Cell {
            index,
            code: planted.code.to_owned(),
            fails: !planted.err.is_empty(),
            outputs,
        };
        let found = problem(&cell, &session.run(planted.code));
        let seen = match (&found, planted.mistake) {
            (None, None) => true,
            (Some(found), Some(mistake)) => mistake(found),
            _ => false,
        };
        if !seen {
            let found = found.map_or("nothing".to_owned(), |problem| problem.to_string());
            let code = planted.code;
            unseen.push((index, Problem::Unseen { code, found }));
        }
    }
    Ok(unseen)
}
