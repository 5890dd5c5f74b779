//! The lexer: text to tokens, each with its place.
//!
//! The whole text is read at once, so that the parser can look ahead for the functions a module
//! defines. A comment goes from `;` to the end of the line, except between brackets, where `;`
//! separates; brackets left open by a mistake are forgotten at the end of the line.

use super::ParseError;

/// What the text is made of.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// Letters, digits, `_`, and dots between them.
    Word(String),
    /// A string, escapes resolved.
    Text(String),
    /// A number, as written.
    Number(String),
    /// `%3`
    Value(u32),
    /// `$0`
    TypeParam(u32),
    /// `#0`
    ConstParam(u32),
    /// `{`, `->` ...
    Mark(&'static str),
    /// After the last token.
    End,
}

/// The token as an error names it.
impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Text(_) => f.write_str("a string"),
            Token::Number(number) => write!(f, "`{number}`"),
            Token::Value(n) => write!(f, "`%{n}`"),
            Token::TypeParam(n) => write!(f, "`${n}`"),
            Token::ConstParam(n) => write!(f, "`#{n}`"),
            Token::Mark(mark) => write!(f, "`{mark}`"),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// A token and where it begins; lines and columns, in characters, start at 1.
#[derive(Clone, Debug)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Marks, longer ones before their beginnings.
const MARKS: [&str; 17] = [
    "->", "..", "(", ")", "{", "}", "[", "]", "<", ">", ",", ":", ";", "=", "@", "!", "?",
];

/// All tokens of a text, the last of them [`Token::End`].
pub(super) fn lex(text: &str) -> Result<Vec<Spanned>, ParseError> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
        column: 1,
        brackets: 0,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let (line, column) = (lexer.line, lexer.column);
        let token = lexer.token()?;
        let done = token == Token::End;
        tokens.push(Spanned {
            token,
            line,
            column,
        });
        if done {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    rest: &'t str,
    line: u32,
    column: u32,
    /// How many `[` and `<` are open.
    brackets: u32,
}

impl<'t> Lexer<'t> {
    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError {
            line: self.line,
            column: self.column,
            message: message.into(),
        }
    }

    /// Takes the first `bytes` bytes of the rest, in which there is no line break.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        let columns = taken.chars().count();
        self.column = self.column.saturating_add(columns as u32);
        taken
    }

    /// The length of the prefix whose bytes satisfy `holds`.
    fn prefix(&self, holds: impl Fn(u8) -> bool) -> usize {
        let bytes = self.rest.bytes();
        bytes.take_while(|&b| holds(b)).count()
    }

    fn skip_blank(&mut self) {
        loop {
            match self.rest.as_bytes().first() {
                Some(b'\n') => {
                    self.rest = &self.rest[1..];
                    self.line = self.line.saturating_add(1);
                    self.column = 1;
                    self.brackets = 0;
                }
                Some(b' ' | b'\t' | b'\r') => {
                    self.take(1);
                }
                Some(b';') if self.brackets == 0 => {
                    let line = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.take(line);
                }
                _ => return,
            }
        }
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        let Some(&first) = self.rest.as_bytes().first() else {
            return Ok(Token::End);
        };
        let second = self.rest.as_bytes().get(1).copied().unwrap_or(b' ');
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(self.word()),
            b'"' => self.string(),
            b'0'..=b'9' => Ok(self.number()),
            b'-' if second.is_ascii_digit() => Ok(self.number()),
            b'%' => self.entity(Token::Value),
            b'$' => self.entity(Token::TypeParam),
            b'#' => self.entity(Token::ConstParam),
            _ => self.mark(),
        }
    }

    fn word(&mut self) -> Token {
        let in_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let mut length = self.prefix(in_word);
        while self.rest.as_bytes().get(length) == Some(&b'.')
            && self
                .rest
                .as_bytes()
                .get(length + 1)
                .is_some_and(|&b| in_word(b))
        {
            let part = self.rest[length + 1..].bytes();
            length += 1 + part.take_while(|&b| in_word(b)).count();
        }
        Token::Word(self.take(length).to_owned())
    }

    /// `12`, `-0.5`, `1e-7`, `0x7f`. What it is worth is decided where it is used.
    fn number(&mut self) -> Token {
        let bytes = self.rest.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let digits = |mut at: usize| {
            while digit(at) {
                at += 1;
            }
            at
        };
        if bytes.starts_with(b"0x") {
            let hex = bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit());
            let length = 2 + hex.count();
            return Token::Number(self.take(length).to_owned());
        }
        let mut end = digits(1);
        if bytes.get(end) == Some(&b'.') && digit(end + 1) {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if digit(end + 1 + sign) {
                end = digits(end + 1 + sign);
            }
        }
        Token::Number(self.take(end).to_owned())
    }

    fn entity(&mut self, make: fn(u32) -> Token) -> Result<Token, ParseError> {
        let digits = self.rest[1..].bytes();
        let length = 1 + digits.take_while(u8::is_ascii_digit).count();
        // The largest number is kept free, as the maps of entities do.
        match self.rest[1..length].parse::<u32>() {
            Ok(number) if number < u32::MAX => {
                self.take(length);
                Ok(make(number))
            }
            _ => Err(self.error("a number below 4294967295 belongs after `%`, `$` and `#`")),
        }
    }

    fn mark(&mut self) -> Result<Token, ParseError> {
        let Some(mark) = MARKS.into_iter().find(|m| self.rest.starts_with(m)) else {
            let c = self.rest.chars().next().unwrap_or(' ');
            return Err(self.error(format!("{c:?} has no meaning here")));
        };
        self.take(mark.len());
        match mark {
            "[" | "<" => self.brackets += 1,
            "]" | ">" => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        Ok(Token::Mark(mark))
    }

    fn string(&mut self) -> Result<Token, ParseError> {
        let start = self.error("the string has no end on its line");
        let mut text = String::new();
        self.take(1);
        loop {
            let Some(c) = self.rest.chars().next().filter(|c| *c != '\n') else {
                return Err(start);
            };
            match c {
                '"' => {
                    self.take(1);
                    return Ok(Token::Text(text));
                }
                '\\' => text.push(self.escape()?),
                c => {
                    self.take(c.len_utf8());
                    text.push(c);
                }
            }
        }
    }

    /// `\"`, `\\` and `\u{1f}`.
    fn escape(&mut self) -> Result<char, ParseError> {
        let wrong = self.error(r#"the escapes are \", \\ and \u{..} with a character's code"#);
        match self.rest.as_bytes().get(1) {
            Some(b'"') => {
                self.take(2);
                Ok('"')
            }
            Some(b'\\') => {
                self.take(2);
                Ok('\\')
            }
            Some(b'u') if self.rest.as_bytes().get(2) == Some(&b'{') => {
                let end = self.rest.bytes().take(11).position(|b| b == b'}');
                let end = end.ok_or_else(|| wrong.clone())?;
                let code = self.rest.get(3..end).unwrap_or("");
                let code = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
                let code = code.ok_or(wrong)?;
                self.take(end + 1);
                Ok(code)
            }
            _ => Err(wrong),
        }
    }
}
