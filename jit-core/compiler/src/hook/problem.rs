//! Several things that a hook has to say against a kernel, each with its place.

use std::fmt;

use super::HookResult;
use crate::ir::{
    Cursor, FuncId, Inst, Module, debug_as_text, error_text, first_of, shortened, write_rest,
};

/// What a hook has found wrong with a kernel: a list of problems, each with the place that it is about, which is one
/// error.
///
/// ```
/// use kiln_compiler::hook::{Hook, Problems};
/// use kiln_compiler::ir::InstData;
///
/// /// Refuses kernels that wait for their block, and says each place where they do.
/// let without_barriers = Hook::new("without-barriers").rewrite_ir(|_, module| {
///     let mut problems = Problems::default();
///     module.rewrite_each(|at| {
///         if let InstData::Barrier = at.data() {
///             problems.here(at, "this device has no barriers");
///         }
///     });
///     if let (Some(kernel), false) = (module.kernel(), problems.is_empty()) {
///         problems.of(module, kernel, "split it where it waits");
///     }
///     assert!(problems.iter().all(|problem| !problem.message.is_empty()));
///     problems.into_result()
/// });
/// # drop(without_barriers);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// One problem of a kernel.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The place in the program, as `file:line:column`.
    pub at: String,
    /// The function that it is in.
    pub function: String,
    /// What is wrong, and what to do.
    pub message: String,
}

debug_as_text!(Problem, Problems);

impl Problems {
    /// Notes a problem at the instruction that a cursor is at.
    pub fn here(&mut self, at: &Cursor<'_>, message: impl Into<String>) {
        match at.inst() {
            Some(inst) => self.at(at.module(), at.function_id(), inst, message),
            None => self.of(at.module(), at.function_id(), message),
        }
    }

    /// Notes a problem at an instruction. Of copies of one, as hooks make them, it is noted once.
    pub fn at(
        &mut self,
        module: &Module,
        function: FuncId,
        inst: Inst,
        message: impl Into<String>,
    ) {
        let location = module.functions[function].insts[inst].location;
        let problem = Problem {
            at: module.display_location(location),
            function: module.functions[function].name.clone(),
            message: message.into(),
        };
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// Notes a problem of a whole function.
    pub fn of(&mut self, module: &Module, function: FuncId, message: impl Into<String>) {
        let function = &module.functions[function];
        self.0.push(Problem {
            at: module.display_location(function.location),
            function: function.name.clone(),
            message: message.into(),
        });
    }

    /// The problems, in the order in which they were noted.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.iter()
    }

    /// Whether none was noted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a function of a hook gives: nothing, or all problems as one error.
    ///
    /// # Errors
    /// The problems, if there are any.
    pub fn into_result(self) -> HookResult<()> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(self.into()),
        }
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_text!(
            "{} (`{}`): {}",
            self.at,
            self.function,
            self.message
        ))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&error_text!("{}", Whole(&self.0)))
    }
}

/// The text, whole.
struct Whole<'a>(&'a [Problem]);

impl fmt::Display for Whole<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let s = if count == 1 { "" } else { "s" };
        write!(f, "{count} problem{s}")?;
        for problem in first_of(self.0) {
            write!(f, "\n  {}", shortened(&problem.to_string()))?;
        }
        write_rest(f, self.0)
    }
}
