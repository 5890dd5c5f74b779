//! Operations as control flow and variables see them.

use smallvec::SmallVec;

use super::{AtomicOp, Constant, FuncId, InstData, IntrinsicId, Region, SharedVar, Value, Var};

/// Where control goes at an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Control {
    /// To the next one.
    Next,
    /// Into one of its regions, if there is one for the condition, and then to the next one.
    If {
        /// Decides which.
        cond: Value,
        /// Where the condition holds.
        then_region: Region,
        /// The region for a condition that does not hold.
        else_region: Option<Region>,
    },
    /// Into its region again and again, until something in it leaves.
    Loop {
        /// What is repeated.
        body: Region,
    },
    /// Into its region for each index.
    For {
        /// The index, which it defines in its region.
        index: Value,
        /// Start, end (not reached) and step.
        bounds: [Value; 3],
        /// What is repeated.
        body: Region,
    },
    /// Out of its region, to a loop around it.
    Leave {
        /// How many loops are between.
        depth: u32,
        /// Whether to the next turn of that loop, and not behind it.
        again: bool,
    },
    /// Out of the function.
    Return {
        /// With this result.
        value: Option<Value>,
    },
}

/// What an operation does to a variable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum VarUse {
    /// Reads it.
    Get(Var),
    /// Assigns a value to it.
    Set(Var, Value),
}

impl VarUse {
    /// The variable.
    pub fn var(self) -> Var {
        match self {
            VarUse::Get(var) | VarUse::Set(var, _) => var,
        }
    }
}

impl InstData {
    /// Where control goes.
    // flat match
    pub fn control(&self) -> Control {
        match *self {
            InstData::If {
                cond,
                then_region,
                else_region,
            } => Control::If {
                cond,
                then_region,
                else_region,
            },
            InstData::Loop { body } => Control::Loop { body },
            InstData::For {
                index,
                start,
                end,
                step,
                body,
                unroll: _,
            } => Control::For {
                index,
                bounds: [start, end, step],
                body,
            },
            InstData::Break { depth } => Control::Leave {
                depth,
                again: false,
            },
            InstData::Continue { depth } => Control::Leave { depth, again: true },
            InstData::Return { value } => Control::Return { value },
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
            | InstData::VarGet(_)
            | InstData::VarSet(..)
            | InstData::Load { .. }
            | InstData::Store { .. }
            | InstData::PtrOffset { .. }
            | InstData::FieldPtr { .. }
            | InstData::ElementPtr { .. }
            | InstData::SpaceCast { .. }
            | InstData::SliceNew { .. }
            | InstData::SliceLen { .. }
            | InstData::SlicePtr { .. }
            | InstData::SliceIndex { .. }
            | InstData::SharedAddr(_)
            | InstData::DynamicShared
            | InstData::LocalAlloc
            | InstData::GlobalAddr(_)
            | InstData::Hidden(_)
            | InstData::AtomicLoad { .. }
            | InstData::AtomicStore { .. }
            | InstData::AtomicRmw { .. }
            | InstData::AtomicCas { .. }
            | InstData::Barrier
            | InstData::Assume { .. }
            | InstData::Assert { .. }
            | InstData::Print { .. }
            | InstData::Fence { .. }
            | InstData::Call { .. }
            | InstData::Intrinsic { .. } => Control::Next,
        }
    }

    /// The regions of this instruction, in the order they are printed.
    pub fn regions(&self) -> SmallVec<[Region; 2]> {
        match self.control() {
            Control::If {
                then_region,
                else_region,
                ..
            } => std::iter::once(then_region).chain(else_region).collect(),
            Control::Loop { body } | Control::For { body, .. } => SmallVec::from_iter([body]),
            Control::Next | Control::Leave { .. } | Control::Return { .. } => SmallVec::new(),
        }
    }

    /// Replaces every region by what `f` makes of it.
    pub fn map_regions<E>(
        &mut self,
        mut f: impl FnMut(Region) -> Result<Region, E>,
    ) -> Result<(), E> {
        match self {
            InstData::If {
                then_region,
                else_region,
                ..
            } => {
                for region in std::iter::once(then_region).chain(else_region) {
                    *region = f(*region)?;
                }
            }
            InstData::Loop { body } | InstData::For { body, .. } => *body = f(*body)?,
            _ => debug_assert!(self.regions().is_empty(), "regions that are not replaced"),
        }
        Ok(())
    }

    /// Whether the instruction's region is executed any number of times.
    pub fn is_loop(&self) -> bool {
        match self.control() {
            Control::Loop { .. } | Control::For { .. } => true,
            Control::Next | Control::If { .. } | Control::Leave { .. } | Control::Return { .. } => {
                false
            }
        }
    }

    /// Whether nothing of its region can be executed after it.
    pub fn is_terminator(&self) -> bool {
        match self.control() {
            Control::Leave { .. } | Control::Return { .. } => true,
            Control::Next | Control::If { .. } | Control::Loop { .. } | Control::For { .. } => {
                false
            }
        }
    }

    /// Whether the instruction ends the function.
    pub fn is_return(&self) -> bool {
        matches!(self.control(), Control::Return { .. })
    }

    /// The index of a counted loop, to be replaced.
    pub fn index_mut(&mut self) -> Option<&mut Value> {
        match self {
            InstData::For { index, .. } => Some(index),
            _ => None,
        }
    }

    /// Replaces the variable that it is for.
    pub fn map_vars(&mut self, mut f: impl FnMut(Var) -> Var) {
        if let InstData::VarGet(var) | InstData::VarSet(var, _) = self {
            *var = f(*var);
        }
    }

    /// Replaces the shared variable whose address it gives.
    pub fn map_shared(&mut self, mut f: impl FnMut(SharedVar) -> SharedVar) {
        if let InstData::SharedAddr(var) = self {
            *var = f(*var);
        }
    }

    /// The value that it defines for its region: the index of a `for`.
    pub fn index(&self) -> Option<Value> {
        match self.control() {
            Control::For { index, .. } => Some(index),
            Control::Next
            | Control::If { .. }
            | Control::Loop { .. }
            | Control::Leave { .. }
            | Control::Return { .. } => None,
        }
    }

    /// Whether all threads of a block meet there.
    pub fn is_barrier(&self) -> bool {
        matches!(self, InstData::Barrier)
    }

    /// Whether the result is memory of the thread's own.
    pub fn is_local(&self) -> bool {
        matches!(self, InstData::LocalAlloc)
    }

    /// The constant that it gives, if that is all it does.
    pub fn constant(&self) -> Option<Constant> {
        match *self {
            InstData::Const(constant) => Some(constant),
            _ => None,
        }
    }

    /// The device function that it calls.
    pub fn callee(&self) -> Option<FuncId> {
        self.call().map(|(callee, _)| callee)
    }

    /// The device function that it calls, to be put in its place.
    pub fn callee_mut(&mut self) -> Option<&mut FuncId> {
        match self {
            InstData::Call { callee, .. } => Some(callee),
            _ => None,
        }
    }

    /// The device function that it calls, and its operands.
    pub fn call(&self) -> Option<(FuncId, &[Value])> {
        match self {
            InstData::Call { callee, args, .. } => Some((*callee, args)),
            _ => None,
        }
    }

    /// The row that says what it does, and its operands.
    pub fn intrinsic(&self) -> Option<(IntrinsicId, &[Value])> {
        match self {
            InstData::Intrinsic { id, args } => Some((*id, args)),
            _ => None,
        }
    }

    /// The operation of an instruction that changes a number in memory in one step, and its operand.
    pub fn atomic_change(&self) -> Option<(AtomicOp, Value)> {
        match self {
            InstData::AtomicRmw { op, value, .. } => Some((*op, *value)),
            _ => None,
        }
    }

    /// What a read-modify-write combines memory with, or a compare-and-swap puts there.
    pub fn atomic_operand(&self) -> Option<Value> {
        let change = self.atomic_change().map(|(_, value)| value);
        change.or_else(|| self.swap())
    }

    /// The new value of a compare-and-swap.
    pub fn swap(&self) -> Option<Value> {
        match self {
            InstData::AtomicCas { new, .. } => Some(*new),
            _ => None,
        }
    }

    /// What the instruction does to a variable, if it does something to one.
    pub fn var_use(&self) -> Option<VarUse> {
        match *self {
            InstData::VarGet(var) => Some(VarUse::Get(var)),
            InstData::VarSet(var, value) => Some(VarUse::Set(var, value)),
            _ => None,
        }
    }
}
