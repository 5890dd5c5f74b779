//! The parser: text to a module, or the first thing that is wrong with the text.
//!
//! It takes what [`super::print`] writes (see there for the form), with any numbers and any white
//! space, and gives a module whose entities are numbered in the order of appearance. It checks
//! only what it must to build a module; everything else is left to the verifier, so that tests can
//! write down wrong modules. No text makes it panic, and nesting is limited.
//!
//! A name is resolved wherever it is defined: functions, and values of a function, may be used
//! before; files, structs and constants are declared first.

mod function;
mod lexer;
mod operation;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use lexer::{Spanned, Token, lex};

use super::keywords::Keyword;
use super::{
    Entity, FileId, FuncId, GlobalData, GlobalId, HiddenData, HiddenParam, HiddenSource,
    InlinedCall, IntrinsicDef, Location, Module, Phase, Scalar, Type,
};
use crate::printed::PrintSite;
use crate::{debug_as_text, error_text};

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", error_text!("{line}:{column}: {message}"))]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

debug_as_text!(ParseError);

/// The module that `text` describes. `intrinsics` finds an intrinsic by its name.
///
/// # Errors
/// The first place where the text is not of the form.
pub fn parse(
    text: &str,
    intrinsics: &dyn Fn(&str) -> Option<&'static IntrinsicDef>,
) -> Result<Module, ParseError> {
    Parser::new(text, None, intrinsics)?.module()
}

/// The module that the text of the file `path` describes. A function, parameter or instruction
/// that names no location gets its place in the file.
///
/// # Errors
/// The first place where the text is not of the form.
pub fn parse_file(
    path: &str,
    text: &str,
    intrinsics: &dyn Fn(&str) -> Option<&'static IntrinsicDef>,
) -> Result<Module, ParseError> {
    Parser::new(text, Some(path), intrinsics)?.module()
}

type Parsed<T> = Result<T, ParseError>;

struct Parser<'t> {
    tokens: Vec<Spanned>,
    at: usize,
    module: Module,
    /// The file being read, for locations that are not written.
    source: Option<FileId>,
    intrinsics: &'t dyn Fn(&str) -> Option<&'static IntrinsicDef>,
    files: HashMap<u32, FileId>,
    structs: HashMap<String, Type>,
    globals: HashMap<String, GlobalId>,
    /// All functions of the text, in order, known before the first is read.
    functions: HashMap<String, FuncId>,
}

impl<'t> Parser<'t> {
    fn new(
        text: &str,
        path: Option<&str>,
        intrinsics: &'t dyn Fn(&str) -> Option<&'static IntrinsicDef>,
    ) -> Parsed<Self> {
        let mut module = Module::new("");
        Ok(Parser {
            tokens: lex(text)?,
            at: 0,
            source: path.map(|path| module.file(path)),
            module,
            intrinsics,
            files: HashMap::new(),
            structs: HashMap::new(),
            globals: HashMap::new(),
            functions: HashMap::new(),
        })
    }

    fn module(mut self) -> Parsed<Module> {
        self.expect_word("module")?;
        self.module.name = self.name()?;
        self.module.phase = self.keyword::<Phase>("a phase")?;
        self.find_functions()?;
        loop {
            let word = match self.peek() {
                Token::End => return Ok(self.module),
                Token::Word(word) => word.clone(),
                _ => return Err(self.unexpected("a declaration or a function")),
            };
            match word.as_str() {
                "file" => self.file()?,
                "struct" => self.structure()?,
                "const" => self.global()?,
                "hidden" => self.hidden()?,
                "prints" => self.print_site()?,
                "declare" | "kernel" | "device" => {
                    let function = self.function()?;
                    self.module.functions.push(function);
                }
                _ => return Err(self.unexpected("a declaration or a function")),
            }
        }
    }

    /// Enters the name after every `kernel` and `device` that is outside of braces.
    fn find_functions(&mut self) -> Parsed<()> {
        let start = self.at;
        let mut depth = 0usize;
        while *self.peek() != Token::End {
            let header = matches!(self.peek(), Token::Word(w) if w == "kernel" || w == "device");
            match self.peek() {
                Token::Mark("{") => depth += 1,
                Token::Mark("}") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if header && depth == 0 && *self.peek() == Token::Mark("@") {
                let place = self.at;
                let name = self.reference()?;
                let id = FuncId::from_index(self.functions.len());
                if self.functions.insert(name.clone(), id).is_some() {
                    return Err(self.error_at(place, format!("`@{name}` is defined twice")));
                }
            }
        }
        self.at = start;
        Ok(())
    }

    fn file(&mut self) -> Parsed<()> {
        self.at += 1;
        let place = self.at;
        let number = self.number::<u32>("the number of the file")?;
        let path = self.text("the path of the file, in quotes")?;
        let id = self.module.file(&path);
        match self.files.insert(number, id) {
            None => Ok(()),
            Some(_) => Err(self.error_at(place, format!("file {number} is declared twice"))),
        }
    }

    fn global(&mut self) -> Parsed<()> {
        self.at += 1;
        let place = self.at;
        let name = self.reference()?;
        self.expect(":")?;
        let ty = self.ty()?;
        self.expect("=")?;
        let bytes = self.bytes()?;
        let id = self.module.globals.push(GlobalData {
            name: name.clone(),
            ty,
            bytes,
        });
        match self.globals.insert(name.clone(), id) {
            None => Ok(()),
            Some(_) => Err(self.error_at(place, format!("`@{name}` is defined twice"))),
        }
    }

    /// `"0000803f"`
    fn bytes(&mut self) -> Parsed<Arc<[u8]>> {
        let digits_at = self.at;
        let digits = self.text("the bytes, as hexadecimal digits in quotes")?;
        let bytes = bytes_of(&digits).ok_or_else(|| {
            self.error_at(
                digits_at,
                "bytes are written as pairs of hexadecimal digits",
            )
        })?;
        Ok(bytes.into())
    }

    /// `hidden hidden0 counts: slice<global, mut u64> hook "count-loads"`
    fn hidden(&mut self) -> Parsed<()> {
        let start = self.at;
        self.at += 1;
        self.numbered(&self.module.hidden.next_key().to_string())?;
        let (name, ty) = self.declared()?;
        const SOURCES: &str = "`hook`, `global` or `fault_channel`";
        let source = match self.word(SOURCES)?.as_str() {
            "hook" => HiddenSource::Hook(self.name()?),
            "global" => HiddenSource::Global(match self.peek() {
                Token::Text(_) => Some(self.bytes()?),
                _ => None,
            }),
            "fault_channel" => HiddenSource::FaultChannel,
            _ => return Err(self.error_at(self.at - 1, format!("expected {SOURCES}"))),
        };
        let location = self.location(start)?;
        self.module.hidden.push(HiddenData {
            name,
            ty,
            source,
            location,
        });
        Ok(())
    }

    /// `prints stderr "{}\n" (u32) k "k.kir:2:3"`
    fn print_site(&mut self) -> Parsed<()> {
        self.at += 1;
        let to_stderr = self.accept_word("stderr");
        let format = self.text("a format")?;
        let mut values = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            if !values.is_empty() {
                self.expect(",")?;
            }
            values.push(self.keyword::<Scalar>("a type of numbers")?);
        }
        let site = PrintSite {
            function: self.name()?,
            location: self.text("a place")?,
            format,
            values,
            to_stderr,
        };
        self.module.print_sites.push(site);
        Ok(())
    }

    /// Takes a hidden value of the module, if one comes next.
    fn accept_hidden(&mut self) -> Option<HiddenParam> {
        let ids = self.module.hidden.keys();
        ids.into_iter().find(|id| self.accept_word(&id.to_string()))
    }

    fn peek(&self) -> &Token {
        // The last token is `End`, and nothing goes past it but the steps below, which stop there.
        let last = self.tokens.len() - 1;
        &self.tokens[self.at.min(last)].token
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> ParseError {
        let place = &self.tokens[at.min(self.tokens.len() - 1)];
        ParseError {
            line: place.line,
            column: place.column,
            message: message.into(),
        }
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        self.error_at(self.at, format!("expected {wanted}, found {}", self.peek()))
    }

    /// Takes a mark if it comes next.
    fn accept(&mut self, mark: &'static str) -> bool {
        let found = *self.peek() == Token::Mark(mark);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &'static str) -> Parsed<()> {
        if self.accept(mark) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{mark}`")))
    }

    /// Takes a word if it comes next.
    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if w == word);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.accept_word(word) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{word}`")))
    }

    fn word(&mut self, wanted: &str) -> Parsed<String> {
        match self.peek() {
            Token::Word(word) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn text(&mut self, wanted: &str) -> Parsed<String> {
        match self.peek() {
            Token::Text(text) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// A name: a word or a string.
    fn name(&mut self) -> Parsed<String> {
        match self.peek() {
            Token::Word(name) | Token::Text(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// `@name`
    fn reference(&mut self) -> Parsed<String> {
        self.expect("@")?;
        self.name()
    }

    /// One of the words of an enumeration.
    fn keyword<K: Keyword>(&mut self, wanted: &str) -> Parsed<K> {
        let found = match self.peek() {
            Token::Word(word) => K::from_keyword(word),
            _ => None,
        };
        if let Some(found) = found {
            self.at += 1;
            return Ok(found);
        }
        let words: Vec<&str> = K::TABLE.iter().map(|(_, word)| *word).collect();
        Err(self.unexpected(&format!("{wanted} ({})", words.join(", "))))
    }

    /// An integer in the range of `N`.
    fn number<N: std::str::FromStr>(&mut self, wanted: &str) -> Parsed<N> {
        let parsed = match self.peek() {
            Token::Number(number) => number.parse().ok(),
            _ => None,
        };
        match parsed {
            Some(number) => {
                self.at += 1;
                Ok(number)
            }
            None => Err(self.unexpected(wanted)),
        }
    }

    /// Items between commas, up to the mark that closes the list, which is taken.
    fn list(
        &mut self,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        if self.accept(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.accept(close) {
                return Ok(());
            }
            if !self.accept(",") {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// What [`Parser::written_location`] reads, or the place of token `start` when a file is read, or nothing known.
    fn location(&mut self, start: usize) -> Parsed<Location> {
        if *self.peek() == Token::Mark("!") {
            return self.written_location();
        }
        let place = &self.tokens[start.min(self.tokens.len() - 1)];
        Ok(match self.source {
            Some(file) => Location {
                file,
                line: place.line,
                column: place.column,
                inlined: None,
            },
            None => Location::unknown(),
        })
    }

    /// `!file:line:column` or `!unknown`; behind it `in "function"` and the place of the call, if that is known, where it
    /// is of a body that was put in place of a call.
    fn written_location(&mut self) -> Parsed<Location> {
        // The innermost first.
        let mut places = Vec::new();
        loop {
            let mut place = Location::unknown();
            let written = self.at;
            if self.accept("!") && !self.accept_word("unknown") {
                let file = self.number::<u32>("the number of a file")?;
                self.expect(":")?;
                place.line = self.number("a line")?;
                self.expect(":")?;
                place.column = self.number("a column")?;
                let Some(&known) = self.files.get(&file) else {
                    return Err(self.error_at(written, format!("file {file} is not declared")));
                };
                place.file = known;
            }
            if !self.accept_word("in") {
                places.push((place, None));
                break;
            }
            let function = self.text("the name of the function called, in quotes")?;
            places.push((place, Some(function)));
        }
        let mut at = Location::unknown();
        for (place, function) in places.into_iter().rev() {
            let inlined = function.map(|function| {
                let function = function.into();
                self.module.inlined_call(InlinedCall { function, at })
            });
            at = Location { inlined, ..place };
        }
        Ok(at)
    }
}

/// The bytes that pairs of hexadecimal digits stand for.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs
        .iter()
        .map(|[a, b]| Some(digit(*a)? << 4 | digit(*b)?));
    rest.is_empty().then(|| bytes.collect()).flatten()
}
