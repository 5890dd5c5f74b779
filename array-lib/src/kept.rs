//! What the evaluation of an expression has found out, kept in the expression for its next evaluation.
//!
//! Nodes do not change and hold the buffers that they read, which so stay where they are. Hence what is found for a
//! result that is all of a buffer, and of which the expression reads nothing, is right for every other such result.

use kiln_jit_core::args::{Arg, IntoArg};
use kiln_jit_core::build::Kernel;
use kiln_jit_core::error::Error;
use kiln_jit_core::runtime::Buffer;
use smallvec::SmallVec;

use crate::eval::BLOCK;
use crate::expr::Node;
use crate::fused::{Fused, Passed};
use crate::input::Identity;
use crate::{Arrays, Element, Expr, Result};

/// Arguments of a launch; most have no more, and are passed without an allocation.
type Args<'a> = SmallVec<[Arg<'a>; 6]>;

/// How an expression is evaluated: the launch of its kernel, but for the buffer that its results go to.
pub(crate) struct Evaluation {
    kernel: Kernel,
    passed: Vec<Passed>,
    grid: (u32, u32),
}

impl Evaluation {
    pub(crate) fn new(kernel: Kernel, fused: &Fused<'_>) -> Evaluation {
        Evaluation {
            kernel,
            passed: fused.passed(),
            grid: fused.grid(),
        }
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The arguments: the result's buffer, and what is passed for the expression.
    pub(crate) fn args<'a, T: Element>(
        &'a self,
        out: &'a mut Buffer<T>,
    ) -> Result<Args<'a>, Error> {
        let first = std::iter::once(Ok(out.into_arg()));
        first.chain(self.passed.iter().map(Passed::arg)).collect()
    }

    /// Launches the kernel.
    pub(crate) fn launch<T: Element>(&self, arrays: &Arrays, out: &mut Buffer<T>) -> Result<()> {
        let args = self.args(out)?;
        arrays.jit().launch(&self.kernel, self.grid, BLOCK, &args)?;
        arrays.count_launch();
        Ok(())
    }
}

/// An evaluation that the node of an expression keeps.
pub(crate) struct Kept {
    arrays: Arrays,
    evaluation: Evaluation,
    reads: Buffers,
}

/// The buffers that an expression reads.
pub(crate) type Buffers = SmallVec<[Identity; 4]>;

impl<T: Element> Expr<T> {
    /// What is kept, if it is for these arrays.
    fn kept_for(&self, arrays: &Arrays) -> Option<&Kept> {
        let Node::Apply { kept, .. } = &*self.node else {
            return None;
        };
        kept.get()
            .map(|kept| &**kept)
            .filter(|kept| kept.arrays.is(arrays))
    }

    /// The evaluation with a new result that is kept for these arrays.
    pub(crate) fn kept(&self, arrays: &Arrays) -> Option<&Evaluation> {
        self.kept_for(arrays).map(|kept| &kept.evaluation)
    }

    /// The evaluation whose result becomes all of a buffer that is there; `None` also if the expression reads it.
    pub(crate) fn kept_into(&self, arrays: &Arrays, own: Identity) -> Option<&Evaluation> {
        let kept = self.kept_for(arrays)?;
        (!kept.reads.contains(&own)).then_some(&kept.evaluation)
    }

    /// Keeps an evaluation whose result becomes all of a buffer of which the expression reads nothing, unless one is kept.
    pub(crate) fn keep(&self, arrays: &Arrays, evaluation: Evaluation, reads: Buffers) {
        if let Node::Apply { kept, .. } = &*self.node {
            let arrays = arrays.clone();
            kept.get_or_init(|| {
                Box::new(Kept {
                    arrays,
                    evaluation,
                    reads,
                })
            });
        }
    }
}
