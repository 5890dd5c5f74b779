//! Rewriting: what a cursor does while it walks is what single changes do, and the module verifies.

use expect_test::expect;
use kiln_ir::{
    BinaryOp, Constant, Cursor, Entity, Function, Inst, InstData, InstNode, IntrinsicDef, Meaning,
    Module, Region, Scalar, StillUsed, Type, TypePattern, Value, parse, verify,
};

/// Regions in regions, and values used near and far.
const NESTED: &str = "\
module m specialized

kernel @k(%0 x: slice<generic, mut u32>, %1 n: u32, %2 c: bool) {
  %3: u32 = const 1
  %4: u32 = add %1, %3
  %5: ptr<generic, mut u32> = slice_index %0, %4
  if %2 {
    %6: u32 = mul %4, %3
    store %5, %6
    for %7: u32 in %3 .. %4 step %3 {
      %8: u32 = add %7, %6
      %9: u32 = sub %8, %4
      store %5, %9
      if %2 {
        %10: u32 = add %9, %9
        store %5, %10
      } else {
        %11: u32 = xor %9, %1
        break 0
      }
      %12: u32 = min %8, %9
    }
    %13: u32 = max %6, %4
  } else {
    loop {
      %14: u32 = or %4, %1
      store %5, %14
      break 0
    }
  }
  %15: u32 = add %4, %4
  store %5, %15
}
";

fn module(text: &str) -> Module {
    let module = parse(text, &|_| None).expect("it is right");
    verify(&module).expect("it verifies");
    module
}

fn kernel(module: &Module) -> &Function {
    &module.functions[module.kernel().expect("there is one")]
}

fn value(number: usize) -> Value {
    Entity::from_index(number)
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

/// A change at the instruction that a walk is at.
#[derive(Copy, Clone, Debug)]
enum Change {
    Before,
    After,
    AtEnd,
    Replace(Value, Value),
    ReplaceExcept(Value, Value, Inst),
    ReplaceBy(Value),
    Operand(Value),
    Erase,
    EraseOther(Inst),
}

impl Change {
    /// One that may be made at any instruction of `function`, among whose values are `values`.
    fn any(numbers: &mut Numbers, values: &[Value], plain: &[Inst]) -> Change {
        let (a, b) = (
            values[numbers.below(values.len())],
            values[numbers.below(values.len())],
        );
        let inst = plain[numbers.below(plain.len())];
        match numbers.below(9) {
            0 => Change::Before,
            1 => Change::After,
            2 => Change::AtEnd,
            3 => Change::Replace(a, b),
            4 => Change::ReplaceExcept(a, b, inst),
            5 => Change::ReplaceBy(a),
            6 => Change::Operand(a),
            7 => Change::Erase,
            _ => Change::EraseOther(inst),
        }
    }

    /// Whether the walk is then at no instruction.
    fn ends(self, here: Inst, refused: bool) -> bool {
        match self {
            Change::ReplaceBy(_) => true,
            Change::Erase => !refused,
            Change::EraseOther(inst) => inst == here && !refused,
            _ => false,
        }
    }
}

/// What walks over a function and changes it.
trait Changes {
    fn next(&mut self) -> Option<Inst>;
    /// The constant that it inserts, if it does; whether it has refused.
    fn make(&mut self, change: Change) -> (Option<Value>, Option<StillUsed>);
}

impl Changes for Cursor<'_> {
    fn next(&mut self) -> Option<Inst> {
        self.next_inst()
    }

    fn make(&mut self, change: Change) -> (Option<Value>, Option<StillUsed>) {
        let inserted = match change {
            Change::Before => self.ins().constant(9u32),
            Change::After => self.ins_after().constant(9u32),
            Change::AtEnd => {
                let region = self.region();
                self.ins_at_end(region).constant(9u32)
            }
            Change::Replace(old, new) => {
                self.replace_uses(old, new);
                return (None, None);
            }
            Change::ReplaceExcept(old, new, inst) => {
                self.replace_uses_except(old, new, &[inst]);
                return (None, None);
            }
            Change::ReplaceBy(value) => {
                self.replace_by(value);
                return (None, None);
            }
            Change::Operand(value) => {
                self.set_operand(0, value);
                return (None, None);
            }
            Change::Erase => return (None, self.erase().err()),
            Change::EraseOther(inst) => return (None, self.erase_inst(inst).err()),
        };
        (Some(inserted), None)
    }
}

/// The same one by one, each at the cost of a walk.
struct Plainly<'f> {
    function: &'f mut Function,
    ahead: std::vec::IntoIter<Inst>,
    here: Option<Inst>,
    /// How many were inserted after it.
    after: usize,
}

impl Plainly<'_> {
    fn of(function: &mut Function) -> Plainly<'_> {
        let mut insts = Vec::new();
        function.for_each_inst(|_, inst| insts.push(inst));
        Plainly {
            function,
            ahead: insts.into_iter(),
            here: None,
            after: 0,
        }
    }

    fn here(&self) -> (Region, usize) {
        let here = self.here.expect("it is at one");
        self.place(here).expect("it is there")
    }

    fn place(&self, inst: Inst) -> Option<(Region, usize)> {
        let mut place = None;
        self.function.for_each_inst(|region, other| {
            if other == inst {
                let list = &self.function.regions[region].insts;
                place = list.iter().position(|&i| i == inst).map(|at| (region, at));
            }
        });
        place
    }

    fn constant(&mut self, region: Region, position: usize) -> Value {
        let here = self.here.expect("it is at one");
        let at = self.function.insts[here].location;
        let nine = InstData::Const(Constant::Int(9));
        let inst = self.function.new_inst(nine, Type::U32, at);
        self.function.regions[region].insts.insert(position, inst);
        self.function.insts[inst].result.expect("a constant")
    }
}

impl Changes for Plainly<'_> {
    fn next(&mut self) -> Option<Inst> {
        self.after = 0;
        self.here = loop {
            match self.ahead.next() {
                Some(inst) if self.place(inst).is_none() => {}
                next => break next,
            }
        };
        self.here
    }

    fn make(&mut self, change: Change) -> (Option<Value>, Option<StillUsed>) {
        let inst = self.here.expect("it is at one");
        let (region, position) = self.here();
        let inserted = match change {
            Change::Before => self.constant(region, position),
            Change::After => {
                self.after += 1;
                self.constant(region, position + self.after)
            }
            Change::AtEnd => {
                let end = self.function.regions[region].insts.len();
                self.constant(region, end)
            }
            Change::Replace(old, new) => {
                self.function.replace_uses(old, new);
                return (None, None);
            }
            Change::ReplaceExcept(old, new, inst) => {
                self.function.replace_uses_except(old, new, &[inst]);
                return (None, None);
            }
            Change::ReplaceBy(value) => {
                if let Some(result) = self.function.insts[inst].result {
                    self.function.replace_uses(result, value);
                }
                self.function.regions[region].insts.remove(position);
                return (None, None);
            }
            Change::Operand(value) => {
                let mut first = true;
                let data = &mut self.function.insts[inst].data;
                data.map_operands(|v| match std::mem::take(&mut first) {
                    true => value,
                    false => v,
                });
                return (None, None);
            }
            Change::Erase => return (None, self.function.erase(inst).err()),
            Change::EraseOther(inst) => return (None, self.function.erase(inst).err()),
        };
        (Some(inserted), None)
    }
}

/// Walks and changes; what was refused.
fn change(
    walk: &mut dyn Changes,
    seed: u64,
    mut values: Vec<Value>,
    plain: &[Inst],
) -> Vec<StillUsed> {
    let mut numbers = Numbers(seed);
    let mut refused = Vec::new();
    while let Some(here) = walk.next() {
        for _ in 0..numbers.below(4) {
            let change = Change::any(&mut numbers, &values, plain);
            let (value, error) = walk.make(change);
            values.extend(value);
            let ends = change.ends(here, error.is_some());
            refused.extend(error);
            if ends {
                break;
            }
        }
    }
    refused
}

/// What is in a function, in the order of the text.
fn body(function: &Function) -> Vec<(Region, Inst, InstNode)> {
    let mut body = Vec::new();
    function.for_each_inst(|region, inst| {
        body.push((region, inst, function.insts[inst].clone()));
    });
    body
}

#[test]
fn a_walk_makes_the_changes_that_are_made_one_by_one() {
    let module = module(NESTED);
    let id = module.kernel().expect("there is one");
    let function = kernel(&module);
    let numbers = |value: &Value| function.type_of(*value) == Type::U32;
    let values: Vec<Value> = function.values.keys().filter(numbers).collect();
    let plain = |inst: &Inst| function.insts[*inst].data.regions().is_empty();
    let plain: Vec<Inst> = function.insts.keys().filter(plain).collect();
    let (mut refusals, mut erased) = (0, 0);
    for seed in 0..2000 {
        let mut by_cursor = module.clone();
        let mut cursor = Cursor::new(&mut by_cursor, id);
        let refused = change(&mut cursor, seed, values.clone(), &plain);
        drop(cursor);
        let mut one_by_one = module.functions[id].clone();
        let also = change(
            &mut Plainly::of(&mut one_by_one),
            seed,
            values.clone(),
            &plain,
        );
        assert_eq!(refused, also, "seed {seed}");
        let cursor = &by_cursor.functions[id];
        assert_eq!(body(cursor), body(&one_by_one), "seed {seed}");
        assert_eq!(cursor.values, one_by_one.values, "seed {seed}");
        refusals += refused.len();
        erased += usize::from(body(cursor).len() < cursor.insts.len());
    }
    assert!(refusals > 100 && erased > 100, "{refusals}, {erased}");
}

#[test]
fn uses_are_those_by_now() {
    let mut module = module(NESTED);
    let id = module.kernel().expect("there is one");
    let sum = kernel(&module).uses(value(4));
    let mut at = Cursor::new(&mut module, id);
    at.next_inst();
    let (one, n) = (value(3), value(1));
    assert!(at.is_used(one));
    at.replace_uses(one, n);
    assert!(!at.is_used(one));
    let used = at.ins_after().binary(BinaryOp::Add, one, one);
    assert_eq!(at.uses(one).len(), 2);
    at.replace_uses(value(4), used);
    assert_eq!((at.uses(value(4)), at.uses(used)), (vec![], sum));
}

#[test]
fn what_is_used_is_not_erased() {
    let mut module = module(NESTED);
    let id = module.kernel().expect("there is one");
    let before = module.to_string();
    let mut at = Cursor::new(&mut module, id);
    at.next_inst();
    let refused = at.erase().expect_err("it is used");
    drop(at);
    assert_eq!(module.to_string(), before);
    expect!["%3 cannot be erased with its instruction, as it is used 4 times; give its uses another value before (`replace_uses`)"].assert_eq(&refused.to_string());
}

#[test]
fn code_goes_into_new_regions() {
    let mut module = module(
        "module m specialized\n\nkernel @k(%0 x: ptr<global, mut u32>, %1 n: u32) {\n  store %0, %1\n}\n",
    );
    module.rewrite_each(|at| {
        let Some((ptr, value)) = at.data().stored() else {
            return;
        };
        let limit = at.ins().constant(10u32);
        let small = at.ins().compare(kiln_ir::CompareOp::Lt, value, limit);
        let (then, other) = at.ins().if_else(small);
        let (zero, one) = (
            at.ins_at_end(then).constant(0u32),
            at.ins_at_end(then).constant(1u32),
        );
        let (index, body) = at.ins_at_end(then).for_(zero, value, one);
        at.ins_at_end(body).store(ptr, index);
        at.ins_at_end(other).store(ptr, limit);
        let region = at.replace().loop_();
        at.ins_at_end(region).break_(0);
    });
    verify(&module).expect("it verifies");
    expect![[r#"
        module m specialized

        kernel @k(%0 x: ptr<global, mut u32>, %1 n: u32) {
          %2: u32 = const 10
          %3: bool = lt %1, %2
          if %3 {
            %4: u32 = const 0
            %5: u32 = const 1
            for %6: u32 in %4 .. %1 step %5 {
              store %0, %6
            }
          } else {
            store %0, %2
          }
          loop {
            break 0
          }
        }
    "#]]
    .assert_eq(&module.to_string());
}

static ONE: IntrinsicDef = IntrinsicDef::new(
    "one",
    &[],
    TypePattern::Exact(Scalar::U32),
    Meaning::Pure(|_, _| 1),
);
static OTHER: IntrinsicDef = IntrinsicDef::new(
    "one",
    &[],
    TypePattern::Exact(Scalar::U64),
    Meaning::Pure(|_, _| 1),
);

const LIBRARY: &str = "\
module library specialized
struct @Pair { a: f32, b: u32 }
const @c: u32 = \"01000000\"
const @d: u32 = \"02000000\"

device @first(%0 p: @Pair) -> u32 {
  %1: u32 = call @second(%0)
  %2: ptr<constant, u32> = global_addr @d
  %3: u32 = load %2
  %4: u32 = add %1, %3
  return %4
}

device @second(%0 p: @Pair) -> u32 {
  %1: u32 = intrinsic one()
  %2: ptr<constant, u32> = global_addr @c
  %3: u32 = load %2
  %4: u32 = extract %0, 1
  %5: u32 = add %1, %3
  %6: u32 = add %5, %4
  return %6
}
";

const USER: &str = "\
module m specialized
struct @Pair { x: u32 }
const @c: u32 = \"02000000\"

kernel @k(%0 x: ptr<global, mut u32>, %1 p: @Pair) {
  %2: ptr<constant, u32> = global_addr @c
  %3: u32 = load %2
  %4: u32 = call @second(%3)
  store %0, %4
}

device @second(%0 x: u32) -> u32 {
  return %0
}
";

#[test]
fn a_function_is_linked_with_all_that_it_calls() {
    let find = |name: &str| (name == "one").then_some(&ONE);
    let library = kiln_ir::parse_file("library.kir", LIBRARY, &find).expect("it is right");
    let mut module = module(USER);
    let first = library.function_named("first").expect("there is one");
    let linked = module.link(&library, first).expect("it can be");
    let callee = &module.functions[linked];
    let pair = callee.type_of(callee.params[0].value);
    module.rewrite_each(|at| {
        if at.data().stored().is_some() {
            let zero = at.ins().zero(pair);
            let sum = at.ins().call(linked, &[zero]).expect("it gives one");
            at.set_operand(1, sum);
        }
    });
    verify(&module).expect("it verifies");
    expect![[r#"
        module m specialized
        file 0 "library.kir"
        struct @Pair { x: u32 }
        struct @Pair.2 { a: f32, b: u32 }
        const @c: u32 = "02000000"
        const @c.2: u32 = "01000000"

        kernel @k(%0 x: ptr<global, mut u32>, %1 p: @Pair) {
          %2: ptr<constant, u32> = global_addr @c
          %3: u32 = load %2
          %4: u32 = call @second(%3)
          %5: @Pair.2 = const zero
          %6: u32 = call @first(%5)
          store %0, %6
        }

        device @second(%0 x: u32) -> u32 {
          return %0
        }

        device @first(%0 p: @Pair.2 !0:6:15) -> u32 !0:6:1 {
          %1: u32 = call @second.2(%0) !0:7:3
          %2: ptr<constant, u32> = global_addr @c !0:8:3
          %3: u32 = load %2 !0:9:3
          %4: u32 = add %1, %3 !0:10:3
          return %4 !0:11:3
        }

        device @second.2(%0 p: @Pair.2 !0:14:16) -> u32 !0:14:1 {
          %1: u32 = intrinsic one() !0:15:3
          %2: ptr<constant, u32> = global_addr @c.2 !0:16:3
          %3: u32 = load %2 !0:17:3
          %4: u32 = extract %0, 1 !0:18:3
          %5: u32 = add %1, %3 !0:19:3
          %6: u32 = add %5, %4 !0:20:3
          return %6 !0:21:3
        }
    "#]]
    .assert_eq(&module.to_string());
}

#[test]
fn two_rows_of_one_name_are_not_linked() {
    let find = |name: &str| (name == "one").then_some(&ONE);
    let library = kiln_ir::parse(LIBRARY, &find).expect("it is right");
    let mut module = module(USER);
    module.intrinsic(&OTHER);
    let before = module.to_string();
    let first = library.function_named("first").expect("there is one");
    let refused = module.link(&library, first).expect_err("there are two");
    assert_eq!(module.to_string(), before);
    let text = refused.to_string();
    let places = text.split("that of ").count();
    assert!(text.starts_with("`second` cannot be linked: two intrinsics are named `one`"));
    assert_eq!(places, 3, "{text}");
}

#[test]
fn a_thread_calls_a_function_before_it_faults() {
    let mut module = module(
        "\
module m specialized

kernel @k(%0 x: slice<generic, mut u32>, %1 i: i32, %2 j: u64) {
  shared shared0 tile: [u32; 32] align 4
  %3: ptr<shared, mut [u32; 32]> = shared_addr shared0
  call @inner(%0, %1)
  %4: bool = gt %1, %1
  if %4 {
    %5: ptr<shared, mut u32> = element_ptr %3, %2
  }
}

device @report(%0 site: u32, %1 index: u64, %2 length: u64) {
  call @own(%0)
}

device @own(%0 site: u32) {
  %1: ptr<local, mut [u32; 4]> = local_alloc
  %2: ptr<local, mut u32> = element_ptr %1, %0
}

device @inner(%0 x: slice<generic, mut u32>, %1 i: i32) {
  %2: ptr<generic, mut u32> = slice_index %0, %1
}
",
    );
    let report = module.function_named("report").expect("there is one");
    module.call_before_faults(report).expect("it is one");
    verify(&module).expect("it verifies");
    expect![[r#"
        module m specialized

        kernel @k(%0 x: slice<generic, mut u32>, %1 i: i32, %2 j: u64) {
          shared shared0 tile: [u32; 32] align 4
          %3: ptr<shared, mut [u32; 32]> = shared_addr shared0
          call @inner(%0, %1)
          %4: bool = gt %1, %1
          if %4 {
            %5: u64 = const 32
            %6: bool = ge %2, %5
            if %6 {
              %7: u32 = const 0
              call @report(%7, %2, %5)
            }
            %8: ptr<shared, mut u32> = element_ptr %3, %2
          }
        }

        device @report(%0 site: u32, %1 index: u64, %2 length: u64) {
          call @own(%0)
        }

        device @own(%0 site: u32) {
          %1: ptr<local, mut [u32; 4]> = local_alloc
          %2: ptr<local, mut u32> = element_ptr %1, %0
        }

        device @inner(%0 x: slice<generic, mut u32>, %1 i: i32) {
          %2: u64 = cast %1
          %3: u64 = slice_len %0
          %4: bool = ge %2, %3
          if %4 {
            %5: u32 = const 2
            call @report(%5, %2, %3)
          }
          %6: ptr<generic, mut u32> = slice_index %0, %1
        }
    "#]]
    .assert_eq(&module.to_string());
    let inner = module.function_named("inner").expect("there is one");
    let before = module.to_string();
    let refused = module.call_before_faults(inner).expect_err("it is none");
    assert_eq!(module.to_string(), before);
    expect!["`inner` is called before a fault with (site: u32, index: u64, length: u64) and gives nothing, and it is a device function of (slice<generic, mut u32>, i32) that gives (); give it these parameters and no result"].assert_eq(&refused.to_string());
}
