//! Intrinsics on values of several numbers (`TypePattern::Each`): one operation for each number, as a struct is shuffled
//! field by field (T. Besard, C. Foket, B. De Sutter: "Effective Extensible Programming: Unleashing Julia on GPUs",
//! IEEE TPDS 2019, Listing 10).

use crate::ir::{Cursor, IntrinsicDef, Type, Value};

/// Puts the operations on numbers in the place of the one at the cursor, if that is on a value of several; whether it is.
pub(super) fn expand(at: &mut Cursor<'_>) -> bool {
    let Some((id, args)) = at.data().intrinsic() else {
        return false;
    };
    let (def, args) = (at.module().intrinsics[id], args.to_vec());
    let each = def.each();
    let Some(selecting) = each.iter().position(|&is_each| is_each) else {
        return false;
    };
    let ty = at.type_of(args[selecting]);
    if ty.as_scalar().is_some() {
        return false;
    }
    let operation = Operation { def, each };
    let whole = operation.of_value(at, &args, ty);
    at.replace_by(whole);
    true
}

/// A row, and which of its arguments are numbers of values.
struct Operation {
    def: &'static IntrinsicDef,
    each: Vec<bool>,
}

impl Operation {
    /// The operations on the numbers of a value of this type; the value of what they give.
    fn of_value(&self, at: &mut Cursor<'_>, args: &[Value], ty: Type) -> Value {
        if ty.as_scalar().is_some() {
            let given = at.ins().intrinsic(self.def, args);
            // What is executed for each number gives a number: the verifier has looked at the row.
            return given.unwrap_or(args[0]);
        }
        let mut parts = Vec::new();
        for index in 0.. {
            let Some(part) = at.types().part(ty, index) else {
                break;
            };
            let mut of_part = args.to_vec();
            for (arg, _) in of_part
                .iter_mut()
                .zip(&self.each)
                .filter(|(_, is_each)| **is_each)
            {
                *arg = at.ins().extract(*arg, index);
            }
            parts.push(self.of_value(at, &of_part, part));
        }
        at.ins().construct(ty, &parts)
    }
}
