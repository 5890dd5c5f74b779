//! Functions of the text form: signatures, variables, regions.
//!
//! Operands are read as written, then renamed: a value may be used above its definition, which is
//! for the verifier to refuse.

use std::collections::HashMap;

use super::{ParseError, Parsed, Parser, Token};
use crate::{
    AttributeValue, Choices, ConstParamData, Entity, FastMath, Function, FunctionKind, Inline,
    Inst, InstData, InstNode, LaunchBounds, Location, ParamData, ParamFacts, Passing, Region,
    RegionData, SharedData, StaticAssertion, Type, TypeParamData, Unroll, Value, ValueData,
    ValueDef, VarData,
};

/// How deep regions may nest.
const MAX_DEPTH: usize = crate::verify::MAX_NESTING;

/// The function being read.
pub(super) struct Reading {
    pub(super) function: Function,
    /// Values by their written number.
    values: HashMap<u32, Value>,
    /// Written numbers of operands, and the tokens that wrote them.
    pub(super) uses: Vec<(u32, usize)>,
}

impl Reading {
    /// Renames operands from written numbers to values.
    fn resolve(mut self, parser: &Parser<'_>) -> Parsed<Function> {
        for (number, place) in &self.uses {
            if !self.values.contains_key(number) {
                return Err(parser.error_at(*place, format!("`%{number}` is defined nowhere")));
            }
        }
        let values = &self.values;
        let renamed = |written: Value| {
            let number = written.index() as u32;
            values.get(&number).copied().unwrap_or(written)
        };
        for assertion in &mut self.function.assertions {
            assertion.condition = renamed(assertion.condition);
        }
        for (_, node) in self.function.insts.iter_mut() {
            node.data.map_operands(renamed);
        }
        Ok(self.function)
    }
}

impl Parser<'_> {
    pub(super) fn function(&mut self) -> Parsed<Function> {
        let start = self.at;
        let is_declaration = self.accept_word("declare");
        let kind = match self.word("`kernel` or `device`")?.as_str() {
            "kernel" => FunctionKind::Kernel,
            "device" => FunctionKind::Device,
            _ => return Err(self.error_at(self.at - 1, "expected `kernel` or `device`")),
        };
        let name = self.reference()?;
        let mut reading = Reading {
            function: Function::new(name, kind, Location::unknown()),
            values: HashMap::new(),
            uses: Vec::new(),
        };
        reading.function.is_declaration = is_declaration;
        if self.accept("<") {
            self.generics(&mut reading.function)?;
        }
        self.expect("(")?;
        self.list(")", |parser| parser.param(&mut reading))?;
        if self.accept("->") {
            reading.function.result = self.ty()?;
        }
        if self.accept_word("launch_bounds") {
            reading.function.launch_bounds = Some(self.launch_bounds()?);
        }
        reading.function.choices = self.choices()?;
        if self.accept_word("inline") {
            reading.function.inline = self.inline()?;
        }
        if self.accept_word("attribute") {
            self.expect("(")?;
            self.list(")", |parser| parser.attribute(&mut reading.function))?;
        }
        reading.function.location = self.location(start)?;
        if !is_declaration {
            self.expect("{")?;
            self.variables(&mut reading.function)?;
            let body = reading.function.body;
            self.region(&mut reading, body, 0)?;
        }
        reading.resolve(self)
    }

    /// `$0 T: float, #0 N: u32>`
    fn generics(&mut self, function: &mut Function) -> Parsed<()> {
        self.list(">", |parser| {
            let place = parser.at;
            let (number, expected) = match parser.next() {
                Token::TypeParam(n) => {
                    let name = parser.name()?;
                    parser.expect(":")?;
                    let bound = parser.keyword("a bound")?;
                    function.type_params.push(TypeParamData { name, bound });
                    (n as usize, function.type_params.len() - 1)
                }
                Token::ConstParam(n) => {
                    let name = parser.name()?;
                    parser.expect(":")?;
                    let ty = parser.ty()?;
                    function.const_params.push(ConstParamData { name, ty });
                    (n as usize, function.const_params.len() - 1)
                }
                _ => return Err(parser.error_at(place, "expected `$0` or `#0`")),
            };
            if number != expected {
                let message = format!("parameters are numbered in order; this is {expected}");
                return Err(parser.error_at(place, message));
            }
            Ok(())
        })
    }

    /// `%0 x: slice<global, f32> align(16) noalias`
    fn param(&mut self, reading: &mut Reading) -> Parsed<()> {
        let start = self.at;
        let number = self.value_number()?;
        let name = self.name()?;
        self.expect(":")?;
        let ty = self.ty()?;
        let mut passing = Passing::Direct;
        for other in [Passing::ByReference, Passing::ByValue] {
            if self.accept_word(crate::keywords::Keyword::keyword(other)) {
                passing = other;
            }
        }
        let mut facts = ParamFacts::default();
        if self.accept_word("align") {
            facts.align = self.in_parentheses("an alignment in bytes")?;
        }
        if self.accept_word("divisor") {
            facts.divisor = self.in_parentheses("a divisor")?;
        }
        facts.noalias = self.accept_word("noalias");
        facts.short = self.accept_word("short");
        let hidden = self.accept_hidden();
        let location = self.location(start)?;
        let def = ValueDef::Param(reading.function.params.len() as u32);
        let value = self.define(reading, number, start, ValueData { ty, def })?;
        reading.function.params.push(ParamData {
            name,
            value,
            passing,
            facts,
            hidden,
            location,
        });
        Ok(())
    }

    fn launch_bounds(&mut self) -> Parsed<LaunchBounds> {
        self.expect("(")?;
        let max_threads = self.number("the number of threads")?;
        self.expect(",")?;
        let min_blocks = self.number("the number of blocks")?;
        self.expect(")")?;
        Ok(LaunchBounds {
            max_threads,
            min_blocks,
        })
    }

    /// `bounds(clamped) fast(contract, flush) max_registers(64) unroll(never) inline_threshold(0)`
    fn choices(&mut self) -> Parsed<Choices> {
        let mut choices = Choices::default();
        if self.accept_word("bounds") {
            self.expect("(")?;
            choices.bounds = Some(self.keyword("what an index out of bounds does")?);
            self.expect(")")?;
        }
        choices.fast = self.fast_flags()?;
        if self.accept_word("max_registers") {
            choices.max_registers = self.in_parentheses("a number of registers")?;
        }
        if self.accept_word("unroll") {
            choices.unroll = self.unroll()?;
        }
        if self.accept_word("inline_threshold") {
            choices.inline_threshold = Some(self.in_parentheses("a cost")?);
        }
        Ok(choices)
    }

    /// `fast(contract, approximate)`, if it comes next.
    fn fast_flags(&mut self) -> Parsed<FastMath> {
        let mut flags = FastMath::NONE;
        if !self.accept_word("fast") {
            return Ok(flags);
        }
        self.expect("(")?;
        self.list(")", |parser| {
            let start = parser.at;
            let Some(flag) = FastMath::named(&parser.word("a flag")?) else {
                let message = "expected `contract`, `reassociate`, `approximate` or `flush`";
                return Err(parser.error_at(start, message));
            };
            flags = flags | flag;
            Ok(())
        })?;
        Ok(flags)
    }

    /// What comes after `inline`: nothing, `(always)` or `(never)`.
    fn inline(&mut self) -> Parsed<Inline> {
        if !self.accept("(") {
            return Ok(Inline::Hint);
        }
        let inline = match self.word("`always` or `never`")?.as_str() {
            "always" => Inline::Always,
            "never" => Inline::Never,
            _ => return Err(self.error_at(self.at - 1, "expected `always` or `never`")),
        };
        self.expect(")")?;
        Ok(inline)
    }

    /// `fast_math`, `unroll = 4`, `note = "by hand"`
    fn attribute(&mut self, function: &mut Function) -> Parsed<()> {
        let start = self.at;
        let name = self.name()?;
        if function.attributes.get(&name).is_some() {
            return Err(self.error_at(start, format!("the attribute `{name}` is given twice")));
        }
        let value = match self.accept("=") {
            false => AttributeValue::Bool(true),
            true if self.accept_word("true") => AttributeValue::Bool(true),
            true if self.accept_word("false") => AttributeValue::Bool(false),
            true => match self.peek() {
                Token::Text(_) => AttributeValue::Text(self.text("text")?),
                _ => AttributeValue::Int(self.number("`true`, `false`, an integer or text")?),
            },
        };
        function.attributes.set(name, value);
        Ok(())
    }

    pub(super) fn in_parentheses(&mut self, wanted: &str) -> Parsed<u32> {
        self.expect("(")?;
        let number = self.number(wanted)?;
        self.expect(")")?;
        Ok(number)
    }

    /// `var var0 sum: f32` and `shared shared0 tile: [f32; 16] align 16`
    fn variables(&mut self, function: &mut Function) -> Parsed<()> {
        loop {
            if self.accept_word("var") {
                self.numbered(&function.vars.next_key().to_string())?;
                let (name, ty) = self.declared()?;
                function.vars.push(VarData { name, ty });
            } else if self.accept_word("shared") {
                self.numbered(&function.shared.next_key().to_string())?;
                let (name, ty) = self.declared()?;
                self.expect_word("align")?;
                let align = self.number("an alignment in bytes")?;
                function.shared.push(SharedData { name, ty, align });
            } else {
                return Ok(());
            }
        }
    }

    /// The entity that must come next: variables are numbered in order.
    pub(super) fn numbered(&mut self, entity: &str) -> Parsed<()> {
        if self.accept_word(entity) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{entity}`, the next of its kind")))
    }

    pub(super) fn declared(&mut self) -> Parsed<(String, Type)> {
        let name = self.name()?;
        self.expect(":")?;
        Ok((name, self.ty()?))
    }

    pub(super) fn value_number(&mut self) -> Parsed<u32> {
        match *self.peek() {
            Token::Value(number) => {
                self.at += 1;
                Ok(number)
            }
            _ => Err(self.unexpected("a value such as `%0`")),
        }
    }

    fn define(
        &self,
        reading: &mut Reading,
        number: u32,
        place: usize,
        data: ValueData,
    ) -> Result<Value, ParseError> {
        let value = reading.function.values.push(data);
        match reading.values.insert(number, value) {
            None => Ok(value),
            Some(_) => Err(self.error_at(place, format!("`%{number}` is defined twice"))),
        }
    }

    /// Instructions up to the closing brace, which is taken.
    fn region(&mut self, reading: &mut Reading, region: Region, depth: usize) -> Parsed<()> {
        if depth > MAX_DEPTH {
            let message = format!("regions nest at most {MAX_DEPTH} deep; split the function");
            return Err(self.error_at(self.at, message));
        }
        while !self.accept("}") {
            match depth == 0 && self.accept_word("static_assert") {
                true => self.static_assertion(reading)?,
                false => self.inst(reading, region, depth)?,
            }
        }
        Ok(())
    }

    /// What comes after `static_assert`: `%4, "N is a multiple of 32"`
    fn static_assertion(&mut self, reading: &mut Reading) -> Parsed<()> {
        let start = self.at;
        let condition = self.operand(reading)?;
        self.expect(",")?;
        let message = self.text("what is wrong where it does not hold")?;
        let location = self.location(start)?;
        reading.function.assertions.push(StaticAssertion {
            condition,
            message,
            location,
        });
        Ok(())
    }

    fn inst(&mut self, reading: &mut Reading, region: Region, depth: usize) -> Parsed<()> {
        let start = self.at;
        let inst = reading.function.insts.next_key();
        let mut result = None;
        if let Token::Value(number) = *self.peek() {
            self.at += 1;
            self.expect(":")?;
            let ty = self.ty()?;
            self.expect("=")?;
            let def = ValueDef::Inst(inst);
            result = Some(self.define(reading, number, start, ValueData { ty, def })?);
        }
        let data = self.operation_or_region(reading, inst)?;
        let regions = data.regions();
        let fast = self.fast_flags()?;
        let location = self.location(start)?;
        reading.function.insts.push(InstNode {
            data,
            result,
            fast,
            location,
        });
        reading.function.regions[region].insts.push(inst);
        for inner in regions {
            self.expect("{")?;
            self.region(reading, inner, depth + 1)?;
        }
        self.else_region(reading, inst, depth)
    }

    /// `else { ... }`, if it comes after an `if`.
    fn else_region(&mut self, reading: &mut Reading, inst: Inst, depth: usize) -> Parsed<()> {
        let is_if = matches!(reading.function.insts[inst].data, InstData::If { .. });
        if !is_if || !self.accept_word("else") {
            return Ok(());
        }
        let inner = reading.function.regions.push(RegionData::default());
        if let InstData::If { else_region, .. } = &mut reading.function.insts[inst].data {
            *else_region = Some(inner);
        }
        self.expect("{")?;
        self.region(reading, inner, depth + 1)
    }

    fn operation_or_region(&mut self, reading: &mut Reading, inst: Inst) -> Parsed<InstData> {
        let place = self.at;
        let word = self.word("an instruction")?;
        let new_region = |reading: &mut Reading| {
            let regions = &mut reading.function.regions;
            regions.push(RegionData::default())
        };
        match word.as_str() {
            "if" => Ok(InstData::If {
                cond: self.operand(reading)?,
                then_region: new_region(reading),
                else_region: None,
            }),
            "loop" => Ok(InstData::Loop {
                body: new_region(reading),
            }),
            "for" => self.counted_loop(reading, inst),
            _ => self.operation(reading, &word, place),
        }
    }

    /// `%7: u32 in %1 .. %2 step %3 unroll(4)`
    fn counted_loop(&mut self, reading: &mut Reading, inst: Inst) -> Parsed<InstData> {
        let place = self.at;
        let number = self.value_number()?;
        self.expect(":")?;
        let ty = self.ty()?;
        let def = ValueDef::Index(inst);
        let index = self.define(reading, number, place, ValueData { ty, def })?;
        self.expect_word("in")?;
        let start = self.operand(reading)?;
        self.expect("..")?;
        let end = self.operand(reading)?;
        self.expect_word("step")?;
        let step = self.operand(reading)?;
        let unroll = match self.accept_word("unroll") {
            true => self.unroll()?,
            false => Unroll::Auto,
        };
        let body = reading.function.regions.push(RegionData::default());
        Ok(InstData::For {
            index,
            start,
            end,
            step,
            body,
            unroll,
        })
    }

    fn unroll(&mut self) -> Parsed<Unroll> {
        self.expect("(")?;
        let unroll = if self.accept_word("never") {
            Unroll::Never
        } else if self.accept_word("full") {
            Unroll::Full
        } else {
            Unroll::By(self.number("`never`, `full` or a factor")?)
        };
        self.expect(")")?;
        Ok(unroll)
    }
}
