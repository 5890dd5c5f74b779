//! Cells with planted mistakes, to show that the runner sees each kind.

use std::path::Path;

use super::document::{Cell, Outputs};
use super::session::Session;
use super::{Problem, evcxr, problem};
use crate::error::Result;

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
pub(super) fn run(program: &Path) -> Result<Vec<(usize, Problem)>> {
    let build = evcxr::build_folder("planted")?;
    let mut session = Session::start(program, &build, &build)?;
    let mut unseen = Vec::new();
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
