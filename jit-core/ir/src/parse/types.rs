//! Types and struct declarations of the text form.

use super::{Parsed, Parser, Token};
use crate::keywords::Keyword;
use crate::{
    AddressSpace, ArrayLen, ConstParam, Entity, Scalar, StructData, Type, TypeData, TypeParam,
};

/// How deep a written type may nest.
const MAX_WRITTEN_DEPTH: usize = 64;

impl Parser<'_> {
    /// `struct @Name { field: type, ... }`, or `struct @Name align(16) { .. }`
    pub(super) fn structure(&mut self) -> Parsed<()> {
        self.at += 1;
        let place = self.at;
        let name = self.reference()?;
        let mut align = 1;
        if self.accept_word("align") {
            align = self.in_parentheses("an alignment in bytes")?.into();
        }
        let mut fields = Vec::new();
        self.expect("{")?;
        self.list("}", |parser| {
            let field = parser.name()?;
            parser.expect(":")?;
            fields.push((field, parser.ty()?));
            Ok(())
        })?;
        let data = StructData {
            align,
            ..StructData::new(name.clone(), fields)
        };
        let ty = self.module.types.intern_struct(data);
        match self.structs.insert(name.clone(), ty) {
            None => Ok(()),
            Some(_) => Err(self.error_at(place, format!("`@{name}` is declared twice"))),
        }
    }

    pub(super) fn ty(&mut self) -> Parsed<Type> {
        self.nested_ty(0)
    }

    fn nested_ty(&mut self, depth: usize) -> Parsed<Type> {
        if depth > MAX_WRITTEN_DEPTH {
            let message = format!("types nest at most {MAX_WRITTEN_DEPTH} deep");
            return Err(self.error_at(self.at, message));
        }
        let place = self.at;
        match self.next() {
            Token::Mark("(") => {
                self.expect(")")?;
                Ok(Type::UNIT)
            }
            Token::Mark("[") => self.array(depth),
            Token::Mark("@") => {
                let name = self.name()?;
                let known = self.structs.get(&name).copied();
                known.ok_or_else(|| {
                    self.error_at(place, format!("there is no struct `@{name}` above"))
                })
            }
            Token::TypeParam(n) => {
                let param = TypeParam::from_index(n as usize);
                Ok(self.module.types.intern(TypeData::Param(param)))
            }
            Token::Word(word) if word == "ptr" => self.pointer(depth),
            Token::Word(word) if word == "slice" => self.slice(depth),
            Token::Word(word) => match number_type(&word) {
                Some(data) => Ok(self.module.types.intern(data)),
                None => Err(self.error_at(place, format!("there is no type `{word}`"))),
            },
            _ => {
                self.at = place;
                Err(self.unexpected("a type"))
            }
        }
    }

    /// `f32; 16]`
    fn array(&mut self, depth: usize) -> Parsed<Type> {
        let element = self.nested_ty(depth + 1)?;
        self.expect(";")?;
        let len = match *self.peek() {
            Token::ConstParam(n) => {
                self.at += 1;
                ArrayLen::Param(ConstParam::from_index(n as usize))
            }
            _ => ArrayLen::Known(self.number("the length of the array")?),
        };
        self.expect("]")?;
        let types = &mut self.module.types;
        Ok(types.intern(TypeData::Array { element, len }))
    }

    /// `<global, mut`, up to the pointee.
    fn space(&mut self) -> Parsed<(AddressSpace, bool)> {
        self.expect("<")?;
        let space = self.keyword("an address space")?;
        self.expect(",")?;
        Ok((space, self.accept_word("mut")))
    }

    fn pointer(&mut self, depth: usize) -> Parsed<Type> {
        let (space, mutable) = self.space()?;
        let pointee = self.nested_ty(depth + 1)?;
        self.expect(">")?;
        Ok(self.module.types.pointer(pointee, space, mutable))
    }

    fn slice(&mut self, depth: usize) -> Parsed<Type> {
        let (space, mutable) = self.space()?;
        let element = self.nested_ty(depth + 1)?;
        let wide = self.accept(",");
        if wide {
            self.expect_word("wide")?;
        }
        self.expect(">")?;
        Ok(self.module.types.intern(TypeData::Slice {
            element,
            space,
            mutable,
            wide,
        }))
    }
}

/// `f32`, `f32x4`
fn number_type(word: &str) -> Option<TypeData> {
    if let Some(scalar) = Scalar::from_keyword(word) {
        return Some(TypeData::Scalar(scalar));
    }
    let (element, lanes) = word.rsplit_once('x')?;
    Some(TypeData::Vector {
        element: Scalar::from_keyword(element)?,
        lanes: lanes.parse().ok()?,
    })
}
