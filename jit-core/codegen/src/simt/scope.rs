//! Where each variable lives: the smallest region that holds all its uses.
//!
//! A variable whose first use in that region is an assignment directly in it starts anew each time
//! the region is run: threads that did not come along never see its value. That is what lets an
//! accumulator inside `if i < n { .. }` stay free of masks. Every other variable lives in the whole
//! kernel and starts as zero.

use kiln_ir::{Entity as _, Function, Inst, PrimaryMap, Region, Var, VarUse};

/// The tree of regions seen from below, and the home of each variable.
#[derive(Debug)]
pub(crate) struct Scopes {
    /// The instruction that holds a region.
    holder: Vec<Option<Inst>>,
    /// The region an instruction is in; `None` if it is in none.
    region: Vec<Option<Region>>,
    homes: PrimaryMap<Var, Home>,
}

/// Where a variable lives.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Home {
    /// The region.
    pub(crate) region: Region,
    /// Whether the variable is assigned before it is read, each time the region is run.
    pub(crate) assigned_first: bool,
}

impl Scopes {
    /// The scopes of a function.
    pub(crate) fn of(function: &Function) -> Scopes {
        let mut scopes = Scopes {
            holder: vec![None; function.regions.len()],
            region: vec![None; function.insts.len()],
            homes: PrimaryMap::new(),
        };
        let mut uses: Vec<Vec<Inst>> = vec![Vec::new(); function.vars.len()];
        function.for_each_inst(|region, inst| {
            scopes.region[inst.index()] = Some(region);
            let data = &function.insts[inst].data;
            for inner in data.regions() {
                scopes.holder[inner.index()] = Some(inst);
            }
            if let Some(used) = data.var_use() {
                uses[used.var().index()].push(inst);
            }
        });
        for uses in &uses {
            let home = scopes.find_home(function, uses);
            scopes.homes.push(home);
        }
        scopes
    }

    fn find_home(&self, function: &Function, uses: &[Inst]) -> Home {
        let whole = Home {
            region: function.body,
            assigned_first: false,
        };
        let Some(&first) = uses.first() else {
            return whole;
        };
        let mut chain = self.chain_from(self.region_of(first).unwrap_or(function.body));
        for &inst in uses {
            let others = self.chain_from(self.region_of(inst).unwrap_or(function.body));
            chain.retain(|region| others.contains(region));
        }
        let region = chain.first().copied().unwrap_or(function.body);
        let is_set = matches!(function.insts[first].data.var_use(), Some(VarUse::Set(..)));
        if is_set && self.region_of(first) == Some(region) {
            return Home {
                region,
                assigned_first: true,
            };
        }
        whole
    }

    /// A region and those around it, from the inside out.
    fn chain_from(&self, region: Region) -> Vec<Region> {
        let mut chain = vec![region];
        let mut at = region;
        while let Some(outer) = self.holder_of(at).and_then(|inst| self.region_of(inst)) {
            chain.push(outer);
            at = outer;
        }
        chain
    }

    /// Where a variable lives.
    pub(crate) fn home(&self, var: Var) -> Home {
        self.homes[var]
    }

    /// The region an instruction is in.
    pub(crate) fn region_of(&self, inst: Inst) -> Option<Region> {
        self.region[inst.index()]
    }

    /// The instruction that holds a region; `None` for the body.
    pub(crate) fn holder_of(&self, region: Region) -> Option<Inst> {
        self.holder[region.index()]
    }

    /// The instructions around `inst`, from the inside out, up to those directly in `outermost`.
    pub(crate) fn around(&self, inst: Inst, outermost: Region) -> impl Iterator<Item = Inst> {
        let mut at = self.region_of(inst);
        std::iter::from_fn(move || {
            let region = at.filter(|&region| region != outermost)?;
            let holder = self.holder_of(region)?;
            at = self.region_of(holder);
            Some(holder)
        })
    }

    /// The loop that a `break` or `continue` of this depth belongs to, and everything between.
    pub(crate) fn loop_around(
        &self,
        function: &Function,
        inst: Inst,
        depth: u32,
    ) -> Option<(Inst, Vec<Inst>)> {
        let mut between = Vec::new();
        let mut left = depth;
        for holder in self.around(inst, function.body) {
            let is_loop = function.insts[holder].data.is_loop();
            if is_loop && left == 0 {
                return Some((holder, between));
            }
            left -= u32::from(is_loop);
            between.push(holder);
        }
        None
    }
}
