//! Operations of the text form: the mirror image of `print/operation.rs`.

use super::function::Reading;
use super::{Parsed, Parser, Token};
use crate::keywords::Keyword;
use crate::{
    AtomicOp, BinaryOp, CompareOp, ConstArg, ConstParam, Constant, Entity, InstData, SharedVar,
    UnaryOp, Value, ValueList, Var,
};

impl Parser<'_> {
    /// A use of a value, under its written number until the function is read.
    pub(super) fn operand(&mut self, reading: &mut Reading) -> Parsed<Value> {
        let place = self.at;
        let number = self.value_number()?;
        reading.uses.push((number, place));
        Ok(Value::from_index(number as usize))
    }

    fn second(&mut self, reading: &mut Reading) -> Parsed<Value> {
        self.expect(",")?;
        self.operand(reading)
    }

    fn two(&mut self, reading: &mut Reading) -> Parsed<[Value; 2]> {
        Ok([self.operand(reading)?, self.second(reading)?])
    }

    fn operands(&mut self, reading: &mut Reading) -> Parsed<ValueList> {
        let mut values = ValueList::new();
        self.expect("(")?;
        self.list(")", |parser| {
            values.push(parser.operand(reading)?);
            Ok(())
        })?;
        Ok(values)
    }

    // flat match
    pub(super) fn operation(
        &mut self,
        r: &mut Reading,
        word: &str,
        place: usize,
    ) -> Parsed<InstData> {
        Ok(match word {
            "const" => InstData::Const(self.constant()?),
            "const_param" => InstData::ConstParam(self.const_param()?),
            "select" => {
                let cond = self.operand(r)?;
                let (if_true, if_false) = (self.second(r)?, self.second(r)?);
                InstData::Select {
                    cond,
                    if_true,
                    if_false,
                }
            }
            "cast" => InstData::Cast {
                arg: self.operand(r)?,
            },
            "bitcast" => InstData::Bitcast {
                arg: self.operand(r)?,
            },
            "construct" => InstData::Construct {
                parts: self.operands(r)?,
            },
            "extract" => InstData::Extract {
                aggregate: self.operand(r)?,
                index: self.position()?,
            },
            "insert" => InstData::Insert {
                aggregate: self.operand(r)?,
                index: self.position()?,
                value: self.second(r)?,
            },
            "get" => InstData::VarGet(self.var(r)?),
            "set" => InstData::VarSet(self.var(r)?, self.second(r)?),
            "load" => InstData::Load {
                volatile: self.accept_word("volatile"),
                ptr: self.operand(r)?,
            },
            "store" => InstData::Store {
                volatile: self.accept_word("volatile"),
                ptr: self.operand(r)?,
                value: self.second(r)?,
            },
            "ptr_offset" => {
                let [ptr, index] = self.two(r)?;
                InstData::PtrOffset { ptr, index }
            }
            "field_ptr" => InstData::FieldPtr {
                ptr: self.operand(r)?,
                field: self.position()?,
            },
            "element_ptr" => InstData::ElementPtr {
                checked: !self.accept_word("unchecked"),
                ptr: self.operand(r)?,
                index: self.second(r)?,
            },
            "space_cast" => InstData::SpaceCast {
                arg: self.operand(r)?,
            },
            "slice_new" => {
                let [ptr, len] = self.two(r)?;
                InstData::SliceNew { ptr, len }
            }
            "slice_len" => InstData::SliceLen {
                slice: self.operand(r)?,
            },
            "slice_ptr" => InstData::SlicePtr {
                slice: self.operand(r)?,
            },
            "slice_index" => InstData::SliceIndex {
                checked: !self.accept_word("unchecked"),
                slice: self.operand(r)?,
                index: self.second(r)?,
            },
            "shared_addr" => InstData::SharedAddr(self.shared(r)?),
            "dynamic_shared" => InstData::DynamicShared,
            "local_alloc" => InstData::LocalAlloc,
            "global_addr" => {
                let place = self.at;
                let name = self.reference()?;
                let known = self.globals.get(&name).copied();
                InstData::GlobalAddr(known.ok_or_else(|| {
                    self.error_at(place, format!("there is no constant `@{name}` above"))
                })?)
            }
            "hidden" => {
                let wanted = "a hidden value that is declared above, such as `hidden0`";
                let known = self.accept_hidden();
                InstData::Hidden(known.ok_or_else(|| self.unexpected(wanted))?)
            }
            "atomic" => InstData::AtomicRmw {
                op: self.keyword::<AtomicOp>("an atomic operation")?,
                ordering: self.keyword("an ordering")?,
                scope: self.keyword("a scope")?,
                ptr: self.operand(r)?,
                value: self.second(r)?,
            },
            "atomic_load" => InstData::AtomicLoad {
                ordering: self.keyword("an ordering")?,
                scope: self.keyword("a scope")?,
                ptr: self.operand(r)?,
            },
            "atomic_store" => InstData::AtomicStore {
                ordering: self.keyword("an ordering")?,
                scope: self.keyword("a scope")?,
                ptr: self.operand(r)?,
                value: self.second(r)?,
            },
            "atomic_cas" => InstData::AtomicCas {
                ordering: self.keyword("an ordering")?,
                scope: self.keyword("a scope")?,
                ptr: self.operand(r)?,
                expected: self.second(r)?,
                new: self.second(r)?,
            },
            "barrier" => InstData::Barrier,
            "assume" => InstData::Assume {
                checked: !self.accept_word("unchecked"),
                cond: self.operand(r)?,
                text: match self.accept(",") {
                    true => self.text("the condition as it is written")?.into(),
                    false => Box::default(),
                },
            },
            "assert" => InstData::Assert {
                cond: self.operand(r)?,
                message: {
                    self.expect(",")?;
                    self.text("what the error says")?.into()
                },
                values: match self.accept(",") {
                    true => Some(self.two(r)?),
                    false => None,
                },
            },
            "print" => self.printed(r)?,
            "fence" => InstData::Fence {
                ordering: self.keyword("an ordering")?,
                scope: self.keyword("a scope")?,
            },
            "call" => self.call(r)?,
            "intrinsic" => self.intrinsic(r)?,
            "break" => InstData::Break {
                depth: self.number("how many loops out")?,
            },
            "continue" => InstData::Continue {
                depth: self.number("how many loops out")?,
            },
            "return" => self.ret(r)?,
            _ => self.arithmetic(r, word, place)?,
        })
    }

    /// `print "{}: {}\n", %1, %2`, or `print stderr "..."`.
    fn printed(&mut self, r: &mut Reading) -> Parsed<InstData> {
        let to_stderr = self.accept_word("stderr");
        let format = self.text("a format, such as `\"{}\\n\"`")?.into();
        let mut values = ValueList::new();
        while self.accept(",") {
            values.push(self.operand(r)?);
        }
        Ok(InstData::Print {
            format,
            values,
            to_stderr,
        })
    }

    /// `return`, or `return %3`: a value that `:` follows begins the next instruction.
    fn ret(&mut self, r: &mut Reading) -> Parsed<InstData> {
        let next = self.tokens.get(self.at + 1).map(|t| &t.token);
        let value = match self.peek() {
            Token::Value(_) if next != Some(&Token::Mark(":")) => Some(self.operand(r)?),
            _ => None,
        };
        Ok(InstData::Return { value })
    }

    fn arithmetic(&mut self, r: &mut Reading, word: &str, place: usize) -> Parsed<InstData> {
        if let Some(op) = UnaryOp::from_keyword(word) {
            let arg = self.operand(r)?;
            return Ok(InstData::Unary { op, arg });
        }
        if let Some(op) = BinaryOp::from_keyword(word) {
            let args = self.two(r)?;
            return Ok(InstData::Binary { op, args });
        }
        if let Some(op) = CompareOp::from_keyword(word) {
            let args = self.two(r)?;
            return Ok(InstData::Compare { op, args });
        }
        Err(self.error_at(place, format!("there is no instruction `{word}`")))
    }

    /// `, 2`
    fn position(&mut self) -> Parsed<u32> {
        self.expect(",")?;
        self.number("the position of a part")
    }

    fn const_param(&mut self) -> Parsed<ConstParam> {
        match *self.peek() {
            Token::ConstParam(n) => {
                self.at += 1;
                Ok(ConstParam::from_index(n as usize))
            }
            _ => Err(self.unexpected("a const parameter such as `#0`")),
        }
    }

    fn constant(&mut self) -> Parsed<Constant> {
        let place = self.at;
        let wanted = "a number, `true`, `false`, `zero` or `bits 0x...`";
        let constant = match self.next() {
            Token::Number(number) => match number.parse::<i128>() {
                Ok(n) => Some(Constant::Int(n)),
                Err(_) => float(&number),
            },
            Token::Word(word) => match word.as_str() {
                "true" => Some(Constant::Bool(true)),
                "false" => Some(Constant::Bool(false)),
                "zero" => Some(Constant::Zero),
                "bits" => self.bits(),
                _ => None,
            },
            _ => None,
        };
        constant.ok_or_else(|| {
            let found = &self.tokens[place.min(self.tokens.len() - 1)].token;
            self.error_at(place, format!("expected {wanted}, found {found}"))
        })
    }

    fn bits(&mut self) -> Option<Constant> {
        match self.next() {
            Token::Number(number) => {
                let bits = u64::from_str_radix(number.strip_prefix("0x")?, 16).ok()?;
                Some(Constant::Float(f64::from_bits(bits)))
            }
            _ => None,
        }
    }

    /// `var3`, of those declared.
    fn var(&mut self, r: &Reading) -> Parsed<Var> {
        let number = self.declared_number("var", r.function.vars.len())?;
        Ok(Var::from_index(number))
    }

    fn shared(&mut self, r: &Reading) -> Parsed<SharedVar> {
        let number = self.declared_number("shared", r.function.shared.len())?;
        Ok(SharedVar::from_index(number))
    }

    fn declared_number(&mut self, prefix: &str, declared: usize) -> Parsed<usize> {
        let number = match self.peek() {
            Token::Word(word) => word.strip_prefix(prefix).and_then(|n| n.parse().ok()),
            _ => None,
        };
        match number {
            Some(number) if number < declared => {
                self.at += 1;
                Ok(number)
            }
            Some(_) => Err(self.error_at(self.at, format!("{} is not declared", self.peek()))),
            None => Err(self.unexpected(&format!("a variable such as `{prefix}0`"))),
        }
    }

    /// `@f<f32, $0; 4, #0>(%1)`
    fn call(&mut self, r: &mut Reading) -> Parsed<InstData> {
        let place = self.at;
        let name = self.reference()?;
        let Some(&callee) = self.functions.get(&name) else {
            return Err(self.error_at(place, format!("there is no function `@{name}`")));
        };
        let (mut type_args, mut const_args) = (Vec::new(), Vec::new());
        if self.accept("<") {
            while !matches!(self.peek(), Token::Mark(";" | ">")) {
                type_args.push(self.ty()?);
                if !self.accept(",") {
                    break;
                }
            }
            if self.accept(";") {
                self.list(">", |parser| {
                    const_args.push(parser.const_arg()?);
                    Ok(())
                })?;
            } else {
                self.expect(">")?;
            }
        }
        Ok(InstData::Call {
            callee,
            type_args,
            const_args,
            args: self.operands(r)?,
        })
    }

    fn const_arg(&mut self) -> Parsed<ConstArg> {
        match self.peek() {
            Token::ConstParam(_) => Ok(ConstArg::Param(self.const_param()?)),
            _ => Ok(ConstArg::Known(self.constant()?)),
        }
    }

    fn intrinsic(&mut self, r: &mut Reading) -> Parsed<InstData> {
        let place = self.at;
        let name = self.name()?;
        let Some(def) = (self.intrinsics)(&name) else {
            return Err(self.error_at(place, format!("there is no intrinsic `{name}`")));
        };
        let id = self.module.intrinsic(def);
        let args = self.operands(r)?;
        Ok(InstData::Intrinsic { id, args })
    }
}

/// A decimal as a float; the nearest one, when there are more digits than it has.
fn float(number: &str) -> Option<Constant> {
    let value: f64 = number.parse().ok()?;
    // Digits that begin a hexadecimal number, and integers beyond `i128`, are no floats.
    let is_decimal = number.contains(['.', 'e', 'E']) && !number.starts_with("0x");
    (is_decimal && value.is_finite()).then_some(Constant::Float(value))
}
