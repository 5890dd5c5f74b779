//! From a module to a flat list of ops.
//!
//! Every IR value gets registers of its own: one for a scalar or a pointer, two for a slice
//! (address, length), for a struct, array or vector those of its parts in order. Calls are inlined,
//! which ends because the verifier refuses recursion; control flow becomes jumps.

mod instruction;

use std::collections::HashMap;

use kiln_ir::{
    AddressSpace, ArrayLen, Control, FuncId, Function, FunctionKind, GlobalId, Inst, InstNode,
    LeafKind, LeafType, Module, Passing, Region, Scalar, SharedVar, Type, TypeData, Value, Var,
};

use super::InterpretError;
use super::check::{Object, SliceParam};
use super::ops::{self, Bounds, Op, OpIndex, Reg};
use super::warp::WarpOp;

/// The most registers a thread may have.
const MAX_REGISTERS: u32 = 1 << 20;

/// A kernel as ops.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) ops: Vec<Op>,
    /// The operations of warps that ops refer to.
    pub(super) warp_ops: Vec<WarpOp>,
    /// For each op, the line it comes from, as an index into `locations`.
    pub(super) lines: Vec<u32>,
    pub(super) locations: Vec<String>,
    /// Registers of a thread.
    pub(super) registers: u32,
    /// Bytes of static shared memory, a multiple of 16.
    pub(super) shared_bytes: u32,
    /// Bytes of local memory of a thread, a multiple of 16.
    pub(super) local_bytes: u32,
    pub(super) constants: Vec<u8>,
    /// Parameters that start in registers: register, offset in the parameter block, bytes.
    pub(super) params: Vec<(Reg, u32, u8)>,
    /// What is in shared and local memory, for findings.
    pub(super) objects: Vec<Object>,
    /// The slice parameters, for findings.
    pub(super) slices: Vec<SliceParam>,
    /// Bytes of an element of dynamic shared memory, as it was asked for last.
    pub(super) dynamic_element: u32,
    /// Whether fences or atomics of the kernel can order accesses of different threads.
    pub(super) has_releases: bool,
    /// Whether lanes of a warp can synchronize, which orders their accesses.
    pub(super) synchronizes_warps: bool,
    /// Whether blocks wait for all others of the grid.
    pub(super) waits_for_grid: bool,
}

/// Where a function's things are while it is inlined.
#[derive(Default)]
struct Frame {
    values: HashMap<Value, Reg>,
    vars: HashMap<Var, Reg>,
    shared: HashMap<SharedVar, u32>,
    /// Jumps to the end of the call, to be patched.
    returns: Vec<usize>,
    /// Where the result goes.
    result: Reg,
    loops: Vec<LoopFrame>,
}

/// The jumps of one loop, to be patched.
#[derive(Default)]
struct LoopFrame {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

struct Flattener<'m> {
    module: &'m Module,
    program: Program,
    globals: HashMap<GlobalId, u32>,
    shared: HashMap<(FuncId, SharedVar), u32>,
    sites: HashMap<(FuncId, Inst), u32>,
    location: u32,
}

type Result<T, E = InterpretError> = std::result::Result<T, E>;

/// Flattens the kernel of a module.
pub(super) fn flatten(module: &Module) -> Result<Program> {
    let program = Program {
        name: module.name.clone(),
        ops: Vec::new(),
        warp_ops: Vec::new(),
        lines: Vec::new(),
        locations: vec!["unknown".to_owned()],
        registers: 0,
        shared_bytes: 0,
        local_bytes: 0,
        constants: Vec::new(),
        params: Vec::new(),
        objects: Vec::new(),
        slices: Vec::new(),
        dynamic_element: 1,
        has_releases: false,
        synchronizes_warps: false,
        waits_for_grid: false,
    };
    let sites = kiln_ir::fault::fault_insts(module).into_iter().enumerate();
    let mut flattener = Flattener {
        module,
        program,
        globals: HashMap::new(),
        shared: HashMap::new(),
        sites: sites.map(|(n, at)| (at, n as u32)).collect(),
        location: 0,
    };
    flattener.place_memory()?;
    let kernel = module
        .kernel()
        .ok_or_else(|| flattener.unverified("it has no kernel"))?;
    flattener.kernel(kernel)?;
    Ok(flattener.program)
}

impl<'m> Flattener<'m> {
    fn unverified(&self, what: impl Into<String>) -> InterpretError {
        InterpretError::Unverified {
            module: self.module.name.clone(),
            what: what.into(),
        }
    }

    fn too_large(&self, what: impl Into<String>) -> InterpretError {
        InterpretError::TooLarge {
            kernel: self.module.name.clone(),
            what: what.into(),
        }
    }

    // Types.

    /// The leaves of a type, in memory order: one register each.
    fn leaves(&self, ty: Type) -> Result<Vec<LeafType>> {
        let types = &self.module.types;
        match types.leaf_count(ty) > u64::from(MAX_REGISTERS) {
            true => Err(self.too_large("a value of too many parts")),
            false => Ok(types.leaves(ty)),
        }
    }

    fn size(&self, ty: Type) -> Result<u64> {
        let layout = self.module.types.layout(ty);
        Ok(layout
            .ok_or_else(|| self.unverified("a type has no layout"))?
            .size)
    }

    fn count(&self, ty: Type) -> Result<u32> {
        Ok(self.leaves(ty)?.len() as u32)
    }

    /// The types of the parts of a struct, array or vector.
    fn parts(&self, ty: Type) -> Result<Vec<Type>> {
        let types = &self.module.types;
        Ok(match types.data(ty) {
            TypeData::Struct(id) => types
                .struct_data(*id)
                .fields
                .iter()
                .map(|(_, ty)| *ty)
                .collect(),
            TypeData::Vector { element, lanes } => {
                vec![Type::scalar(*element); usize::from(*lanes)]
            }
            TypeData::Array {
                element,
                len: ArrayLen::Known(n),
            } => vec![*element; *n as usize],
            _ => return Err(self.unverified("a part of something that has none")),
        })
    }

    /// How many registers come before part `index`, and how many the part has.
    fn part(&self, ty: Type, index: u32) -> Result<(u32, u32)> {
        let parts = self.parts(ty)?;
        let mut before = 0;
        for &part in parts.iter().take(index as usize) {
            before += self.count(part)?;
        }
        let part = parts.get(index as usize);
        Ok((
            before,
            self.count(*part.ok_or_else(|| self.unverified("no such part"))?)?,
        ))
    }

    // Registers and ops.

    fn registers(&mut self, n: u32) -> Result<Reg> {
        let first = self.program.registers;
        self.program.registers += n;
        if self.program.registers > MAX_REGISTERS {
            return Err(self.too_large(format!("more than {MAX_REGISTERS} registers a thread")));
        }
        Ok(first)
    }

    /// Loads the parts of a value from memory at `p` into registers from `d` on.
    fn load(&mut self, leaves: &[LeafType], p: Reg, d: Reg) {
        for (d, leaf) in (d..).zip(leaves) {
            let (offset, bytes) = (leaf.offset as u32, leaf.bytes() as u8);
            self.push(Op::Load {
                d,
                p,
                offset,
                bytes,
            });
            if leaf.kind == LeafKind::Scalar(Scalar::Bool) {
                self.push(Op::Unary {
                    f: ops::truth,
                    d,
                    a: d,
                });
            }
        }
    }

    /// Stores the parts of a value in registers from `v` on to memory at `p`.
    fn store(&mut self, leaves: &[LeafType], p: Reg, v: Reg) {
        for (v, leaf) in (v..).zip(leaves) {
            let (offset, bytes) = (leaf.offset as u32, leaf.bytes() as u8);
            self.push(Op::Store {
                p,
                v,
                offset,
                bytes,
            });
        }
    }

    fn push(&mut self, op: Op) -> usize {
        self.program.ops.push(op);
        self.program.lines.push(self.location);
        self.program.ops.len() - 1
    }

    fn here(&self) -> OpIndex {
        self.program.ops.len() as OpIndex
    }

    /// Lets the jump at `at` go to `to`.
    fn patch(&mut self, at: usize, to: OpIndex) {
        match &mut self.program.ops[at] {
            Op::Jump { to: target }
            | Op::Unless { to: target, .. }
            | Op::ForEnter { to: target, .. }
            | Op::ForNext { to: target, .. } => *target = to,
            _ => {}
        }
    }

    fn reg(&self, frame: &Frame, value: Value) -> Result<Reg> {
        let found = frame.values.get(&value).copied();
        found.ok_or_else(|| self.unverified(format!("{value} is used before it exists")))
    }

    // Memory.

    fn place_memory(&mut self) -> Result<()> {
        for (id, global) in self.module.globals.iter() {
            let offset = self.program.constants.len().next_multiple_of(16);
            self.program.constants.resize(offset, 0);
            self.program.constants.extend_from_slice(&global.bytes);
            self.globals.insert(id, offset as u32);
        }
        for (id, function) in self.module.functions.iter() {
            for (var, data) in function.shared.iter() {
                let align = u64::from(data.align.max(1));
                let offset = u64::from(self.program.shared_bytes).next_multiple_of(align);
                let bytes = self.size(data.ty)?;
                self.object(
                    AddressSpace::Shared,
                    Some(&data.name),
                    offset as u32,
                    data.ty,
                )?;
                let end = u32::try_from((offset + bytes).next_multiple_of(16));
                self.program.shared_bytes = end.map_err(|_| self.too_large("shared memory"))?;
                self.shared.insert((id, var), offset as u32);
            }
        }
        Ok(())
    }

    /// Notes what is in shared or local memory.
    fn object(
        &mut self,
        space: AddressSpace,
        name: Option<&str>,
        offset: u32,
        ty: Type,
    ) -> Result<()> {
        let bytes = self.size(ty)?;
        let mut element = ty;
        while let Some((inner, _)) = self.module.types.as_array(element) {
            element = inner;
        }
        self.program.objects.push(Object {
            space,
            name: name.map(str::to_owned),
            offset,
            bytes,
            element: self.size(element)?,
        });
        Ok(())
    }

    // Functions.

    fn kernel(&mut self, id: FuncId) -> Result<()> {
        let module = self.module;
        let function = &module.functions[id];
        let layout = kiln_ir::abi::ParamLayout::of(module)
            .ok_or_else(|| self.unverified("a parameter has no layout"))?;
        let mut frame = self.frame(id, function)?;
        for (param, kind) in function.params.iter().zip(&layout.params) {
            let ty = function.type_of(param.value);
            let leaves = self.leaves(ty)?;
            let first = self.registers(leaves.len() as u32)?;
            frame.values.insert(param.value, first);
            use kiln_ir::abi::ParamKind;
            match (kind, param.passing) {
                (ParamKind::Value(slot), Passing::ByValue) => {
                    self.push(Op::Param {
                        d: first,
                        offset: slot.offset,
                    });
                }
                (ParamKind::Value(slot), _) => {
                    for (i, leaf) in leaves.iter().enumerate() {
                        let (at, bytes) = (slot.offset + leaf.offset as u32, leaf.bytes() as u8);
                        self.program.params.push((first + i as u32, at, bytes));
                    }
                }
                (ParamKind::Reference { address, .. }, _) => {
                    self.program.params.push((first, address.offset, 8));
                }
                (ParamKind::Slice { address, length }, _) => {
                    self.program.params.push((first, address.offset, 8));
                    self.program
                        .params
                        .push((first + 1, length.offset, length.size as u8));
                    let element = match self.module.types.as_slice(ty) {
                        Some((elements, _)) => self.size(elements.pointee)?,
                        None => 1,
                    };
                    self.program.slices.push(SliceParam {
                        name: param.name.clone(),
                        address: address.offset,
                        length: (length.offset, length.size),
                        element,
                    });
                }
            }
        }
        self.body(id, function, &mut frame)?;
        let end = self.here();
        for at in frame.returns {
            self.patch(at, end);
        }
        self.push(Op::End);
        Ok(())
    }

    /// A frame with variables and shared memory in place, and code that zeroes the variables.
    fn frame(&mut self, id: FuncId, function: &Function) -> Result<Frame> {
        let mut frame = Frame::default();
        let first = self.program.registers;
        for (var, data) in function.vars.iter() {
            let n = self.count(data.ty)?;
            frame.vars.insert(var, self.registers(n)?);
        }
        let n = self.program.registers - first;
        if n > 0 {
            self.push(Op::Zero { d: first, n });
        }
        for var in function.shared.keys() {
            frame.shared.insert(var, self.shared[&(id, var)]);
        }
        Ok(frame)
    }

    fn body(&mut self, id: FuncId, function: &'m Function, frame: &mut Frame) -> Result<()> {
        self.region(id, function, function.body, frame)
    }

    fn call(
        &mut self,
        callee: FuncId,
        args: &[Value],
        caller: &Frame,
        result: Option<Reg>,
    ) -> Result<()> {
        let module = self.module;
        let function = &module.functions[callee];
        if function.is_declaration || function.kind == FunctionKind::Kernel {
            return Err(self.unverified(format!("`{}` cannot be called", function.name)));
        }
        let mut frame = self.frame(callee, function)?;
        for (param, &arg) in function.params.iter().zip(args) {
            // Values do not change, so a parameter is its argument's registers.
            frame.values.insert(param.value, self.reg(caller, arg)?);
        }
        frame.result = result.unwrap_or(0);
        self.body(callee, function, &mut frame)?;
        let end = self.here();
        for at in frame.returns {
            self.patch(at, end);
        }
        Ok(())
    }

    fn region(
        &mut self,
        id: FuncId,
        function: &'m Function,
        region: Region,
        frame: &mut Frame,
    ) -> Result<()> {
        for &inst in &function.regions[region].insts {
            let node = &function.insts[inst];
            self.locate(node);
            match node.data.control() {
                Control::If {
                    cond,
                    then_region,
                    else_region,
                } => self.choice(id, function, frame, cond, (then_region, else_region))?,
                Control::Loop { body } => {
                    let (head, line) = (self.here(), self.location);
                    frame.loops.push(LoopFrame::default());
                    self.region(id, function, body, frame)?;
                    // The way back is the loop's own, not that of its last instruction.
                    self.location = line;
                    let back = self.push(Op::Jump { to: head });
                    let done = frame.loops.pop().unwrap_or_default();
                    done.continues.iter().for_each(|&at| self.patch(at, head));
                    done.breaks
                        .iter()
                        .for_each(|&at| self.patch(at, back as OpIndex + 1));
                }
                Control::For {
                    index,
                    bounds,
                    body,
                } => self.counted(id, function, frame, (index, bounds), body)?,
                Control::Leave { depth, again } => {
                    let at = self.push(Op::Jump { to: 0 });
                    let target = self.loop_at(frame, depth)?;
                    match again {
                        true => target.continues.push(at),
                        false => target.breaks.push(at),
                    }
                }
                Control::Return { value } => {
                    if let Some(value) = value {
                        let n = self.count(function.type_of(value))?;
                        let s = self.reg(frame, value)?;
                        self.push(Op::Move {
                            d: frame.result,
                            s,
                            n,
                        });
                    }
                    frame.returns.push(self.push(Op::Jump { to: 0 }));
                }
                Control::Next => self.instruction((id, inst), function, node, frame)?,
            }
        }
        Ok(())
    }

    fn choice(
        &mut self,
        id: FuncId,
        function: &'m Function,
        frame: &mut Frame,
        cond: Value,
        (then_region, else_region): (Region, Option<Region>),
    ) -> Result<()> {
        let c = self.reg(frame, cond)?;
        let unless = self.push(Op::Unless { c, to: 0 });
        self.region(id, function, then_region, frame)?;
        if let Some(else_region) = else_region {
            let over = self.push(Op::Jump { to: 0 });
            let to = self.here();
            self.patch(unless, to);
            self.region(id, function, else_region, frame)?;
            let to = self.here();
            self.patch(over, to);
        } else {
            let to = self.here();
            self.patch(unless, to);
        }
        Ok(())
    }

    fn loop_at<'f>(&self, frame: &'f mut Frame, depth: u32) -> Result<&'f mut LoopFrame> {
        let found = frame.loops.iter_mut().rev().nth(depth as usize);
        found.ok_or_else(|| self.unverified("a jump out of a loop that is not there"))
    }

    fn counted(
        &mut self,
        id: FuncId,
        function: &'m Function,
        frame: &mut Frame,
        (index, [start, end, step]): (Value, [Value; 3]),
        body: Region,
    ) -> Result<()> {
        let scalar = self.scalar(function, index)?;
        let i = self.registers(1)?;
        let bounds = Bounds {
            end: self.reg(frame, end)?,
            step: self.reg(frame, step)?,
            scalar,
        };
        let s = self.reg(frame, start)?;
        self.push(Op::Move { d: i, s, n: 1 });
        let enter = self.push(Op::ForEnter { i, bounds, to: 0 });
        // The body sees a copy, so that its value is one for all of the iteration.
        frame.values.insert(index, i);
        let (head, line) = (self.here(), self.location);
        frame.loops.push(LoopFrame::default());
        self.region(id, function, body, frame)?;
        self.location = line;
        let latch = self.push(Op::ForNext {
            i,
            bounds,
            to: head,
        });
        let done = frame.loops.pop().unwrap_or_default();
        done.continues
            .iter()
            .for_each(|&at| self.patch(at, latch as OpIndex));
        let exit = latch as OpIndex + 1;
        done.breaks.iter().for_each(|&at| self.patch(at, exit));
        self.patch(enter, exit);
        Ok(())
    }

    /// From now on, ops come from this instruction's line.
    fn locate(&mut self, node: &InstNode) {
        let text = self.module.display_location(node.location);
        let known = self.program.locations.iter().rposition(|l| *l == text);
        self.location = known.unwrap_or_else(|| {
            self.program.locations.push(text);
            self.program.locations.len() - 1
        }) as u32;
    }

    fn scalar(&self, function: &Function, value: Value) -> Result<Scalar> {
        let scalar = function.type_of(value).as_scalar();
        scalar.ok_or_else(|| self.unverified("an operation on scalars meets another type"))
    }

    /// How many bytes of memory a scalar takes.
    fn scalar_bytes(&self, ty: Type) -> Result<u8> {
        let scalar = ty.as_scalar();
        let scalar = scalar.ok_or_else(|| self.unverified("an atomic access of no scalar"))?;
        Ok(scalar.bytes() as u8)
    }

    /// An index as a 64-bit register.
    fn index(&mut self, function: &Function, frame: &Frame, index: Value) -> Result<Reg> {
        let scalar = self.scalar(function, index)?;
        let a = self.reg(frame, index)?;
        if !scalar.is_signed_int() || scalar.bits() == 64 {
            return Ok(a);
        }
        let d = self.registers(1)?;
        self.push(Op::Unary {
            f: ops::extend(scalar),
            d,
            a,
        });
        Ok(d)
    }
}
