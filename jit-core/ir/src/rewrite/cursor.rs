//! A walk over a function that changes it on the way.

use smallvec::SmallVec;

use super::builder::{InstBuilder, Place};
use super::uses::{Replacements, StillUsed, Use, UseCounts, positions_of};
use crate::{
    Entity, FastMath, FuncId, Function, Inst, InstData, InstNode, IntrinsicDef, IntrinsicId,
    Location, Module, Region, RegionData, ResultType, Type, TypeTable, Value, Var, VarData,
};

/// A place in a function of a module, which goes from instruction to instruction in the order of the text,
/// into regions and out of them, and changes the function there.
///
/// What is inserted is not walked over. A walk that inserts, replaces and erases everywhere takes time in
/// proportion to the instructions that there were and that there are then: each change takes constant time, for
/// what it does to the rest of the function is done when the walk comes there, or ends. So while there is a
/// cursor, [`Cursor::function`] may show what is behind it as it was; all changes are in place when the
/// cursor is dropped.
///
/// ```
/// use kiln_ir::{BinaryOp, Cursor, InstData};
///
/// # let text = "module m specialized
/// # kernel @k(%0 x: slice<generic, mut f32>, %1 i: u32) {
/// #   %2: ptr<generic, mut f32> = slice_index %0, %1
/// #   %3: f32 = load %2
/// #   %4: f32 = div %3, %3
/// #   store %2, %4
/// # }
/// # ";
/// # let mut module = kiln_ir::parse(text, &|_| None).unwrap();
/// // Divisions become products with the inverse.
/// let kernel = module.kernel().unwrap();
/// let mut at = Cursor::new(&mut module, kernel);
/// while at.next_inst().is_some() {
///     if let InstData::Binary { op: BinaryOp::Div, args: [x, y] } = *at.data() {
///         let one = at.ins().constant(1.0f32);
///         let inverse = at.ins().binary(BinaryOp::Div, one, y);
///         at.replace().binary(BinaryOp::Mul, x, inverse);
///     }
/// }
/// drop(at);
/// assert!(kiln_ir::verify(&module).is_ok());
/// assert!(module.to_string().contains("mul"));
/// ```
pub struct Cursor<'m> {
    module: &'m mut Module,
    function: FuncId,
    /// The regions around the cursor, the body first; none when the walk has ended.
    open: Vec<Open>,
    replacements: Replacements,
    /// What is to go, and what has gone.
    erased: InstSet,
    /// Whether one of them is in a region that the walk has left or not come to.
    erased_elsewhere: bool,
    /// Counted when first asked for.
    counts: Option<UseCounts>,
    /// How many regions there were; the walk comes to no others.
    regions: usize,
}

/// Instructions of a function.
#[derive(Default)]
struct InstSet(Vec<bool>);

impl InstSet {
    fn contains(&self, inst: Inst) -> bool {
        self.0.get(inst.index()) == Some(&true)
    }

    fn insert(&mut self, inst: Inst) {
        let len = self.0.len().max(inst.index() + 1);
        self.0.resize(len, false);
        self.0[inst.index()] = true;
    }
}

/// A region that the walk is in.
struct Open {
    region: Region,
    /// What the walk has left behind, and what was inserted there.
    behind: Vec<Inst>,
    /// Where the cursor stands, or what holds the regions that it is in.
    current: Option<Inst>,
    /// What was inserted after that.
    after: Vec<Inst>,
    /// What the walk comes to.
    ahead: std::vec::IntoIter<Inst>,
    /// What was inserted at the end.
    last: Vec<Inst>,
    /// Regions of `current` that the walk comes to, the last one first; known once it goes on.
    inner: Option<SmallVec<[Region; 2]>>,
    changed: bool,
}

impl Open {
    fn of(function: &Function, region: Region) -> Open {
        let insts = function.regions[region].insts.clone();
        work::done(insts.len());
        Open {
            region,
            behind: Vec::with_capacity(insts.len()),
            current: None,
            after: Vec::new(),
            ahead: insts.into_iter(),
            last: Vec::new(),
            inner: None,
            changed: false,
        }
    }

    /// All that is in the region, in order.
    fn insts(&self) -> impl Iterator<Item = Inst> {
        let here = self.behind.iter().chain(&self.current);
        let next = here.chain(&self.after).chain(self.ahead.as_slice());
        next.chain(&self.last).copied()
    }

    /// Goes behind the instruction that it stands at.
    fn pass(&mut self) {
        work::done(1 + self.after.len());
        self.behind.extend(self.current.take());
        self.behind.append(&mut self.after);
    }

    /// The list of the region.
    fn close(mut self) -> Vec<Inst> {
        self.pass();
        work::done(self.ahead.len() + self.last.len());
        self.behind.extend(self.ahead);
        self.behind.extend(self.last);
        self.behind
    }
}

impl<'m> Cursor<'m> {
    /// A cursor at the start of a function's body, before its first instruction.
    ///
    /// # Panics
    /// If the module has no such function.
    pub fn new(module: &'m mut Module, function: FuncId) -> Cursor<'m> {
        let walked = &module.functions[function];
        let (body, regions) = (Open::of(walked, walked.body), walked.regions.len());
        Cursor {
            module,
            function,
            open: vec![body],
            replacements: Replacements::default(),
            erased: InstSet::default(),
            erased_elsewhere: false,
            counts: None,
            regions,
        }
    }

    /// Goes to the next instruction, in the order of the text: the first one in the regions of this one, if
    /// it has some. `None` at the end of the function, where the cursor then stays.
    pub fn next_inst(&mut self) -> Option<Inst> {
        loop {
            let function = &self.module.functions[self.function];
            let open = self.open.last_mut()?;
            let regions = |inst: Inst| -> SmallVec<[Region; 2]> {
                let held = function.insts[inst].data.regions().into_iter().rev();
                held.filter(|region| region.index() < self.regions)
                    .collect()
            };
            let inner = open.inner.get_or_insert_with(|| {
                let held = open.current.map(regions);
                held.unwrap_or_default()
            });
            if let Some(region) = inner.pop() {
                let inside = Open::of(function, region);
                self.open.push(inside);
                continue;
            }
            open.pass();
            match open.ahead.next() {
                Some(inst) if self.erased.contains(inst) => {}
                Some(inst) => {
                    open.current = Some(inst);
                    open.inner = None;
                    let function = &mut self.module.functions[self.function];
                    self.replacements.put_in(function, inst);
                    return Some(inst);
                }
                None => self.leave(),
            }
        }
    }

    /// Goes on to an instruction. Whether it was still to come; if not, the walk is at its end.
    pub fn go_to(&mut self, inst: Inst) -> bool {
        while let Some(here) = self.next_inst() {
            if here == inst {
                return true;
            }
        }
        false
    }

    /// Ends the walk over the innermost region.
    fn leave(&mut self) {
        if let Some(open) = self.open.pop()
            && open.changed
        {
            let region = open.region;
            self.module.functions[self.function].regions[region].insts = open.close();
        }
    }

    /// The instruction that it stands at; `None` at the start, at the end, and where that is erased.
    pub fn inst(&self) -> Option<Inst> {
        self.open.last()?.current
    }

    /// The instruction that it stands at, with the operands that it has by now.
    ///
    /// # Panics
    /// If it stands at none: before the first call of [`Cursor::next_inst`], after the last, after
    /// [`Cursor::erase`].
    pub fn node(&self) -> &InstNode {
        let inst = self.inst().expect("the cursor stands at no instruction");
        &self.function().insts[inst]
    }

    /// What the instruction that it stands at does.
    ///
    /// # Panics
    /// As [`Cursor::node`].
    pub fn data(&self) -> &InstData {
        &self.node().data
    }

    /// What the instruction that it stands at defines.
    ///
    /// # Panics
    /// As [`Cursor::node`].
    pub fn result(&self) -> Option<Value> {
        self.node().result
    }

    /// The region that it is in: at the end of the walk, the body.
    pub fn region(&self) -> Region {
        let open = self.open.last().map(|open| open.region);
        open.unwrap_or(self.function().body)
    }

    /// How many instructions of its region are before it, with those inserted.
    pub fn position(&self) -> usize {
        let open = self.open.last().map(|open| open.behind.len());
        open.unwrap_or_else(|| self.function().regions[self.function().body].insts.len())
    }

    /// How many loops it is in.
    pub fn loops(&self) -> usize {
        let around = self.open.iter().rev().skip(1);
        let holders = around.filter_map(|open| open.current);
        holders
            .filter(|&inst| self.function().insts[inst].data.is_loop())
            .count()
    }

    /// The function that it walks over, as far as its changes are in place.
    pub fn function(&self) -> &Function {
        &self.module.functions[self.function]
    }

    /// Which function that is.
    pub fn function_id(&self) -> FuncId {
        self.function
    }

    /// The module.
    pub fn module(&self) -> &Module {
        self.module
    }

    /// The module, to enter what the new code needs: types, rows, constants, other functions. The function
    /// that it walks over is changed through the cursor alone, but for its variables.
    pub fn module_mut(&mut self) -> &mut Module {
        self.module
    }

    /// The module's types.
    pub fn types(&self) -> &TypeTable {
        &self.module.types
    }

    /// The module's types, to enter more.
    pub fn types_mut(&mut self) -> &mut TypeTable {
        &mut self.module.types
    }

    /// The type of a value of the function.
    pub fn type_of(&self, value: Value) -> Type {
        self.function().type_of(value)
    }

    /// The row of an intrinsic in the module, entered if it is new.
    pub fn intrinsic(&mut self, def: &'static IntrinsicDef) -> IntrinsicId {
        self.module.intrinsic(def)
    }

    /// A new variable of the function.
    pub fn new_var(&mut self, name: impl Into<String>, ty: Type) -> Var {
        let name = name.into();
        self.function_mut().vars.push(VarData { name, ty })
    }

    /// Builds an instruction before this one; at the start, as the first, and at the end, as the last of the
    /// body.
    pub fn ins(&mut self) -> InstBuilder<'_, 'm> {
        InstBuilder::new(self, Place::Before)
    }

    /// Builds an instruction after this one, and after those that were built so before.
    pub fn ins_after(&mut self) -> InstBuilder<'_, 'm> {
        InstBuilder::new(self, Place::After)
    }

    /// Builds an instruction at the end of a region of the function.
    pub fn ins_at_end(&mut self, region: Region) -> InstBuilder<'_, 'm> {
        InstBuilder::new(self, Place::End(region))
    }

    /// Builds an operation in place of that of this instruction. What the instruction defines stays the same
    /// value, of the new operation's type. Regions that the new operation does not hold are gone.
    ///
    /// # Panics
    /// As [`Cursor::node`], when the operation is built.
    pub fn replace(&mut self) -> InstBuilder<'_, 'm> {
        InstBuilder::new(self, Place::Instead)
    }

    /// Gives the instruction that it stands at another operand, by position in the order of
    /// [`InstData::for_each_operand`].
    ///
    /// # Panics
    /// As [`Cursor::node`].
    pub fn set_operand(&mut self, position: usize, value: Value) {
        let mut data = self.data().clone();
        let mut at = 0;
        data.map_operands(|operand| {
            at += 1;
            if at - 1 == position { value } else { operand }
        });
        self.change(data);
    }

    /// Puts `new` in the place of `old` in every operand that there is now, in the whole function. What is
    /// built afterwards may use `old`.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        self.replace_uses_except(old, new, &[]);
    }

    /// Replaces the uses of `old` by `new`, but for the operands of the instructions `except`.
    pub fn replace_uses_except(&mut self, old: Value, new: Value, except: &[Inst]) {
        let function = &mut self.module.functions[self.function];
        if let Some(counts) = &mut self.counts {
            let mut kept = 0;
            for &inst in except.iter().filter(|inst| !self.erased.contains(**inst)) {
                self.replacements.put_in(function, inst);
                kept += positions_of(&function.insts[inst].data, old).count();
            }
            counts.replace(old, new, kept);
        }
        self.replacements.make(old, new, except);
        if let Some(here) = self.open.last().and_then(|open| open.current) {
            self.replacements.put_in(function, here);
        }
    }

    /// The operands that a value is by now, in the order of the text. Takes a walk over the function.
    pub fn uses(&mut self, value: Value) -> Vec<Use> {
        self.put_in_all();
        let mut uses = Vec::new();
        self.for_each(&mut |function, inst| {
            let found = positions_of(&function.insts[inst].data, value);
            uses.extend(found.map(|position| Use { inst, position }));
        });
        uses
    }

    /// Whether a value is an operand by now. The first question takes a walk over the function, the others
    /// constant time.
    pub fn is_used(&mut self, value: Value) -> bool {
        self.counts().of(value) > 0
    }

    /// Takes the instruction that it stands at out of the function, with the regions that it holds, which
    /// are then not walked over. The cursor stays at its place.
    ///
    /// # Errors
    /// [`StillUsed`] if its result is; nothing is changed then.
    ///
    /// # Panics
    /// As [`Cursor::node`].
    pub fn erase(&mut self) -> Result<(), StillUsed> {
        let inst = self.inst().expect("the cursor stands at no instruction");
        self.erase_inst(inst)
    }

    /// Takes any instruction of the function out of it, with the regions that it holds.
    ///
    /// # Errors
    /// As [`Cursor::erase`].
    pub fn erase_inst(&mut self, inst: Inst) -> Result<(), StillUsed> {
        if let Some(value) = self.function().insts[inst].result {
            let uses = self.counts().of(value);
            if uses > 0 {
                return Err(StillUsed { value, uses });
            }
        }
        self.take_out(inst);
        Ok(())
    }

    /// Puts `value` in the place of what the instruction that it stands at defines, and erases that.
    ///
    /// # Panics
    /// As [`Cursor::node`].
    pub fn replace_by(&mut self, value: Value) {
        let inst = self.inst().expect("the cursor stands at no instruction");
        if let Some(result) = self.result() {
            // Itself among them, for what is erased uses nothing.
            self.replace_uses(result, value);
        }
        self.take_out(inst);
    }

    /// Takes an instruction out that nothing uses.
    fn take_out(&mut self, inst: Inst) {
        self.forget(inst);
        match self.open.last_mut() {
            Some(open) if open.current == Some(inst) => {
                open.current = None;
                open.changed = true;
            }
            _ => self.erased_elsewhere = true,
        }
    }

    /// Notes that an instruction goes, with those in its regions: they use nothing any more.
    fn forget(&mut self, inst: Inst) {
        let mut gone = Vec::new();
        self.for_each_within(inst, &mut |_, inner| gone.push(inner));
        let function = &mut self.module.functions[self.function];
        for inst in gone {
            self.erased.insert(inst);
            if let Some(counts) = &mut self.counts {
                self.replacements.put_in(function, inst);
                counts.remove(&function.insts[inst].data);
            }
        }
    }

    /// The type of what an operation gives; `chosen` where its operands leave a choice.
    pub(super) fn result_type(&mut self, data: &InstData, chosen: Type) -> Type {
        let given = match self.function().result_type(self.module, data) {
            Some(ResultType::Chosen) => return chosen,
            Some(given) => given.enter(&mut self.module.types),
            None => None,
        };
        given.unwrap_or_else(|| {
            // Operands that it does not take: something to go on with.
            let mut any = chosen;
            data.for_each_operand(|operand| any = self.type_of(operand));
            any
        })
    }

    /// Puts an instruction at a place. Its value, if the type is that of one.
    pub(super) fn put(
        &mut self,
        place: Place,
        data: InstData,
        ty: Type,
        location: Location,
    ) -> Option<Value> {
        if let Place::Instead = place {
            return self.put_instead(data, ty);
        }
        if let Some(counts) = &mut self.counts {
            counts.add(&data);
        }
        let function = &mut self.module.functions[self.function];
        let inst = function.new_inst(data, ty, location);
        let result = function.insts[inst].result;
        self.replacements.settle(inst);
        self.list(place).push(inst);
        result
    }

    /// What an instruction at a place is added to.
    fn list(&mut self, place: Place) -> &mut Vec<Inst> {
        let function = &mut self.module.functions[self.function];
        let open = match place {
            Place::End(region) => self.open.iter_mut().find(|open| open.region == region),
            Place::Before | Place::After | Place::Instead => self.open.last_mut(),
        };
        let Some(open) = open else {
            let region = match place {
                Place::End(region) => region,
                Place::Before | Place::After | Place::Instead => function.body,
            };
            return &mut function.regions[region].insts;
        };
        open.changed = true;
        match place {
            Place::End(_) => &mut open.last,
            Place::After => &mut open.after,
            Place::Before | Place::Instead => &mut open.behind,
        }
    }

    fn put_instead(&mut self, data: InstData, ty: Type) -> Option<Value> {
        let inst = self.inst().expect("the cursor stands at no instruction");
        let function = &mut self.module.functions[self.function];
        if let Some(index) = data.index() {
            function.values[index].def = crate::ValueDef::Index(inst);
        }
        match function.insts[inst].result {
            Some(value) => function.values[value].ty = ty,
            None if ty != Type::UNIT => {
                let def = crate::ValueDef::Inst(inst);
                let value = function.values.push(crate::ValueData { ty, def });
                function.insts[inst].result = Some(value);
            }
            None => {}
        }
        self.change(data);
        self.result()
    }

    /// Gives the instruction that it stands at another operation.
    fn change(&mut self, data: InstData) {
        let inst = self.inst().expect("the cursor stands at no instruction");
        if let Some(counts) = &mut self.counts {
            counts.remove(&self.module.functions[self.function].insts[inst].data);
            counts.add(&data);
        }
        let kept = data.regions();
        let node = &mut self.function_mut().insts[inst];
        if !data.takes_fast() {
            node.fast = FastMath::NONE;
        }
        let before = std::mem::replace(&mut node.data, data);
        for region in before.regions().into_iter().filter(|r| !kept.contains(r)) {
            for inner in self.function().regions[region].insts.clone() {
                self.forget(inner);
            }
        }
    }

    /// An empty region, for an instruction that is about to hold it.
    pub(super) fn new_region(&mut self) -> Region {
        self.function_mut().regions.push(RegionData::default())
    }

    pub(super) fn function_mut(&mut self) -> &mut Function {
        &mut self.module.functions[self.function]
    }

    fn counts(&mut self) -> &UseCounts {
        if self.counts.is_none() {
            self.put_in_all();
            let mut counts = UseCounts::new();
            self.for_each(&mut |function, inst| counts.add(&function.insts[inst].data));
            self.counts = Some(counts);
        }
        self.counts.get_or_insert_with(UseCounts::new)
    }

    fn put_in_all(&mut self) {
        let function = &mut self.module.functions[self.function];
        self.replacements.put_in_all(function);
    }

    /// Calls `f` for all instructions that are there by now, in the order of the text.
    fn for_each(&self, f: &mut impl FnMut(&Function, Inst)) {
        self.for_each_in(self.function().body, f);
    }

    fn for_each_in(&self, region: Region, f: &mut impl FnMut(&Function, Inst)) {
        match self.open.iter().find(|open| open.region == region) {
            Some(open) => open.insts().for_each(|inst| self.for_each_within(inst, f)),
            None => {
                let insts = &self.function().regions[region].insts;
                insts.iter().for_each(|&inst| self.for_each_within(inst, f));
            }
        }
    }

    /// Calls `f` for an instruction and those in its regions.
    fn for_each_within(&self, inst: Inst, f: &mut impl FnMut(&Function, Inst)) {
        if self.erased.contains(inst) {
            return;
        }
        work::done(1);
        f(self.function(), inst);
        for region in self.function().insts[inst].data.regions() {
            self.for_each_in(region, f);
        }
    }
}

impl Drop for Cursor<'_> {
    /// Puts all changes in place.
    fn drop(&mut self) {
        while !self.open.is_empty() {
            self.leave();
        }
        self.put_in_all();
        if self.erased_elsewhere {
            for (_, region) in self.module.functions[self.function].regions.iter_mut() {
                region.insts.retain(|inst| !self.erased.contains(*inst));
            }
        }
    }
}

impl std::fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = &self.function().name;
        let (region, position) = (self.region(), self.position());
        write!(f, "Cursor(`{name}`, {region}, {position})")
    }
}

impl Module {
    /// Calls `f` with a cursor at each instruction of each function that there is now.
    ///
    /// ```
    /// # let text = "module m specialized
    /// # kernel @k(%0 x: f32) {
    /// #   %1: f32 = neg %0
    /// # }
    /// # ";
    /// # let mut module = kiln_ir::parse(text, &|_| None).unwrap();
    /// let mut seen = 0;
    /// module.rewrite_each(|at| seen += usize::from(at.result().is_some()));
    /// assert_eq!(seen, 1);
    /// ```
    pub fn rewrite_each(&mut self, mut f: impl FnMut(&mut Cursor<'_>)) {
        for function in self.functions.keys() {
            let mut cursor = Cursor::new(self, function);
            while cursor.next_inst().is_some() {
                f(&mut cursor);
            }
        }
    }
}

/// How many instructions cursors have moved or looked at, for the test that they are few.
mod work {
    #[cfg(test)]
    thread_local! {
        static DONE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    /// Counts so many.
    #[cfg(test)]
    pub(super) fn done(insts: usize) {
        DONE.set(DONE.get() + insts);
    }

    /// Nobody asks.
    #[cfg(not(test))]
    pub(super) fn done(_: usize) {}

    /// How many there were during `f`.
    #[cfg(test)]
    pub(super) fn during(f: impl FnOnce()) -> usize {
        DONE.set(0);
        f();
        DONE.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, FunctionKind};

    /// A kernel of so many additions, each in a loop with the next.
    fn kernel(insts: usize) -> Module {
        let mut module = Module::new("k");
        let mut kernel = Function::new("k", FunctionKind::Kernel, Location::unknown());
        let mut value = kernel.add_param("n", Type::U32, Location::unknown());
        let mut region = kernel.body;
        for _ in 0..insts {
            let args = [value, value];
            let sum = InstData::Binary {
                op: BinaryOp::Add,
                args,
            };
            let sum = kernel.append(region, sum, Type::U32, Location::unknown());
            value = sum.expect("it gives one");
            if value.index().is_multiple_of(100) {
                let body = kernel.regions.push(RegionData::default());
                let held = InstData::Loop { body };
                kernel.append(region, held, Type::UNIT, Location::unknown());
                region = body;
            }
        }
        module.functions.push(kernel);
        module
    }

    /// What a walk takes that changes everything in every way.
    fn work_of(insts: usize) -> usize {
        let mut module = kernel(insts);
        work::during(|| {
            module.rewrite_each(|at| {
                let Some(result) = at.result() else { return };
                let one = at.ins().constant(1u32);
                let two = at.ins_after().constant(2u32);
                at.ins_at_end(at.region()).barrier();
                at.set_operand(1, one);
                at.replace_uses(result, two);
                at.erase().expect("nothing uses it");
            });
        })
    }

    #[test]
    fn a_walk_that_changes_everything_is_linear() {
        let (few, many) = (work_of(1000), work_of(4000));
        assert!(few > 1000, "{few}");
        assert!(many < 5 * few, "{few} for 1000, {many} for 4000");
    }
}
