//! Captures of other code's streams in the same process (`cudaStreamBeginCapture`): what Kiln's calls do meanwhile.

use expect_test::expect;
use kiln::core::lent::DeviceStream;
use kiln::prelude::*;

use crate::fake::Fake;
use crate::hooked::put;
use crate::lent::TheirStream;

/// The modes of a capture: global, as it is if nobody says otherwise, and of the thread.
const MODES: [u32; 2] = [0, 1];
/// A stream of code that Kiln has nothing to do with.
const THEIRS: usize = 0x77;

#[kernel]
fn uses_w(x: &mut [u32]) {
    x[0] = 1;
}

fn jit(fake: &Fake) -> kiln::Result<Jit> {
    Ok(Jit::on(Device::cuda_of(fake.open().expect("it opens"), 0)?))
}

/// Most that a program asks of a device.
fn work(jit: &Jit) -> kiln::Result<()> {
    let mut x = jit.upload(&[1u32; 8])?;
    let stream = jit.stream()?;
    let fresh = Jit::on(jit.device().clone());
    fresh.launch(&put(), 1, 8, args!(&mut x, 7u32))?;
    uses_w.launch(&stream, (1, 1), &mut x)?;
    assert_eq!(x.to_vec()?.len(), 8);
    x.fill(3)?;
    let read = x.read_later(jit.pinned(&[0u32; 8])?)?;
    stream.record()?.synchronize()?;
    drop(read.wait()?);
    stream.synchronize()?;
    jit.device().trim()?;
    jit.synchronize()
}

#[test]
fn no_call_is_refused_and_none_ends_a_capture() -> kiln::Result<()> {
    for mode in MODES {
        for in_this_thread in [true, false] {
            let fake = Fake::new();
            let jit = jit(&fake)?;
            let begin = || fake.begin_capture(THEIRS, mode);
            match in_this_thread {
                true => begin(),
                false => std::thread::scope(|scope| {
                    scope.spawn(begin);
                }),
            }
            work(&jit)?;
            drop(jit);
            assert_eq!(fake.ledger().total(), 0, "what is dropped is freed");
            assert_eq!(fake.end_capture(THEIRS), (0, 0), "mode {mode}");
            assert_eq!(fake.capture_mode(), 0, "the thread's own mode");
        }
    }
    Ok(())
}

/// What a driver says without the call by which a thread keeps out of captures.
#[test]
fn a_refusal_says_why() -> kiln::Result<()> {
    let fake = Fake::without(&["cuThreadExchangeStreamCaptureMode"]);
    let jit = jit(&fake)?;
    fake.begin_capture(THEIRS, 0);
    let refused = work(&jit).unwrap_err().to_string();
    expect!["cuMemAlloc failed: unknown code (900: the driver has no description of it). Other code of the process captures a stream (`cudaStreamBeginCapture`): make this call before or after, or have it captured in the mode `cudaStreamCaptureModeThreadLocal`; what is captured meanwhile may have to be captured again"].assert_eq(&refused);
    assert_eq!(fake.end_capture(THEIRS), (901, 0));
    work(&jit)
}

/// A stream of theirs that Kiln has adopted is captured itself.
#[test]
fn a_stream_that_is_captured_takes_no_work() -> kiln::Result<()> {
    let fake = Fake::new();
    let jit = jit(&fake)?;
    let theirs = TheirStream::new(&fake);
    let handle = theirs.as_raw().addr();
    let adopted = jit.adopt_stream(theirs)?;
    let mut x = jit.zeros::<u32>(4)?;
    let mut graph = jit.graph((&mut x,), |g, (mut x,)| {
        g.launch(&uses_w, 1, 1, args!(&mut x))
    })?;
    uses_w.launch(&adopted, (1, 1), &mut x)?;
    fake.begin_capture(handle, 0);
    let (other, captured) = (jit.stream()?, TheirStream::new(&fake));
    fake.begin_capture(captured.as_raw().addr(), 0);
    let refused = [
        uses_w.launch(&adopted, (1, 1), &mut x),
        graph.replay_on(&adopted, args!(&mut x)),
        adopted.synchronize(),
        adopted.record().map(drop),
        adopted.zeros::<u32>(4).map(drop),
        // What other streams would wait for it by joins the capture.
        uses_w.launch(&other, (1, 1), &mut x),
        x.to_vec().map(drop),
        jit.adopt_stream(captured).map(drop),
    ];
    for (at, refused) in refused.into_iter().enumerate() {
        let error = refused.expect_err("it is captured").to_string();
        assert!(
            error.starts_with("the stream is being captured"),
            "{at}: {error}"
        );
    }
    // What is freed meanwhile waits until then.
    drop(x);
    assert_eq!(fake.end_capture(handle), (0, 0));
    let mut x = jit.zeros::<u32>(4)?;
    uses_w.launch(&adopted, (1, 1), &mut x)?;
    x.to_vec()?;
    drop((x, graph, other, adopted, jit));
    assert_eq!(fake.race(), None);
    assert_eq!(fake.ledger().total(), 0);
    Ok(())
}

/// A stream that is left while it is captured: what it was given before is waited for.
#[test]
fn a_stream_that_is_captured_is_left() -> kiln::Result<()> {
    let fake = Fake::new();
    let jit = jit(&fake)?;
    let theirs = TheirStream::new(&fake);
    let handle = theirs.as_raw().addr();
    let adopted = jit.adopt_stream(theirs)?;
    let mut x = jit.zeros::<u32>(4)?;
    uses_w.launch(&adopted, (1, 1), &mut x)?;
    fake.begin_capture(handle, 0);
    drop(adopted);
    drop(x);
    assert_eq!(fake.end_capture(handle).1, 0);
    assert_eq!(fake.race(), None);
    Ok(())
}
