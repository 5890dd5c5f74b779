//! The launch of a row for some of its types: its memory, its kernel, and where two runs of it differ.

use kiln::core::args::{Arg, IntoArg};
use kiln::core::ir::{IntrinsicDef, Meaning, Scalar};
use kiln::prelude::*;

use super::call::{Call, Form, Param, has_members, is_shuffle};
use super::input::{Input, is_nan};
use crate::warp::linear;

/// How many threads a launch has.
const THREADS: usize = 960;

/// The second half of the lanes' results is of these alone.
const ODD_LANES: u32 = 0xaaaa_aaaa;

/// How many differences of each result are shown.
const SHOWN: usize = 3;

/// Memory of a launch: a value of each thread's.
struct Memory {
    /// What it is to the call.
    what: String,
    /// Of which call.
    call: usize,
    form: Form,
    /// The bits of each number before the launch.
    before: Vec<u64>,
    is_written: bool,
}

impl Memory {
    /// The numbers as a device has them, in words of 64 bits.
    fn packed(&self) -> Vec<u64> {
        let size = self.form.scalar.bytes() as usize;
        let bytes: Vec<u8> = (self.before.iter())
            .flat_map(|bits| bits.to_le_bytes().into_iter().take(size))
            .collect();
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        bytes.chunks(8).map(word).collect()
    }

    /// The bits of each number in such words.
    fn unpacked(&self, words: &[u64]) -> Vec<u64> {
        let size = self.form.scalar.bytes() as usize;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let number = |bytes: &[u8]| {
            let mut bits = [0; 8];
            bits[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(bits)
        };
        bytes.chunks(size).map(number).collect()
    }
}

/// What a launch leaves in each memory that it writes, as the bits of its numbers.
pub(super) type Left = Vec<Vec<u64>>;

/// The launch of a row.
pub(super) struct Launch<'a> {
    def: &'static IntrinsicDef,
    calls: &'a [Call],
    grid: [u32; 3],
    block: [u32; 3],
    memory: Vec<Memory>,
}

impl<'a> Launch<'a> {
    /// A launch of calls of a row, with the numbers of a seed.
    pub(super) fn new(def: &'static IntrinsicDef, calls: &'a [Call], seed: u64) -> Launch<'a> {
        let (grid, block) = match def.meaning {
            Meaning::Position(_) => ([3, 2, 2], [8, 5, 2]),
            // Lanes that are not there cannot be read.
            _ if is_shuffle(def) => ([10, 1, 1], [96, 1, 1]),
            // The last warp of a block is a half.
            _ => ([12, 1, 1], [80, 1, 1]),
        };
        let mut launch = Launch {
            def,
            calls,
            grid,
            block,
            memory: Vec::new(),
        };
        for (n, call) in calls.iter().enumerate() {
            launch.add(n, call, seed);
        }
        launch
    }

    /// The memory of a call: its results, or a mark that it has come to its end, and its arguments.
    fn add(&mut self, n: usize, call: &Call, seed: u64) {
        let halves = 1 + usize::from(has_branch(self.def));
        for (i, form) in results(call).into_iter().enumerate() {
            self.memory.push(Memory {
                what: format!("result {i}"),
                call: n,
                form,
                before: vec![0; halves * THREADS * form.lanes],
                is_written: true,
            });
        }
        for (i, param) in call.params.iter().enumerate() {
            let (form, is_written) = match *param {
                Param::Value(form) => (form, false),
                Param::Place(form, mutable) => (form, mutable),
                Param::Members | Param::Width(_) => continue,
            };
            let input = Input {
                def: self.def,
                scalar: form.scalar,
                seed: seed << 8 | i as u64,
                block: self.block.iter().product::<u32>() as usize * form.lanes,
            };
            self.memory.push(Memory {
                what: format!("argument {i}"),
                call: n,
                form,
                before: input.numbers(THREADS * form.lanes),
                is_written,
            });
        }
    }

    /// The kernel, in which one call comes after the other.
    fn kernel(&self) -> kiln::Result<Kernel> {
        Kernel::build("cells", |k| {
            let slice = |(n, memory): (usize, &Memory)| {
                let name = format!("memory{n}");
                let words = match memory.is_written {
                    true => k.slice_mut(&name, Type::U64),
                    false => k.slice(&name, Type::U64),
                };
                words.cast_slice(memory.form.ty(k))
            };
            let slices: Vec<Val<'_>> = self.memory.iter().enumerate().map(slice).collect();
            let block = k.block_idx();
            let block = (block.z() * k.grid_dim().y() + block.y()) * k.grid_dim().x() + block.x();
            let threads = self.block.iter().product::<u32>();
            let i = block * threads + linear(k);
            for (n, call) in self.calls.iter().enumerate() {
                let own = self.memory.iter().zip(&slices);
                let own = own.filter(|(memory, _)| memory.call == n);
                let own: Vec<Val<'_>> = own.map(|(_, &slice)| slice).collect();
                self.describe(call, i, &own);
            }
        })
    }

    /// A call by all threads, and of what lanes do together by the odd ones alone.
    fn describe<'k>(&self, call: &Call, i: Val<'k>, slices: &[Val<'k>]) {
        let k = i.builder();
        let (results, inputs) = slices.split_at(results(call).len());
        let by = |members: u32, to: Val<'k>| {
            let mut inputs = inputs.iter();
            let mut input = || inputs.next().expect("it has memory").at(i);
            let arg = |param: &Param| match *param {
                Param::Value(_) => input().get(),
                Param::Place(..) => input().address().to_generic(),
                Param::Members => k.lit(Type::U32, members),
                Param::Width(width) => k.lit(Type::U32, width),
            };
            let args: Vec<Val<'k>> = call.params.iter().map(arg).collect();
            let value = k.intrinsic(self.def, &args);
            let parts = match call.results.len() {
                0 => vec![k.lit(Type::U32, 1)],
                1 => vec![value],
                count => (0..count).map(|n| value.field(&n.to_string())).collect(),
            };
            for (result, part) in results.iter().zip(parts) {
                result.at(to).set(part);
            }
        };
        by(u32::MAX, i);
        if has_branch(self.def) {
            let is_odd = (linear(k) & 1).eq(1);
            k.if_(is_odd, || by(ODD_LANES, i + THREADS as u32));
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// Those of compiling and of the launch.
    pub(super) fn run(&self, jit: &Jit) -> kiln::Result<Left> {
        let kernel = self.kernel()?;
        let upload = |memory: &Memory| jit.upload(&memory.packed());
        let mut buffers: Vec<Buffer<u64>> = self
            .memory
            .iter()
            .map(upload)
            .collect::<kiln::Result<_>>()?;
        {
            let mut args: Vec<Arg<'_>> = Vec::new();
            for (memory, buffer) in self.memory.iter().zip(&mut buffers) {
                args.push(match memory.is_written {
                    true => IntoArg::into_arg(buffer),
                    false => IntoArg::into_arg(&*buffer),
                });
            }
            jit.launch(&kernel, self.grid, self.block, &args)?;
        }
        jit.synchronize()?;
        let written = self.memory.iter().zip(&buffers);
        let written = written.filter(|(memory, _)| memory.is_written);
        let numbers =
            |(memory, buffer): (&Memory, &Buffer<u64>)| Ok(memory.unpacked(&buffer.to_vec()?));
        written.map(numbers).collect()
    }

    /// Where what a device leaves is not what is wanted.
    pub(super) fn differences(&self, wanted: &Left, given: &Left) -> Vec<String> {
        let written = self.memory.iter().filter(|memory| memory.is_written);
        let each = written.zip(wanted).zip(given);
        let of_memory = |((memory, wanted), given): ((&Memory, &Vec<u64>), &Vec<u64>)| {
            let scalar = memory.form.scalar;
            let pairs = wanted.iter().zip(given).enumerate();
            let wrong =
                pairs.filter(|(_, (wanted, given))| !self.is_same(scalar, **wanted, **given));
            let wrong: Vec<(usize, (&u64, &u64))> = wrong.collect();
            let lines = wrong.iter().take(SHOWN).map(|&(at, (wanted, given))| {
                let [given, wanted] = [given, wanted].map(|bits| self.shown(scalar, *bits));
                let thread = at / memory.form.lanes % THREADS;
                let args = self.arguments(memory.call, thread);
                format!("  of {args}, thread {thread}: {given}, not {wanted}")
            });
            let open = self.calls[memory.call].open.name();
            let head = format!(
                "{open}, {}: {} of {}",
                memory.what,
                wrong.len(),
                wanted.len()
            );
            let text = std::iter::once(head)
                .chain(lines)
                .collect::<Vec<_>>()
                .join("\n");
            (!wrong.is_empty()).then_some(text)
        };
        each.filter_map(of_memory).collect()
    }

    /// Whether two numbers are the same; any NaN is any other where numbers are computed.
    fn is_same(&self, scalar: Scalar, wanted: u64, given: u64) -> bool {
        let moves = is_shuffle(self.def) || self.def.name.starts_with("cache.");
        wanted == given || !moves && is_nan(scalar, wanted) && is_nan(scalar, given)
    }

    fn shown(&self, scalar: Scalar, bits: u64) -> String {
        let digits = 2 * scalar.bytes() as usize;
        format!(
            "{} ({bits:#0width$x})",
            scalar.shown(bits),
            width = digits + 2
        )
    }

    /// What a thread passes to a call, or has where it passes an address.
    fn arguments(&self, call: usize, thread: usize) -> String {
        let own = self.memory.iter().filter(|memory| memory.call == call);
        let args = own.skip(results(&self.calls[call]).len()).map(|memory| {
            let lanes = memory.form.lanes;
            let numbers = &memory.before[thread * lanes..][..lanes];
            let shown = numbers
                .iter()
                .map(|&bits| self.shown(memory.form.scalar, bits));
            shown.collect::<Vec<_>>().join(" ")
        });
        args.collect::<Vec<_>>().join(", ")
    }
}

/// What a call writes: its results, or a mark.
fn results(call: &Call) -> Vec<Form> {
    match call.results[..] {
        [] => vec![Form {
            scalar: Scalar::U32,
            lanes: 1,
        }],
        ref results => results.to_vec(),
    }
}

/// Whether some of the lanes execute a row without the others, too; a shuffle might read those.
fn has_branch(def: &IntrinsicDef) -> bool {
    has_members(def) && !is_shuffle(def)
}
