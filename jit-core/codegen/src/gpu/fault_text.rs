//! The function that records a fault, as PTX.
//!
//! It is the same in every kernel but for the kernel's tag. LLVM took a twelfth of a compile to make it again of what
//! [`super::lower`] writes; so LLVM sees a declaration, and the text of the definition goes behind the kernel's. A test compares
//! the two for every version of PTX.

use std::mem::offset_of;

use inkwell::module::Module;

use kiln_ir::fault::{FaultChannel, FaultRecord};

use super::lower::FAULT_FUNCTION;
use crate::llvm::error::BackendError;

/// Where the function for faults has its body.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum FaultBody {
    /// In LLVM's module.
    InModule,
    /// In the text that LLVM's module becomes.
    InText,
}

/// Whether a module leaves the definition to the text.
///
/// # Errors
/// If a hook has declared it with other parameters.
pub(super) fn is_left_to_text(module: &Module<'_>) -> Result<bool, BackendError> {
    let Some(function) = module.get_function(FAULT_FUNCTION) else {
        return Ok(false);
    };
    if function.count_basic_blocks() > 0 {
        return Ok(false);
    }
    let ty = function.get_type().print_to_string();
    match ty.to_bytes() {
        b"void (i32, i64, i64, ptr addrspace(1))" => Ok(true),
        _ => Err(BackendError::new(
            "emit",
            format!(
                "a hook declares `{FAULT_FUNCTION}` as `{}`: that is the name of Kiln's own function; give the hook's another one",
                ty.to_string_lossy()
            ),
        )),
    }
}

/// The text of a kernel that declares the function, with its definition. `tag` is the kernel's.
pub(super) fn define(ptx: String, tag: u64) -> String {
    let extern_func = format!(".extern .func {FAULT_FUNCTION}");
    let Some((before, rest)) = ptx.split_once(&extern_func) else {
        // LLVM found no use of it.
        return ptx;
    };
    let Some((parameters, after)) = rest.split_once(';') else {
        return ptx;
    };
    let head = format!(".func {FAULT_FUNCTION}{parameters}");
    format!("{before}{head};{after}{head}\n{}", body(tag))
}

/// What the function does, as LLVM writes it.
fn body(tag: u64) -> String {
    let claimed = offset(offset_of!(FaultChannel, claimed));
    let record = offset(offset_of!(FaultChannel, record));
    let state = offset(offset_of!(FaultRecord, state));
    let [site, kernel_tag, index, length] = [
        offset_of!(FaultRecord, site),
        offset_of!(FaultRecord, kernel_tag),
        offset_of!(FaultRecord, index),
        offset_of!(FaultRecord, length),
    ];
    let (block, thread) = (
        offset_of!(FaultRecord, block),
        offset_of!(FaultRecord, thread),
    );
    let places = [("ctaid", block), ("tid", thread)];
    let axes = places.into_iter().flat_map(|(name, at)| {
        let axes = ["x", "y", "z"].into_iter().enumerate();
        axes.map(move |(n, axis)| (format!("%{name}.{axis}"), at + 4 * n))
    });
    let indices: String = (3..)
        .zip(axes)
        .map(|(n, (register, at))| {
            format!(
                "\tmov.u32 \t%r{n}, {register};\n\tst.volatile.global.b32 \t[%rd4+{at}], %r{n};\n"
            )
        })
        .collect();
    format!(
        "{{
\t.reg .pred \t%p<2>;
\t.reg .b32 \t%r<9>;
\t.reg .b64 \t%rd<5>;

\tld.param.b64 \t%rd3, [{FAULT_FUNCTION}_param_3];
\tatom.global.exch.b32 \t%r2, [%rd3{claimed}], 1;
\tsetp.ne.b32 \t%p1, %r2, 0;
\t@%p1 bra \t$L__{FAULT_FUNCTION};
\tld.param.b64 \t%rd2, [{FAULT_FUNCTION}_param_2];
\tld.param.b64 \t%rd1, [{FAULT_FUNCTION}_param_1];
\tld.param.b32 \t%r1, [{FAULT_FUNCTION}_param_0];
\tld.global.b64 \t%rd4, [%rd3{record}];
\tst.volatile.global.b32 \t[%rd4+{site}], %r1;
\tst.volatile.global.b64 \t[%rd4+{kernel_tag}], {tag};
\tst.volatile.global.b64 \t[%rd4+{index}], %rd1;
\tst.volatile.global.b64 \t[%rd4+{length}], %rd2;
{indices}\tmembar.sys;
\tst.volatile.global.b32 \t[%rd4{state}], 1;
$L__{FAULT_FUNCTION}:
\t// begin inline asm
\texit;
\t// end inline asm
}}
",
        tag = tag.cast_signed(),
    )
}

/// An offset behind a register; none where it is 0.
fn offset(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        _ => format!("+{bytes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::lower::fault_function_by_llvm;
    use crate::llvm::machine::{PTX_ISAS, PTX_VERSIONS};
    use crate::llvm::session::on_compile_thread;

    /// What a function is made of, without how its lines and labels are written.
    fn tokens(ptx: &str) -> Vec<String> {
        let words = ptx.split_whitespace().filter(|word| *word != "//");
        let plain = words.map(|word| {
            word.replace(".visible", "")
                .replace("$L__BB0_2", "$L__kiln_fault")
        });
        let joined = plain.collect::<Vec<_>>().join(" ");
        joined
            .replace("( ", "(")
            .replace(" (", "(")
            .split(' ')
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn the_text_is_what_llvm_makes_of_the_function() {
        for row in PTX_VERSIONS {
            let newest = PTX_ISAS[PTX_ISAS.len() - 1];
            for ptx in [row.ptx, newest] {
                let tag = 0x96aa_abd6_9cbf_b917;
                let made = move || fault_function_by_llvm(row.sm, ptx, tag);
                let made = on_compile_thread("fault", made).expect("LLVM is there");
                let made = made.expect("it is compiled");
                let (_, definition) = made.split_once(".visible ").expect("it is defined");
                // LLVM ends the function once more where control cannot come.
                let again = "\t// begin inline asm\n\texit;\n\t// end inline asm\n";
                let definition = definition.replace(&again.repeat(2), again);
                let declared = definition.split_once('{').map(|(head, _)| head.trim_end());
                let declared = format!(".extern {};\n", declared.expect("it has a body"));
                let defined = define(declared, tag);
                let (_, ours) = defined.split_once(';').expect("it is declared");
                assert_eq!(tokens(ours), tokens(&definition), "sm_{} {ptx}", row.sm);
            }
        }
    }

    #[test]
    fn text_without_the_function_stays() {
        let ptx = ".visible .entry k() { ret; }\n".to_owned();
        assert_eq!(define(ptx.clone(), 1), ptx);
    }
}
