//! One instance of a function: its body copied with types, literals and callees made concrete.
//!
//! The copy is made in text order, instruction by instruction, into a fresh [`Function`], so that
//! values and instructions are numbered densely and nothing unreachable comes along. Variables and
//! shared variables keep their numbers.

use std::collections::HashMap;
use std::rc::Rc;

use super::error::CodePlace;
use super::type_map::{NoType, TypeMap, widened};
use super::wide::WideValues;
use super::{InstanceKey, ParamSpec, SpecializeError, Specializer, literal};
use crate::definition::{Body, display_signature, same_signature};
use crate::interp::known_scalars;
use crate::ir::{
    ConstArg, Constant, FuncId, Function, FunctionKind, GlobalId, HiddenData, HiddenParam,
    InstData, InstNode, IntrinsicId, Location, Region, RegionData, SharedData, StaticAssertion,
    Type, TypeData, Value, VarData,
};

/// The function for `key`, to be placed at `id`; `facts` are those of a kernel's parameters.
pub(super) fn emit(
    specializer: &mut Specializer<'_>,
    key: &InstanceKey,
    id: FuncId,
    facts: &[ParamSpec],
) -> Result<Function, SpecializeError> {
    let body = specializer.body(key.definition);
    let name = specializer.module.functions[id].name.clone();
    let source = body.function();
    let mut instance = Instance {
        key,
        definition: key.definition,
        body,
        source,
        types: TypeMap::new(
            key.type_args.clone(),
            key.const_args.clone(),
            specializer.wide.inside(),
        ),
        flow: specializer.wide.of(key.definition, &key.wide),
        values: HashMap::new(),
        out: Function::new(name, source.kind, Location::unknown()),
        specializer,
    };
    instance.signature(facts)?;
    instance.variables()?;
    instance.ones(facts);
    let to = instance.out.body;
    instance.region(source.body, to)?;
    instance.assert()?;
    Ok(instance.out)
}

struct Instance<'s, 'a> {
    specializer: &'s mut Specializer<'a>,
    key: &'s InstanceKey,
    /// Position in the snapshot.
    definition: usize,
    body: &'a Body,
    source: &'a Function,
    types: TypeMap,
    flow: Rc<WideValues>,
    /// Values of the source and their counterparts.
    values: HashMap<Value, Value>,
    out: Function,
}

impl Instance<'_, '_> {
    fn signature(&mut self, facts: &[ParamSpec]) -> Result<(), SpecializeError> {
        let source = self.source;
        self.out.launch_bounds = source.launch_bounds;
        self.out.choices = source.choices;
        self.out.inline = source.inline;
        self.out.attributes = source.attributes.clone();
        self.out.location = self.location(source.location);
        self.out.result = self.ty(source.result, source.location)?;
        if self.flow.result {
            self.out.result = widened(&mut self.specializer.module.types, self.out.result);
        }
        for (i, param) in source.params.iter().enumerate() {
            let spec = facts.get(i).copied().unwrap_or_default();
            let concrete = self.ty(source.type_of(param.value), param.location)?;
            let unsuited = super::unsuited_fact(&self.specializer.module.types, concrete, spec);
            if let Some((fact, why)) = unsuited {
                return Err(SpecializeError::Fact {
                    kernel: source.name.clone(),
                    param: param.name.clone(),
                    fact,
                    why,
                });
            }
            let ty = self.value_type(param.value, param.location)?;
            let location = self.location(param.location);
            let value = self.out.add_param(param.name.clone(), ty, location);
            self.values.insert(param.value, value);
            let data = &mut self.out.params[i];
            data.passing = param.passing;
            data.facts = param.facts;
            super::add_facts(data, spec);
        }
        Ok(())
    }

    fn variables(&mut self) -> Result<(), SpecializeError> {
        let source = self.source;
        for (var, data) in source.vars.iter() {
            let mut ty = self.ty(data.ty, source.location)?;
            if self.flow.vars.contains(&var) {
                ty = widened(&mut self.specializer.module.types, ty);
            }
            self.out.vars.push(VarData {
                name: data.name.clone(),
                ty,
            });
        }
        for data in source.shared.values() {
            let ty = self.ty(data.ty, source.location)?;
            // What the type parameter needs was not known when the variable was declared.
            let needed = self.specializer.module.types.layout(ty);
            let align = needed.map_or(data.align, |l| data.align.max(l.align as u32));
            self.out.shared.push(SharedData {
                name: data.name.clone(),
                ty,
                align,
            });
        }
        Ok(())
    }

    /// Constants at the start of the body for the parameters that are known to be 1.
    fn ones(&mut self, facts: &[ParamSpec]) {
        for (param, _) in (self.source.params.iter().zip(facts)).filter(|(_, f)| f.equal_one) {
            let ty = self.out.type_of(self.values[&param.value]);
            let location = self.location(param.location);
            let one = InstData::Const(Constant::Int(1));
            let body = self.out.body;
            if let Some(value) = self.out.append(body, one, ty, location) {
                self.values.insert(param.value, value);
            }
        }
    }

    /// Checks what the function asserts of type and const arguments.
    fn assert(&self) -> Result<(), SpecializeError> {
        let source = self.source;
        if source.assertions.is_empty() {
            return Ok(());
        }
        let known = known_scalars(&self.out);
        let holds = |assertion: &&StaticAssertion| {
            let condition = self.values.get(&assertion.condition);
            condition.and_then(|condition| known.get(condition)) == Some(&1)
        };
        let failed = source.assertions.iter().find(|assertion| !holds(assertion));
        let Some(failed) = failed else {
            return Ok(());
        };
        Err(SpecializeError::StaticAssertion {
            at: self.place(failed.location),
            message: failed.message.clone(),
            arguments: self.arguments(),
        })
    }

    /// What type and const parameters stand for here: `T = f32, N = 33`
    fn arguments(&self) -> String {
        let types = &self.specializer.module.types;
        let type_args = self.source.type_params.iter().zip(&self.key.type_args);
        let type_args =
            type_args.map(|(param, ty)| format!("{} = {}", param.name, types.display(*ty)));
        let const_args = self.source.const_params.iter().zip(&self.key.const_args);
        let const_args = const_args.map(|(param, value)| format!("{} = {value}", param.name));
        let list: Vec<String> = type_args.chain(const_args).collect();
        list.join(", ")
    }

    fn region(&mut self, from: Region, to: Region) -> Result<(), SpecializeError> {
        let source = self.source;
        for &inst in &source.regions[from].insts {
            self.inst(&source.insts[inst], to)?;
        }
        Ok(())
    }

    fn inst(&mut self, node: &InstNode, to: Region) -> Result<(), SpecializeError> {
        let location = self.location(node.location);
        let ty = match node.result {
            Some(result) => self.value_type(result, node.location)?,
            None => Type::UNIT,
        };
        let mut data = self.operands(node)?;
        self.make_concrete(node, &mut data, ty)?;
        self.widen_operands(node, &mut data, to);
        let inner = self.new_regions(node, &mut data)?;
        let inst = self.out.new_inst(data, ty, location);
        self.out.insts[inst].fast = node.fast;
        self.out.regions[to].insts.push(inst);
        if let (Some(old), Some(new)) = (node.result, self.out.insts[inst].result) {
            self.values.insert(old, new);
        }
        for (from, to) in inner {
            self.region(from, to)?;
        }
        Ok(())
    }

    /// Replaces what an instruction names by what it is in this instance; `ty` is the type of its result.
    fn make_concrete(
        &mut self,
        node: &InstNode,
        data: &mut InstData,
        ty: Type,
    ) -> Result<(), SpecializeError> {
        match data {
            InstData::Const(constant) => *constant = self.literal(node, *constant, ty)?,
            InstData::ConstParam(param) => {
                let value = self.types.const_arg(*param);
                let value = value.ok_or_else(|| self.malformed(node, param.to_string()))?;
                *data = InstData::Const(if ty == Type::BOOL {
                    Constant::Bool(value != 0)
                } else {
                    Constant::Int(value)
                });
            }
            InstData::Intrinsic { id, .. } => *id = self.intrinsic(node, *id)?,
            InstData::GlobalAddr(id) => *id = self.global(node, *id)?,
            InstData::Hidden(id) => *id = self.hidden(node, *id)?,
            InstData::Call {
                callee,
                type_args,
                const_args,
                ..
            } => {
                *callee = self.call(node, *callee)?;
                type_args.clear();
                const_args.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// Widens the slices that go where wide ones can go, too; `to` is the region that the instruction comes to.
    fn widen_operands(&mut self, node: &InstNode, data: &mut InstData, to: Region) {
        let location = self.location(node.location);
        let inside = self.specializer.wide.inside();
        match data {
            InstData::VarSet(var, value) if self.flow.vars.contains(var) => {
                *value = self.widen(*value, to, location);
            }
            InstData::Select {
                if_true, if_false, ..
            } if node.result.is_some_and(|r| self.flow.values.contains(&r)) => {
                *if_true = self.widen(*if_true, to, location);
                *if_false = self.widen(*if_false, to, location);
            }
            InstData::Return { value: Some(value) } if self.flow.result => {
                *value = self.widen(*value, to, location);
            }
            InstData::Construct { parts } if inside => {
                for part in parts.iter_mut() {
                    *part = self.widen(*part, to, location);
                }
            }
            InstData::Insert { value, .. } | InstData::Store { value, .. } if inside => {
                *value = self.widen(*value, to, location);
            }
            _ => {}
        }
    }

    /// The instruction with its operands replaced.
    fn operands(&self, node: &InstNode) -> Result<InstData, SpecializeError> {
        let mut data = node.data.clone();
        let mut missing = None;
        data.map_operands(|value| {
            self.values.get(&value).copied().unwrap_or_else(|| {
                missing = Some(value);
                value
            })
        });
        match missing {
            None => Ok(data),
            Some(value) => Err(self.malformed(node, format!("the value {value}"))),
        }
    }

    /// Makes the regions and the induction value of `data`; pairs of old and new region.
    fn new_regions(
        &mut self,
        node: &InstNode,
        data: &mut InstData,
    ) -> Result<Vec<(Region, Region)>, SpecializeError> {
        let mut pairs = Vec::new();
        data.map_regions(|region| {
            let new = self.out.regions.push(RegionData::default());
            pairs.push((region, new));
            Ok::<_, SpecializeError>(new)
        })?;
        if let Some(index) = data.index_mut() {
            let ty = self.value_type(*index, node.location)?;
            let new = self.out.new_index(ty);
            self.values.insert(*index, new);
            *index = new;
        }
        Ok(pairs)
    }

    /// The instance that a call to a declaration goes to.
    fn call(&mut self, node: &InstNode, declaration: FuncId) -> Result<FuncId, SpecializeError> {
        let position = self.link(node, declaration)?;
        let InstData::Call {
            type_args,
            const_args,
            args,
            ..
        } = &node.data
        else {
            return Err(self.malformed(node, "a callee".to_owned()));
        };
        let callee = self.specializer.body(position);
        let (expected, given) = (callee.function().type_params.len(), type_args.len());
        if expected != given {
            return Err(SpecializeError::TypeArgumentCount {
                function: callee.function().name.clone(),
                expected,
                given,
                location: self.shown(node.location),
            });
        }
        let mut concrete = Vec::with_capacity(given);
        for &ty in type_args {
            concrete.push(self.ty(ty, node.location)?);
        }
        let key = InstanceKey {
            definition: position,
            type_args: concrete,
            const_args: self.const_args(node, callee.function(), const_args)?,
            wide: args.iter().map(|a| self.flow.values.contains(a)).collect(),
        };
        self.specializer
            .check_generics(callee, &key, node.location, &self.body.module)?;
        self.specializer.request(key)
    }

    /// The position of the definition behind a declaration, once it is known to fit.
    fn link(&mut self, node: &InstNode, declaration: FuncId) -> Result<usize, SpecializeError> {
        let Some(declared) = self.body.module.functions.get(declaration) else {
            return Err(self.malformed(node, declaration.to_string()));
        };
        let callee = (self.specializer.snapshot).callee(self.definition, declaration);
        let Some(position) = callee else {
            return Err(SpecializeError::UnlinkedCallee {
                at: self.place(node.location),
                callee: declared.name.clone(),
            });
        };
        if !self
            .specializer
            .linked
            .insert((self.definition, declaration))
        {
            return Ok(position);
        }
        let callee = self.specializer.body(position);
        if callee.function().kind == FunctionKind::Kernel {
            return Err(SpecializeError::KernelCalled {
                at: self.place(node.location),
                callee: callee.function().name.clone(),
            });
        }
        let (ours, theirs) = (&self.body.module, &callee.module);
        if !same_signature((ours, declared), (theirs, callee.function())) {
            return Err(SpecializeError::SignatureMismatch {
                at: self.place(node.location),
                callee: declared.name.clone(),
                declared: display_signature(ours, declared),
                defined: display_signature(theirs, callee.function()),
            });
        }
        Ok(position)
    }

    fn const_args(
        &self,
        node: &InstNode,
        callee: &Function,
        args: &[ConstArg],
    ) -> Result<Vec<i128>, SpecializeError> {
        if args.len() != callee.const_params.len() {
            return Err(SpecializeError::ConstArgumentCount {
                function: callee.name.clone(),
                expected: callee.const_params.len(),
                given: args.len(),
                location: self.shown(node.location),
            });
        }
        let mut values = Vec::with_capacity(args.len());
        for (arg, param) in args.iter().zip(&callee.const_params) {
            values.push(match arg {
                ConstArg::Known(Constant::Int(value)) => *value,
                ConstArg::Known(Constant::Bool(value)) => i128::from(*value),
                ConstArg::Known(Constant::Zero) => 0,
                ConstArg::Known(Constant::Float(_)) => {
                    return Err(SpecializeError::ConstArgumentKind {
                        function: callee.name.clone(),
                        param: param.name.clone(),
                        location: self.shown(node.location),
                    });
                }
                ConstArg::Param(outer) => self
                    .types
                    .const_arg(*outer)
                    .ok_or_else(|| self.malformed(node, outer.to_string()))?,
            });
        }
        Ok(values)
    }

    /// A literal of a generic type at its concrete type; other constants as they are.
    fn literal(
        &self,
        node: &InstNode,
        constant: Constant,
        ty: Type,
    ) -> Result<Constant, SpecializeError> {
        let types = &self.body.module.types;
        let generic = node.result.map(|result| self.source.type_of(result));
        let Some(generic) = generic.filter(|ty| types.is_generic(*ty)) else {
            return Ok(constant);
        };
        literal::convert(constant, ty).map_err(|problem| SpecializeError::Literal {
            at: self.place(node.location),
            literal: match constant {
                Constant::Bool(value) => value.to_string(),
                Constant::Int(value) => value.to_string(),
                Constant::Float(value) => format!("{value:?}"),
                Constant::Zero => "0".to_owned(),
            },
            problem,
            ty: self.specializer.module.types.display(ty),
            generic: match types.data(generic) {
                TypeData::Param(param) => {
                    let param = self
                        .source
                        .type_params
                        .get(crate::ir::Entity::index(*param));
                    param.map_or_else(|| types.display(generic), |p| p.name.clone())
                }
                _ => types.display(generic),
            },
        })
    }

    fn intrinsic(
        &mut self,
        node: &InstNode,
        id: IntrinsicId,
    ) -> Result<IntrinsicId, SpecializeError> {
        let Some(def) = self.body.module.intrinsics.get(id) else {
            return Err(self.malformed(node, id.to_string()));
        };
        match self.specializer.module.other_intrinsic(def) {
            None => Ok(self.specializer.module.intrinsic(def)),
            Some(other) => Err(SpecializeError::TwoIntrinsics {
                at: self.place(node.location),
                conflict: other.conflict(def),
            }),
        }
    }

    /// The global with the same type and bytes in the new module.
    fn global(&mut self, node: &InstNode, id: GlobalId) -> Result<GlobalId, SpecializeError> {
        let Some(source) = self.body.module.globals.get(id) else {
            return Err(self.malformed(node, id.to_string()));
        };
        let ty = self.ty(source.ty, node.location)?;
        let module = &mut self.specializer.module;
        Ok(module.enter_global(&source.name, ty, &source.bytes))
    }

    /// The hidden value of the same source and name in the new module.
    fn hidden(&mut self, node: &InstNode, id: HiddenParam) -> Result<HiddenParam, SpecializeError> {
        let Some(source) = self.body.module.hidden.get(id) else {
            return Err(self.malformed(node, id.to_string()));
        };
        let data = HiddenData {
            ty: self.ty(source.ty, node.location)?,
            location: self.location(source.location),
            ..source.clone()
        };
        Ok(self.specializer.module.hidden_value(data))
    }

    /// `value` as a wide slice: where a wide and a narrow slice can reach the same place.
    fn widen(&mut self, value: Value, region: Region, location: Location) -> Value {
        let types = &mut self.specializer.module.types;
        let narrow = self.out.type_of(value);
        let Some((at, false)) = types.as_slice(narrow) else {
            return value;
        };
        let (pointer, wide) = (
            types.pointer(at.pointee, at.space, at.mutable),
            widened(types, narrow),
        );
        let out = &mut self.out;
        let ptr = InstData::SlicePtr { slice: value };
        let ptr = out.append(region, ptr, pointer, location);
        let len = InstData::SliceLen { slice: value };
        let len = out.append(region, len, Type::U64, location);
        match (ptr, len) {
            (Some(ptr), Some(len)) => {
                let whole = InstData::SliceNew { ptr, len };
                out.append(region, whole, wide, location).unwrap_or(value)
            }
            _ => value,
        }
    }

    /// The type of the counterpart of `value`.
    fn value_type(&mut self, value: Value, at: Location) -> Result<Type, SpecializeError> {
        let ty = self.ty(self.source.type_of(value), at)?;
        if self.flow.values.contains(&value) {
            return Ok(widened(&mut self.specializer.module.types, ty));
        }
        Ok(ty)
    }

    fn ty(&mut self, ty: Type, at: Location) -> Result<Type, SpecializeError> {
        let types = &self.body.module.types;
        let to = &mut self.specializer.module.types;
        self.types
            .map(types, to, ty)
            .map_err(|problem| match problem {
                NoType::Unbound => SpecializeError::Malformed {
                    at: self.place(at),
                    what: format!("the type {}", types.display(ty)),
                },
                NoType::Length(value) => SpecializeError::ArrayLength {
                    at: self.place(at),
                    value,
                },
            })
    }

    /// A location of the source in the new module.
    fn location(&mut self, at: Location) -> Location {
        let module = &mut self.specializer.module;
        module.import_location(&self.body.module, at)
    }

    fn place(&self, at: Location) -> Box<CodePlace> {
        Box::new(CodePlace {
            function: self.source.name.clone(),
            location: self.shown(at),
        })
    }

    fn shown(&self, at: Location) -> String {
        self.body.module.display_location(at)
    }

    fn malformed(&self, node: &InstNode, what: String) -> SpecializeError {
        SpecializeError::Malformed {
            at: self.place(node.location),
            what,
        }
    }
}
