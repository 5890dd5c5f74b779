//! The operations, with their operands.

/// Numbers the variants of an enum, finds them by number, and has their operands as a text.
macro_rules! numbered {
    (
        $(#[$doc:meta])*
        pub enum $name:ident else $other:ident {
            $($(#[$variant_doc:meta])* $variant:ident $operands:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum $name {
            $(
                $(#[$variant_doc])*
                #[doc = concat!("\n\nOperands: `", $operands, "`")]
                $variant,
            )*
        }

        impl $name {
            /// All of them, by number.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The operands, a letter each.
            pub const fn operands(self) -> &'static str {
                match self {
                    $($name::$variant => $operands,)*
                }
            }

            pub(crate) fn of_byte(byte: u8) -> Self {
                Self::ALL.get(usize::from(byte)).copied().unwrap_or($name::$other)
            }
        }
    };
}

numbered! {
    /// An operation, and its operands:
    ///
    /// | | |
    /// |---|---|
    /// | `e`, `o`, `E` | an expression; one or none; a list of them |
    /// | `t`, `u`, `T` | a type; one or none; a list of them |
    /// | `r` | a region |
    /// | `v`, `c`, `p` | the number of a variable, of a closure, of an entry of the pool |
    /// | `n`, `i`, `f` | another number; an integer of any sign; a flag |
    /// | `m` | a [`When`](crate::When) |
    /// | `s`, `S`, `N` | a text; a list of texts with expressions; one of texts with numbers |
    /// | `l`, `K`, `x` | the length of an array or a const argument; a list of const arguments; an operator |
    pub enum Op else Unit {
        /// `()`.
        Unit "",
        /// Operations one after the other; the value of the last one.
        Block "E",

        /// What a variable stands for.
        Local "v",
        /// What a variable stands for, where the user names it.
        Name "v",
        /// A constant.
        Constant "p",
        /// An integer of a type that may be a parameter.
        Int "ti",
        /// A floating-point number, as Rust reads it for its type.
        Float "ts",
        /// `false` or `true`.
        Bool "f",
        /// An integer of the type of an expression.
        Like "ei",
        /// The zero of a type.
        Zero "t",
        /// A const parameter, as the type that it has in kernels.
        ConstParam "nt",
        /// The operand as it is here, whatever is assigned later.
        Eager "e",
        /// The operand as it is here, if it may be assigned later.
        EagerWhen "me",

        /// `-e`.
        Neg "e",
        /// `!e`.
        Not "e",
        /// `*e`.
        Deref "e",
        /// `a + b`.
        Add "ee",
        /// `a - b`.
        Sub "ee",
        /// `a * b`.
        Mul "ee",
        /// `a / b`.
        Div "ee",
        /// `a % b`.
        Rem "ee",
        /// `a ^ b`.
        BitXor "ee",
        /// `a & b`.
        BitAnd "ee",
        /// `a | b`.
        BitOr "ee",
        /// `a << b`.
        Shl "ee",
        /// `a >> b`.
        Shr "ee",
        /// `a == b`.
        Eq "ee",
        /// `a < b`.
        Lt "ee",
        /// `a <= b`.
        Le "ee",
        /// `a != b`.
        Ne "ee",
        /// `a >= b`.
        Ge "ee",
        /// `a > b`.
        Gt "ee",
        /// An operator that one of its operands may have of its own, and the expression or assignment with it.
        Operator "pe",
        /// `e && r`.
        And "er",
        /// `e || r`.
        Or "er",
        /// Whether the first is from the second to the third, without that if the flag is set.
        InRange "feoo",

        /// `e as t`.
        Cast "et",
        /// A number as one of a type that may be a parameter; see `Front::convert`.
        Convert "et",
        /// A reference as one of another type that rustc lets it stand for.
        Coerce "et",
        /// The field with this name or number.
        Field "se",
        /// The field with this name or number as a pattern binds it: of what is behind a reference, a reference.
        BoundField "se",
        /// Whether an array or a slice has so many elements, or at least so many if the flag is set.
        HasElements "fne",
        /// An element that a pattern names, so many from the start, or before the end if the flag is set.
        ElementAt "fne",
        /// As a pattern binds it: of what is behind a reference, a reference. The second flag: whether a slice is not
        /// behind one, `*x`.
        BoundElement "ffne",
        /// All elements but so many from the start and so many before the end, as a pattern binds them.
        BoundRest "nne",
        /// An element.
        Index "ee",
        /// `&e`, or `&mut e` if the flag is set.
        Address "fe",
        /// `&e[..]`, or `&mut e[..]` if the flag is set.
        WholeSlice "fe",
        /// `&e[a..b]`; mutable if the first flag is set, inclusive if the second is.
        Part "ffeoo",
        /// The part as [`Op::Part`] has it, as an option: none where it is not there.
        PartIf "ffeoo",
        /// A tuple.
        Tuple "E",
        /// An array.
        Array "E",
        /// An array of equal elements.
        Repeat "el",
        /// A struct by its fields, those that are not named from the last.
        Construct "tSo",
        /// `Some(e)`.
        Some "e",
        /// `None`, of a type of options.
        Nothing "t",
        /// `Ok(e)`, of a type of results.
        Ok "te",
        /// `Err(e)`, of a type of results.
        Err "te",
        /// What `?` returns of an option or a result that has no value, as the type.
        Residual "te",
        /// Whether an option has a value, or a result is `Ok`.
        HasValue "e",
        /// The value of an option or a result that has one.
        HeldValue "e",
        /// Memory of the block, as a mutable reference.
        Shared "st",

        /// A call of a device function.
        Call "pTE",
        /// A call of a device function, with the const arguments that are written.
        CallWithConsts "pTKE",
        /// A call of a device function, with all variables as arguments.
        CallWithAll "pT",
        /// A call that may say how its arguments are written, and that.
        Written "se",
        /// A method on a receiver. The flag: whether the receiver is a place; then, when arguments may
        /// change it.
        CallMethod "pfmeTE",
        /// A function that takes closures; each of the last list is [`Op::Closure`] or
        /// [`Op::LetClosure`].
        CallInline "pTEE",
        /// [`Op::CallInline`] with const arguments behind the types.
        CallInlineWithConsts "pTKEE",
        /// A method that takes closures, as [`Op::CallInline`] is a function; its receiver is the first argument.
        CallMethodInline "pTEE",
        /// A call of a closure.
        CallClosure "cE",
        /// A closure, as an argument.
        Closure "c",
        /// Defines a closure; `n` arguments become the variables from `v` on.
        LetClosure "cvnr",

        /// Declares a parameter, as [`Op::Bind`] does a variable.
        Param "stfmv",
        /// A variable of the user's. The flag: whether it is mutable; then, when it needs an address.
        Bind "sfmve",
        /// A variable of the macro's.
        Let "ve",
        /// A variable of the macro's that has its type from what is first assigned to it.
        Slot "v",
        /// A variable of the user's that is assigned later, and when it is in memory, which takes a type.
        Declare "vmu",
        /// Assigns the first to the second, and when it is evaluated before that.
        Assign "mre",
        /// Assigns the result of an operator, with the second on its left.
        AssignOp "mrex",
        /// Evaluates and forgets.
        Discard "e",
        /// Asserts of the function that a condition holds, which its type and const arguments decide.
        StaticAssert "es",

        /// Ends the thread with a message where a condition does not hold.
        Assert "es",
        /// Ends the thread with a message and both values where they are not equal, or if the flag is set where they are.
        AssertEq "fees",
        /// Ends the thread with a message, in a function of its own which gives a value of this type.
        Panic "su",
        /// Ends the thread with a message, in a function that is described in place of a call.
        PanicInPlace "s",

        /// Prints values by a format, in which each place has the number of its value, to the standard error output if the
        /// flag is set.
        Print "fsE",
        /// A region, in a program with debug assertions, of which the constant says whether it is one.
        Debug "er",

        /// `if`.
        If "er",
        /// `if`, `else`.
        IfElse "err",
        /// `while`.
        While "rr",
        /// `loop`.
        Loop "r",
        /// `for` from the first to the second, by the third; inclusive if the first flag is set, reversed if
        /// the second is. Unrolling is 0 for no wish, 1 for never, 2 for fully, otherwise the factor and 2.
        For "ffnveeor",
        /// A region once for each expression.
        ForEach "vEr",
        /// A source of elements: 0 what an expression is, 1 by reference, 2 by mutable reference.
        Items "ne",
        /// How many elements a source has.
        ItemCount "e",
        /// The element of a source with an index that is below its count.
        Item "ee",
        /// The index that is so far from the end of a count: the second from the first.
        CountBack "ee",
        /// How many parts of a size a slice has: 0 one behind the other, 1 one from each element on, 2 one behind the other, of
        /// which the last may be shorter.
        PartCount "nee",
        /// The part with an index that is below that count.
        PartOf "neee",
        /// The least of counts.
        Least "E",
        /// `for` over indices below a count, from another on, by a step; reversed if the flag is set. Unrolling is that
        /// of [`Op::For`].
        ForItems "fnveoor",
        /// Leaves the loop `n` loops out.
        Break "n",
        /// Goes on with the loop `n` loops out.
        Continue "n",
        /// Ends the function.
        Return "",
        /// Ends the function with a value, unless it is `()`.
        ReturnValue "e",

        /// Declares a type parameter: 0 any type, 1 `Num`, 2 `Int`, 3 `Float`.
        DeclareType "sn",
        /// Declares a const parameter.
        DeclareConst "sp",
        /// The launch bounds.
        LaunchBounds "nn",
        /// What an index out of bounds does in a kernel: 0 it ends its thread, 1 it is of the last element.
        Bounds "n",
        /// What floats of the function may do, as bits.
        FastMath "n",
        /// How many registers a thread of a kernel may have.
        MaxRegisters "n",
        /// How loops of a kernel are unrolled that do not say it themselves, as in [`Op::For`].
        Unroll "n",
        /// Up to which cost functions are inlined in a kernel that do not say it themselves.
        InlineThreshold "n",
        /// How calls of the function are to be inlined: 1 as a hint, 2 always, 3 never.
        Inline "n",
        /// An attribute for hooks to read: its name, and whether it holds.
        SayBool "sf",
        /// An attribute for hooks to read: its name, and an integer of 64 bits.
        SayInt "si",
        /// An attribute for hooks to read: its name, and a text.
        SayText "ss",
        /// A const parameter of a function that is described in place of a call, before [`Op::InlineBody`]: its name,
        /// its type.
        InlineConst "sp",
        /// The body of a function that is described in place of a call: its name, its type parameters with
        /// their places among the arguments of the call, the types of its values, the variable of the first
        /// of them, the body. The closures that it takes are its first ones.
        InlineBody "sNTvr",
    }
}

numbered! {
    /// How a type is made, with operands as those of [`Op`].
    pub enum TypeOp else Unit {
        /// `()`.
        Unit "",
        /// A type of the host.
        Pooled "p",
        /// A fixed array.
        Array "tl",
        /// A tuple.
        Tuple "T",
        /// A reference, mutable if the flag is set.
        Reference "ft",
        /// A slice of such elements, mutable if the flag is set.
        Slice "ft",
        /// An `Option` of a value.
        Option "t",
        /// A `Result` of a value or an error.
        Result "tt",
    }
}

/// When something is to be done that only changes of variables ask for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum When {
    /// Nothing changes.
    #[default]
    Never,
    /// Something may change.
    Always,
    /// If one of these methods, by their entries of the pool, changes something.
    Changing(Vec<u32>),
}

impl When {
    /// When one or the other asks for it.
    pub fn or(self, other: When) -> When {
        match (self, other) {
            (When::Always, _) | (_, When::Always) => When::Always,
            (When::Never, when) | (when, When::Never) => when,
            (When::Changing(mut methods), When::Changing(more)) => {
                methods.extend(more);
                When::Changing(methods)
            }
        }
    }
}

/// The length of an array, or a const argument.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Len {
    /// A constant, in the pool.
    Pooled(u32),
    /// A const parameter, by number.
    Param(u32),
}
