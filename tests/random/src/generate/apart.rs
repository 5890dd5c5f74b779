//! What changes no result, and is drawn apart from the rest: assumptions that hold, flags of floats that permit nothing.

use kiln_jit_core::ir::{BinaryOp, CompareOp, FastMath, InstData, Type, Value};

use super::Generator;

impl Generator {
    /// Assumes or asserts something of an integer that holds, checked or not.
    pub(super) fn assumption(&mut self, value: Value) {
        let before = self.frame.left;
        let ty = self.frame.ty(value);
        let constant = self.apart.bits() as i8;
        let other = self.int(ty, i128::from(constant.unsigned_abs() >> 1));
        let least = InstData::Binary {
            op: BinaryOp::Min,
            args: [value, other],
        };
        let least = self.raw(least, ty);
        let (op, args) = self.apart.of(&[
            (CompareOp::Le, [least, value]),
            (CompareOp::Ge, [other, least]),
        ]);
        let cond = self.raw(InstData::Compare { op, args }, Type::BOOL);
        if self.apart.chance(40) {
            let values = self.apart.chance(60).then_some([least, value]);
            let message = "the least is not above".into();
            self.act(InstData::Assert {
                cond,
                message,
                values,
            });
            self.frame.left = before;
            return;
        }
        let checked = self.apart.chance(60);
        self.act(InstData::Assume {
            cond,
            text: "the least is not above".into(),
            checked,
        });
        self.frame.left = before;
    }

    /// Flags that leave the result of an instruction as it is: a sum is not contracted where no product may be, and
    /// what is exact has no approximation.
    pub(super) fn flags(&mut self, data: &InstData, result: Type) -> FastMath {
        let lane = self.module.types.as_vector(result);
        let lane = lane.map_or(result, |(lane, _)| Type::scalar(lane));
        if !lane.is_float() || !self.apart.chance(30) {
            return FastMath::NONE;
        }
        match data {
            InstData::Binary {
                op: BinaryOp::Mul, ..
            } => FastMath::APPROXIMATE,
            InstData::Binary {
                op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max,
                ..
            }
            | InstData::Unary { .. } => self.apart.of(&[
                FastMath::CONTRACT,
                FastMath::APPROXIMATE,
                FastMath::CONTRACT | FastMath::APPROXIMATE,
            ]),
            _ => FastMath::NONE,
        }
    }
}
