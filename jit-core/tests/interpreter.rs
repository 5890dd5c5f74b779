//! The interpreter on kernels written as text: what ends a launch early, and memory that is not
//! the launch's. What operations mean is the subject of the suite over all devices.

use expect_test::{Expect, expect};
use kiln_jit_core::checks::Checks;
use kiln_jit_core::interp::{InterpretError, InterpretLaunch, InterpretedKernel};
use kiln_jit_core::ir::parse;
use kiln_jit_core::legal::Legal;
use kiln_jit_core::runtime::BlockOrder;

/// Runs a kernel of one thread on `memory`, whose address is its first parameter.
fn run(text: &str, memory: &mut [u64], step_limit: Option<u64>) -> Result<(), InterpretError> {
    let module = parse(text, &|_| None).expect("the text parses");
    let legal = Legal::new(module).expect("the module verifies");
    let kernel = InterpretedKernel::new(&legal)?;
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    let mut params = address.to_le_bytes().to_vec();
    params.resize(kernel.layout().size as usize, 0);
    launch(&kernel, memory, [1; 3], &params, step_limit)
}

fn launch(
    kernel: &InterpretedKernel,
    memory: &mut [u64],
    block: [u32; 3],
    params: &[u8],
    step_limit: Option<u64>,
) -> Result<(), InterpretError> {
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    let launch = InterpretLaunch {
        grid: [1; 3],
        block,
        dynamic_shared: 0,
        params,
        kernel_tag: 0,
        step_limit,
        order: BlockOrder::Increasing,
    };
    let range = (address, size_of_val(memory) as u64);
    // SAFETY: the range is `memory`, which is borrowed mutably until the run is over.
    let fault = unsafe { kernel.run(&launch, &[range])? };
    assert_eq!(fault, None);
    Ok(())
}

/// Compares an error's text, with the address, which differs from run to run, left out.
fn check(result: Result<(), InterpretError>, want: Expect) {
    let text = result.expect_err("it goes wrong").to_string();
    // An index of a thread, `0x0x0`, is no address.
    let is_address = |w: &str| w.starts_with("0x") && !w[2..].contains('x');
    let words = text.split(' ').map(|w| match is_address(w) {
        true => "ADDRESS",
        false => w,
    });
    want.assert_eq(&words.collect::<Vec<_>>().join(" "));
}

#[test]
fn memory_of_the_launch_is_read_and_written() {
    let mut memory = [20, 22];
    let text = "module add legal
        kernel @add(%0 p: ptr<global, mut u64>) {
          %1: u32 = const 1
          %2: ptr<global, mut u64> = ptr_offset %0, %1
          %3: u64 = load %0
          %4: u64 = load %2
          %5: u64 = add %3, %4
          store %2, %5
          return
        }";
    assert_eq!(run(text, &mut memory, None), Ok(()));
    assert_eq!(memory, [20, 42]);
}

#[test]
fn an_address_behind_the_memory() {
    let text = "module wild legal
        kernel @wild(%0 p: ptr<global, mut u64>) {
          %1: u32 = const 2
          %2: ptr<global, mut u64> = ptr_offset %0, %1
          %3: u64 = const 7
          store %2, %3
          return
        }";
    check(
        run(text, &mut [0, 0], None),
        expect![
            "kernel `wild`, unknown: an access to 8 bytes at ADDRESS which is no memory of this launch (block [0, 0, 0], thread [0, 0, 0]); check pointers and unchecked indices"
        ],
    );
}

#[test]
fn the_last_addresses_there_are() {
    // The first access of a launch, and an end that is 2^64: nothing may wrap around to 0.
    let text = "module last legal
        kernel @last(%0 p: ptr<global, mut u64>) {
          %1: u64 = const 18446744073709551608
          %2: ptr<global, mut u64> = bitcast %1
          %3: u64 = load %2
          store %0, %3
          return
        }";
    check(
        run(text, &mut [0], None),
        expect![
            "kernel `last`, unknown: an access to 8 bytes at ADDRESS which is no memory of this launch (block [0, 0, 0], thread [0, 0, 0]); check pointers and unchecked indices"
        ],
    );
}

#[test]
fn launches_that_no_kernel_could_run() {
    let text = "module idle legal
        kernel @idle(%0 p: ptr<global, mut u64>) {
          return
        }";
    let module = parse(text, &|_| None).expect("the text parses");
    let legal = Legal::new(module).expect("the module verifies");
    let kernel = InterpretedKernel::new(&legal).expect("the module is fine");
    check(
        launch(&kernel, &mut [], [1; 3], &[0; 4], None),
        expect![
            "kernel `idle` cannot be launched like this: its parameters take 8 bytes and 4 are given; lay them out as `layout` says"
        ],
    );
    check(
        launch(&kernel, &mut [], [u32::MAX; 3], &[0; 32], None),
        expect![
            "kernel `idle` cannot be launched like this: a block of 4294967295 x 4294967295 x 4294967295 threads; at most 1024 are possible"
        ],
    );
}

#[test]
fn an_address_that_is_not_aligned() {
    let text = "module odd legal
        kernel @odd(%0 p: ptr<global, mut u8>) {
          %1: u32 = const 1
          %2: ptr<global, mut u8> = ptr_offset %0, %1
          %3: ptr<global, mut u32> = bitcast %2
          %4: u32 = load %3
          return
        }";
    check(
        run(text, &mut [0, 0], None),
        expect![
            "kernel `odd`, unknown: an access to 4 bytes at ADDRESS is not aligned to its size (block [0, 0, 0], thread [0, 0, 0]); check pointers and offsets"
        ],
    );
}

#[test]
fn a_loop_without_end() {
    let text = "module spin legal
        kernel @spin(%0 p: ptr<global, mut u64>) {
          loop {
            %1: u64 = load %0
          }
        }";
    check(
        run(text, &mut [0], Some(1000)),
        expect![
            "kernel `spin`, unknown: a thread made more than 1000 loop iterations; end the loop or raise the limit"
        ],
    );
}

#[test]
fn a_loop_within_the_limit() {
    let text = "module count legal
        kernel @count(%0 p: ptr<global, mut u64>) {
          %1: u64 = const 0
          %2: u64 = const 1000
          %3: u64 = const 1
          for %4: u64 in %1 .. %2 step %3 {
            store %0, %4
          }
          return
        }";
    let mut memory = [5];
    assert_eq!(run(text, &mut memory, Some(1000)), Ok(()));
    assert_eq!(memory, [999]);
}

/// Two threads that write through a plain pointer: nothing has a name.
#[test]
fn a_race_in_memory_without_a_name() {
    let text = "module racy legal
        kernel @racy(%0 p: ptr<global, mut u64>) {
          %1: u32 = const 1
          %2: ptr<global, mut u64> = ptr_offset %0, %1
          %3: u64 = const 7
          store %2, %3
          return
        }";
    let module = parse(text, &|_| None).expect("the text parses");
    let legal = Legal::new(module).expect("the module verifies");
    let kernel = InterpretedKernel::new(&legal).expect("the module is fine");
    let mut memory = [0u64; 3];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    let mut params = address.to_le_bytes().to_vec();
    params.resize(kernel.layout().size as usize, 0);
    let launch = InterpretLaunch {
        grid: [1; 3],
        block: [2, 1, 1],
        dynamic_shared: 0,
        params: &params,
        kernel_tag: 0,
        step_limit: None,
        order: BlockOrder::Increasing,
    };
    let run = |checks| {
        // SAFETY: the range is `memory`, which nobody else uses until the run is over.
        let result = unsafe { kernel.run_checked(&launch, &[(address, 24)], &checks) };
        result.map(drop)
    };
    assert_eq!(run(Checks::none().barriers().uninitialized()), Ok(()));
    check(
        run(Checks::all()),
        expect![
            "kernel `racy`, unknown: a race on byte 8 of 24 in global memory: thread 1x0x0 of block 0x0x0 writes it here, thread 0x0x0 of block 0x0x0 writes it at unknown, in no order; put a `barrier()` between them, or make both atomic"
        ],
    );
    assert_eq!(memory, [0, 7, 0]);
}
