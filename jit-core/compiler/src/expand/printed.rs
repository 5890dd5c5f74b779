//! What kernels print: a call that appends a record to the memory which kernels and the host have for it
//! (`kiln_ir::printed`).

use crate::build::{DeviceFn, KernelBuilder};
use crate::ir::printed::{GLOBAL, LOST, PrintRecord, PrintSite, RECORD_HEAD, RECORDS, USED, WORDS};
use crate::ir::{Cursor, Inline, Module, Type, Value, ValueList};

/// The arguments of the call in the place of the instruction at the cursor, which prints: its site, which the module
/// has from now on, the kernel's tag, and the bits of each value.
pub(super) fn arguments(at: &mut Cursor<'_>, kernel_tag: u64) -> ValueList {
    let Some(printed) = at.data().printed() else {
        return ValueList::new();
    };
    let (format, to_stderr) = (printed.format.to_owned(), printed.to_stderr);
    let values = ValueList::from_slice(printed.values);
    let location = at.node().location;
    let types = values
        .iter()
        .filter_map(|&value| at.type_of(value).as_scalar());
    let site = PrintSite {
        function: at
            .module()
            .function_of(location, &at.function().name)
            .to_owned(),
        location: at.module().display_location(location),
        format,
        values: types.collect(),
        to_stderr,
    };
    let number = number_of(at.module_mut(), site);
    let head = PrintRecord::head(number, values.len());
    let head = [at.ins().constant(head), at.ins().constant(kernel_tag)];
    let values = values.iter().map(|&value| bits(at, value));
    head.into_iter()
        .chain(values.collect::<ValueList>())
        .collect()
}

/// Copies of a body, such as the two versions of a loop, print from one place.
fn number_of(module: &mut Module, site: PrintSite) -> usize {
    let known = module.print_sites.iter().position(|known| *known == site);
    known.unwrap_or_else(|| {
        module.print_sites.push(site);
        module.print_sites.len() - 1
    })
}

/// The bits of a number or a bool, zero-extended.
fn bits(at: &mut Cursor<'_>, value: Value) -> Value {
    let ty = at.type_of(value);
    let Some(scalar) = ty.as_scalar().filter(|scalar| !scalar.is_bool()) else {
        return at.ins().cast(value, Type::U64);
    };
    let unsigned = Type::scalar(scalar.unsigned());
    let same = match unsigned == ty {
        true => value,
        false => at.ins().bitcast(value, unsigned),
    };
    match scalar.bytes() {
        8 => same,
        _ => at.ins().cast(same, Type::U64),
    }
}

/// The function of a site, a tag and so many values that appends a record.
pub(super) fn body(values: u32) -> Option<Module> {
    let function = DeviceFn::build(&format!("print.{values}"), |k| {
        k.inline(Inline::Never);
        append(k, RECORD_HEAD as u32 + values);
    });
    function.ok().map(|function| function.module())
}

fn append(k: &KernelBuilder, words: u32) {
    let memory = k.global_zeros::<u64>(GLOBAL, WORDS as u32);
    let record: Vec<_> = (0..words)
        .map(|i| k.param(&format!("word{i}"), k.ty::<u64>()))
        .collect();
    let (used, lost) = (memory.at_known(USED as u32), memory.at_known(LOST as u32));
    let room = (WORDS - RECORDS) as u64;
    let start = k.var("start", room);
    // Who finds it full does not ask: the count stays far from its end.
    let relaxed = crate::ir::Ordering::Relaxed;
    let device = crate::ir::Scope::Device;
    k.if_(used.atomic_load(relaxed, device).lt(room), || {
        start.set(used.atomic_add(u64::from(words)));
    });
    let fits = start.get().le(room - u64::from(words));
    let write = || {
        let first = start.get().cast(Type::U32) + RECORDS as u32;
        for (i, word) in record.iter().enumerate() {
            // The record ends where the room does, at the latest.
            memory.at_known(first + i as u32).set(*word);
        }
    };
    k.if_(fits, write).else_(|| {
        let _ = lost.atomic_add(1u64);
    });
}
