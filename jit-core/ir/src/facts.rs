//! What every analysis asks of an operation, said once.

use super::{
    Control, Effects, InstData, IntrinsicDef, IntrinsicId, Ordering, PrimaryMap, Scope, Value, Var,
};

/// What an operation is, whatever its operands are.
#[derive(Copy, Clone, Debug)]
pub struct Facts {
    /// What decides the result.
    pub source: Source,
    /// Whether the operation reads memory that other threads may write, or a device function or row may.
    pub reads: bool,
    /// Whether the operation writes memory or a variable.
    pub writes: bool,
    /// The check of an index that ends the thread if it fails.
    pub check: Option<Check>,
    /// Whether the operation says what holds where control comes to it.
    pub assumes: bool,
    /// Whether control goes elsewhere than to the next one; [`InstData::control`] says where.
    pub steers: bool,
    /// Whether threads execute it together: those of a block, or the lanes of a warp.
    pub meets: bool,
    /// Among which threads it orders accesses to memory; see [`InstData::orders_memory`].
    pub orders: Option<Scope>,
}

/// What decides the result of an operation.
#[derive(Copy, Clone, Debug)]
pub enum Source {
    /// Nothing: the operation has no result.
    None,
    /// The operands alone: the result is the same wherever and however often the operation is executed.
    Operands,
    /// A variable.
    Variable(Var),
    /// What is in memory.
    Memory {
        /// The address that is read.
        ptr: Value,
        /// How the memory is read.
        read: Read,
    },
    /// A place that each thread has to itself, one for all executions.
    Own,
    /// Each execution gives another.
    Execution,
    /// A row.
    Row(&'static IntrinsicDef),
    /// A device function.
    Callee,
}

/// How memory is read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// As memory that stays as it is until something orders accesses to it. Beside a write of another thread,
    /// what comes out is not determined.
    Plain,
    /// Each time anew; otherwise the same.
    Volatile,
    /// As one of the values that were written.
    Atomic,
}

/// A check of an index.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The slice, or the address of an array.
    pub base: Value,
    /// The index.
    pub index: Value,
}

/// A condition that is said to hold.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Assumption<'a> {
    /// A bool.
    pub cond: Value,
    /// Whether the thread ends where the condition does not hold.
    pub checked: bool,
    /// How the error says that it does not.
    pub told: Told<'a>,
}

/// How the error says that a condition does not hold.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Told<'a> {
    /// By the condition as it is written, or empty.
    Condition(&'a str),
    /// By a message of the program, with two values.
    Message(&'a str, Option<[Value; 2]>),
}

/// What an instruction prints.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Printed<'a> {
    /// A [`Format`](crate::printed::Format) for the values.
    pub format: &'a str,
    /// Numbers and bools.
    pub values: &'a [Value],
    /// Whether the text is for the standard error output.
    pub to_stderr: bool,
}

impl Facts {
    /// An operation that gives a value and does nothing else.
    const fn value(source: Source) -> Facts {
        Facts {
            source,
            reads: false,
            writes: false,
            check: None,
            assumes: false,
            steers: false,
            meets: false,
            orders: None,
        }
    }

    fn atomic(source: Source, writes: bool, ordering: Ordering, scope: Scope) -> Facts {
        Facts {
            reads: !matches!(source, Source::None),
            writes,
            orders: (ordering != Ordering::Relaxed).then_some(scope),
            ..Facts::value(source)
        }
    }

    fn row(row: &'static IntrinsicDef) -> Facts {
        let touches_memory = row.effects == Effects::Memory;
        Facts {
            reads: touches_memory,
            writes: touches_memory,
            meets: row.effects.meets(),
            orders: (row.effects == Effects::Synchronizes).then_some(Scope::Block),
            ..Facts::value(Source::Row(row))
        }
    }

    /// Whether executing it where it was not asked for makes no difference.
    pub fn is_harmless(&self) -> bool {
        let Facts {
            source,
            reads,
            writes,
            check,
            assumes,
            steers,
            meets,
            orders,
        } = *self;
        let quiet = !reads && !writes && !meets && check.is_none() && orders.is_none();
        quiet && !assumes && !steers && !matches!(source, Source::Callee | Source::Execution)
    }
}

impl InstData {
    /// Whether the instruction computes what [`FastMath`](crate::FastMath) flags are about: an operation on one or two values, or an intrinsic.
    pub fn takes_fast(&self) -> bool {
        matches!(
            self,
            InstData::Unary { .. } | InstData::Binary { .. } | InstData::Intrinsic { .. }
        )
    }

    /// What is known of the operation.
    // flat match
    pub fn facts(&self, intrinsics: &PrimaryMap<IntrinsicId, &'static IntrinsicDef>) -> Facts {
        match *self {
            InstData::Const(_)
            | InstData::ConstParam(_)
            | InstData::Unary { .. }
            | InstData::Binary { .. }
            | InstData::Compare { .. }
            | InstData::Select { .. }
            | InstData::Cast { .. }
            | InstData::Bitcast { .. }
            | InstData::Construct { .. }
            | InstData::Extract { .. }
            | InstData::Insert { .. }
            | InstData::PtrOffset { .. }
            | InstData::FieldPtr { .. }
            | InstData::SpaceCast { .. }
            | InstData::SliceNew { .. }
            | InstData::SliceLen { .. }
            | InstData::SlicePtr { .. }
            | InstData::SharedAddr(_)
            | InstData::DynamicShared
            | InstData::GlobalAddr(_)
            | InstData::Hidden(_) => Facts::value(Source::Operands),
            InstData::ElementPtr { .. } | InstData::SliceIndex { .. } => Facts {
                check: self.check(),
                ..Facts::value(Source::Operands)
            },
            InstData::VarGet(var) => Facts::value(Source::Variable(var)),
            InstData::VarSet(..) => Facts {
                writes: true,
                ..Facts::value(Source::None)
            },
            // It holds zeros whenever control comes to it.
            InstData::LocalAlloc => Facts {
                writes: true,
                ..Facts::value(Source::Own)
            },
            InstData::Load { ptr, volatile } => Facts {
                reads: true,
                ..Facts::value(Source::Memory {
                    ptr,
                    read: match volatile {
                        true => Read::Volatile,
                        false => Read::Plain,
                    },
                })
            },
            InstData::Store { .. } => Facts {
                writes: true,
                ..Facts::value(Source::None)
            },
            InstData::AtomicLoad {
                ptr,
                ordering,
                scope,
            } => {
                let read = Read::Atomic;
                Facts::atomic(Source::Memory { ptr, read }, false, ordering, scope)
            }
            InstData::AtomicStore {
                ordering, scope, ..
            } => Facts::atomic(Source::None, true, ordering, scope),
            InstData::AtomicRmw {
                ordering, scope, ..
            }
            | InstData::AtomicCas {
                ordering, scope, ..
            } => Facts::atomic(Source::Execution, true, ordering, scope),
            InstData::Barrier => Facts {
                meets: true,
                orders: Some(Scope::Block),
                ..Facts::value(Source::None)
            },
            InstData::Assume { .. } | InstData::Assert { .. } => Facts {
                assumes: true,
                ..Facts::value(Source::None)
            },
            InstData::Fence { scope, .. } => Facts {
                orders: Some(scope),
                ..Facts::value(Source::None)
            },
            InstData::Print { .. } => Facts {
                writes: true,
                ..Facts::value(Source::None)
            },
            InstData::Call { .. } => Facts {
                reads: true,
                writes: true,
                ..Facts::value(Source::Callee)
            },
            InstData::Intrinsic { id, .. } => Facts::row(intrinsics[id]),
            InstData::If { .. }
            | InstData::Loop { .. }
            | InstData::For { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. }
            | InstData::Return { .. } => Facts {
                steers: true,
                ..Facts::value(Source::None)
            },
        }
    }

    /// The check of an index, if it makes one.
    pub fn check(&self) -> Option<Check> {
        let (check, checked) = self.access()?;
        checked.then_some(check)
    }

    /// What an index selects, for what can check it, and whether it does.
    pub fn access(&self) -> Option<(Check, bool)> {
        match *self {
            InstData::ElementPtr {
                ptr: base,
                index,
                checked,
            }
            | InstData::SliceIndex {
                slice: base,
                index,
                checked,
            } => Some((Check { base, index }, checked)),
            _ => None,
        }
    }

    /// The condition that holds behind the instruction, if it is an assumption or an assertion.
    pub fn assumption(&self) -> Option<Assumption<'_>> {
        match self {
            InstData::Assume {
                cond,
                text,
                checked,
            } => Some(Assumption {
                cond: *cond,
                checked: *checked,
                told: Told::Condition(text),
            }),
            InstData::Assert {
                cond,
                message,
                values,
            } => Some(Assumption {
                cond: *cond,
                checked: true,
                told: Told::Message(message, *values),
            }),
            _ => None,
        }
    }

    /// What is printed, if the instruction prints.
    pub fn printed(&self) -> Option<Printed<'_>> {
        match self {
            InstData::Print {
                format,
                values,
                to_stderr,
            } => Some(Printed {
                format,
                values,
                to_stderr: *to_stderr,
            }),
            _ => None,
        }
    }

    /// Whether the thread can fault at the instruction: by the check of an index, of an assumption or of an assertion.
    pub fn can_fault(&self) -> bool {
        self.check().is_some() || self.assumption().is_some_and(|assumed| assumed.checked)
    }

    /// Whether the thread can end at the instruction: by a fault, or in a kernel by returning. What is in its regions
    /// is left out.
    pub fn can_end(&self) -> bool {
        self.can_fault() || matches!(self.control(), Control::Return { .. })
    }

    /// Among which threads it orders accesses to memory: here, and nowhere else, writes of other
    /// threads may become visible to this one, or its writes to them. Every pass and backend that
    /// moves, merges or drops an access to memory that other threads can reach asks this; across
    /// such an operation a value in memory is not known any more.
    ///
    /// A warp's synchronization is of block scope. Of a call it says nothing: the callee's
    /// operations do.
    pub fn orders_memory(
        &self,
        intrinsics: &PrimaryMap<IntrinsicId, &'static IntrinsicDef>,
    ) -> Option<Scope> {
        self.facts(intrinsics).orders
    }
}
