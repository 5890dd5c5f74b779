//! The kernel with its calls replaced by the bodies called.
//!
//! A call becomes the callee's region in place. A `return` that is not the last instruction of the
//! callee leaves a loop that is run once:
//!
//! ```text
//! %r = call f(%a)    =>    loop { ...; result := %v; break d; ...; result := %w; break 0 }
//!                          %r = get result
//! ```
//! Recursion is refused by the definitions of functions; a call that is nested too deeply is
//! refused here.

use std::collections::HashMap;

use kiln_ir::fault::fault_insts;
use kiln_ir::{
    Constant, Control, FuncId, Function, Inst, InstData, Module, Region, RegionData, SharedVar,
    Type, Value, Var, VarData, debug_as_text, error_text,
};

/// How deep calls may nest.
const MAX_DEPTH: usize = 64;

/// How many instructions a kernel may have after inlining.
const MAX_INSTS: usize = 200_000;

/// Why a kernel cannot be inlined.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!("kernel `{kernel}` cannot be inlined for the CPU: {what}"))]
pub struct InlineError {
    /// The kernel.
    pub kernel: String,
    /// Why not.
    pub what: String,
}

debug_as_text!(InlineError);

/// A kernel without calls.
#[derive(Debug)]
pub(crate) struct Flat {
    /// The kernel; its types are those of the module it comes from.
    pub(crate) function: Function,
    /// The fault site of each instruction that can fault.
    pub(crate) sites: HashMap<Inst, u32>,
}

/// Inlines all calls of a module's kernel.
pub(crate) fn inline(module: &Module) -> Result<Flat, InlineError> {
    let refuse = |what: &str| InlineError {
        kernel: module.name.clone(),
        what: what.to_owned(),
    };
    let kernel = module
        .kernel()
        .ok_or_else(|| refuse("there is no kernel"))?;
    let source = &module.functions[kernel];
    let mut function = Function::new(source.name.clone(), source.kind, source.location);
    function.launch_bounds = source.launch_bounds;
    function.choices = source.choices;
    let sites = fault_insts(module).into_iter().zip(0..).collect();
    let mut inliner = Inliner {
        module,
        function,
        source_sites: sites,
        sites: HashMap::new(),
        shared: HashMap::new(),
        depth: 0,
    };
    let mut frame = Frame::new(kernel);
    for param in &source.params {
        let ty = source.type_of(param.value);
        let value = inliner
            .function
            .add_param(param.name.clone(), ty, param.location);
        if let Some(copy) = inliner.function.params.last_mut() {
            copy.passing = param.passing;
            copy.facts = param.facts;
        }
        frame.values.insert(param.value, value);
    }
    inliner.declare(&mut frame);
    let body = inliner.function.body;
    inliner
        .region(&mut frame, source.body, body, 0)
        .map_err(|what| refuse(&what))?;
    Ok(Flat {
        function: inliner.function,
        sites: inliner.sites,
    })
}

/// A module's kernel alone, with its calls replaced by the bodies called.
///
/// # Errors
/// Calls that nest too deeply, or too many instructions.
#[cfg(feature = "testing")]
pub fn inlined(module: &Module) -> Result<Module, InlineError> {
    let Flat { function, .. } = inline(module)?;
    let mut flat = module.clone();
    flat.functions = kiln_ir::PrimaryMap::new();
    flat.functions.push(function);
    Ok(flat)
}

/// How a `return` of the function being copied is written.
#[derive(Copy, Clone)]
enum Leave {
    /// The kernel: the thread ends.
    Thread,
    /// The only return is the last instruction: nothing is written.
    FallThrough,
    /// A way out of the loop around the body, with the result in a variable.
    Loop { result: Option<Var> },
}

/// A function while it is copied.
struct Frame {
    id: FuncId,
    values: HashMap<Value, Value>,
    vars: HashMap<Var, Var>,
    leave: Leave,
    /// The returned value of a body that falls through.
    returned: Option<Value>,
}

impl Frame {
    fn new(id: FuncId) -> Frame {
        Frame {
            id,
            values: HashMap::new(),
            vars: HashMap::new(),
            leave: Leave::Thread,
            returned: None,
        }
    }
}

struct Inliner<'m> {
    module: &'m Module,
    function: Function,
    source_sites: HashMap<(FuncId, Inst), u32>,
    sites: HashMap<Inst, u32>,
    shared: HashMap<(FuncId, SharedVar), SharedVar>,
    depth: usize,
}

type Result<T, E = String> = std::result::Result<T, E>;

impl<'m> Inliner<'m> {
    /// Makes the function's variables and shared memory known.
    fn declare(&mut self, frame: &mut Frame) {
        let source = &self.module.functions[frame.id];
        for (var, data) in source.vars.iter() {
            frame
                .vars
                .insert(var, self.function.vars.push(data.clone()));
        }
        for (var, data) in source.shared.iter() {
            // One place in the block, however often the function is called.
            let shared = &mut self.function.shared;
            self.shared
                .entry((frame.id, var))
                .or_insert_with(|| shared.push(data.clone()));
        }
    }

    /// Copies a region; `loops` is the number of loops of the function around it.
    fn region(&mut self, frame: &mut Frame, from: Region, to: Region, loops: u32) -> Result<()> {
        let source = &self.module.functions[frame.id];
        for &inst in &source.regions[from].insts {
            self.inst(frame, inst, to, loops)?;
        }
        if self.function.insts.len() > MAX_INSTS {
            return Err(format!("it has more than {MAX_INSTS} instructions"));
        }
        Ok(())
    }

    fn new_region(&mut self) -> Region {
        self.function.regions.push(RegionData::default())
    }

    fn inst(&mut self, frame: &mut Frame, inst: Inst, to: Region, loops: u32) -> Result<()> {
        let source = &self.module.functions[frame.id];
        let node = &source.insts[inst];
        let mut data = node.data.clone();
        let mut missing = false;
        data.map_operands(|value| {
            let found = frame.values.get(&value).copied();
            missing |= found.is_none();
            found.unwrap_or(value)
        });
        if missing {
            return Err("a value is used before it exists".to_owned());
        }
        if let Control::Return { value } = data.control() {
            self.leave(frame, value, to, loops, node.location);
            return Ok(());
        }
        if let Some((callee, args)) = data.call() {
            let value = self.call(callee, args, to, node.location)?;
            if let (Some(result), Some(value)) = (node.result, value) {
                frame.values.insert(result, value);
            }
            return Ok(());
        }
        data.map_vars(|var| frame.vars[&var]);
        data.map_shared(|var| self.shared[&(frame.id, var)]);
        if let Some(index) = data.index_mut() {
            let inner = self.function.values.push(kiln_ir::ValueData {
                ty: source.type_of(*index),
                def: kiln_ir::ValueDef::Param(0),
            });
            frame.values.insert(*index, inner);
            *index = inner;
        }
        let loops_inside = loops + u32::from(data.is_loop());
        data.map_regions(|region| {
            let copy = self.new_region();
            self.region(frame, region, copy, loops_inside)?;
            Ok::<_, String>(copy)
        })?;
        let ty = node.result.map_or(Type::UNIT, |r| source.type_of(r));
        let copy = self.function.new_inst(data, ty, node.location);
        self.function.insts[copy].fast = node.fast;
        self.function.regions[to].insts.push(copy);
        if let Some(&site) = self.source_sites.get(&(frame.id, inst)) {
            self.sites.insert(copy, site);
        }
        if let (Some(result), Some(new)) = (node.result, self.function.insts[copy].result) {
            frame.values.insert(result, new);
        }
        Ok(())
    }

    fn leave(
        &mut self,
        frame: &mut Frame,
        value: Option<Value>,
        to: Region,
        loops: u32,
        at: kiln_ir::Location,
    ) {
        match frame.leave {
            Leave::Thread => {
                let data = InstData::Return { value: None };
                self.function.append(to, data, Type::UNIT, at);
            }
            Leave::FallThrough => frame.returned = value,
            Leave::Loop { result } => {
                if let (Some(result), Some(value)) = (result, value) {
                    let data = InstData::VarSet(result, value);
                    self.function.append(to, data, Type::UNIT, at);
                }
                let leave = InstData::Break { depth: loops };
                self.function.append(to, leave, Type::UNIT, at);
            }
        }
    }

    /// Copies the callee's body to the end of `to`; gives the value it returns.
    fn call(
        &mut self,
        callee: FuncId,
        args: &[Value],
        to: Region,
        at: kiln_ir::Location,
    ) -> Result<Option<Value>> {
        let source = &self.module.functions[callee];
        if source.is_declaration {
            return Err(format!("`{}` has no body", source.name));
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("calls nest deeper than {MAX_DEPTH}"));
        }
        let mut frame = Frame::new(callee);
        let params = source.params.iter().map(|p| p.value);
        frame.values = params.zip(args.iter().copied()).collect();
        self.declare(&mut frame);
        for (var, data) in source.vars.iter() {
            self.zero_var(frame.vars[&var], data.ty, to, at);
        }
        let result = if returns_at_end_only(source) {
            frame.leave = Leave::FallThrough;
            self.region(&mut frame, source.body, to, 0)?;
            frame.returned
        } else {
            self.call_in_loop(&mut frame, to, at)?
        };
        self.depth -= 1;
        Ok(result)
    }

    fn call_in_loop(
        &mut self,
        frame: &mut Frame,
        to: Region,
        at: kiln_ir::Location,
    ) -> Result<Option<Value>> {
        let source = &self.module.functions[frame.id];
        let ty = source.result;
        let result = (ty != Type::UNIT).then(|| {
            self.function.vars.push(VarData {
                name: "result".to_owned(),
                ty,
            })
        });
        if let Some(result) = result {
            self.zero_var(result, ty, to, at);
        }
        frame.leave = Leave::Loop { result };
        let body = self.new_region();
        self.region(frame, source.body, body, 0)?;
        let ends = self.function.regions[body].insts.last();
        if !ends.is_some_and(|&i| self.function.insts[i].data.is_terminator()) {
            let leave = InstData::Break { depth: 0 };
            self.function.append(body, leave, Type::UNIT, at);
        }
        self.function
            .append(to, InstData::Loop { body }, Type::UNIT, at);
        Ok(result.and_then(|var| self.function.append(to, InstData::VarGet(var), ty, at)))
    }

    /// Variables start as zero in each call.
    fn zero_var(&mut self, var: Var, ty: Type, to: Region, at: kiln_ir::Location) {
        let zero = InstData::Const(Constant::Zero);
        if let Some(zero) = self.function.append(to, zero, ty, at) {
            let data = InstData::VarSet(var, zero);
            self.function.append(to, data, Type::UNIT, at);
        }
    }
}

/// Whether the only `return` is the last instruction of the body.
fn returns_at_end_only(function: &Function) -> bool {
    let mut returns = 0;
    function.for_each_inst(|_, inst| {
        returns += u32::from(function.insts[inst].data.is_return());
    });
    let last = function.regions[function.body].insts.last();
    let at_end = last.is_some_and(|&i| function.insts[i].data.is_return());
    returns == u32::from(at_end)
}
