//! ASCII methods of `u8` in `#[kernel]` functions, those of Rust, by whose names rustc finds them.
//!
//! ```
//! use kiln::prelude::*;
//!
//! /// How many words begin in each row of a text.
//! #[kernel]
//! fn words(text: &[u8], width: usize, counts: &mut [u32]) {
//!     let row = global_id().x;
//!     if let Some(count) = counts.get_mut(row) {
//!         let line = &text[row * width..(row + 1) * width];
//!         for (i, c) in line.iter().enumerate() {
//!             if c.is_ascii_alphabetic() && (i == 0 || line[i - 1].is_ascii_whitespace()) {
//!                 *count += 1;
//!             }
//!         }
//!     }
//! }
//!
//! # fn main() -> kiln::Result<()> {
//! let jit = Jit::new()?;
//! let text = jit.upload(b"one two three   four 5  ")?;
//! let mut counts = jit.zeros(2)?;
//! words.launch(&jit, (1, 32), &text, 12, &mut counts)?;
//! assert_eq!(counts.to_vec()?, [3, 2]);
//! # Ok(())
//! # }
//! ```

use kiln_description::method_name;
use kiln_jit_core::build::Val;
use kiln_jit_core::front::macros::{Front, Operand, Receiver};
use kiln_jit_core::ir::Type;

use super::resolve::{Method, methods};

/// A character as a method sees it.
#[derive(Copy, Clone)]
struct Character<'k>(Val<'k>);

impl<'k> Character<'k> {
    fn of(operand: Operand<'k>) -> Self {
        Character(operand.target().read())
    }

    fn byte(self, byte: u8) -> Val<'k> {
        self.0.builder().lit(Type::U8, i64::from(byte))
    }

    fn is(self, byte: u8) -> Val<'k> {
        self.0.eq(self.byte(byte))
    }

    /// Whether the character is from one to another, by one comparison.
    fn within(self, low: u8, high: u8) -> Val<'k> {
        (self.0 - self.byte(low)).le(self.byte(high - low))
    }

    /// The lower case of a letter; of others another character, which is no letter.
    fn folded(self) -> Self {
        Character(self.0 | self.byte(0x20))
    }

    fn is_letter(self) -> Val<'k> {
        self.folded().within(b'a', b'z')
    }

    /// With the bit of the case turned where a condition holds.
    fn turned_if(self, condition: Val<'k>) -> Val<'k> {
        condition.select(self.0 ^ self.byte(0x20), self.0)
    }

    fn lower(self) -> Val<'k> {
        self.turned_if(self.within(b'A', b'Z'))
    }

    fn upper(self) -> Val<'k> {
        self.turned_if(self.within(b'a', b'z'))
    }

    fn is_whitespace(self) -> Val<'k> {
        // Rust counts no vertical tab.
        self.is(b' ') | self.within(b'\t', b'\n') | self.within(0x0c, b'\r')
    }

    fn is_punctuation(self) -> Val<'k> {
        self.within(b'!', b'~') & !(self.is_letter() | self.within(b'0', b'9'))
    }
}

/// Methods by what they build of the character.
macro_rules! of_characters {
    ($($name:ident = |$c:ident| $value:expr;)*) => {
        methods! { $([] u8, Value, false: $name = |front, receiver| {
            let $c = Character::of(receiver);
            front.value($value)
        };)* }
    };
}

of_characters! {
    is_ascii = |c| c.within(0, 0x7f);
    is_ascii_alphabetic = |c| c.is_letter();
    is_ascii_alphanumeric = |c| c.is_letter() | c.within(b'0', b'9');
    is_ascii_digit = |c| c.within(b'0', b'9');
    is_ascii_hexdigit = |c| c.within(b'0', b'9') | c.folded().within(b'a', b'f');
    is_ascii_lowercase = |c| c.within(b'a', b'z');
    is_ascii_uppercase = |c| c.within(b'A', b'Z');
    is_ascii_punctuation = |c| c.is_punctuation();
    is_ascii_graphic = |c| c.within(b'!', b'~');
    is_ascii_whitespace = |c| c.is_whitespace();
    is_ascii_control = |c| c.within(0, 0x1f) | c.is(0x7f);
    to_ascii_lowercase = |c| c.lower();
    to_ascii_uppercase = |c| c.upper();
}

methods! {
    [] u8, Value, false: eq_ignore_ascii_case = |front, one, other| {
        front.value(Character::of(one).lower().eq(Character::of(other).lower()))
    };
    [] u8, Mutable, true: make_ascii_lowercase = |front, receiver| assigned(front, receiver, Character::lower);
    [] u8, Mutable, true: make_ascii_uppercase = |front, receiver| assigned(front, receiver, Character::upper);
}

/// Assigns what becomes of the character behind a reference.
fn assigned<'k>(
    front: Front<'k>,
    receiver: Operand<'k>,
    how: fn(Character<'k>) -> Val<'k>,
) -> Operand<'k> {
    receiver.place().set(how(Character::of(receiver)));
    front.unit()
}
