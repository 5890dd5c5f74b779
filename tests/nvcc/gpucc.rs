//! The micro-kernels of "gpucc: An Open-Source GPGPU Compiler" (Wu et al. 2016), sections 3.1 to 3.6, beside nvcc's, for
//! sm_90 and without checks: with `u32` and `i32` as indices, as loops and unrolled by hand.
//!
//! `gpucc.txt` has for each kernel what nvcc and Kiln make of it, and whether what the paper's pass is for is done, read
//! off Kiln's PTX or by comparing the machine code with nvcc's. It is a record: a line that says `missed` is one to work on.
//! `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests gpucc` records anew what Kiln makes, and what nvcc makes where there is one.

use std::fmt::{self, Write};

use expect_test::expect_file;
use kiln::core::args::Arg;
use kiln::core::front::AsKernel;
use kiln::prelude::*;
use kiln_suite::without_checks;

use super::count;
use super::listing::Listing;
use super::machine::{SM, jit};

/// What was recorded, a line a kernel.
const RECORDED: &str = include_str!("gpucc.txt");

const HEAD: &str = "PTX, SASS, and of SASS: integer arithmetic, accesses to local memory, to memory of any space, stores\n";

/// Instructions of a kernel by what they are for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Counts {
    ptx: usize,
    sass: usize,
    /// Additions, multiplications and shifts of integers, which addresses are made of.
    integer: usize,
    /// Accesses to local memory.
    local: usize,
    /// Accesses that find out when they run in which memory an address is.
    generic: usize,
    stores: usize,
}

impl Counts {
    fn of(ptx: &str, entry: &str) -> Option<Counts> {
        let listing = count::listing_of_ptx(ptx, entry, SM)?;
        let listing = Listing::of(&listing, entry);
        let of = |is: fn(&str) -> bool| listing.opcodes().filter(|opcode| is(opcode)).count();
        Some(Counts {
            ptx: count::of_ptx(ptx, entry),
            sass: listing.instructions(),
            integer: of(|opcode| {
                let start = opcode.split('.').next().unwrap_or(opcode);
                [
                    "IADD", "IADD3", "IMAD", "LEA", "SHF", "USHF", "ULEA", "UIADD3", "UIMAD",
                ]
                .contains(&start)
                    && !opcode.starts_with("IMAD.MOV")
            }),
            local: of(|opcode| opcode.starts_with("LDL") || opcode.starts_with("STL")),
            generic: of(|opcode| matches!(opcode.split('.').next(), Some("LD" | "ST"))),
            stores: of(|opcode| opcode.starts_with("ST")),
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            ptx,
            sass,
            integer,
            local,
            generic,
            stores,
        } = self;
        write!(
            f,
            "{ptx:4} {sass:4} {integer:3} {local:2} {generic:2} {stores:2}"
        )
    }
}

/// What a pass is for, as one sees it in Kiln's PTX and in the counts of both.
type Rule = fn(&str, &Counts, &Counts) -> bool;

struct Micro {
    /// The section of the paper, and what its pass does.
    what: &'static str,
    name: &'static str,
    holds: Rule,
}

/// Arithmetic for addresses is at most nvcc's.
const AS_FEW_INTEGERS: Rule = |_, ours, nvcc| ours.integer <= nvcc.integer;

const MICROS: &[Micro] = &[
    Micro {
        what: "3.1 arrays in registers",
        name: "local_looped",
        holds: |ptx, _, _| !ptx.contains(".local"),
    },
    Micro {
        what: "3.1 arrays in registers",
        name: "local_unrolled",
        holds: |ptx, _, _| !ptx.contains(".local"),
    },
    Micro {
        what: "3.1 arrays in registers, inlined",
        name: "local_called",
        holds: |ptx, _, _| !ptx.contains(".local") && !ptx.contains("call."),
    },
    Micro {
        what: "3.2 memory spaces",
        name: "spaces",
        holds: |ptx, ours, _| ptx.contains("ld.shared") && ours.generic == 0,
    },
    Micro {
        what: "3.3 stores that nobody reads",
        name: "dead_store",
        holds: |_, ours, nvcc| ours.stores <= nvcc.stores && ours.stores == 2,
    },
    Micro {
        what: "3.3 sums kept in registers",
        name: "accumulated",
        holds: |ptx, _, _| ptx.matches("st.global").count() == 1 && !ends_loop_with_store(ptx),
    },
    Micro {
        what: "3.4 offsets, products, reassociation",
        name: "neighbours_looped",
        holds: AS_FEW_INTEGERS,
    },
    Micro {
        what: "3.4 offsets, products, reassociation",
        name: "neighbours_unrolled",
        holds: AS_FEW_INTEGERS,
    },
    Micro {
        what: "3.4.2 products as sums",
        name: "strides_looped",
        holds: AS_FEW_INTEGERS,
    },
    Micro {
        what: "3.4.2 products as sums",
        name: "strides_unrolled",
        holds: AS_FEW_INTEGERS,
    },
    Micro {
        what: "3.5 speculation",
        name: "speculated",
        holds: |_, ours, nvcc| ours.sass <= nvcc.sass,
    },
    Micro {
        what: "3.6 division of 64 bits",
        name: "divided",
        holds: |ptx, _, _| ptx.contains("div.u32"),
    },
];

/// Whether a store to global memory is in a loop: between a label and a branch back to it.
fn ends_loop_with_store(ptx: &str) -> bool {
    let stores = ptx.match_indices("st.global");
    stores.into_iter().any(|(at, _)| {
        let (before, after) = ptx.split_at(at);
        let labels = before
            .lines()
            .filter_map(|line| line.trim().strip_prefix('$')?.split_once(':'));
        let mut labels = labels.map(|(label, _)| format!("${label}"));
        labels.any(|label| {
            after
                .lines()
                .any(|line| line.contains("bra") && line.contains(&label))
        })
    })
}

/// The kernels with an integer type for indices.
macro_rules! kernels {
    ($module:ident, $int:ident, $wide:ident) => {
        mod $module {
            use kiln::prelude::*;

            #[device_fn]
            fn fill(v: &mut [f32; 8], x: &[f32], first: $int) {
                for i in 0..8 {
                    v[i] = x[first as usize + i];
                }
            }

            #[device_fn]
            fn sum_of(x: &[f32], n: $int) -> f32 {
                let mut sum = 0.0;
                for i in 0..n {
                    sum += x[i as usize];
                }
                sum
            }

            #[kernel]
            pub fn local_looped(x: &[f32], out: &mut [f32]) {
                let t = global_id().x as $int;
                let (mut v, mut sum) = ([0.0f32; 8], 0.0);
                for i in 0..8 {
                    v[i as usize] = x[(t * 8 + i) as usize];
                }
                for i in 0..8usize {
                    sum += v[i] * v[7 - i];
                }
                out[t as usize] = sum;
            }

            #[kernel]
            pub fn local_unrolled(x: &[f32], out: &mut [f32]) {
                let t = global_id().x as $int;
                let v = [
                    x[(t * 4) as usize],
                    x[(t * 4 + 1) as usize],
                    x[(t * 4 + 2) as usize],
                    x[(t * 4 + 3) as usize],
                ];
                out[t as usize] = v[0] * v[3] + v[1] * v[2] + v[2] * v[1] + v[3] * v[0];
            }

            #[kernel]
            pub fn local_called(x: &[f32], out: &mut [f32]) {
                let t = global_id().x as $int;
                let (mut v, mut sum) = ([0.0f32; 8], 0.0);
                fill(&mut v, x, t * 8);
                for i in 0..8usize {
                    sum += v[i] * v[7 - i];
                }
                out[t as usize] = sum;
            }

            #[kernel]
            pub fn spaces(x: &[f32], out: &mut [f32], n: $int) {
                let tile = shared!([f32; 256]);
                let t = thread_idx().x as $int;
                tile[t as usize] = x[t as usize];
                barrier();
                out[t as usize] = sum_of(tile, n);
            }

            #[kernel]
            pub fn dead_store(out: &mut [f32]) {
                let tile = shared!([f32; 256]);
                let t = thread_idx().x as $int;
                tile[t as usize] = 1.0;
                out[t as usize] = 2.0;
                tile[t as usize] = 3.0;
                barrier();
                out[t as usize] = tile[(255 - t) as usize];
            }

            #[kernel]
            pub fn accumulated(x: &[f32], out: &mut [f32], n: $int) {
                let tile = shared!([f32; 256]);
                let t = thread_idx().x as $int;
                tile[t as usize] = x[t as usize];
                barrier();
                for j in 0..n {
                    out[t as usize] += tile[j as usize] * tile[t as usize];
                }
            }

            #[kernel]
            pub fn neighbours_looped(a: &[f32], out: &mut [f32], n: $int) {
                let (b, c) = (global_id().y as $int, global_id().x as $int);
                let mut sum = 0.0;
                for x in 0..3 {
                    for y in 0..3 {
                        sum += a[((b + x) * n + c + y) as usize];
                    }
                }
                out[(b * n + c) as usize] = sum;
            }

            #[kernel]
            pub fn neighbours_unrolled(a: &[f32], out: &mut [f32], n: $int) {
                let (b, c) = (global_id().y as $int, global_id().x as $int);
                let mut sum = a[(b * n + c) as usize]
                    + a[(b * n + c + 1) as usize]
                    + a[(b * n + c + 2) as usize];
                sum += a[((b + 1) * n + c) as usize]
                    + a[((b + 1) * n + c + 1) as usize]
                    + a[((b + 1) * n + c + 2) as usize];
                sum += a[((b + 2) * n + c) as usize]
                    + a[((b + 2) * n + c + 1) as usize]
                    + a[((b + 2) * n + c + 2) as usize];
                out[(b * n + c) as usize] = sum;
            }

            #[kernel]
            pub fn strides_looped(a: &[f32], out: &mut [f32], n: $int) {
                let t = global_id().x as $int;
                let mut sum = 0.0;
                for i in 1..5 {
                    sum += a[(t * i + n * i) as usize];
                }
                out[t as usize] = sum;
            }

            #[kernel]
            pub fn strides_unrolled(a: &[f32], out: &mut [f32], n: $int) {
                let t = global_id().x as $int;
                out[t as usize] = a[(t + n) as usize]
                    + a[(t * 2 + n * 2) as usize]
                    + a[(t * 3 + n * 3) as usize]
                    + a[(t * 4 + n * 4) as usize];
            }

            #[kernel]
            pub fn speculated(a: &[f32], out: &mut [f32], j: $int, flags: $int) {
                let i = global_id().x as $int;
                let mut sum = 0.0;
                if flags & 1 != 0 {
                    sum += a[i as usize];
                }
                if flags & 2 != 0 {
                    sum += a[(i + j) as usize];
                }
                out[i as usize] = sum;
            }

            #[kernel]
            pub fn divided(a: &[$wide], b: &[$wide], out: &mut [$wide]) {
                let i = global_id().x as $int;
                out[i as usize] = a[i as usize] / b[i as usize];
            }

            /// The PTX of a kernel.
            pub fn ptx(jit: &Jit, name: &str) -> kiln::Result<String> {
                let (x, mut out) = (jit.zeros::<f32>(1)?, jit.zeros::<f32>(1)?);
                let (a, mut quotients) = (jit.zeros::<$wide>(1)?, jit.zeros::<$wide>(1)?);
                let n: $int = 1000;
                let of = |kernel, args: &_| super::ptx(jit, kernel, args);
                match name {
                    "local_looped" => of(&local_looped, args!(&x, &mut out)),
                    "local_unrolled" => of(&local_unrolled, args!(&x, &mut out)),
                    "local_called" => of(&local_called, args!(&x, &mut out)),
                    "spaces" => of(&spaces, args!(&x, &mut out, n)),
                    "dead_store" => of(&dead_store, args!(&mut out)),
                    "accumulated" => of(&accumulated, args!(&x, &mut out, n)),
                    "neighbours_looped" => of(&neighbours_looped, args!(&x, &mut out, n)),
                    "neighbours_unrolled" => of(&neighbours_unrolled, args!(&x, &mut out, n)),
                    "strides_looped" => of(&strides_looped, args!(&x, &mut out, n)),
                    "strides_unrolled" => of(&strides_unrolled, args!(&x, &mut out, n)),
                    "speculated" => of(&speculated, args!(&x, &mut out, n, n)),
                    "divided" => of(&divided, args!(&a, &a, &mut quotients)),
                    _ => panic!("no kernel `{name}`"),
                }
            }
        }
    };
}

kernels! { of_u32, u32, u64 }
kernels! { of_i32, i32, i64 }

fn ptx(jit: &Jit, kernel: &dyn AsKernel, args: &[Arg<'_>]) -> kiln::Result<String> {
    Ok(jit.inspect(kernel, args)?.ptx()?.to_owned())
}

/// What nvcc made of a kernel, as it was recorded.
fn recorded(name: &str) -> Option<Counts> {
    let start = format!("{name:24} |");
    let line = RECORDED
        .lines()
        .find_map(|line| line.strip_prefix(&start))?;
    let mut numbers = line.split('|').next()?.split_whitespace();
    let mut next = || numbers.next()?.parse().ok();
    Some(Counts {
        ptx: next()?,
        sass: next()?,
        integer: next()?,
        local: next()?,
        generic: next()?,
        stores: next()?,
    })
}

#[test]
fn gpuccs_kernels_are_what_is_recorded() -> kiln::Result<()> {
    if std::env::var_os("KILN_PTXAS").is_none() {
        println!("no ptxas: nothing is compared");
        return Ok(());
    }
    let jit = jit(without_checks())?;
    let twins = count::ptx_of_nvcc("gpucc.cu", SM);
    let mut table = String::from(HEAD);
    for micro in MICROS {
        let ways: [(&str, fn(&Jit, &str) -> kiln::Result<String>); 2] =
            [("u32", of_u32::ptx), ("i32", of_i32::ptx)];
        for (int, ptx) in ways {
            let name = format!("{}_{int}", micro.name);
            let ptx = ptx(&jit, micro.name)?;
            let ours = Counts::of(&ptx, count::entry(&ptx)).expect("there is a ptxas");
            let nvcc = twins.as_deref().and_then(|twins| Counts::of(twins, &name));
            let Some(nvcc) = nvcc.or_else(|| recorded(&name)) else {
                panic!("`{name}` is not recorded, and there is no nvcc");
            };
            let holds = (micro.holds)(&ptx, &ours, &nvcc);
            let holds = if holds { "done" } else { "missed" };
            let _ = writeln!(
                table,
                "{name:24} | {nvcc} | {ours} | {holds:6} {}",
                micro.what
            );
        }
    }
    expect_file!["gpucc.txt"].assert_eq(&table);
    Ok(())
}
