//! The flat list of all instructions that are not control flow, and the ops of each.

use kiln_ir::{
    AddressSpace, ArrayLen, Constant, FuncId, Function, Inst, InstData, InstNode, LeafType,
    Meaning, Ordering, Scalar, Type, Value,
};

use super::{Flattener, Frame, Result};
use crate::ops::{self, Op, Reg};
use crate::warp::{self, WarpOp};

impl<'m> Flattener<'m> {
    /// One instruction that is not control flow.
    // flat match
    pub(super) fn instruction(
        &mut self,
        at: (FuncId, Inst),
        function: &'m Function,
        node: &InstNode,
        frame: &mut Frame,
    ) -> Result<()> {
        let result = node.result.map_or(Type::UNIT, |v| function.type_of(v));
        let n = self.count(result)?;
        let d = self.registers(n)?;
        if let Some(value) = node.result {
            frame.values.insert(value, d);
        }
        let module = self.module;
        let met = node.data.is_barrier() || node.data.intrinsic().is_some();
        let orders = node.data.orders_memory(&module.intrinsics).is_some();
        self.program.has_releases |= orders && !met;
        match &node.data {
            InstData::Const(constant) => self.constant(*constant, result, d)?,
            InstData::Unary { op, arg } => {
                let f = ops::unary(*op, self.scalar(function, *arg)?);
                let a = self.reg(frame, *arg)?;
                self.push(Op::Unary { f, d, a });
            }
            InstData::Binary { op, args: [a, b] } => {
                let f = ops::binary(*op, self.scalar(function, *a)?);
                let f = f.ok_or_else(|| self.unverified("an operation its type does not have"))?;
                let (a, b) = (self.reg(frame, *a)?, self.reg(frame, *b)?);
                self.push(Op::Binary { f, d, a, b });
            }
            InstData::Compare { op, args: [a, b] } => {
                let scalar = match self.module.types.is_pointer(function.type_of(*a)) {
                    true => Scalar::U64,
                    false => self.scalar(function, *a)?,
                };
                let f = ops::compare(*op, scalar);
                let (a, b) = (self.reg(frame, *a)?, self.reg(frame, *b)?);
                self.push(Op::Binary { f, d, a, b });
            }
            InstData::Select {
                cond,
                if_true,
                if_false,
            } => {
                let c = self.reg(frame, *cond)?;
                let (a, b) = (self.reg(frame, *if_true)?, self.reg(frame, *if_false)?);
                self.push(Op::Select {
                    d,
                    c,
                    a,
                    b,
                    n: n as u16,
                });
            }
            InstData::Cast { arg } => {
                let from = self.scalar(function, *arg)?;
                let to = result
                    .as_scalar()
                    .ok_or_else(|| self.unverified("a cast"))?;
                let a = self.reg(frame, *arg)?;
                self.push(Op::Unary {
                    f: ops::cast(from, to),
                    d,
                    a,
                });
            }
            InstData::Bitcast { arg } => self.bitcast(function, frame, *arg, result, d)?,
            InstData::Construct { parts } => {
                let mut to = d;
                for &part in parts {
                    let (s, n) = (self.reg(frame, part)?, self.count(function.type_of(part))?);
                    self.push(Op::Move { d: to, s, n });
                    to += n;
                }
            }
            InstData::Extract { aggregate, index } => {
                let (before, n) = self.part(function.type_of(*aggregate), *index)?;
                let s = self.reg(frame, *aggregate)? + before;
                self.push(Op::Move { d, s, n });
            }
            InstData::Insert {
                aggregate,
                index,
                value,
            } => {
                let (before, part) = self.part(result, *index)?;
                let (s, v) = (self.reg(frame, *aggregate)?, self.reg(frame, *value)?);
                self.push(Op::Move { d, s, n });
                self.push(Op::Move {
                    d: d + before,
                    s: v,
                    n: part,
                });
            }
            InstData::VarGet(var) => {
                self.push(Op::Move {
                    d,
                    s: frame.vars[var],
                    n,
                });
            }
            InstData::VarSet(var, value) => {
                let (s, n) = (
                    self.reg(frame, *value)?,
                    self.count(function.type_of(*value))?,
                );
                self.push(Op::Move {
                    d: frame.vars[var],
                    s,
                    n,
                });
            }
            InstData::Load { ptr, .. } => {
                let p = self.reg(frame, *ptr)?;
                let leaves = self.leaves(result)?;
                self.load(&leaves, p, d);
            }
            InstData::Store { ptr, value, .. } => {
                let (p, v) = (self.reg(frame, *ptr)?, self.reg(frame, *value)?);
                let leaves = self.leaves(function.type_of(*value))?;
                self.store(&leaves, p, v);
            }
            InstData::PtrOffset { ptr, index } => {
                let pointee = self.pointee(function, *ptr)?;
                let size = self.size(pointee)? as u32;
                let (p, i) = (self.reg(frame, *ptr)?, self.index(function, frame, *index)?);
                self.push(Op::Scale { d, p, i, size });
            }
            InstData::FieldPtr { ptr, field } => {
                let pointee = self.pointee(function, *ptr)?;
                let offsets = module.types.field_offsets(pointee);
                let offset = offsets.and_then(|at| at.get(*field as usize).copied());
                let offset = offset.ok_or_else(|| self.unverified("no such field"))?;
                let p = self.reg(frame, *ptr)?;
                self.push(Op::Offset { d, p, offset });
            }
            InstData::ElementPtr {
                ptr,
                index,
                checked,
            } => {
                let pointee = self.pointee(function, *ptr)?;
                let Some((element, ArrayLen::Known(len))) = module.types.as_indexed(pointee) else {
                    return Err(self.unverified("an element of something that is no array"));
                };
                let i = self.index(function, frame, *index)?;
                if *checked {
                    let limit = self.registers(1)?;
                    self.push(Op::Const {
                        d: limit,
                        bits: len,
                    });
                    self.push(Op::Check {
                        i,
                        len: limit,
                        site: self.sites[&at],
                    });
                }
                let (p, size) = (self.reg(frame, *ptr)?, self.size(element)? as u32);
                self.push(Op::Scale { d, p, i, size });
            }
            InstData::SpaceCast { arg } => {
                let s = self.reg(frame, *arg)?;
                self.push(Op::Move { d, s, n });
            }
            InstData::SliceNew { ptr, len } => {
                let (p, l) = (self.reg(frame, *ptr)?, self.reg(frame, *len)?);
                self.push(Op::Move { d, s: p, n: 1 });
                self.push(Op::Move {
                    d: d + 1,
                    s: l,
                    n: 1,
                });
            }
            InstData::SliceLen { slice } => {
                let s = self.reg(frame, *slice)? + 1;
                self.push(Op::Move { d, s, n: 1 });
            }
            InstData::SlicePtr { slice } => {
                let s = self.reg(frame, *slice)?;
                self.push(Op::Move { d, s, n: 1 });
            }
            InstData::SliceIndex {
                slice,
                index,
                checked,
            } => {
                let Some((elements, _)) = module.types.as_slice(function.type_of(*slice)) else {
                    return Err(self.unverified("an index into something that is no slice"));
                };
                let (p, i) = (
                    self.reg(frame, *slice)?,
                    self.index(function, frame, *index)?,
                );
                if *checked {
                    self.push(Op::Check {
                        i,
                        len: p + 1,
                        site: self.sites[&at],
                    });
                }
                let size = self.size(elements.pointee)? as u32;
                self.push(Op::Scale { d, p, i, size });
            }
            InstData::SharedAddr(var) => {
                self.push(Op::Shared {
                    d,
                    offset: frame.shared[var],
                });
            }
            InstData::DynamicShared => {
                let Some((elements, _)) = module.types.as_slice(result) else {
                    return Err(self.unverified("dynamic shared memory that is no slice"));
                };
                let size = self.size(elements.pointee)?.max(1) as u32;
                self.program.dynamic_element = size;
                self.push(Op::DynamicShared { d, size });
            }
            InstData::LocalAlloc => {
                let pointee = module.types.as_pointer(result).map(|(ty, ..)| ty);
                let pointee = pointee.unwrap_or(Type::UNIT);
                let size = self.size(pointee)?;
                let offset = self.program.local_bytes;
                self.object(AddressSpace::Local, None, offset, pointee)?;
                let end = (u64::from(offset) + size).next_multiple_of(16);
                let end = u32::try_from(end).map_err(|_| self.too_large("local memory"))?;
                self.program.local_bytes = end;
                self.push(Op::Local { d, offset });
                self.push(Op::Clear {
                    p: d,
                    bytes: size as u32,
                });
            }
            InstData::GlobalAddr(id) => {
                self.push(Op::Constant {
                    d,
                    offset: self.globals[id],
                });
            }
            &InstData::AtomicLoad { ptr, ordering, .. } => {
                let p = self.reg(frame, ptr)?;
                let bytes = self.scalar_bytes(result)?;
                self.push(Op::AtomicLoad {
                    d,
                    p,
                    bytes,
                    ordering,
                });
            }
            &InstData::AtomicStore {
                ptr,
                value,
                ordering,
                ..
            } => {
                let bytes = self.scalar_bytes(function.type_of(value))?;
                let (p, v) = (self.reg(frame, ptr)?, self.reg(frame, value)?);
                self.push(Op::AtomicStore {
                    p,
                    v,
                    bytes,
                    ordering,
                });
            }
            &InstData::AtomicRmw {
                op,
                ptr,
                value,
                ordering,
                ..
            } => {
                if self.module.types.is_word_pair(function.type_of(value)) {
                    return self.swap_words(frame, (ptr, None, value), ordering, d);
                }
                let scalar = self.scalar(function, value)?;
                let f = ops::atomic(op, scalar);
                let f = f.ok_or_else(|| self.unverified("an atomic its type does not have"))?;
                let (p, v) = (self.reg(frame, ptr)?, self.reg(frame, value)?);
                self.push(Op::Atomic {
                    f,
                    d,
                    p,
                    v,
                    bytes: scalar.bytes() as u8,
                    ordering,
                });
            }
            &InstData::AtomicCas {
                ptr,
                expected,
                new,
                ordering,
                ..
            } => {
                if self.module.types.is_word_pair(function.type_of(new)) {
                    return self.swap_words(frame, (ptr, Some(expected), new), ordering, d);
                }
                let bytes = self.scalar(function, new)?.bytes() as u8;
                let p = self.reg(frame, ptr)?;
                let (expected, new) = (self.reg(frame, expected)?, self.reg(frame, new)?);
                self.push(Op::Cas {
                    d,
                    p,
                    expected,
                    new,
                    bytes,
                    ordering,
                });
            }
            InstData::Barrier => {
                self.push(Op::Barrier);
            }
            &InstData::Assume { cond, checked, .. } => {
                let cond = self.reg(frame, cond)?;
                let site = checked.then(|| self.sites[&at]);
                self.push(Op::Assume { cond, site });
            }
            &InstData::Assert { cond, values, .. } => {
                let (cond, site) = (self.reg(frame, cond)?, self.sites[&at]);
                let op = match values {
                    None => Op::Assume {
                        cond,
                        site: Some(site),
                    },
                    Some([left, right]) => Op::Assert {
                        cond,
                        site,
                        values: [self.reg(frame, left)?, self.reg(frame, right)?],
                    },
                };
                self.push(op);
            }
            &InstData::Fence { ordering, .. } => {
                self.push(Op::Fence { ordering });
            }
            InstData::Call { callee, args, .. } => {
                self.call(*callee, args, frame, node.result.map(|_| d))?;
            }
            InstData::Intrinsic { id, args } => {
                let def = module.intrinsics[*id];
                let types: Vec<Type> = args.iter().map(|&a| function.type_of(a)).collect();
                let scalar = def.meaning_type(&module.types, &types, result);
                match def.meaning {
                    Meaning::Warp(f) => {
                        let op = WarpOp {
                            name: def.name,
                            f,
                            d: node.result.map(|_| d),
                            args: self.warp_args(function, frame, args)?,
                            scalar,
                            orders_memory: orders,
                        };
                        self.program.synchronizes_warps |= op.orders_memory;
                        let operation = self.program.warp_ops.len() as u32;
                        self.program.warp_ops.push(op);
                        self.push(Op::Warp { operation });
                    }
                    Meaning::Position(f) => {
                        self.push(Op::Position {
                            row: def.name,
                            f,
                            d,
                        });
                    }
                    Meaning::Pure(f) => {
                        let mut list = [0; 3];
                        if args.len() > list.len() {
                            return Err(self.too_large("an intrinsic of more than 3 arguments"));
                        }
                        for (slot, &arg) in list.iter_mut().zip(args) {
                            *slot = self.reg(frame, arg)?;
                        }
                        self.push(Op::Pure {
                            row: def.name,
                            f,
                            d,
                            args: list,
                            n: args.len() as u8,
                            scalar,
                        });
                    }
                    Meaning::Grid => {
                        self.program.waits_for_grid = true;
                        self.push(Op::Grid);
                    }
                    Meaning::NamedBarrier { waits } => {
                        let (Some(&number), Some(&threads)) = (args.first(), args.get(1)) else {
                            return Err(self.unverified("a named barrier without its numbers"));
                        };
                        self.program.has_releases = true;
                        let (number, threads) =
                            (self.reg(frame, number)?, self.reg(frame, threads)?);
                        self.push(Op::NamedBarrier {
                            number,
                            threads,
                            waits,
                        });
                    }
                    Meaning::Body(_) => {
                        return Err(self.unverified("an intrinsic that was not expanded"));
                    }
                }
                // A row's function may give any bits.
                if result == Type::BOOL {
                    self.push(Op::Unary {
                        f: ops::truth,
                        d,
                        a: d,
                    });
                }
            }
            InstData::ConstParam(_)
            | InstData::Hidden(_)
            | InstData::Print { .. }
            | InstData::If { .. }
            | InstData::Loop { .. }
            | InstData::For { .. }
            | InstData::Break { .. }
            | InstData::Continue { .. }
            | InstData::Return { .. } => {
                return Err(self.unverified("an instruction of the generic phase"));
            }
        }
        Ok(())
    }

    /// The registers of the arguments of an operation of a warp, the first the member mask.
    fn warp_args(&self, function: &Function, frame: &Frame, args: &[Value]) -> Result<Vec<Reg>> {
        if args.len() > warp::MAX_ARGS {
            return Err(self.too_large("a warp operation of more than 4 arguments"));
        }
        let mask = args.first().map(|&mask| function.type_of(mask));
        if mask.is_some_and(|ty| ty != Type::U32) {
            return Err(self.unverified("a member mask that is no `u32`"));
        }
        args.iter().map(|&arg| self.reg(frame, arg)).collect()
    }

    fn pointee(&self, function: &Function, ptr: Value) -> Result<Type> {
        let pointer = self.module.types.as_pointer(function.type_of(ptr));
        Ok(pointer
            .ok_or_else(|| self.unverified("an address that is no pointer"))?
            .0)
    }

    fn constant(&mut self, constant: Constant, ty: Type, d: Reg) -> Result<()> {
        if constant == Constant::Zero {
            let n = self.count(ty)?;
            self.push(Op::Zero { d, n });
            return Ok(());
        }
        let scalar = ty
            .as_scalar()
            .ok_or_else(|| self.unverified("a literal of no scalar"))?;
        let bits = ops::constant(constant, scalar);
        self.push(Op::Const { d, bits });
        Ok(())
    }

    /// An exchange of 16 bytes, or with what is expected a compare-and-swap.
    fn swap_words(
        &mut self,
        frame: &Frame,
        (ptr, expected, new): (Value, Option<Value>, Value),
        ordering: Ordering,
        d: Reg,
    ) -> Result<()> {
        let expected = expected.map(|expected| self.reg(frame, expected));
        let swap = Op::SwapWords {
            d,
            p: self.reg(frame, ptr)?,
            expected: expected.transpose()?,
            new: self.reg(frame, new)?,
            ordering,
        };
        self.push(swap);
        Ok(())
    }

    /// Reinterprets bits: register for register if the parts agree, else through local memory.
    fn bitcast(
        &mut self,
        function: &Function,
        frame: &Frame,
        arg: Value,
        result: Type,
        d: Reg,
    ) -> Result<()> {
        let s = self.reg(frame, arg)?;
        let (from, to) = (self.leaves(function.type_of(arg))?, self.leaves(result)?);
        let widths = |leaves: &[LeafType]| leaves.iter().map(|l| l.bytes()).collect::<Vec<_>>();
        if widths(&from) == widths(&to) {
            self.push(Op::Move {
                d,
                s,
                n: to.len() as u32,
            });
            return Ok(());
        }
        let p = self.registers(1)?;
        let offset = self.program.local_bytes;
        let size = self.size(result)?.next_multiple_of(16) as u32;
        self.program.local_bytes += size;
        self.push(Op::Local { d: p, offset });
        self.store(&from, p, s);
        self.load(&to, p, d);
        Ok(())
    }
}
