//! The printer, the parser and the verifier return on any input, and agree with each other.
//!
//! Texts and modules are the `.kir` files of `tests/filetests`, changed at random. The seed is
//! fixed, printed, and can be given as `KILN_SEED`.

use std::path::Path;

use kiln_jit_core::ir::{
    self, AddressSpace, BinaryOp, Effects, Entity, Function, FunctionKind, InstData, IntrinsicDef,
    Location, Meaning, Module, Phase, Scalar, StructData, StructId, Type, TypeData, TypePattern,
    TypeTable, Uniformity, Value,
};

use crate::intrinsics::find;
use crate::mutation::{Random, mutate};

/// The texts of all `.kir` files.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/filetests");
    let mut texts = Vec::new();
    for folder in ["text", "verify"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder exists");
        let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.sort();
        for path in paths {
            texts.push(std::fs::read_to_string(path).expect("the file can be read"));
        }
    }
    texts
}

/// Prints and reads a module again: the text is the same, and so is the verdict.
fn round_trip(module: &Module) {
    let text = module.to_string();
    let own = |name: &str| -> Option<&'static IntrinsicDef> {
        module.intrinsics.values().copied().find(|d| d.name == name)
    };
    let again = ir::parse(&text, &own).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.to_string(), text);
    if let Err(errors) = ir::verify(&again) {
        panic!("verifies only before it is printed: {errors}\n{text}");
    }
}

#[test]
fn mangled_modules_are_refused_or_right() {
    let mut random = Random::seeded();
    let modules: Vec<Module> = texts()
        .iter()
        .filter_map(|text| ir::parse(text, &find).ok())
        .collect();
    assert!(modules.len() > 15);
    let mut accepted = 0;
    for i in 0..20_000 {
        let mut module = modules[i % modules.len()].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut random, &mut module);
        }
        match ir::verify(&module) {
            Ok(()) => {
                accepted += 1;
                round_trip(&module);
            }
            Err(errors) => {
                assert!(!errors.errors.is_empty());
                assert!(errors.to_string().len() > 20);
                // What is refused can be printed, too.
                let _ = module.to_string();
            }
        }
    }
    // A mutation that nothing notices is as useless as one that everything notices.
    println!("{accepted} of 20000 modules verify");
    assert!(
        (500..15_000).contains(&accepted),
        "{accepted} modules verify"
    );
}

#[test]
fn mutated_texts_are_refused_or_read() {
    let mut random = Random::seeded();
    let texts = texts();
    let pieces: Vec<&str> = texts.iter().flat_map(|t| t.split(' ')).collect();
    let mut read = 0;
    for i in 0..20_000 {
        let mut text = texts[i % texts.len()].clone();
        for _ in 0..=random.below(3) {
            let at = text.floor_char_boundary(random.below(text.len() + 1));
            let end = text.floor_char_boundary((at + random.below(12)).min(text.len()));
            match random.below(4) {
                0 => text.replace_range(at..end, ""),
                1 => text.insert_str(at, pieces[random.below(pieces.len())]),
                2 => {
                    let part = text[at..end].to_owned();
                    text.insert_str(at, &part);
                }
                _ => text.insert(at, char::from(random.below(128) as u8)),
            }
        }
        if let Ok(module) = ir::parse(&text, &find) {
            read += 1;
            let printed = module.to_string();
            let again = ir::parse(&printed, &find).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            assert_eq!(again.to_string(), printed);
            let _ = ir::verify(&module);
        }
    }
    println!("{read} of 20000 texts can be read");
    assert!((200..19_000).contains(&read), "{read} texts can be read");
}

#[test]
fn byte_soup_is_refused() {
    let mut random = Random::seeded();
    let alphabet = b"module kernel@(){}[]<>%$#!;:=,.-\"\\ 0123456789xfe\n\t\0ptr";
    for _ in 0..20_000 {
        let length = random.below(80);
        let mut bytes: Vec<u8> = (0..length)
            .map(|_| match random.below(10) {
                0 => random.below(256) as u8,
                _ => alphabet[random.below(alphabet.len())],
            })
            .collect();
        if random.below(2) == 0 {
            bytes.splice(0..0, *b"module m generic ");
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = ir::parse(&text, &find) {
            assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
        }
    }
}

/// The error of a text that cannot be read.
fn refusal(text: &str) -> String {
    match ir::parse(text, &find) {
        Ok(module) => panic!("read as\n{module}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_a_text_may_not_say() {
    let body = |lines: &str| format!("module m generic\nkernel @k(%0 a: f32) {{\n{lines}\n}}");
    let top = |line: &str| format!("module m generic\n{line}");
    let open = "module m generic\nkernel @k() {";
    for (text, wanted) in [
        (
            String::new(),
            "1:1: expected `module`, found the end of the text",
        ),
        (
            "module m".into(),
            "1:9: expected a phase (generic, specialized, legal), found the end of the text",
        ),
        (
            top("func @f"),
            "2:1: expected a declaration or a function, found `func`",
        ),
        (
            top("file 0 \"a\" file 0 \"b\""),
            "2:17: file 0 is declared twice",
        ),
        (
            top("file 4294967296 \"a\""),
            "2:6: expected the number of the file, found `4294967296`",
        ),
        (top("file 0 \"a"), "2:8: the string has no end on its line"),
        (
            top("file 0 \"\\q\""),
            r#"2:9: the escapes are \", \\ and \u{..} with a character's code"#,
        ),
        (
            top("file 0 \"\\u{d800}\""),
            r#"2:9: the escapes are \", \\ and \u{..} with a character's code"#,
        ),
        (
            top("const @c: f32 = \"0\""),
            "2:17: bytes are written as pairs of hexadecimal digits",
        ),
        (
            top("const @c: f32 = \"0g\""),
            "2:17: bytes are written as pairs of hexadecimal digits",
        ),
        (
            top("const @c: @S = \"\""),
            "2:11: there is no struct `@S` above",
        ),
        (
            top("struct @S { a: @S }"),
            "2:16: there is no struct `@S` above",
        ),
        (
            top("struct @S { a: f32 } struct @S { }"),
            "2:29: `@S` is declared twice",
        ),
        (
            top("kernel @k() {} device @k() {}"),
            "2:23: `@k` is defined twice",
        ),
        (
            top("declare device @f(%0 a: f32, %0 b: f32)"),
            "2:30: `%0` is defined twice",
        ),
        (
            top("declare device @f<$1 T: any>()"),
            "2:19: parameters are numbered in order; this is 0",
        ),
        (
            top("declare device @f<$0 T: some>()"),
            "2:25: expected a bound (any, num, int, float), found `some`",
        ),
        (
            top("declare device @f(%0 a: f33)"),
            "2:25: there is no type `f33`",
        ),
        (
            top("declare device @f(%0 a: ptr<vram, f32>)"),
            "2:29: expected an address space (generic, global, shared, constant, local, param), found `vram`",
        ),
        (
            top("declare device @f(%0 a: [f32; -1])"),
            "2:31: expected the length of the array, found `-1`",
        ),
        (
            top("declare device @f(%4294967295 a: f32)"),
            "2:19: a number below 4294967295 belongs after `%`, `$` and `#`",
        ),
        (
            top("kernel @k() launch_bounds(-1, 0) {}"),
            "2:27: expected the number of threads, found `-1`",
        ),
        (
            top("kernel @k() attribute(fast, fast = false) {}"),
            "2:29: the attribute `fast` is given twice",
        ),
        (
            top("kernel @k() attribute(unroll = 1.5) {}"),
            "2:32: expected `true`, `false`, an integer or text, found `1.5`",
        ),
        (body("return %1"), "3:8: `%1` is defined nowhere"),
        (body("%0: f32 = const 1"), "3:1: `%0` is defined twice"),
        (
            body("%1: f32 = const 170141183460469231731687303715884105728"),
            "3:17: expected a number, `true`, `false`, `zero` or `bits 0x...`, found `170141183460469231731687303715884105728`",
        ),
        (
            body("%1: f32 = const 1e999"),
            "3:17: expected a number, `true`, `false`, `zero` or `bits 0x...`, found `1e999`",
        ),
        (
            body("%1: f32 = const bits 0x10000000000000000"),
            "3:17: expected a number, `true`, `false`, `zero` or `bits 0x...`, found `bits`",
        ),
        (
            body("%1: f32 = frobnicate %0"),
            "3:11: there is no instruction `frobnicate`",
        ),
        (body("%1: f32 = get var0"), "3:15: `var0` is not declared"),
        (
            body("%1: f32 = shared_addr var0"),
            "3:23: expected a variable such as `shared0`, found `var0`",
        ),
        (
            body("var var1 a: f32"),
            "3:5: expected `var0`, the next of its kind, found `var1`",
        ),
        (
            body("%1: f32 = global_addr @c"),
            "3:23: there is no constant `@c` above",
        ),
        (body("call @f()"), "3:6: there is no function `@f`"),
        (
            body("intrinsic warp.shout()"),
            "3:11: there is no intrinsic `warp.shout`",
        ),
        (body("barrier !0:1:1"), "3:9: file 0 is not declared"),
        (
            body("if %0 { } else barrier"),
            "3:16: expected `{`, found `barrier`",
        ),
        (
            body("loop { } else { }"),
            "3:10: there is no instruction `else`",
        ),
        (body("~"), "3:1: '~' has no meaning here"),
        (
            open.into(),
            "2:14: expected an instruction, found the end of the text",
        ),
    ] {
        assert_eq!(refusal(&text), wanted, "\n{text}");
    }
}

#[test]
fn deep_nesting_is_refused_in_time() {
    let deep = |open: &str, close: &str, levels: usize| open.repeat(levels) + &close.repeat(levels);
    let regions = |levels| {
        format!(
            "module m generic\nkernel @k() {{\n{}\n}}",
            deep("loop {", "}", levels)
        )
    };
    assert!(ir::parse(&regions(128), &find).is_ok());
    assert!(refusal(&regions(129)).ends_with("regions nest at most 128 deep; split the function"));
    assert!(refusal(&regions(100_000)).contains("128 deep"));
    let types = "[".repeat(100_000);
    let text = format!("module m generic\ndeclare device @f(%0 a: {types}");
    assert!(refusal(&text).ends_with("types nest at most 64 deep"));
    let struct_chain: String = (1..5_000)
        .map(|i| format!("struct @S{i} {{ a: @S{} }}\n", i - 1))
        .collect();
    let text = format!(
        "module m generic\nstruct @S0 {{ a: f32 }}\n{struct_chain}declare device @f(%0 a: @S4999)"
    );
    let module = ir::parse(&text, &find).expect("a chain of structs is no nesting of the text");
    assert!(ir::verify(&module).is_err());
    assert_eq!(module.to_string().lines().count(), 5_003);
}

#[test]
fn numbers_and_space_of_a_text_do_not_matter() {
    let canonical = "module m generic\nfile 0 \"b\"\nfile 1 \"a\"\nstruct @S { x: f32 }\n\n\
        kernel @k(%0 a: f32, %1 s: @S !0:1:2) {\n  %2: f32 = neg %0 !1:3:4\n  return\n}\n";
    let text = "module \"m\" generic file 9 \"a\" file 3 \"b\" file 4 \"c\" struct @T { y: u8 }\n\
        struct @S { x : f32 } ; a comment; [with; brackets\n\
        kernel@k(%7 a:f32,%100 s:@S!3:1:2){%5:f32=neg%7!9:3:4 return}";
    let module = ir::parse(text, &find).expect("it can be read");
    assert_eq!(module.to_string(), canonical);
}

#[test]
fn equal_names_of_structs_are_told_apart() {
    let mut module = Module::new("m");
    let mut function = Function::new("f", FunctionKind::Device, Location::unknown());
    for (i, field) in [Type::F32, Type::F64].into_iter().enumerate() {
        let fields = vec![("x".to_owned(), field)];
        let name = "Pair".to_owned();
        let ty = module.types.intern_struct(StructData::new(name, fields));
        function.add_param(format!("p{i}"), ty, Location::unknown());
    }
    function.is_declaration = true;
    module.functions.push(function);
    round_trip(&module);
    assert!(module.to_string().contains("%1 p1: @Pair.1)"), "{module}");
}

#[test]
fn what_is_not_placed_is_not_printed() {
    let text = "module m generic\n\ndevice @f(%0 a: f32) {\n  %1: f32 = neg %0\n}\n";
    let mut module = ir::parse(text, &find).expect("it can be read");
    let function = module.functions.iter_mut().next().expect("a function").1;
    let args = [Value::from_index(1), Value::from_index(0)];
    let data = InstData::Binary {
        op: BinaryOp::Add,
        args,
    };
    function.new_inst(data, Type::F32, Location::unknown());
    ir::verify(&module).expect("what is not placed has no meaning");
    assert_eq!(module.to_string(), text);
}

#[test]
fn locations_of_a_file_are_its_lines() {
    let text = "module m generic\n\ndevice @f(%0 a: f32) {\n  %1: f32 = neg %0\n}\n";
    let module = ir::parse_file("f.kir", text, &find).expect("it can be read");
    let function = module.functions.values().next().expect("a function");
    let inst = function.insts.values().next().expect("an instruction");
    assert_eq!(module.display_location(inst.location), "f.kir:4:3");
    assert_eq!(module.display_location(function.location), "f.kir:3:1");
}

/// A type of another table with an index that the table of a test reaches only later.
fn foreign_type(index: usize) -> Type {
    let mut other = TypeTable::new();
    (0..index)
        .map(|n| other.array(Type::F32, n as u64 + 1))
        .last()
        .expect("some")
}

#[test]
fn types_that_contain_themselves_are_refused() {
    let pointer = |pointee| TypeData::Pointer {
        pointee,
        space: AddressSpace::Global,
        mutable: false,
    };
    let mut module = Module::new("m");
    module.types.intern(pointer(foreign_type(1)));
    let errors = ir::verify(&module).expect_err("a pointer to itself");
    assert!(
        errors.errors[0]
            .message
            .ends_with("is made of nothing, or of a type entered after it")
    );
    let mut module = Module::new("m");
    let fields = vec![("x".to_owned(), foreign_type(1))];
    let ty = module
        .types
        .intern_struct(StructData::new("S".to_owned(), fields));
    let mut function = Function::new("f", FunctionKind::Device, Location::unknown());
    function.add_param("s", ty, Location::unknown());
    module.functions.push(function);
    ir::verify(&module).expect_err("a struct in itself");
    assert!(
        module.to_string().contains("struct @S { x: @S }"),
        "{module}"
    );
    let mut module = Module::new("m");
    module
        .types
        .intern(TypeData::Struct(StructId::from_index(7)));
    let errors = ir::verify(&module).expect_err("a struct of nowhere");
    assert!(
        errors.errors[0]
            .message
            .ends_with("is a struct of another module")
    );
}

#[test]
fn types_that_double_are_refused_in_time() {
    let mut module = Module::new("m");
    let mut ty = Type::F32;
    for i in 0..60 {
        let fields = vec![("a".to_owned(), ty), ("b".to_owned(), ty)];
        ty = module
            .types
            .intern_struct(StructData::new(format!("S{i}"), fields));
    }
    let errors = ir::verify(&module).expect_err("2^60 parts");
    assert!(
        errors.errors[0]
            .message
            .ends_with("has more than 4096 parts"),
        "{errors}"
    );
}

#[test]
fn two_functions_of_one_name_are_refused() {
    let mut module = Module::new("m");
    for _ in 0..2 {
        module.functions.push(Function::new(
            "f",
            FunctionKind::Device,
            Location::unknown(),
        ));
    }
    let errors = ir::verify(&module).expect_err("two functions");
    assert_eq!(
        errors.errors[0].message,
        "there are two functions named `f`"
    );
}

#[test]
fn a_warp_row_without_a_mask_is_refused() {
    static ROW: IntrinsicDef = IntrinsicDef::new(
        "maskless",
        &[TypePattern::Exact(Scalar::F32)],
        TypePattern::Unit,
        Meaning::Warp(|_, _| [0; 32]),
    )
    .with_uniformity(Uniformity::Warp)
    .with_effects(Effects::Convergent);
    let mut module = Module::new("rows");
    module.intrinsics.push(&ROW);
    let errors = ir::verify(&module).expect_err("a row without a mask");
    assert_eq!(
        errors.errors[0].message,
        "the row of intrinsic `maskless` is of a warp, and its first parameter is no `u32`, the \
         member mask"
    );
}

#[test]
fn too_much_is_refused() {
    let mut module = Module::new("m");
    let mut function = Function::new("f", FunctionKind::Device, Location::unknown());
    for i in 0..513 {
        function.add_param(format!("p{i}"), Type::F32, Location::unknown());
    }
    let mut region = function.body;
    for _ in 0..129 {
        let body = function.regions.push(Default::default());
        function.append(
            region,
            InstData::Loop { body },
            Type::UNIT,
            Location::unknown(),
        );
        region = body;
    }
    for _ in 0..200_000 {
        function.append(region, InstData::Barrier, Type::UNIT, Location::unknown());
    }
    module.functions.push(function);
    let errors = ir::verify(&module).expect_err("too much");
    let messages: Vec<&str> = errors.errors.iter().map(|e| e.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "it has more than 512 parameters; use a struct",
            "it has more than 200000 instructions; split it",
            "regions nest more than 128 deep; split the function",
        ]
    );
}

#[test]
fn errors_are_shown_in_the_text() {
    let text = "module m specialized\n\nkernel @k(%0 a: f32, %1 c: bool) {\n  %2: f32 = neg %0\n\
        \x20 %3: f32 = neg %2\n  %4: f32 = neg %3\n  %5: f32 = neg %4\n  %6: u32 = neg %5\n  if %0 {\n\
        \x20   return\n  }\n  barrier\n  barrier\n  barrier\n  barrier\n}\n";
    let module = ir::parse_file("k.kir", text, &find).expect("it can be read");
    assert_eq!(module.phase, Phase::Specialized);
    let errors = ir::verify(&module).expect_err("two errors").to_string();
    let wanted = "\
`m` breaks 2 rules of the IR
  k.kir:8:3: in `k`: it gives a `f32`, and its result is a `u32`
  k.kir:9:3: in `k`: the condition is a `bool`, not `f32`
kernel @k(%0 a: f32, %1 c: bool) {
  ...
  %4: f32 = neg %3
  %5: f32 = neg %4
  %6: u32 = neg %5
  ; error: it gives a `f32`, and its result is a `u32`
  if %0 {
  ; error: the condition is a `bool`, not `f32`
    return
  }
  barrier
  ...";
    assert_eq!(errors, wanted);
}
