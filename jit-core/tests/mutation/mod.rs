//! Random damage to modules: what a faulty hook could do, and worse.

use kiln_jit_core::ir::{
    AddressSpace, ArrayLen, ConstParam, Constant, Entity, FuncId, Function, FunctionKind, GlobalId,
    HiddenData, HiddenParam, HiddenSource, Inst, InstData, IntrinsicDef, IntrinsicId, LaunchBounds,
    Location, Meaning, Module, Passing, Phase, Region, Scalar, SharedVar, StructData, StructId,
    Type, TypeBound, TypeData, TypeParam, TypeParamData, TypePattern, TypeTable, Value, ValueDef,
    Var,
};

/// A xorshift generator (Marsaglia 2003), enough for tests.
pub struct Random(u64);

impl Random {
    /// From `KILN_SEED`, or a fixed seed, which is printed.
    pub fn seeded() -> Random {
        let given = std::env::var("KILN_SEED").ok();
        let seed = given.map_or(0x5eed, |s| s.parse().expect("a number"));
        println!("KILN_SEED={seed}");
        Random(seed | 1 << 32)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// An entity of a map of `len`, or sometimes one that is not.
    fn entity<E: Entity>(&mut self, len: usize) -> E {
        E::from_index(match self.below(12) {
            0 => len + self.below(3),
            1 => u32::MAX as usize - 1,
            _ => self.below(len.max(1)),
        })
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// A row that refers to parameters it does not have.
static BROKEN_ROW: IntrinsicDef = IntrinsicDef::new(
    "broken",
    &[TypePattern::SameAs(3)],
    TypePattern::SameAs(9),
    Meaning::Position(|_| 0),
);

/// Changes one thing.
pub fn mutate(random: &mut Random, module: &mut Module) {
    if random.chance(8) {
        return mutate_module(random, module);
    }
    let ty = any_type(random, module);
    let counts = (
        module.functions.len(),
        module.globals.len(),
        module.intrinsics.len(),
        module.hidden.len(),
    );
    let files = module.files.len();
    if module.functions.is_empty() {
        return;
    }
    let id = FuncId::from_index(random.below(module.functions.len()));
    let other = FuncId::from_index(random.below(module.functions.len()));
    let foreign = module.functions[other]
        .insts
        .values()
        .next()
        .map(|n| n.data.clone());
    let function = &mut module.functions[id];
    if random.chance(3) || function.insts.is_empty() {
        if random.chance(8)
            && let Some(param) = function.params.last_mut()
        {
            param.hidden = Some(random.entity(counts.3));
            return;
        }
        return mutate_function(random, function, ty);
    }
    let inst = Inst::from_index(random.below(function.insts.len()));
    match random.below(6) {
        0 => function.insts[inst].result = result(random, function),
        1 => function.insts[inst].location.file = random.entity(files),
        2 => {
            let from = Inst::from_index(random.below(function.insts.len()));
            function.insts[inst].data = function.insts[from].data.clone();
        }
        3 => {
            if let Some(data) = foreign {
                function.insts[inst].data = data;
            }
        }
        _ => mutate_data(random, function, inst, ty, counts),
    }
}

fn result(random: &mut Random, function: &Function) -> Option<Value> {
    (!random.chance(3)).then(|| random.entity(function.values.len()))
}

/// A type of the module, a new one of random parts, or one of another module.
fn any_type(random: &mut Random, module: &mut Module) -> Type {
    let known: Vec<Type> = module.types.iter().map(|(ty, _)| ty).collect();
    let part = match random.below(20) {
        0 => {
            let mut other = TypeTable::new();
            let lengths = 1..=60 + random.below(40) as u64;
            lengths
                .map(|n| other.array(Type::F32, n))
                .last()
                .unwrap_or(Type::F32)
        }
        _ => random.of(&known),
    };
    if !random.chance(5) {
        return part;
    }
    let space = random.of(&AddressSpace::ALL);
    let mutable = random.chance(2);
    let data = match random.below(9) {
        0 => TypeData::Pointer {
            pointee: part,
            space,
            mutable,
        },
        1 => TypeData::Slice {
            element: part,
            space,
            mutable,
            wide: random.chance(2),
        },
        2 => TypeData::Array {
            element: part,
            len: ArrayLen::Known(random.of(&[0, 1, 4, u64::MAX])),
        },
        3 => TypeData::Array {
            element: part,
            len: ArrayLen::Param(random.entity(2)),
        },
        4 => TypeData::Param(random.entity::<TypeParam>(2)),
        5 => TypeData::Vector {
            element: random.of(&Scalar::ALL),
            lanes: random.of(&[0, 2, 4, 255]),
        },
        6 => TypeData::Struct(random.entity::<StructId>(3)),
        _ => {
            let name = random.of(&["S", "Pair", "a b", ""]).to_owned();
            let fields = (0..random.below(3))
                .map(|i| (format!("f{i}"), part))
                .collect();
            return module.types.intern_struct(StructData::new(name, fields));
        }
    };
    module.types.intern(data)
}

fn mutate_module(random: &mut Random, module: &mut Module) {
    let ty = any_type(random, module);
    let name = random
        .of(&["f", "a b", "", "\"\\\n", "kernel", "é.1", "x..y"])
        .to_owned();
    let function = FuncId::from_index(random.below(module.functions.len().max(1)));
    match random.below(11) {
        0 => module.phase = random.of(&[Phase::Generic, Phase::Specialized, Phase::Legal]),
        1 => module.name = name,
        2 => {
            module.intrinsics.push(&BROKEN_ROW);
        }
        3 => module.files = Default::default(),
        4 => module.globals = Default::default(),
        5 => {
            if let Some((_, global)) = module.globals.iter_mut().next() {
                global.ty = ty;
                global.name = name;
            }
        }
        6 => {
            if let Some(copy) = module.functions.get(function).cloned() {
                module.functions.push(copy);
            }
        }
        7 => module.intrinsics = Default::default(),
        8 => {
            let source = match random.chance(2) {
                true => HiddenSource::Hook("hook".to_owned()),
                false => HiddenSource::FaultChannel,
            };
            let location = Location {
                file: random.entity(module.files.len()),
                line: 1,
                column: 1,
                inlined: None,
            };
            module.hidden.push(HiddenData {
                name,
                ty,
                source,
                location,
            });
        }
        9 => module.hidden = Default::default(),
        _ => {
            if module.functions.get(function).is_some() {
                module.functions[function].name = name;
            }
        }
    }
}

fn mutate_function(random: &mut Random, function: &mut Function, ty: Type) {
    let (values, insts, regions) = (
        function.values.len(),
        function.insts.len(),
        function.regions.len(),
    );
    let region: Region = Region::from_index(random.below(regions.max(1)));
    let position = random.below(function.params.len().max(1));
    match random.below(15) {
        0 => function.kind = random.of(&[FunctionKind::Kernel, FunctionKind::Device]),
        1 => function.is_declaration = !function.is_declaration,
        2 => function.result = ty,
        3 => function.body = random.entity(regions),
        4 => {
            function.type_params.pop();
        }
        5 => function.type_params.push(TypeParamData {
            name: "more".to_owned(),
            bound: random.of(&[
                TypeBound::Any,
                TypeBound::Num,
                TypeBound::Int,
                TypeBound::Float,
            ]),
        }),
        6 => {
            function.const_params.pop();
        }
        7 => {
            let (max_threads, min_blocks) = (random.below(2000) as u32, random.below(9) as u32);
            function.launch_bounds = Some(LaunchBounds {
                max_threads,
                min_blocks,
            });
        }
        8 if !function.params.is_empty() => {
            let param = &mut function.params[position];
            param.passing = random.of(&[Passing::Direct, Passing::ByReference, Passing::ByValue]);
            param.facts.align = random.of(&[0, 1, 3, 16]);
            param.facts.noalias = random.chance(2);
            param.facts.short = random.chance(2);
        }
        9 if !function.params.is_empty() => function.params[position].value = random.entity(values),
        10 => {
            if let Some((_, var)) = function.vars.iter_mut().next() {
                var.ty = ty;
            }
        }
        11 => {
            if let Some((_, var)) = function.shared.iter_mut().next() {
                var.ty = ty;
                var.align = random.of(&[0, 4, 16, 1 << 31]);
            }
        }
        12 if values > 0 => {
            let value = Value::from_index(random.below(values));
            function.values[value].ty = ty;
        }
        13 if values > 0 => {
            let value = Value::from_index(random.below(values));
            function.values[value].def = match random.below(3) {
                0 => ValueDef::Inst(random.entity(insts)),
                1 => ValueDef::Index(random.entity(insts)),
                _ => ValueDef::Param(random.below(600) as u32),
            };
        }
        _ => mutate_order(random, function, region),
    }
}

fn mutate_order(random: &mut Random, function: &mut Function, region: Region) {
    let insts = function.insts.len();
    if function.regions.get(region).is_none() {
        return;
    }
    let inst = random.entity(insts);
    let order = &mut function.regions[region].insts;
    let at = random.below(order.len() + 1);
    match random.below(3) {
        0 => order.insert(at, inst),
        1 if at < order.len() => {
            order.remove(at);
        }
        _ if !order.is_empty() => {
            let other = random.below(order.len());
            order.swap(at.min(other), other);
        }
        _ => {}
    }
}

/// Changes an operand, a region, or whatever else an instruction names.
fn mutate_data(
    random: &mut Random,
    function: &mut Function,
    inst: Inst,
    ty: Type,
    (functions, globals, intrinsics, hidden): (usize, usize, usize, usize),
) {
    let (values, regions) = (function.values.len(), function.regions.len());
    let (vars, shared) = (function.vars.len(), function.shared.len());
    let data = &mut function.insts[inst].data;
    if random.chance(2) {
        data.map_operands(|v| {
            if random.chance(3) {
                random.entity(values)
            } else {
                v
            }
        });
        return;
    }
    match data {
        InstData::Const(constant) => {
            *constant = random.of(&[
                Constant::Bool(true),
                Constant::Int(-1),
                Constant::Int(i128::MAX),
                Constant::Float(f64::NAN),
                Constant::Float(1e-310),
                Constant::Zero,
            ]);
        }
        InstData::ConstParam(param) => *param = random.entity::<ConstParam>(2),
        InstData::Construct { parts: list } | InstData::Intrinsic { args: list, .. }
            if random.chance(2) =>
        {
            list.push(random.entity(values));
        }
        InstData::Extract { index, .. }
        | InstData::Insert { index, .. }
        | InstData::FieldPtr { field: index, .. }
        | InstData::Break { depth: index }
        | InstData::Continue { depth: index } => *index = random.of(&[0, 1, 2, u32::MAX]),
        InstData::VarGet(var) | InstData::VarSet(var, _) => *var = random.entity::<Var>(vars),
        InstData::SharedAddr(var) => *var = random.entity::<SharedVar>(shared),
        InstData::GlobalAddr(id) => *id = random.entity::<GlobalId>(globals),
        InstData::Hidden(id) => *id = random.entity::<HiddenParam>(hidden),
        InstData::Intrinsic { id, .. } => *id = random.entity::<IntrinsicId>(intrinsics),
        InstData::Call {
            callee,
            type_args,
            const_args,
            args,
        } => match random.below(4) {
            0 => *callee = random.entity(functions),
            1 => type_args.push(ty),
            2 => {
                const_args.pop();
            }
            _ => args.push(random.entity(values)),
        },
        InstData::If {
            then_region,
            else_region,
            ..
        } => match random.below(3) {
            0 => *then_region = random.entity(regions),
            1 => *else_region = None,
            _ => *else_region = Some(random.entity(regions)),
        },
        InstData::Loop { body } => *body = random.entity(regions),
        InstData::For { index, body, .. } => match random.below(2) {
            0 => *index = random.entity(values),
            _ => *body = random.entity(regions),
        },
        InstData::Return { value } => *value = random.chance(2).then(|| random.entity(values)),
        other => {
            let body = random.entity(regions);
            *other = random
                .of(&[
                    InstData::Barrier,
                    InstData::Loop { body },
                    InstData::LocalAlloc,
                    InstData::DynamicShared,
                    InstData::Break { depth: 0 },
                    InstData::Return { value: None },
                ]
                .each_ref())
                .clone();
        }
    }
}
