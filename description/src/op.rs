//! The operations, with their operands.

/// Numbers the variants of an enum and finds them by number.
macro_rules! numbered {
    (
        $(#[$doc:meta])*
        pub enum $name:ident else $other:ident {
            $($(#[$variant_doc:meta])* $variant:ident,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, by number.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            pub(crate) fn of_byte(byte: u8) -> Self {
                Self::ALL.get(usize::from(byte)).copied().unwrap_or($name::$other)
            }
        }
    };
}

numbered! {
    /// An operation. Operands come in the order in which they are named: `e` is an expression, `t` a
    /// type, `v` the number of a variable, `c` that of a closure, `p` that of an entry of the pool, `n`
    /// another number, `s` a text, `f` a flag, `r` a region; `e?` is a flag and, if it is set, an
    /// expression; `e*` is how many and as many expressions.
    pub enum Op else Unit {
        /// `()`.
        Unit,
        /// `n e..`: operations one after the other; the value of the last one.
        Block,

        /// `v`: what a variable stands for.
        Local,
        /// `v`: the same, where the user names the variable.
        Name,
        /// `p`: a constant.
        Constant,
        /// `t n`: an integer of a type that may be a parameter.
        Int,
        /// `t s`: a floating-point number, as Rust reads it for its type.
        Float,
        /// `f`: `false` or `true`.
        Bool,
        /// `e n`: an integer of the type of an expression.
        Like,
        /// `t`: the zero of a type.
        Zero,
        /// `n t`: a const parameter, as the type that it has in kernels.
        ConstParam,
        /// `e`: the operand as it is here, whatever is assigned later.
        Eager,

        /// `e`: `-e`.
        Neg,
        /// `e`: `!e`.
        Not,
        /// `e`: `*e`.
        Deref,
        /// `e e`: an operator, as the ones below are.
        Add,
        /// See [`Op::Add`].
        Sub,
        /// See [`Op::Add`].
        Mul,
        /// See [`Op::Add`].
        Div,
        /// See [`Op::Add`].
        Rem,
        /// See [`Op::Add`].
        BitXor,
        /// See [`Op::Add`].
        BitAnd,
        /// See [`Op::Add`].
        BitOr,
        /// See [`Op::Add`].
        Shl,
        /// See [`Op::Add`].
        Shr,
        /// See [`Op::Add`].
        Eq,
        /// See [`Op::Add`].
        Lt,
        /// See [`Op::Add`].
        Le,
        /// See [`Op::Add`].
        Ne,
        /// See [`Op::Add`].
        Ge,
        /// See [`Op::Add`].
        Gt,
        /// `e r`: `e && r`.
        And,
        /// `e r`: `e || r`.
        Or,
        /// `f e e? e?`: whether the first is from the second to the third, without that if `f`.
        InRange,

        /// `e t`: `e as t`.
        Cast,
        /// `e t`: a number as one of a type that may be a parameter; see `Front::convert`.
        Convert,
        /// `e t`: a reference as one of another type that rustc lets it stand for.
        Coerce,
        /// `s e`: the field with this name or number.
        Field,
        /// `e e`: an element.
        Index,
        /// `f e`: `&e`, or `&mut e` if `f`.
        Address,
        /// `f e`: `&e[..]`, or `&mut e[..]` if `f`.
        WholeSlice,
        /// `f f e e? e?`: `&e[a..b]`; mutable if the first flag is set, inclusive if the second is.
        Part,
        /// `e*`: a tuple.
        Tuple,
        /// `e*`: an array.
        Array,
        /// `e`, length: an array of equal elements.
        Repeat,
        /// `t n (s e)* e?`: a struct by its fields, those that are not named from the last.
        Construct,

        /// `s t`: memory of the block, as a mutable reference.
        Shared,

        /// `p t* e*`: a call of a device function.
        Call,
        /// `p t*`: the same, with all variables as arguments.
        CallWithAll,
        /// `p f f e t* e*`: a method on a receiver. The first flag: whether the receiver is a place,
        /// the second: whether arguments may change it.
        CallMethod,
        /// `p e e*`: a method of numbers.
        CallNumber,
        /// `p t* e* n (closure)*`: a function that takes closures; each of these is [`Op::Closure`] or
        /// [`Op::LetClosure`].
        CallInline,
        /// `c e*`: a call of a closure.
        CallClosure,
        /// `c`: a closure, as an argument.
        Closure,
        /// `c v n r`: defines a closure; `n` arguments become the variables from `v` on.
        LetClosure,

        /// `s t f f v`: declares a parameter, with the flags of [`Op::Bind`].
        Param,
        /// `s f f v e`: a variable of the user's; the first flag: it is mutable, the second: it needs an
        /// address.
        Bind,
        /// `v e`: a variable of the macro's.
        Let,
        /// `v`: a variable of the macro's that has its type from what is first assigned to it.
        Slot,
        /// `f v`, `t` if the flag is set: a variable of the user's that is assigned later; with a type
        /// it is in memory.
        Declare,
        /// `e e`: assigns the second to the first.
        Assign,
        /// `e e`, then the operator as an [`Op`]: assigns its result to the first.
        AssignOp,
        /// `e`: evaluates and forgets.
        Discard,

        /// `e r`: `if`.
        If,
        /// `e r r`: `if`, `else`.
        IfElse,
        /// `r r`: `while`.
        While,
        /// `r`: `loop`.
        Loop,
        /// Flags inclusive and reversed, unrolling, `v e e e? r`: `for` from the first to the second, by the
        /// third. Unrolling is 0 for no wish, 1 for never, 2 for fully, otherwise the factor and 2.
        For,
        /// `v e* r`: a region once for each expression.
        ForEach,
        /// `n`: leaves the loop `n` loops out.
        Break,
        /// `n`: goes on with the loop `n` loops out.
        Continue,
        /// Ends the function.
        Return,
        /// `e`: ends the function with a value, unless it is `()`.
        ReturnValue,

        /// `s n`: declares a type parameter: any type, `Num`, `Int` or `Float`.
        DeclareType,
        /// `s p`: declares a const parameter.
        DeclareConst,
        /// `n n`: the launch bounds.
        LaunchBounds,
        /// `s n (s n)* t* v r`: the body of a function that is described in place of a call: its name, its
        /// type parameters with their places among the arguments of the call, the types of its values, the
        /// variable of the first of them, the body. The closures that it takes are its first ones.
        InlineBody,
    }
}

numbered! {
    /// How a type is made, with the operands of [`Op`].
    pub enum TypeOp else Unit {
        /// `()`.
        Unit,
        /// `p`: a type of the host.
        Pooled,
        /// `t`, length: a fixed array.
        Array,
        /// `t*`: a tuple.
        Tuple,
        /// `f t`: a reference, mutable if the flag is set.
        Reference,
        /// `f t`: a slice of such elements, mutable if the flag is set.
        Slice,
    }
}

/// The length of an array.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Len {
    /// A constant, in the pool.
    Pooled(u32),
    /// A const parameter, by number.
    Param(u32),
}
