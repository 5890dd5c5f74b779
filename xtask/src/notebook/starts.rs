//! Kernels as people start them: one that is restarted, and another beside it.

use std::time::SystemTime;

use super::compiled::problem_since;
use super::document::{Cell, Document};
use super::evcxr::Programs;
use super::kernel::Kernel;
use super::session::{Outcome, Session};
use super::{FOLDER, Problem, problem};
use crate::error::Result;
use crate::workspace::root;

/// The notebook of which the first cells are run.
const NOTEBOOK: &str = "hello.ipynb";
/// How many: Kiln is there, a kernel is defined and launched.
const CELLS: usize = 4;

/// Runs the first cells of a notebook in two kernels at once, restarts one, and runs them again. None of
/// it may compile a crate, since what people wait for is the cell.
pub(super) fn run(programs: &Programs) -> Result<Vec<(usize, Problem)>> {
    let folder = root().join(FOLDER);
    let mut cells = Document::read(&folder.join(NOTEBOOK))?.cells()?;
    cells.truncate(CELLS);
    let kernel = Kernel::of_people(&programs.evcxr);
    let before = SystemTime::now();
    let mut first = Session::start(programs, &kernel, &folder, "first")?;
    let mut second = Session::start(programs, &kernel, &folder, "second")?;
    let mut problems = Vec::new();
    for cell in &cells {
        for session in [&mut first, &mut second] {
            problems.extend(run_cell(session, cell));
        }
    }
    if let Err(text) = first.restart() {
        problems.push((0, Problem::Ended(text)));
    }
    for cell in &cells {
        problems.extend(run_cell(&mut first, cell));
    }
    // The restart was the first one's alone.
    problems.extend(cells.last().and_then(|cell| run_again(&mut second, cell)));
    let compiled = problem_since(before, "a kernel that was prepared");
    problems.extend(compiled.map(|problem| (0, problem)));
    Ok(problems)
}

fn run_cell(session: &mut Session, cell: &Cell) -> Option<(usize, Problem)> {
    let outcome = session.run(&cell.code);
    problem(cell, &outcome).map(|problem| (cell.index, problem))
}

/// Runs a cell once more, which needs the variables of the cells before it.
fn run_again(session: &mut Session, cell: &Cell) -> Option<(usize, Problem)> {
    match session.run(&cell.code) {
        Outcome::Ran(outputs) if outputs.err.is_empty() && outputs.refused.is_none() => None,
        outcome => Some((cell.index, Problem::Ended(format!("{outcome:?}")))),
    }
}
