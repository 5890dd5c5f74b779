//! Which code is that of other `Jit`s of the device.

use std::fmt::Write;
use std::sync::Arc;

use super::{Jit, JitOptions};
use crate::cache::{CacheKey, CodeOrigin, LoadedCodeOf, Request, SharedCode};
use kiln_compiler::definition::Snapshot;
use kiln_compiler::error::Result;
use kiln_compiler::hook::HookSet;
use kiln_compiler::ir::IntrinsicDef;
use kiln_compiler::target::Target;
use kiln_compiler::under_way::UnderWay;

/// What decides code besides its key and the rows of its kernel, in a `Jit` with these settings. `None`: it shares none.
pub(super) fn sharing(options: &JitOptions, hooks: &HookSet, target: &Target) -> Option<String> {
    // Who adds a setting says here whether it tells code apart.
    let JitOptions {
        share_code,
        observer,
        // The interpreter's code holds them.
        checks,
        // What is found there may be for a lesser machine, and what is compiled is to be kept there.
        cache,
        shipped,
        // A hook may send a kernel to their targets.
        isas,
        // Fields of the key.
        compile: _,
        specialize_facts: _,
        target: _,
        // No part of code.
        time_limit: _,
        memory_bound: _,
        on_fault: _,
        on_print: _,
    } = options;
    let is_own = !isas.are_kilns() || matches!(target, Target::Custom(_));
    if !share_code || observer.is_some() || is_own {
        return None;
    }
    let mut text = format!("{checks:?} {cache:?} {shipped:?}");
    for number in hooks.iter().filter_map(|hook| hook.own_number()) {
        write_number(&mut text, "hook", number as usize);
    }
    let put_in = hooks.iter().flat_map(|hook| hook.rows().iter().copied());
    put_in.for_each(|row| write_row(&mut text, row));
    Some(text)
}

/// Rows are told apart by where they lie, as code calls the functions of just these.
fn write_row(text: &mut String, row: &'static IntrinsicDef) {
    write_number(text, "row", std::ptr::from_ref(row).addr());
}

fn write_number(text: &mut String, what: &str, number: usize) {
    // Writing to a String cannot fail.
    let _ = write!(text, " {what} {number}");
}

impl Jit {
    /// What decides the code of a kernel besides its key, where it is shared.
    pub(super) fn sharing(&self, snapshot: &Snapshot) -> Option<String> {
        let mut text = self.0.sharing.clone()?;
        let modules = snapshot.bodies.iter().map(|(_, body)| &body.module);
        let rows = modules.flat_map(|module| module.intrinsics.values());
        rows.for_each(|row| write_row(&mut text, row));
        Some(text)
    }

    /// Where code is among what the `Jit`s of the device share.
    pub(super) fn shared_code(
        &self,
        request: &Request,
        key: &CacheKey,
    ) -> Option<(&SharedCode, [u8; 32])> {
        let sharing = request.sharing.as_ref()?;
        let digest = key.clone().with("sharing", sharing).digest();
        Some((self.0.device.beside()?, digest))
    }

    /// The code that a `Jit` of the device has, or that `make` makes for all, and where it came from.
    pub(super) fn made_once(
        &self,
        table: &SharedCode,
        digest: [u8; 32],
        make: impl FnOnce() -> Result<LoadedCodeOf>,
    ) -> Result<(Arc<LoadedCodeOf>, CodeOrigin)> {
        let mut is_made = false;
        let usable = || Ok(self.0.device.backend().usable()?);
        let shared = table.get_or_make(
            digest,
            !UnderWay::is_nested(),
            |_| usable(),
            || {
                is_made = true;
                make()
            },
        )?;
        let origin = match is_made {
            true => shared.origin,
            false => self.0.cache.note_shared(&shared.by),
        };
        Ok((shared, origin))
    }
}
