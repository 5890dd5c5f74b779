//! Functions as a whole: copies within a module, and functions of other modules.

use std::collections::HashMap;
use std::sync::Arc;

use crate::{
    Choices, FuncId, Function, FunctionKind, GlobalData, GlobalId, HiddenData, HiddenParam,
    InlinedCall, Inst, InstData, Location, Module, Passing, RegionData, Type, Value, debug_as_text,
    error_text, free_name,
};

/// What [`Function::copy_inst`] has made.
#[derive(Clone, Debug)]
pub struct InstCopy {
    /// The copy of the instruction, which is in no region yet.
    pub inst: Inst,
    /// By instruction that was copied: its copy.
    pub insts: HashMap<Inst, Inst>,
    /// By value that they define: what the copies define.
    pub values: HashMap<Value, Value>,
}

impl InstCopy {
    /// An instruction as it is, for code that works on copies.
    pub fn of_itself(inst: Inst) -> InstCopy {
        InstCopy {
            inst,
            insts: HashMap::new(),
            values: HashMap::new(),
        }
    }
}

impl Function {
    /// Copies an instruction with all that is in its regions. What the copies define are values of their own,
    /// which they use among each other; all else is shared: values from outside, variables, shared memory. The
    /// copy is placed in no region.
    ///
    /// ```
    /// # let text = "module m specialized
    /// # kernel @k(%0 x: slice<generic, mut f32>, %1 n: u32) {
    /// #   %2: u32 = const 0
    /// #   %3: u32 = const 1
    /// #   for %4: u32 in %2 .. %1 step %3 {
    /// #     %5: ptr<generic, mut f32> = slice_index %0, %4
    /// #   }
    /// # }
    /// # ";
    /// # let mut module = kiln_ir::parse(text, &|_| None).unwrap();
    /// let kernel = module.kernel().unwrap();
    /// let function = &mut module.functions[kernel];
    /// let the_loop = *function.regions[function.body].insts.last().unwrap();
    /// let copy = function.copy_inst(the_loop);
    /// assert_eq!(copy.insts.len(), 2);
    /// function.regions[function.body].insts.push(copy.inst);
    /// assert!(kiln_ir::verify(&module).is_ok());
    /// ```
    pub fn copy_inst(&mut self, inst: Inst) -> InstCopy {
        let mut copy = InstCopy::of_itself(inst);
        copy.inst = self.copy_into(inst, &mut copy);
        copy
    }

    fn copy_into(&mut self, inst: Inst, copy: &mut InstCopy) -> Inst {
        let node = self.insts[inst].clone();
        let mut data = node.data;
        data.map_operands(|value| copy.values.get(&value).copied().unwrap_or(value));
        if let Some(index) = data.index_mut() {
            let own = self.new_index(self.type_of(*index));
            copy.values.insert(*index, own);
            *index = own;
        }
        let copied: Result<(), std::convert::Infallible> = data.map_regions(|region| {
            let insts = self.regions[region].insts.clone();
            let insts = insts.into_iter().map(|inner| self.copy_into(inner, copy));
            let insts = insts.collect();
            Ok(self.regions.push(RegionData { insts }))
        });
        let Ok(()) = copied;
        let ty = node.result.map_or(Type::UNIT, |value| self.type_of(value));
        let own = self.new_inst(data, ty, node.location);
        self.insts[own].fast = node.fast;
        copy.insts.insert(inst, own);
        if let (Some(old), Some(new)) = (node.result, self.insts[own].result) {
            copy.values.insert(old, new);
        }
        own
    }
}

/// A function of another module cannot be a part of this one.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!("`{function}` cannot be linked: {conflict}"))]
pub struct LinkError {
    /// The function's name.
    pub function: String,
    /// Two rows of one name, and what to do.
    pub conflict: String,
}

debug_as_text!(LinkError);

impl Module {
    /// Adds a copy of a function, by this name or one with a number after it. The copy of a kernel is a
    /// device function.
    ///
    /// ```
    /// # let text = "module m specialized
    /// # kernel @k(%0 x: f32) {
    /// #   %1: f32 = call @twice(%0)
    /// # }
    /// # device @twice(%0 x: f32) -> f32 {
    /// #   %1: f32 = add %0, %0
    /// #   return %1
    /// # }
    /// # ";
    /// # let mut module = kiln_ir::parse(text, &|_| None).unwrap();
    /// let twice = module.function_named("twice").unwrap();
    /// let copy = module.clone_function(twice, "twice");
    /// assert_eq!(module.functions[copy].name, "twice.2");
    /// assert!(kiln_ir::verify(&module).is_ok());
    /// ```
    ///
    /// # Panics
    /// If the module has no such function.
    pub fn clone_function(&mut self, function: FuncId, name: &str) -> FuncId {
        let mut copy = self.functions[function].clone();
        copy.name = self.free_function_name(name);
        copy.kind = FunctionKind::Device;
        copy.launch_bounds = None;
        copy.choices = Choices {
            fast: copy.choices.fast,
            ..Choices::default()
        };
        for param in &mut copy.params {
            param.passing = Passing::Direct;
        }
        self.functions.push(copy)
    }

    /// Adds a device function of another module with all that it calls: types, rows, constants and places in
    /// files, too. Both modules are in the same phase. Functions get a number after their name where it is
    /// taken; linking one twice adds it twice.
    ///
    /// ```
    /// # let text = "module m specialized
    /// # kernel @k(%0 x: f32) {
    /// #   %1: f32 = neg %0
    /// # }
    /// # ";
    /// # let mut module = kiln_ir::parse(text, &|_| None).unwrap();
    /// let text = "module library specialized
    /// device @twice(%0 x: f32) -> f32 {
    ///   %1: f32 = add %0, %0
    ///   return %1
    /// }
    /// ";
    /// let library = kiln_ir::parse(text, &|_| None).unwrap();
    /// let twice = module.link(&library, library.function_named("twice").unwrap()).unwrap();
    /// let kernel = module.kernel().unwrap();
    /// let mut at = kiln_ir::Cursor::new(&mut module, kernel);
    /// at.next_inst();
    /// let x = at.result().unwrap();
    /// at.ins_after().call(twice, &[x]);
    /// drop(at);
    /// assert!(kiln_ir::verify(&module).is_ok());
    /// ```
    ///
    /// # Errors
    /// [`LinkError`] where it uses a row and this module another one of the same name; nothing is added then.
    ///
    /// # Panics
    /// If the other module has no such function.
    pub fn link(&mut self, from: &Module, function: FuncId) -> Result<FuncId, LinkError> {
        let reached = reached(from, function);
        for &id in &reached {
            self.check_rows(from, &from.functions[id])?;
        }
        let mut linked: HashMap<FuncId, FuncId> = HashMap::new();
        for &id in &reached {
            let source = &from.functions[id];
            let name = self.free_function_name(&source.name);
            let place = Function::new(name, source.kind, Location::unknown());
            linked.insert(id, self.functions.push(place));
        }
        for &id in &reached {
            let place = linked[&id];
            let mut copy = from.functions[id].clone();
            copy.name = std::mem::take(&mut self.functions[place].name);
            self.take_in(from, &mut copy, &linked);
            self.functions[place] = copy;
        }
        Ok(linked[&function])
    }

    /// Whether the rows of a function can stand beside those that are here.
    fn check_rows(&self, from: &Module, function: &Function) -> Result<(), LinkError> {
        let used = function
            .insts
            .values()
            .filter_map(|node| node.data.intrinsic());
        for (id, _) in used {
            let row = from.intrinsics[id];
            if let Some(other) = self.other_intrinsic(row) {
                return Err(LinkError {
                    function: function.name.clone(),
                    conflict: other.conflict(row),
                });
            }
        }
        Ok(())
    }

    /// Gives a function of another module the entities of this one.
    fn take_in(
        &mut self,
        from: &Module,
        function: &mut Function,
        linked: &HashMap<FuncId, FuncId>,
    ) {
        let mut ty = |ty: &mut Type| *ty = self.types.import_apart(&from.types, *ty);
        ty(&mut function.result);
        function.values.iter_mut().for_each(|(_, v)| ty(&mut v.ty));
        function.vars.iter_mut().for_each(|(_, v)| ty(&mut v.ty));
        function.shared.iter_mut().for_each(|(_, v)| ty(&mut v.ty));
        function.location = self.import_location(from, function.location);
        for param in &mut function.params {
            param.location = self.import_location(from, param.location);
            param.hidden = param.hidden.map(|id| self.import_hidden(from, id));
        }
        for (_, node) in function.insts.iter_mut() {
            node.location = self.import_location(from, node.location);
            match &mut node.data {
                InstData::Intrinsic { id, .. } => *id = self.intrinsic(from.intrinsics[*id]),
                InstData::GlobalAddr(id) => {
                    let GlobalData { name, ty, bytes } = &from.globals[*id];
                    let ty = self.types.import_apart(&from.types, *ty);
                    *id = self.enter_global(name, ty, bytes);
                }
                InstData::Hidden(id) => *id = self.import_hidden(from, *id),
                InstData::Call {
                    callee, type_args, ..
                } => {
                    *callee = linked[callee];
                    for arg in type_args {
                        *arg = self.types.import_apart(&from.types, *arg);
                    }
                }
                _ => {}
            }
        }
    }

    /// The hidden value of the same source and name, entered if it is new.
    fn import_hidden(&mut self, from: &Module, id: HiddenParam) -> HiddenParam {
        let data = from.hidden[id].clone();
        let ty = self.types.import_apart(&from.types, data.ty);
        let location = self.import_location(from, data.location);
        self.hidden_value(HiddenData {
            ty,
            location,
            ..data
        })
    }

    /// A constant of this type and these bytes, entered by this name, or one with a number after it, if it is
    /// new.
    pub fn enter_global(&mut self, name: &str, ty: Type, bytes: &Arc<[u8]>) -> GlobalId {
        let same = |global: &GlobalData| global.ty == ty && global.bytes == *bytes;
        if let Some((known, _)) = self.globals.iter().find(|(_, global)| same(global)) {
            return known;
        }
        let name = free_name(name, |name| self.globals.values().any(|g| g.name == name));
        let bytes = bytes.clone();
        self.globals.push(GlobalData { name, ty, bytes })
    }

    /// A location of another module in this one.
    pub fn import_location(&mut self, from: &Module, at: Location) -> Location {
        let call = at.inlined.and_then(|id| from.inlined.get(id));
        let call = call.filter(|call| call.at.inlined < at.inlined);
        let inlined = call.map(|InlinedCall { function, at }| {
            let function = function.clone();
            let at = self.import_location(from, *at);
            self.inlined_call(InlinedCall { function, at })
        });
        match from.files.get(at.file) {
            Some(path) if at.is_known() => Location {
                file: self.file(path),
                inlined,
                ..at
            },
            _ => Location {
                inlined,
                ..Location::unknown()
            },
        }
    }

    fn free_function_name(&self, name: &str) -> String {
        free_name(name, |name| self.function_named(name).is_some())
    }
}

/// A function and all that it calls, each once, the first first.
pub(super) fn reached(module: &Module, function: FuncId) -> Vec<FuncId> {
    let mut reached = vec![function];
    let mut seen = 0;
    while let Some(&id) = reached.get(seen) {
        seen += 1;
        let insts = module.functions[id].insts.values();
        for callee in insts.filter_map(|node| node.data.callee()) {
            if !reached.contains(&callee) {
                reached.push(callee);
            }
        }
    }
    reached
}
