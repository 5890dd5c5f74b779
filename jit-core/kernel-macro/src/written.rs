//! What is written for a function, as a text.

use expect_test::{Expect, expect};
use syn::ItemFn;

use crate::body::Translator;
use crate::checked::CheckedCopy;
use crate::function::Kind;
use crate::refusal::Refusals;
use crate::signature::Signature;

/// Compares the description of a function with the text of one.
fn check(kind: Kind, function: &str, expected: Expect) {
    let item: ItemFn = syn::parse_str(function).expect("it is a function");
    let mut refusals = Refusals::default();
    let signature = Signature::new(kind, Default::default(), &item, &mut refusals);
    let copy = CheckedCopy::new(&item.block, &signature);
    let mut translator = Translator::new(kind, &signature, copy.body(), &mut refusals);
    let description = translator.description(&signature, copy.body());
    let entries = translator.pool.entries().iter().enumerate();
    let entries = entries.map(|(i, entry)| format!("p{i}: {entry}\n"));
    let entries: String = entries.collect();
    assert!(refusals.is_empty(), "{}", refusals.into_tokens());
    let text = kiln_description::text(&description.into_bytes());
    expected.assert_eq(&format!("{text}{entries}"));
}

#[test]
fn a_kernel() {
    check(
        Kind::Kernel,
        "fn saxpy<T: Float>(a: T, x: &[T], y: &mut [T]) {
            let i = global_id().x;
            if i < y.len() {
                y[i] = a * x[i] + y[i];
            }
        }",
        expect![[r#"
            Block
              DeclareType "T" 3 @0:10
              Param "a" p1 false false v0 @0:20
              Param "x" &[p1] false true v1 @0:26
              Param "y" &mut [p1] false true v2 @0:35
              Block
                Bind "i" false false v3 @1:17
                  Field "x" @1:21
                    Call p2 <> @1:21
                If @2:13
                  Lt @2:16
                    EagerWhen if(p0) @2:16
                      Name v3 @2:16
                    CallMethod p0 true false <> @2:20
                      Name v2 @2:20
                  Assign false @3:17
                    Add @3:24
                      Mul @3:24
                        Name v0 @3:24
                        Index @3:28
                          Name v1 @3:28
                          Name v3 @3:30
                      Index @3:35
                        Name v2 @3:35
                        Name v3 @3:37
                    Index @3:17
                      Name v2 @3:17
                      Name v3 @3:19
            p0: < _ as :: kiln :: macros :: HasMethod > :: pooled (__kiln_m0 . named :: < 1329241496134363980u64 > () . entry ())
            p1: :: kiln :: macros :: Pooled :: ty :: < T > ()
            p2: { use { global_id as HostFunction , :: kiln :: macros :: not_for_kernels :: * } ; # [allow (unused_imports , reason = "it is used where a function is one for all types")] use :: kiln :: macros :: AnyFunction as _ ; < HostFunction < > > :: in_kernels (& __kiln_t0 , :: kiln :: macros :: TypeOf :: < () > :: OPEN) }
        "#]],
    );
}

#[test]
fn names_mean_what_is_bound_last() {
    check(
        Kind::Device,
        "fn f(x: i32) -> i32 {
            let y = x;
            let y = { let x = 2; y + x };
            y - x
        }",
        expect![[r#"
            Block
              Param "x" p0 false false v0 @0:6
              Bind "y" false false v1 @1:17
                Name v0 @1:21
              Bind "y" false false v4 @2:17
                Block
                  Slot v2
                  Block
                    Bind "x" false false v3 @2:27
                      Int p1 2 @2:31
                    Assign false @2:34
                      Add @2:34
                        Name v1 @2:34
                        Name v3 @2:38
                      Local v2
                  Local v2
              ReturnValue @3:13
                Sub @3:13
                  Name v4 @3:13
                  Name v0 @3:17
            p0: :: kiln :: macros :: Pooled :: ty :: < i32 > ()
            p1: :: kiln :: macros :: Pooled :: type_of (& __kiln_t0)
        "#]],
    );
}

#[test]
fn a_function_that_takes_a_closure() {
    check(
        Kind::Device,
        "fn sum<T: Num, F: Fn(T) -> T>(x: &[T], f: F) -> T {
            let twice = |v| f(f(v));
            let mut sum = T::ZERO;
            for i in (0..x.len()).rev() {
                sum += twice(x[i]);
            }
            sum
        }",
        expect![[r#"
            InlineBody "sum" <T 0> <&[p1]> v0
              Block
                Bind "x" false true v1 @0:31
                  Local v0
                Block
                  LetClosure c1 v2 1 @1:25
                    Block
                      Bind "v" false false v3 @1:26
                        Local v2
                      CallClosure c0 @1:29
                        Eager @1:31
                          Eager @1:31
                            CallClosure c0 @1:31
                              Eager @1:33
                                Name v3 @1:33
                  Bind "sum" true false v4 @2:17
                    Zero p1 @2:27
                  For false true 0 v5 - @3:13
                    Eager @3:22
                      EagerWhen if(p0) @3:23
                        Int p2 0 @3:23
                    Eager @3:22
                      EagerWhen if(p0) @3:26
                        CallMethod p0 true false <> @3:26
                          Name v1 @3:26
                    Block
                      Bind "i" false false v6 @3:17
                        Local v5
                      Operator p3
                        AssignOp true Add @4:17
                          CallClosure c1 @4:24
                            Eager @4:30
                              Index @4:30
                                Name v1 @4:30
                                Name v6 @4:32
                          Name v4 @4:17
                  Eager @6:13
                    Name v4 @6:13
            p0: < _ as :: kiln :: macros :: HasMethod > :: pooled (__kiln_m0 . named :: < 1329241496134363980u64 > () . entry ())
            p1: :: kiln :: macros :: Pooled :: ty :: < T > ()
            p2: :: kiln :: macros :: Pooled :: type_of (& __kiln_t0)
            p3: < _ as :: kiln :: macros :: HasOperator > :: pooled (__kiln_o0 . named :: < 7504547733329232424u64 > () . entry ())
        "#]],
    );
}

#[test]
fn static_assertions() {
    check(
        Kind::Device,
        "fn tile<const N: u32>() -> u32 {
            const { assert!(N % 32 == 0 && (N > 32 || MOST), \"of {{32}}\") }
            N
        }",
        expect![[r#"
            Block
              DeclareConst "N" p0 @0:15
              Discard @1:13
                Block
                  StaticAssert "of {32}" @1:29
                    Eq @1:29
                      Rem @1:29
                        ConstParam 0 p1 @1:29
                        Int p2 32 @1:33
                      Int p3 0 @1:39
                  StaticAssert "of {32}" @1:45
                    BitOr @1:45
                      Gt @1:45
                        ConstParam 0 p1 @1:45
                        Int p4 32 @1:49
                      Constant p5 @1:55
              ReturnValue @2:13
                ConstParam 0 p1 @2:13
            p0: :: kiln :: macros :: Pooled :: const_type :: < u32 > ()
            p1: :: kiln :: macros :: Pooled :: ty :: < u32 > ()
            p2: :: kiln :: macros :: Pooled :: type_of (& __kiln_t0)
            p3: :: kiln :: macros :: Pooled :: type_of (& __kiln_t1)
            p4: :: kiln :: macros :: Pooled :: type_of (& __kiln_t2)
            p5: :: kiln :: macros :: Named :: pooled (MOST , __kiln)
        "#]],
    );
}
