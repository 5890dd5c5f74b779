//! Functions of rows that are there as PTX ([`kiln_ir::Lowering::Ptx`]).
//!
//! LLVM sees a declaration, and the text of the definition goes behind the kernel's, as with the function for faults.

use kiln_ir::PtxFunction;

const DECLARATION: &str = ".extern .func";

/// The text of a kernel that may declare a function, with its definition if it does.
pub(super) fn define(ptx: String, function: &PtxFunction) -> String {
    let mut declarations = ptx.match_indices(DECLARATION);
    let declared = declarations.find_map(|(at, _)| {
        let signature = ptx[at + DECLARATION.len()..].split_once(';')?.0;
        is_of(signature, function.name).then_some((at, signature))
    });
    let Some((at, signature)) = declared else {
        // LLVM found no use of it, or a hook has linked another one.
        return ptx;
    };
    let (variables, body) = match function.text.split_once("\n{\n") {
        Some((variables, _)) => {
            let (variables, body) = function.text.split_at(variables.len() + 1);
            (variables, body)
        }
        None => ("", function.text),
    };
    let before = &ptx[..at];
    let after = &ptx[at + DECLARATION.len() + signature.len()..];
    format!("{before}.func{signature}{after}{variables}.func{signature}\n{body}")
}

/// Whether what follows `.func` declares a function of a name: behind its result, if it has one.
fn is_of(signature: &str, name: &str) -> bool {
    let mut words = signature.split(|c: char| c.is_whitespace() || "(),".contains(c));
    words.any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWICE: PtxFunction = PtxFunction {
        name: "twice",
        text: ".global .b32 two = 2;\n{\n\tret;\n}\n",
    };

    #[test]
    fn the_function_that_is_declared_is_defined() {
        let other = ".extern .func twice_not (.param .b32 twice_not_param_0);\n";
        let own = ".extern .func (.param .b32 func_retval0) twice\n(\n\t.param .b32 twice_param_0\n)\n;\n";
        let kernel = ".entry k() {\n\tret;\n}\n";
        let signature = " (.param .b32 func_retval0) twice\n(\n\t.param .b32 twice_param_0\n)\n";
        let defined = define([other, own, kernel].concat(), &TWICE);
        let expected = format!(
            "{other}.func{signature};\n{kernel}.global .b32 two = 2;\n.func{signature}\n{{\n\tret;\n}}\n"
        );
        assert_eq!(defined, expected);
        let unused = [other, kernel].concat();
        assert_eq!(define(unused.clone(), &TWICE), unused);
    }

    #[test]
    fn a_function_without_variables_is_its_body() {
        let bare = PtxFunction {
            text: "{\n\tret;\n}\n",
            ..TWICE
        };
        let defined = define(".extern .func twice();\n".to_owned(), &bare);
        assert_eq!(defined, ".func twice();\n.func twice()\n{\n\tret;\n}\n");
    }
}
