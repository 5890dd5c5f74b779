//! What a launch passes besides its arguments: values that hooks give, and addresses of globals.

use std::cell::Cell;
use std::sync::Arc;

use super::Jit;
use super::printed::Output;
use kiln_compiler::abi::{LaunchArgs, ParamKind};
use kiln_compiler::code::KernelInfo;
use kiln_compiler::compile::failed;
use kiln_compiler::error::Result;
use kiln_compiler::hook::{
    Given, HiddenArguments, HiddenError, Hook, HookError, HookErrorKind, HookPoint, LaunchEvent,
    Observed, at,
};
use kiln_compiler::ir::HiddenSource;
use kiln_compiler::ir::printed::GLOBAL;
use kiln_compiler::launch::LaunchConfig;
use kiln_compiler::runtime::{Buffer, OrderedStream, Uses};

thread_local! {
    /// Whether hooks are giving values on this thread.
    static GIVING: Cell<bool> = const { Cell::new(false) };
}

/// Hooks give values, for as long as this is there.
struct Giving;

impl Giving {
    /// `None` if they do so already: a launch of theirs would ask them again, and again.
    fn begin() -> Option<Giving> {
        (!GIVING.replace(true)).then_some(Giving)
    }
}

impl Drop for Giving {
    fn drop(&mut self) {
        GIVING.set(false);
    }
}

/// What a launch shares with hooks until it was handed to the device.
#[derive(Default)]
pub(super) struct Held {
    given: Given,
    copies: Vec<Buffer<u8>>,
    globals: Vec<Arc<Buffer<u8>>>,
    /// Where a kernel prints that prints.
    output: Option<Arc<Output>>,
}

impl Held {
    /// Says that the launch was made in a stream.
    pub(super) fn launched(&self, stream: &OrderedStream) {
        if let Some(output) = &self.output {
            output.expect(stream);
        }
    }

    /// The uses of each buffer, and whether the kernel may write there.
    pub(super) fn uses(&self) -> impl Iterator<Item = (&Uses, bool)> {
        let shared = self.globals.iter().map(|global| global.uses());
        let shared = shared.chain(self.given.uses()).map(|uses| (uses, true));
        shared.chain(self.copies.iter().map(|copy| (copy.uses(), false)))
    }
}

impl Jit {
    /// Asks the hooks that have hidden arguments in a kernel for their values, and writes these.
    #[cold]
    pub(super) fn give_hidden(
        &self,
        info: &Arc<KernelInfo>,
        config: &LaunchConfig,
        observed: Option<&Observed<'_>>,
        block: &mut LaunchArgs<'_>,
    ) -> Result<Held> {
        let mut held = Held::default();
        let own;
        let observed = match observed {
            Some(observed) => observed,
            None => {
                own = Observed::new(info, config, &self.0.device, self.order());
                &own
            }
        };
        for hook in self.0.hooks.iter() {
            self.ask(hook, info, &observed.event(block), &mut held.given)?;
        }
        if let Some((hook, missing)) = held.given.nobodys(info) {
            let name = missing.name.clone();
            return Err(HookError {
                hook: hook.to_owned(),
                kernel: info.name.clone(),
                point: HookPoint::HiddenArguments,
                kind: HookErrorKind::NotGiven(HiddenError::NoHook { name }),
            }
            .into());
        }
        for global in &info.hidden {
            if let (HiddenSource::Global(initial), Some(ParamKind::Value(slot))) =
                (&global.source, global.passed)
            {
                let initial = initial.as_deref();
                let memory = self.0.globals.enter(&self.0.device, global, initial)?;
                block.put_number(slot, memory.address());
                if global.name == GLOBAL {
                    self.0.output.know(info, &memory);
                    held.output = Some(self.0.output.clone());
                }
                held.globals.push(memory);
            }
        }
        let copies = &mut held.copies;
        held.given.put(info, block, |bytes| {
            let copy = Buffer::from_slice(&self.0.device, bytes)?;
            let address = copy.address();
            copies.push(copy);
            Ok(address)
        })?;
        Ok(held)
    }

    /// Asks one hook.
    fn ask(
        &self,
        hook: &Hook,
        info: &KernelInfo,
        event: &LaunchEvent<'_>,
        given: &mut Given,
    ) -> Result<(), HookError> {
        let kernel = info.name.as_str();
        let not_given = |error| {
            let kind = HookErrorKind::NotGiven(error);
            hook.error(HookPoint::HiddenArguments, kernel, kind)
        };
        let Some(wanted) = given.missing(hook.name(), info) else {
            return Ok(());
        };
        let Some(_giving) = Giving::begin() else {
            let name = wanted.name.clone();
            return Err(not_given(HiddenError::Nested { name }));
        };
        hook.each(&at::hidden_arguments(), kernel, |give| {
            let device = &self.0.device;
            let mut hidden = HiddenArguments::new(hook.name(), info, device, given);
            failed(give(event, &mut hidden))
        })?;
        let missing = given.missing(hook.name(), info);
        missing.map_or(Ok(()), |info| {
            Err(not_given(HiddenError::Missing {
                name: info.name.clone(),
                declared: info.ty.clone(),
            }))
        })
    }
}
