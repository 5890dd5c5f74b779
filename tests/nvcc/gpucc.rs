//! The micro-kernels of `tests/kernels/gpucc.rs` beside nvcc's, for sm_90 and without checks.
//!
//! `gpucc.txt` has for each kernel what nvcc and Kiln make of it, and whether what the paper's pass is for is done, read
//! off Kiln's PTX or by comparing the machine code with nvcc's. It is a record: a line that says `missed` is one to work on.
//! `UPDATE_EXPECT=1 cargo xtask test -p kiln-tests gpucc` records anew what Kiln makes, and what nvcc makes where there is one.

use std::fmt::{self, Write};

use expect_test::expect_file;
use kiln_suite::without_checks;
use suite::gpucc_kernels::{of_i32, of_u32};

use super::count;
use super::listing::{Listing, disassemble};
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
    fn of(ptx: &str, entry: &str, listing: &Listing) -> Counts {
        let of = |is: fn(&str) -> bool| listing.opcodes().filter(|opcode| is(opcode)).count();
        Counts {
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
        }
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

/// The PTX of a kernel by indices of a type.
macro_rules! ptx_of {
    ($module:ident, $jit:ident, $name:expr) => {{
        let mut memory = $module::Memory {
            x: $jit.zeros(1)?,
            out: $jit.zeros(1)?,
            a: $jit.zeros(1)?,
            b: $jit.zeros(1)?,
            quotients: $jit.zeros(1)?,
        };
        let mut ptx = String::new();
        memory.with($name, [1000, 1000], &mut |kernel, args| {
            ptx = $jit.inspect(kernel, args)?.ptx()?.to_owned();
            Ok(())
        })?;
        ptx
    }};
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
    let (mut kernels, mut code) = (Vec::new(), Vec::new());
    for micro in MICROS {
        let ways = [
            ("u32", ptx_of!(of_u32, jit, micro.name)),
            ("i32", ptx_of!(of_i32, jit, micro.name)),
        ];
        for (int, ptx) in ways {
            code.extend(count::code_of_ptx(&ptx, count::entry(&ptx), SM));
            kernels.push((micro, format!("{}_{int}", micro.name), ptx));
        }
    }
    let Some(listings) = disassemble(&code, SM) else {
        println!("no nvdisasm: nothing is compared");
        return Ok(());
    };
    let twins = count::ptx_of_nvcc("gpucc.cu", SM);
    let nvccs = |name: &str| {
        let twins = twins.as_deref()?;
        let code = count::code_of_ptx(twins, name, SM)?;
        Some(Counts::of(twins, name, disassemble(&[code], SM)?.first()?))
    };
    let mut table = String::from(HEAD);
    for ((micro, name, ptx), listing) in kernels.iter().zip(&listings) {
        let ours = Counts::of(ptx, count::entry(ptx), listing);
        let Some(nvcc) = nvccs(name).or_else(|| recorded(name)) else {
            panic!("`{name}` is not recorded, and there is no nvcc");
        };
        let holds = (micro.holds)(ptx, &ours, &nvcc);
        let holds = if holds { "done" } else { "missed" };
        let what = micro.what;
        let _ = writeln!(table, "{name:24} | {nvcc} | {ours} | {holds:6} {what}");
    }
    expect_file!["gpucc.txt"].assert_eq(&table);
    Ok(())
}
