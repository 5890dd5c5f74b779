//! The hooks that files name: the standard ones, and for each further extension point one that does
//! little and shows.

use kiln::core::build::DeviceFn;
use kiln::core::hook::{Hook, HookSet, LoweredOperation};
use kiln::core::inkwell::module::Module as LlvmModule;
use kiln::core::inkwell::values::BasicValueEnum::{FloatValue, PointerValue, StructValue};
use kiln::core::ir::{BinaryOp, InstData, Type};

/// All that a file can name.
pub(super) const ALL: [fn() -> Hook; 13] = [
    rounds_each,
    kiln::hooks::address_spaces,
    kiln::hooks::bounds_checks,
    loses_checks,
    notes_faults,
    kiln::hooks::by_value,
    keeps_stores,
    kiln::hooks::in_place,
    reciprocals,
    notes_before,
    no_passes,
    notes_after,
    signs,
];

/// Hooks by their names, which stand between commas.
pub(super) fn named(names: &str) -> Result<HookSet, String> {
    let mut set = HookSet::new();
    for name in names.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        let mut all = ALL.iter().map(|make| make());
        let hook = all.find(|hook| hook.name() == name);
        set = set.with(hook.ok_or_else(|| format!("there is no hook `{name}`"))?);
    }
    Ok(set)
}

/// Has no operations fused.
fn rounds_each() -> Hook {
    Hook::new("rounds-each").prepare_job(|job| {
        job.options.contract = false;
        Ok(())
    })
}

/// Takes the checks from accesses and does not say so.
fn loses_checks() -> Hook {
    Hook::new("loses-checks").rewrite_ir(|_, module| {
        for (_, function) in module.functions.iter_mut() {
            for (_, node) in function.insts.iter_mut() {
                if let InstData::SliceIndex { checked, .. } = &mut node.data {
                    *checked = false;
                }
            }
        }
        Ok(())
    })
}

/// Has threads that fault say so to a global.
fn notes_faults() -> Hook {
    Hook::new("notes-faults").fault_function(|_, module| {
        let note = DeviceFn::build("note", |k| {
            let (site, _, _) = (
                k.param("site", Type::U32),
                k.param("index", Type::U64),
                k.param("length", Type::U64),
            );
            k.global_zeros::<u32>("faults", 1).at(0).atomic_add(site);
        })?;
        Ok(Some(note.link_into(module, &[], &[])?))
    })
}

/// Has every store of a struct written to memory, and builds structs anew.
fn keeps_stores() -> Hook {
    Hook::new("keeps-stores").lower_inst(|cx, inst, args| match (&inst.data, args) {
        (InstData::Store { .. }, &[PointerValue(to), StructValue(value)]) => {
            let store = cx.builder().build_store(to, value)?;
            store.set_volatile(true)?;
            Ok(Some(LoweredOperation::Done))
        }
        (InstData::Insert { index, .. }, &[StructValue(whole), part]) => {
            let builder = cx.builder();
            let whole = builder.build_insert_value(whole, part, *index, "inserted")?;
            Ok(Some(whole.into_struct_value().into()))
        }
        _ => Ok(None),
    })
}

/// Makes quotients products with reciprocals, and square roots negative.
fn reciprocals() -> Hook {
    Hook::new("reciprocals")
        .lower_inst(|cx, inst, args| {
            let quotient = matches!(inst.data, InstData::Binary { op, .. } if op == BinaryOp::Div);
            let (true, &[FloatValue(a), FloatValue(b)]) = (quotient, args) else {
                return Ok(None);
            };
            let one = b.get_type().const_float(1.0);
            let reciprocal = cx.builder().build_float_div(one, b, "reciprocal")?;
            let product = cx.builder().build_float_mul(a, reciprocal, "product")?;
            Ok(Some(product.into()))
        })
        .lower_intrinsic(|cx, intrinsic, args| match (intrinsic.name, args) {
            ("math.sqrt", &[FloatValue(x)]) => {
                Ok(Some(cx.builder().build_float_neg(x, "negative")?.into()))
            }
            _ => Ok(None),
        })
}

/// Adds a variable that says that it was there, named by `name`.
fn note(module: &LlvmModule<'_>, name: &str) {
    let word = module.get_context().i32_type();
    let variable = module.add_global(word, None, name);
    variable.set_initializer(&word.const_int(1, false));
}

/// Leaves a note before LLVM's passes.
fn notes_before() -> Hook {
    Hook::new("notes-before").finish_module(|_, module| {
        note(module, "before_passes");
        Ok(())
    })
}

/// Lets LLVM run no passes.
fn no_passes() -> Hook {
    Hook::new("no-passes").pass_pipeline(|_, pipeline| {
        *pipeline = "verify".to_owned();
        Ok(())
    })
}

/// Leaves a note after LLVM's passes.
fn notes_after() -> Hook {
    Hook::new("notes-after").finish_optimized_module(|_, module| {
        note(module, "after_passes");
        Ok(())
    })
}

/// Writes a line below the PTX.
fn signs() -> Hook {
    Hook::new("signs").rewrite_ptx(|_, ptx| {
        ptx.push_str("// signed\n");
        Ok(())
    })
}
