//! Bodies of device functions in place of their calls.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::{
    Constant, Control, FuncId, Function, FunctionKind, Inlined, InlinedCall, Inst, InstData,
    Location, Module, Region, RegionData, SharedVar, Type, Value, Var, VarData, VarUse,
};

/// By how much a body may grow, of which parts are copied as several ways come to them: a quarter and so many.
const MORE: usize = 8;

/// In how many instructions of a body there may be a `return`: what comes after each is in one of its regions then.
const MAX_WAYS: usize = 16;

impl Module {
    /// Whether the body of a function can stand in place of its calls: a specialized device function with a body that is
    /// not left out of a loop in it, and where what comes after an `if` of which a part returns need not be there many
    /// times.
    ///
    /// # Panics
    /// If the module has no such function.
    pub fn can_be_inlined(&self, function: FuncId) -> bool {
        let data = &self.functions[function];
        let is_open = !data.type_params.is_empty() || !data.const_params.is_empty();
        if data.kind != FunctionKind::Device || data.is_declaration || is_open {
            return false;
        }
        let mut size = 0;
        data.for_each_inst(|_, _| size += 1);
        let returning = Returning::of(data);
        let mut left = size + size / 4 + MORE;
        let body = &data.regions[data.body].insts;
        let is_tree = !returning.from_loop && returning.around.len() <= MAX_WAYS;
        is_tree && returning.takes(data, body, None, &mut left)
    }

    /// Puts bodies in place of the calls of a function: those of the functions that [can be](Module::can_be_inlined) and
    /// that `which` says, which is asked once of each. What these bodies call stays a call. Places in files stay what
    /// they were, and tell of which function they are ([`Location::inlined`]), so that a fault does. Says how many calls
    /// there were.
    ///
    /// A function with shared memory that others call, too, stays a call: it has one place in a block.
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
    /// let (kernel, twice) = (module.kernel().unwrap(), module.function_named("twice").unwrap());
    /// assert_eq!(module.inline_calls(kernel, |_, callee| callee == twice), 1);
    /// assert!(kiln_ir::verify(&module).is_ok());
    /// // Nobody calls it any more.
    /// module.remove_functions(&[twice]);
    /// assert!(!module.to_string().contains("call"));
    /// assert!(module.to_string().contains("in \"twice\""));
    /// ```
    ///
    /// # Panics
    /// If the module has no such function.
    pub fn inline_calls(
        &mut self,
        function: FuncId,
        mut which: impl FnMut(&Module, FuncId) -> bool,
    ) -> usize {
        let mut bodies: HashMap<FuncId, Option<Rc<Function>>> = HashMap::new();
        let called = self.functions[function].insts.values();
        let called: HashSet<FuncId> = called.filter_map(|node| node.data.callee()).collect();
        for callee in called {
            let is_put_in = callee != function
                && self.can_be_inlined(callee)
                && self.has_its_own_shared(callee, function)
                && which(self, callee);
            let body = is_put_in.then(|| Rc::new(self.functions[callee].clone()));
            bodies.insert(callee, body);
        }
        let mut inliner = Inliner {
            module: self,
            function,
            shared: HashMap::new(),
            replaced: HashMap::new(),
        };
        inliner.calls(&bodies)
    }

    /// Whether a function has no shared memory, or no other one than `caller` calls it.
    fn has_its_own_shared(&self, callee: FuncId, caller: FuncId) -> bool {
        let mut others = self.functions.iter().filter(|(id, _)| *id != caller);
        self.functions[callee].shared.is_empty() || !others.any(|(_, other)| calls(other, callee))
    }

    /// Removes functions that are not called. Of those behind them the numbers change.
    ///
    /// # Panics
    /// If one of them is called, or is the kernel.
    pub fn remove_functions(&mut self, gone: &[FuncId]) {
        let mut kept = HashMap::new();
        for id in self.functions.keys().filter(|id| !gone.contains(id)) {
            kept.insert(id, kept.len());
        }
        let mut functions = std::mem::take(&mut self.functions);
        for (id, function) in functions.iter_mut() {
            if !kept.contains_key(&id) {
                let is_kernel = function.kind == FunctionKind::Kernel;
                assert!(!is_kernel, "`{}` is the kernel", function.name);
                continue;
            }
            for (_, node) in function.insts.iter_mut() {
                if let Some(callee) = node.data.callee_mut() {
                    let own = kept
                        .get(callee)
                        .expect("no function that is called is removed");
                    *callee = crate::Entity::from_index(*own);
                }
            }
            let nothing = Function::new("", FunctionKind::Device, Location::unknown());
            self.functions.push(std::mem::replace(function, nothing));
        }
    }
}

/// Whether a function calls another one.
fn calls(function: &Function, callee: FuncId) -> bool {
    let mut nodes = function.insts.values();
    nodes.any(|node| node.data.callee() == Some(callee))
}

/// Where a function returns.
struct Returning {
    /// Instructions with a `return` in their regions.
    around: HashSet<Inst>,
    /// Whether one of them is a loop.
    from_loop: bool,
}

impl Returning {
    fn of(function: &Function) -> Returning {
        let mut returning = Returning {
            around: HashSet::new(),
            from_loop: false,
        };
        returning.region(function, function.body);
        returning
    }

    fn region(&mut self, function: &Function, region: Region) -> bool {
        let mut returns = false;
        for &inst in &function.regions[region].insts {
            let data = &function.insts[inst].data;
            returns |= data.is_return();
            for inner in data.regions() {
                if self.region(function, inner) {
                    returns = true;
                    self.around.insert(inst);
                    self.from_loop |= data.is_loop();
                }
            }
        }
        returns
    }

    /// Whether no way comes out of instructions at their end.
    fn leaves(&self, function: &Function, insts: &[Inst]) -> bool {
        insts
            .iter()
            .any(|&inst| match function.insts[inst].data.control() {
                Control::Return { .. } => true,
                Control::If {
                    then_region,
                    else_region: Some(else_region),
                    ..
                } if self.around.contains(&inst) => [then_region, else_region]
                    .into_iter()
                    .all(|region| self.leaves(function, &function.regions[region].insts)),
                _ => false,
            })
    }

    /// Takes from `left` how many instructions a copy has; whether that suffices.
    fn takes(
        &self,
        function: &Function,
        insts: &[Inst],
        then: Option<&Then<'_>>,
        left: &mut usize,
    ) -> bool {
        for (i, &inst) in insts.iter().enumerate() {
            let mut size = 1;
            let is_around = self.around.contains(&inst);
            if !is_around {
                for region in function.insts[inst].data.regions() {
                    function.walk(region, &mut |_, _| size += 1);
                }
            }
            let Some(rest) = left.checked_sub(size) else {
                return false;
            };
            *left = rest;
            if function.insts[inst].data.is_return() {
                return true;
            }
            if is_around {
                let rest = Then {
                    insts: &insts[i + 1..],
                    then,
                };
                return self.arms(function, inst).into_iter().all(|arm| {
                    let then = (!self.leaves(function, arm)).then_some(&rest);
                    self.takes(function, arm, then, left)
                });
            }
        }
        then.is_none_or(|then| self.takes(function, then.insts, then.then, left))
    }

    /// What an `if` does where its condition holds, and where not.
    fn arms<'f>(&self, function: &'f Function, inst: Inst) -> [&'f [Inst]; 2] {
        let Control::If {
            then_region,
            else_region,
            ..
        } = function.insts[inst].data.control()
        else {
            return [&[], &[]];
        };
        [Some(then_region), else_region]
            .map(|region| region.map_or(&[][..], |region| &function.regions[region].insts[..]))
    }
}

/// What comes after some instructions.
struct Then<'a> {
    insts: &'a [Inst],
    then: Option<&'a Then<'a>>,
}

struct Inliner<'m> {
    module: &'m mut Module,
    function: FuncId,
    /// Shared memory of functions called: one place, however often it is.
    shared: HashMap<(FuncId, SharedVar), SharedVar>,
    /// Results of calls, and what stands for them.
    replaced: HashMap<Value, Value>,
}

/// A body while it is copied.
struct Frame<'b> {
    body: &'b Function,
    returning: Returning,
    values: HashMap<Value, Value>,
    vars: HashMap<Var, Var>,
    shared: HashMap<SharedVar, SharedVar>,
    /// The variable that the result goes to, if there are several ways to the end.
    result: Option<Var>,
    /// The result, if there is one way.
    returned: Option<Value>,
    /// The call.
    call: Inlined,
    /// Calls in place of which parts of the body stand, and what they are here.
    inner: HashMap<Inlined, Inlined>,
}

impl Inliner<'_> {
    fn out(&mut self) -> &mut Function {
        &mut self.module.functions[self.function]
    }

    fn calls(&mut self, bodies: &HashMap<FuncId, Option<Rc<Function>>>) -> usize {
        let mut count = 0;
        for region in self.out().regions.keys().collect::<Vec<_>>() {
            let insts = std::mem::take(&mut self.out().regions[region].insts);
            let mut made = Vec::with_capacity(insts.len());
            for inst in insts {
                let callee = self.out().insts[inst].data.callee();
                match callee.and_then(|id| Some((id, bodies.get(&id)?.clone()?))) {
                    Some(callee) => {
                        self.call(inst, &callee, &mut made);
                        count += 1;
                    }
                    None => made.push(inst),
                }
            }
            self.out().regions[region].insts = made;
        }
        let replaced = std::mem::take(&mut self.replaced);
        for (_, node) in self.out().insts.iter_mut() {
            node.data.map_operands(|mut value| {
                while let Some(&other) = replaced.get(&value) {
                    value = other;
                }
                value
            });
        }
        count
    }

    /// Puts a body in place of a call, behind what there is of its region.
    fn call(&mut self, inst: Inst, (id, body): &(FuncId, Rc<Function>), made: &mut Vec<Inst>) {
        let node = self.out().insts[inst].clone();
        let args = node.data.call().map(|(_, args)| args.to_vec());
        let call = self.module.inlined_call(InlinedCall {
            function: body.name.as_str().into(),
            at: node.location,
        });
        let params = body.params.iter().map(|param| param.value);
        let mut frame = Frame {
            body,
            returning: Returning::of(body),
            values: params.zip(args.unwrap_or_default()).collect(),
            vars: HashMap::new(),
            shared: HashMap::new(),
            result: None,
            returned: None,
            call,
            inner: HashMap::new(),
        };
        self.declare(*id, &mut frame, made);
        self.insts(&mut frame, &body.regions[body.body].insts, None, made);
        // The instruction of the call stays nobody's, so that nothing calls the function.
        let data = &mut self.out().insts[inst].data;
        match (node.result, frame.result) {
            (Some(_), Some(var)) => {
                *data = InstData::VarGet(var);
                made.push(inst);
            }
            (result, _) => {
                *data = InstData::Const(Constant::Zero);
                if let (Some(result), Some(returned)) = (result, frame.returned) {
                    self.replaced.insert(result, returned);
                }
            }
        }
    }

    /// Makes the variables and the shared memory of a body known. Variables are zero in each call before they are
    /// assigned.
    fn declare(&mut self, id: FuncId, frame: &mut Frame<'_>, made: &mut Vec<Inst>) {
        let body = frame.body;
        let unset = read_unset(body);
        let at = self.place(frame, body.location);
        for (var, data) in body.vars.iter() {
            let own = self.out().vars.push(data.clone());
            frame.vars.insert(var, own);
            if unset.contains(&var) {
                let zero = InstData::Const(Constant::Zero);
                let zero = self.out().new_inst(zero, data.ty, at);
                made.push(zero);
                if let Some(zero) = self.out().insts[zero].result {
                    let set = InstData::VarSet(own, zero);
                    made.push(self.out().new_inst(set, Type::UNIT, at));
                }
            }
        }
        for (var, data) in body.shared.iter() {
            let own = match self.shared.get(&(id, var)) {
                Some(&known) => known,
                None => self.out().shared.push(data.clone()),
            };
            self.shared.insert((id, var), own);
            frame.shared.insert(var, own);
        }
        if !frame.returning.around.is_empty() && body.result != Type::UNIT {
            let result = VarData {
                name: "result".to_owned(),
                ty: body.result,
            };
            frame.result = Some(self.out().vars.push(result));
        }
    }

    /// Copies instructions and, if control comes to their end, what comes after them.
    fn insts(
        &mut self,
        frame: &mut Frame<'_>,
        insts: &[Inst],
        then: Option<&Then<'_>>,
        made: &mut Vec<Inst>,
    ) {
        let body = frame.body;
        for (i, &inst) in insts.iter().enumerate() {
            let node = &body.insts[inst];
            if let Control::Return { value } = node.data.control() {
                let value = value.map(|value| frame.values.get(&value).copied().unwrap_or(value));
                match (frame.result, value) {
                    (Some(var), Some(value)) => {
                        let at = self.place(frame, node.location);
                        let set = InstData::VarSet(var, value);
                        made.push(self.out().new_inst(set, Type::UNIT, at));
                    }
                    _ => frame.returned = value,
                }
                return;
            }
            if !frame.returning.around.contains(&inst) {
                made.push(self.inst(frame, inst));
                continue;
            }
            let rest = Then {
                insts: &insts[i + 1..],
                then,
            };
            let arms = frame.returning.arms(body, inst).map(|arm| {
                let mut made = Vec::new();
                let then = (!frame.returning.leaves(body, arm)).then_some(&rest);
                self.insts(frame, arm, then, &mut made);
                self.out().regions.push(RegionData { insts: made })
            });
            let [then_region, else_region] = arms;
            if let Control::If { cond, .. } = node.data.control() {
                let cond = frame.values.get(&cond).copied().unwrap_or(cond);
                let at = self.place(frame, node.location);
                let both = InstData::If {
                    cond,
                    then_region,
                    else_region: Some(else_region),
                };
                made.push(self.out().new_inst(both, Type::UNIT, at));
            }
            return;
        }
        if let Some(then) = then {
            self.insts(frame, then.insts, then.then, made);
        }
    }

    /// Copies an instruction out of which nothing returns.
    fn inst(&mut self, frame: &mut Frame<'_>, inst: Inst) -> Inst {
        let body = frame.body;
        let node = &body.insts[inst];
        let mut data = node.data.clone();
        data.map_operands(|value| frame.values.get(&value).copied().unwrap_or(value));
        data.map_vars(|var| frame.vars[&var]);
        data.map_shared(|var| frame.shared[&var]);
        if let Some(index) = data.index_mut() {
            let own = self.out().new_index(body.type_of(*index));
            frame.values.insert(*index, own);
            *index = own;
        }
        let copied: Result<(), std::convert::Infallible> = data.map_regions(|region| {
            let insts = body.regions[region].insts.iter();
            let insts = insts.map(|&inner| self.inst(frame, inner)).collect();
            Ok(self.out().regions.push(RegionData { insts }))
        });
        let Ok(()) = copied;
        let ty = node.result.map_or(Type::UNIT, |value| body.type_of(value));
        let at = self.place(frame, node.location);
        let own = self.out().new_inst(data, ty, at);
        self.out().insts[own].fast = node.fast;
        if let (Some(old), Some(new)) = (node.result, self.out().insts[own].result) {
            frame.values.insert(old, new);
        }
        own
    }

    /// A place of the body as one of what stands for the call.
    fn place(&mut self, frame: &mut Frame<'_>, at: Location) -> Location {
        let inlined = match at.inlined {
            None => frame.call,
            Some(inner) => match frame.inner.get(&inner) {
                Some(&known) => known,
                None => {
                    let InlinedCall { function, at } = self.module.inlined[inner].clone();
                    let at = self.place(frame, at);
                    let own = self.module.inlined_call(InlinedCall { function, at });
                    frame.inner.insert(inner, own);
                    own
                }
            },
        };
        Location {
            inlined: Some(inlined),
            ..at
        }
    }
}

/// The variables of a function that may be read before they are assigned.
fn read_unset(function: &Function) -> HashSet<Var> {
    let mut unset = HashSet::new();
    reads(function, function.body, &mut HashSet::new(), &mut unset);
    unset
}

/// Adds those that a region reads before it assigns them. What it assigns itself is known behind it only if each way
/// through what is around comes through it, so not behind it here.
fn reads(function: &Function, region: Region, set: &mut HashSet<Var>, unset: &mut HashSet<Var>) {
    let mut own = Vec::new();
    for &inst in &function.regions[region].insts {
        let data = &function.insts[inst].data;
        match data.var_use() {
            Some(VarUse::Get(var)) if !set.contains(&var) => drop(unset.insert(var)),
            Some(VarUse::Set(var, _)) if set.insert(var) => own.push(var),
            _ => {}
        }
        for inner in data.regions() {
            reads(function, inner, set, unset);
        }
    }
    for var in own {
        set.remove(&var);
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::fault_sites;
    use crate::{FuncId, Module, parse, verify};

    fn module(text: &str) -> Module {
        let module = parse(text, &|_| None).expect("it is in the notation of the IR");
        assert!(verify(&module).is_ok());
        module
    }

    fn named(module: &Module, name: &str) -> FuncId {
        module.function_named(name).expect("it is there")
    }

    /// Puts all bodies in place of calls, callees first, and gives how many calls there were.
    fn inlined(module: &mut Module, order: &[&str]) -> Vec<usize> {
        let order = order.iter().map(|name| named(module, name));
        let order: Vec<FuncId> = order.collect();
        let counts = order.into_iter();
        let counts = counts.map(|id| module.inline_calls(id, |_, _| true));
        let counts = counts.collect();
        verify(module).unwrap_or_else(|errors| panic!("{errors:?}\n{module}"));
        counts
    }

    const NESTED: &str = "module m specialized
file 0 \"k.rs\"

kernel @k(%0 x: slice<generic, u32>, %1 i: u32) {
  %2: ptr<generic, u32> = slice_index %0, %1 !0:1:1
  %3: u32 = call @outer(%0, %1) !0:2:1
  %4: u32 = call @outer(%0, %3) !0:3:1
}

device @outer(%0 x: slice<generic, u32>, %1 i: u32) -> u32 {
  %2: ptr<generic, u32> = slice_index %0, %1 !0:11:1
  %3: u32 = call @inner(%0, %1) !0:12:1
  return %3
}

device @inner(%0 x: slice<generic, u32>, %1 i: u32) -> u32 {
  %2: ptr<generic, u32> = slice_index %0, %1 !0:21:1
  %3: u32 = load %2 !0:22:1
  return %3
}
";

    #[test]
    fn faults_are_told_of_the_function_and_the_line_that_they_were_written_in() {
        let mut module = module(NESTED);
        assert_eq!(inlined(&mut module, &["outer", "k"]), [1, 2]);
        let gone = [named(&module, "outer"), named(&module, "inner")];
        module.remove_functions(&gone);
        let sites = fault_sites(&module).into_iter();
        let sites: Vec<(String, String)> =
            sites.map(|site| (site.function, site.location)).collect();
        let expected = [
            ("k", 1),
            ("outer", 11),
            ("inner", 21),
            ("outer", 11),
            ("inner", 21),
        ];
        let expected = expected.map(|(name, line)| (name.to_owned(), format!("k.rs:{line}:1")));
        assert_eq!(sites, expected);
        let text = module.to_string();
        for place in [
            "!0:21:1 in \"inner\" !0:12:1 in \"outer\" !0:2:1",
            "!0:21:1 in \"inner\" !0:12:1 in \"outer\" !0:3:1",
        ] {
            assert!(text.contains(place), "{text}");
        }
        let again = parse(&text, &|_| None).expect("it is in the notation of the IR");
        assert_eq!(again.to_string(), text);
    }

    #[test]
    fn shared_memory_stays_one_place() {
        let text = "module m specialized

kernel @k() {
  call @f()
  call @g()
  call @g()
}

device @f() {
  call @g()
}

device @g() {
  shared shared0 tile: [u32; 4] align 4
  %0: ptr<shared, mut [u32; 4]> = shared_addr shared0
}
";
        // Both call it, so it stays in a function of its own.
        let mut both = module(text);
        assert_eq!(inlined(&mut both, &["f", "k"]), [0, 1]);
        // The kernel alone does.
        let mut one = module(&text.replace("  call @g()\n}\n\ndevice @g", "}\n\ndevice @g"));
        assert_eq!(inlined(&mut one, &["k"]), [3]);
        assert_eq!(one.functions[named(&one, "k")].shared.len(), 1);
    }

    #[test]
    fn variables_begin_as_zero_where_they_may_be_read_before() {
        let zeros = |body: &str| {
            let text = format!(
                "module m specialized

kernel @k(%0 n: u32) {{
  %1: u32 = call @f(%0)
}}

device @f(%0 n: u32) -> u32 {{
  var var0 v: u32
  %1: bool = lt %0, %0
  {body}
  %2: u32 = get var0
  return %2
}}
"
            );
            let mut module = module(&text);
            assert_eq!(inlined(&mut module, &["k"]), [1]);
            let kernel = named(&module, "k");
            module.remove_functions(&[named(&module, "f")]);
            assert_eq!(module.functions.len(), 1, "{kernel}");
            module.to_string().matches("const zero").count()
        };
        assert_eq!(zeros(""), 1);
        assert_eq!(zeros("set var0, %0"), 0);
        assert_eq!(zeros("if %1 {\nset var0, %0\n}"), 1);
        assert_eq!(zeros("loop {\nset var0, %0\nbreak 0\n}"), 1);
        assert_eq!(zeros("set var0, %0\nif %1 {\nset var0, %0\n}"), 0);
    }

    #[test]
    fn a_body_that_is_left_out_of_a_loop_stays() {
        let text = |body: &str| {
            format!(
                "module m specialized

kernel @k(%0 n: u32) {{
  %1: u32 = call @f(%0)
}}

device @f(%0 n: u32) -> u32 {{
  var var0 v: u32
  %1: bool = lt %0, %0
  {body}
  %2: u32 = get var0
  return %2
}}
"
            )
        };
        let stays = |body: &str| {
            let mut module = module(&text(body));
            inlined(&mut module, &["k"]) == [0]
        };
        assert!(stays("loop {\nif %1 {\nreturn %0\n}\nbreak 0\n}"));
        assert!(!stays("loop {\nif %1 {\nset var0, %0\n}\nbreak 0\n}"));
        assert!(!stays("if %1 {\nreturn %0\n}"));
        assert!(!stays("if %1 {\nif %1 {\nreturn %0\n}\nset var0, %0\n}"));
        // What comes after it would be there many times.
        let partly = "if %1 {\nif %1 {\nreturn %0\n}\nset var0, %0\n}\n".repeat(6);
        assert!(stays(&partly));
    }
}
