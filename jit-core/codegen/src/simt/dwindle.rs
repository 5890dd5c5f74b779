//! Loops that end soon because what they test is divided at each turn.
//!
//! `while step > 0 { ..; step /= 2 }`, the loop of tree reductions, ends after as many turns as a number has
//! bits, wherever it starts.

use kiln_ir::{
    BinaryOp, CompareOp, Constant, Control, Function, Inst, InstData, Region, UnaryOp, Value, Var,
    VarUse,
};

use super::uniformity::defining_inst;

/// Whether the loop with this body, which is not counted, leaves after 64 turns at most: each turn divides a
/// variable, which nothing else assigns, and the loop is left where that is 0.
pub(crate) fn dwindles(function: &Function, body: Region) -> bool {
    let turn = Turn { function, body };
    let mut sets = Vec::new();
    function.walk(body, &mut |region, inst| {
        if let Some(VarUse::Set(var, value)) = function.insts[inst].data.var_use() {
            sets.push((var, value, region));
        }
    });
    let is_set_once = |var| sets.iter().filter(|set| set.0 == var).count() == 1;
    let mut divided = sets
        .iter()
        .filter(|&&(var, value, region)| region == body && turn.is_divided(value, var))
        .map(|set| set.0);
    divided.any(|var| is_set_once(var) && turn.leaves_at_zero(var)) && !turn.is_cut_short()
}

/// What each turn of a loop does.
struct Turn<'f> {
    function: &'f Function,
    body: Region,
}

impl Turn<'_> {
    fn data(&self, inst: Inst) -> &InstData {
        &self.function.insts[inst].data
    }

    /// Whether a value is the variable as it is in this turn.
    fn is_read(&self, value: Value, var: Var) -> bool {
        let inst = defining_inst(self.function, value);
        inst.is_some_and(|inst| {
            self.data(inst).var_use() == Some(VarUse::Get(var))
                && self.function.regions[self.body].insts.contains(&inst)
        })
    }

    /// Whether a value is the variable divided, so that it becomes 0 and stays that.
    fn is_divided(&self, value: Value, var: Var) -> bool {
        let Some(inst) = defining_inst(self.function, value) else {
            return false;
        };
        let InstData::Binary { op, args } = *self.data(inst) else {
            return false;
        };
        let Some(scalar) = self
            .function
            .type_of(value)
            .as_scalar()
            .filter(|s| s.is_int())
        else {
            return false;
        };
        let Some(Constant::Int(by)) = self.function.constant(args[1]) else {
            return false;
        };
        let divides = match op {
            BinaryOp::Div => by >= 2,
            // Bits of a negative number never run out.
            BinaryOp::Shr => !scalar.is_signed_int() && by % i128::from(scalar.bits()) != 0,
            _ => false,
        };
        divides && self.is_read(args[0], var)
    }

    /// Whether each turn leaves the loop if the variable is 0.
    fn leaves_at_zero(&self, var: Var) -> bool {
        let insts = &self.function.regions[self.body].insts;
        insts.iter().any(|&inst| match self.data(inst).control() {
            Control::If {
                cond, then_region, ..
            } => self.breaks(then_region) && self.at_zero(cond, var) == Some(true),
            _ => false,
        })
    }

    /// Whether a region straight in the turn does nothing but leave the loop.
    fn breaks(&self, region: Region) -> bool {
        match self.function.regions[region].insts[..] {
            [inst] => {
                self.data(inst).control()
                    == Control::Leave {
                        depth: 0,
                        again: false,
                    }
            }
            _ => false,
        }
    }

    /// What a condition is if the variable is 0, if that decides it.
    fn at_zero(&self, cond: Value, var: Var) -> Option<bool> {
        match *self.data(defining_inst(self.function, cond)?) {
            InstData::Unary {
                op: UnaryOp::Not,
                arg,
            } => Some(!self.at_zero(arg, var)?),
            InstData::Compare { op, args } => {
                let [left, right] = args.map(|arg| self.number_at_zero(arg, var));
                let (left, right) = (left?, right?);
                Some(match op {
                    CompareOp::Eq => left == right,
                    CompareOp::Ne => left != right,
                    CompareOp::Lt => left < right,
                    CompareOp::Le => left <= right,
                    CompareOp::Gt => left > right,
                    CompareOp::Ge => left >= right,
                })
            }
            _ => None,
        }
    }

    fn number_at_zero(&self, value: Value, var: Var) -> Option<i128> {
        match self.function.constant(value) {
            Some(Constant::Int(number)) => Some(number),
            Some(_) => None,
            None => self.is_read(value, var).then_some(0),
        }
    }

    /// Whether something in the turn may go on with the next one before the end of this.
    fn is_cut_short(&self) -> bool {
        let mut cut = false;
        self.function.walk(self.body, &mut |_, inst| {
            if let Control::Leave { again: true, .. } = self.data(inst).control() {
                cut = true;
            }
        });
        cut
    }
}

#[cfg(test)]
mod tests {
    use kiln_ir::{Control, parse};

    use super::dwindles;

    /// Whether the loop of a kernel dwindles that assigns its variable `n` as `divide` says, and has a `test`
    /// for what breaks, and something `more` at its start.
    fn of(ty: &str, test: &str, divide: &str, more: &str) -> bool {
        let text = format!(
            "module m legal

kernel @k(%0 from: {ty}, %1 other: {ty}) {{
  var var0 n: {ty}
  var var1 odd: bool
  set var0, %0
  loop {{
    %2: {ty} = get var0
    %3: {ty} = const 0
    %4: {ty} = const 1
    %5: {ty} = const 2
    %6: bool = get var1
    {more}
    %7: bool = {test}
    if %7 {{
      break 0
    }}
    %8: {ty} = get var0
    %9: {ty} = {divide}
    set var0, %9
  }}
  return
}}
"
        );
        let module = parse(&text, &|_| None).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let function = module.functions.values().next().expect("a kernel");
        let body = function.regions[function.body]
            .insts
            .iter()
            .find_map(|&inst| match function.insts[inst].data.control() {
                Control::Loop { body } => Some(body),
                _ => None,
            });
        dwindles(function, body.expect("a loop"))
    }

    #[test]
    fn what_is_divided_and_tested_for_zero_dwindles() {
        for (ty, test, divide) in [
            ("u32", "eq %2, %3", "div %8, %5"),
            ("u32", "le %2, %3", "shr %8, %4"),
            ("u64", "lt %2, %4", "shr %8, %4"),
            ("u32", "ge %5, %2", "shr %2, %4"),
            ("i32", "le %2, %3", "div %8, %5"),
            ("i8", "eq %2, %3", "div %8, %5"),
        ] {
            assert!(of(ty, test, divide, ""), "{ty}, {test}, {divide}");
        }
    }

    #[test]
    fn others_may_go_on_for_ever() {
        let cut = "if %6 {
      continue 0
    }";
        let again = "set var0, %0";
        let inner = "if %6 {
      set var0, %0
    }";
        for (why, ty, test, divide, more) in [
            ("by 1", "u32", "eq %2, %3", "div %8, %4", ""),
            ("by no bit", "u32", "eq %2, %3", "shr %8, %3", ""),
            ("bits of signs", "i32", "eq %2, %3", "shr %8, %4", ""),
            ("up", "u32", "eq %2, %3", "shl %8, %4", ""),
            ("turned round", "u32", "eq %2, %3", "div %5, %8", ""),
            ("another number", "u32", "eq %2, %3", "div %1, %5", ""),
            ("another test", "u32", "eq %1, %3", "div %8, %5", ""),
            ("not at zero", "u32", "eq %2, %4", "div %8, %5", ""),
            ("stays", "u32", "ne %2, %3", "div %8, %5", ""),
            ("cut short", "u32", "eq %2, %3", "div %8, %5", cut),
            ("set again", "u32", "eq %2, %3", "div %8, %5", again),
            ("set inside", "u32", "eq %2, %3", "div %8, %5", inner),
            ("floats", "f64", "eq %2, %3", "div %8, %5", ""),
        ] {
            assert!(!of(ty, test, divide, more), "{why}");
        }
    }
}
