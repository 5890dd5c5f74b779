//! Each rule of the verifier is broken by a test: a file of `tests/filetests/verify`, or here, where no
//! text can break it, as the parser gives no such module.

use std::path::{Path, PathBuf};

use kiln_jit_core::ir::{
    self, Axis, Cell, Effects, Entity, Family, FileId, FuncId, Function, GlobalId, Inlined,
    InlinedCall, InstData, IntrinsicDef, Known, Location, Meaning, Module, PtxFunction, Region,
    Scalar, StructData, StructId, Type, TypeData, TypePattern, TypeTable, Value, ValueDef,
};

use crate::intrinsics::find;

/// A kernel with something of each kind, a device function and a constant.
const TEXT: &str = "\
module m specialized
const @c: f32 = \"0000803f\"

kernel @k(%0 n: u32, %1 c: bool) {
  for %2: u32 in %0 .. %0 step %0 {
  }
  %3: u32 = add %0, %0
  if %1 {
  } else {
  }
}

device @f() {
  barrier
}
";

static REFERS_TO_NOTHING: IntrinsicDef = IntrinsicDef::new(
    "refers_to_nothing",
    &[],
    TypePattern::SameAs(0),
    Meaning::Pure(|_, _| 0),
);

static REFERS_TO_ITSELF: IntrinsicDef = IntrinsicDef::new(
    "refers_to_itself",
    &[TypePattern::SameAs(0)],
    TypePattern::SameAs(0),
    Meaning::Pure(|_, args| args[0]),
);

static REFERS_TO_LATER: IntrinsicDef = IntrinsicDef::new(
    "refers_to_later",
    &[
        TypePattern::Vector(&TypePattern::SameAs(1), 4),
        TypePattern::Exact(Scalar::F32),
    ],
    TypePattern::Unit,
    Meaning::Body(|_| None),
);

static WITHOUT_MASK: IntrinsicDef = IntrinsicDef::new(
    "without_mask",
    &[TypePattern::Exact(Scalar::F32)],
    TypePattern::Unit,
    Meaning::Warp(|_, _| [0; 32]),
);

const U32: TypePattern = TypePattern::Exact(Scalar::U32);
const MOVES: IntrinsicDef =
    IntrinsicDef::new("moves", &[U32], U32, Meaning::Pure(|_, args| args[0]));
const WAITS: IntrinsicDef = IntrinsicDef::new(
    "waits",
    &[U32],
    TypePattern::Unit,
    Meaning::Warp(|_, _| [0; 32]),
);

static GIVES_OF_GRID: IntrinsicDef = IntrinsicDef::new(
    "gives_of_grid",
    &[],
    TypePattern::Exact(Scalar::U32),
    Meaning::Grid,
)
.with_effects(Effects::Memory);

static NO_BARRIER: IntrinsicDef = IntrinsicDef::new(
    "no_barrier",
    &[U32],
    TypePattern::Unit,
    Meaning::NamedBarrier { waits: true },
)
.with_effects(Effects::Synchronizes);

static NO_BODY: IntrinsicDef = IntrinsicDef::new(
    "no_body",
    &[TypePattern::Vector(&U32, 4)],
    U32,
    Meaning::Pure(|_, args| args[0]),
);

static EACH_OF_NOTHING: IntrinsicDef = IntrinsicDef::new(
    "each_of_nothing",
    &[TypePattern::Each(&Scalar::ALL)],
    U32,
    Meaning::Pure(|_, args| args[0]),
);

static VIA_F32: IntrinsicDef = IntrinsicDef::new(
    "halves",
    &[TypePattern::Vector(&TypePattern::Exact(Scalar::F16), 4)],
    TypePattern::SameAs(0),
    Meaning::Body(|_| None),
)
.with_cells(&[Cell::via_f32(Family::PTX, Scalar::F16)]);

static NO_INDEX: IntrinsicDef = MOVES.known_as(Known::ThreadIdx(Axis::X));

static NO_WAIT: IntrinsicDef = WAITS
    .with_effects(Effects::Convergent)
    .known_as(Known::WarpSync);

static ASSEMBLY_FOR_ALL: IntrinsicDef =
    MOVES.with_cells(&[Cell::asm(Family::Any, None, "mov.u32 $0, $1;", "=r,r")]);

static FUNCTION_FOR_ALL: IntrinsicDef =
    MOVES.with_cells(&[Cell::function(Family::Any, None, "moves")]);

static PTX_FOR_ALL: IntrinsicDef = MOVES.with_cells(&[Cell::ptx(
    Family::Any,
    None,
    &PtxFunction {
        name: "moves",
        text: "{\nret;\n}\n",
    },
)]);

static CLOBBERS: IntrinsicDef = MOVES.with_cells(&[Cell::asm(
    Family::PTX,
    None,
    "mov.u32 $0, $1;",
    "=r,r,~{memory}",
)]);

static ORDERS_NOTHING: IntrinsicDef = WAITS
    .with_effects(Effects::Synchronizes)
    .with_cells(&[Cell::asm(Family::PTX, None, "bar.warp.sync $0;", "r")]);

/// A type of a larger module.
fn no_type() -> Type {
    let mut types = TypeTable::new();
    let arrays = (1..100).map(|len| types.array(Type::U32, len));
    arrays.last().expect("there are some")
}

fn kernel(module: &mut Module) -> &mut Function {
    &mut module.functions[FuncId::from_index(0)]
}

fn device(module: &mut Module) -> &mut Function {
    &mut module.functions[FuncId::from_index(1)]
}

/// Says that a value is defined by something else.
fn redefine(module: &mut Module, value: usize, def: ValueDef) {
    kernel(module).values[Value::from_index(value)].def = def;
}

/// What breaks a rule, and what the verifier says.
type Broken = (&'static str, fn(&mut Module));

const BROKEN: &[Broken] = &[
    ("a declaration has no body", |m| {
        device(m).is_declaration = true;
    }),
    ("a type is not of this module", |m| {
        kernel(m).result = no_type();
    }),
    ("a value does not exist: number 99", |m| {
        kernel(m).params[0].value = Value::from_index(99);
    }),
    ("it has more than 512 parameters; use a struct", |m| {
        for _ in 0..512 {
            kernel(m).add_param("p", Type::U32, Location::unknown());
        }
    }),
    ("it has more than 200000 instructions; split it", |m| {
        let body = kernel(m).body;
        for _ in 0..200_000 {
            kernel(m).append(body, InstData::Barrier, Type::UNIT, Location::unknown());
        }
    }),
    ("there is no parameter 7", |m| {
        redefine(m, 0, ValueDef::Param(7));
    }),
    ("the region of the body does not exist", |m| {
        device(m).body = Region::from_index(99);
    }),
    ("region2 is held twice", |m| {
        for (_, node) in kernel(m).insts.iter_mut() {
            if let InstData::If {
                then_region,
                else_region,
                ..
            } = &mut node.data
            {
                *else_region = Some(*then_region);
            }
        }
    }),
    ("regions nest more than 128 deep; split the function", |m| {
        let mut region = kernel(m).body;
        for _ in 0..129 {
            let body = kernel(m).regions.push(Default::default());
            let data = InstData::Loop { body };
            kernel(m).append(region, data, Type::UNIT, Location::unknown());
            region = body;
        }
    }),
    ("the instruction is placed twice", |m| {
        let body = device(m).body;
        let first = device(m).regions[body].insts[0];
        device(m).regions[body].insts.push(first);
    }),
    ("parameter `n` is defined elsewhere, too", |m| {
        redefine(m, 0, ValueDef::Param(1));
    }),
    ("the index is defined elsewhere, too", |m| {
        redefine(m, 2, ValueDef::Param(0));
    }),
    ("the result is defined elsewhere, too", |m| {
        redefine(m, 3, ValueDef::Param(0));
    }),
    (
        "the row of intrinsic `refers_to_nothing` refers to no parameter before that which refers to it",
        |m| {
            m.intrinsics.push(&REFERS_TO_NOTHING);
        },
    ),
    (
        "the row of intrinsic `refers_to_itself` refers to no parameter before that which refers to it",
        |m| {
            m.intrinsics.push(&REFERS_TO_ITSELF);
        },
    ),
    (
        "the row of intrinsic `refers_to_later` refers to no parameter before that which refers to it",
        |m| {
            m.intrinsics.push(&REFERS_TO_LATER);
        },
    ),
    (
        "the row of intrinsic `without_mask` is of a warp, and its first parameter is no `u32`, the \
         member mask",
        |m| {
            m.intrinsics.push(&WITHOUT_MASK);
        },
    ),
    (
        "the row of intrinsic `no_body` takes or gives more than scalars, and its meaning is no function of \
         the IR; give it a `Meaning::Body`",
        |m| {
            m.intrinsics.push(&NO_BODY);
        },
    ),
    (
        "the row of intrinsic `gives_of_grid` waits for the grid, and gives something or does not say that it accesses \
         memory; let it give nothing, with the effects `Memory`",
        |m| {
            m.intrinsics.push(&GIVES_OF_GRID);
        },
    ),
    (
        "the row of intrinsic `no_barrier` is a named barrier, and does not take two `u32` and give nothing, with the \
         effects `Synchronizes`; let it do so",
        |m| {
            m.intrinsics.push(&NO_BARRIER);
        },
    ),
    (
        "the row of intrinsic `each_of_nothing` is executed for each number of a value, and its result is none of \
         that type; let it be `TypePattern::Chosen`",
        |m| {
            m.intrinsics.push(&EACH_OF_NOTHING);
        },
    ),
    (
        "the row of intrinsic `halves` goes through `f32`, and takes or gives more than scalars",
        |m| {
            m.intrinsics.push(&VIA_F32);
        },
    ),
    (
        "the row of intrinsic `moves` says that it is `ThreadIdx(X)`, and has not the parameters, the result, \
         the effects and the kind of meaning of that; leave out `known_as`, and it is what its cells and its \
         meaning say",
        |m| {
            m.intrinsics.push(&NO_INDEX);
        },
    ),
    (
        "the row of intrinsic `waits` says that it is `WarpSync`",
        |m| {
            m.intrinsics.push(&NO_WAIT);
        },
    ),
    (
        "the row of intrinsic `moves` has inline assembly in a cell that is not for a family of GPUs; a CPU \
         needs no cell, it calls the meaning",
        |m| {
            m.intrinsics.push(&ASSEMBLY_FOR_ALL);
        },
    ),
    (
        "the row of intrinsic `moves` has a function in PTX in a cell that is not for NVIDIA's GPUs; give it the \
         family `Family::Ptx`",
        |m| {
            m.intrinsics.push(&PTX_FOR_ALL);
        },
    ),
    (
        "the row of intrinsic `moves` has a function in a cell that is not for a family of GPUs; a CPU needs no \
         cell, it calls the meaning",
        |m| {
            m.intrinsics.push(&FUNCTION_FOR_ALL);
        },
    ),
    (
        "the row of intrinsic `moves` has inline assembly that clobbers memory (`~{memory}`), and effects \
         that leave memory alone; give it the effects `Memory` or `Synchronizes`",
        |m| {
            m.intrinsics.push(&CLOBBERS);
        },
    ),
    (
        "the row of intrinsic `waits` synchronizes, and its inline assembly does not say so; add `~{memory}` \
         to the constraints",
        |m| {
            m.intrinsics.push(&ORDERS_NOTHING);
        },
    ),
    ("there are two functions named `f`", |m| {
        let again = device(m).clone();
        m.functions.push(again);
    }),
    ("there are two constants named `c`", |m| {
        let again = m.globals[GlobalId::from_index(0)].clone();
        m.globals.push(again);
    }),
    ("the type of constant `c` is not of this module", |m| {
        m.globals[GlobalId::from_index(0)].ty = no_type();
    }),
    ("the type of hidden value `n` is not of this module", |m| {
        m.add_hidden("hook", "n", no_type());
    }),
    ("file99 of hidden value `n` does not exist", |m| {
        let id = m.add_hidden("hook", "n", Type::U32);
        m.hidden[id].location = Location {
            file: FileId::from_index(99),
            line: 1,
            column: 1,
            inlined: None,
        };
    }),
    ("inlined7 does not exist", |m| {
        let kernel = FuncId::from_index(0);
        m.functions[kernel].location.inlined = Some(Inlined::from_index(7));
    }),
    ("file99 of an inlined call of `f` does not exist", |m| {
        let at = Location {
            file: FileId::from_index(99),
            line: 1,
            column: 1,
            inlined: None,
        };
        let function = "f".into();
        m.inlined_call(InlinedCall { function, at });
    }),
    (
        "an inlined call of `f` is in the body of one that does not come before it",
        |m| {
            let at = Location {
                inlined: Some(Inlined::from_index(0)),
                ..Location::unknown()
            };
            let function = "f".into();
            m.inlined_call(InlinedCall { function, at });
        },
    ),
    ("is a struct of another module", |m| {
        m.types.intern(TypeData::Struct(StructId::from_index(50)));
    }),
    ("nests more than 64 deep", |m| {
        let mut ty = Type::F32;
        for _ in 0..65 {
            ty = m.types.array(ty, 1);
        }
    }),
    ("has more than 4096 parts", |m| {
        let mut ty = Type::F32;
        for i in 0..13 {
            let field = |name: &str| (name.to_owned(), ty);
            let fields = vec![field("a"), field("b")];
            let name = format!("S{i}");
            ty = m.types.intern_struct(StructData::new(name, fields));
        }
    }),
];

/// Texts that the verifier says of no module, each with the reason.
const NEVER_SAID: &[(&str, &str)] = &[
    (
        "there is no const parameter {param}",
        "that entities exist is seen to before",
    ),
    (
        "it takes no such operands",
        "the rule of the operation has said what is wrong with them",
    ),
];

#[test]
fn what_no_text_can_break_is_refused() {
    for (says, change) in BROKEN {
        let mut module = ir::parse(TEXT, &find).expect("it can be read");
        ir::verify(&module).expect("it is right");
        change(&mut module);
        let errors = ir::verify(&module).expect_err(says).errors;
        let found = errors.iter().any(|error| error.message.contains(says));
        assert!(found, "`{says}` is not in {errors:?}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of a folder with these last letters, and what they hold.
fn files(folder: &Path, extension: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| path.extension().is_some_and(|e| e == extension));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        (path.display().to_string(), text)
    };
    files.map(read).collect()
}

/// The strings of several words in code, comments and tests left out.
fn sentences(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: Vec<&str> = code.collect();
    let (mut sentences, mut inside, mut escaped) = (Vec::new(), None::<String>, false);
    for c in code.join("\n").chars() {
        match (&mut inside, c) {
            (None, '"') => inside = Some(String::new()),
            (None, _) => {}
            (Some(_), '\\') if !escaped => escaped = true,
            (Some(sentence), '"') if !escaped => {
                sentences.push(std::mem::take(sentence));
                inside = None;
            }
            // A line that goes on in the next one.
            (Some(_), '\n') if escaped => {}
            (Some(_), ' ') if escaped => {}
            (Some(sentence), c) => {
                escaped = false;
                sentence.push(c);
            }
        }
    }
    sentences.retain(|sentence| sentence.contains(' '));
    sentences
}

/// Whether a message is of the form that a sentence with `{..}` in it gives.
fn is_of(message: &str, sentence: &str) -> bool {
    let mut rest = message;
    let parts = sentence.split('{').map(|part| part.rsplit('}').next());
    parts.flatten().all(|part| {
        let at = rest.find(part);
        rest = at.map_or("", |at| &rest[at + part.len()..]);
        at.is_some()
    })
}

/// A rule that no test breaks is a rule that nobody tests.
#[test]
fn every_rule_is_broken_by_a_test() {
    let folder = root().join("tests/filetests/verify");
    let mut said: Vec<String> = BROKEN.iter().map(|(says, _)| (*says).to_owned()).collect();
    for (path, text) in files(&folder, "kir") {
        let announced = text
            .lines()
            .flat_map(|line| line.split("; error: ").skip(1));
        let announced: Vec<String> = announced.map(|message| message.trim().to_owned()).collect();
        let is_clean = path.ends_with("clean.kir");
        assert_ne!(
            announced.is_empty(),
            !is_clean,
            "{path}: the errors that it expects"
        );
        said.extend(announced);
    }
    let mut rules = 0;
    let mut missing = Vec::new();
    for (path, text) in files(&root().join("jit-core/ir/src/verify"), "rs") {
        // How a list of errors reads is no rule.
        if path.ends_with("/mod.rs") {
            continue;
        }
        for sentence in sentences(&text) {
            rules += 1;
            let is_said = said.iter().any(|message| is_of(message, &sentence));
            let never = NEVER_SAID.iter().any(|(known, _)| *known == sentence);
            assert!(!(is_said && never), "`{sentence}` is said");
            if !is_said && !never {
                missing.push(format!("{path}: `{sentence}`"));
            }
        }
    }
    assert!(rules > 100, "{rules} sentences are too few");
    assert!(
        missing.is_empty(),
        "no file of {} expects\n{}",
        folder.display(),
        missing.join("\n")
    );
}
