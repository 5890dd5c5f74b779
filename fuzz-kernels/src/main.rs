//! Runs random kernels on all backends.

fn main() {
    use kiln_random::*;
    use kiln_jit_core::ir::verify;
    let n: u64 = std::env::args().nth(1).map_or(200, |a| a.parse().unwrap());
    let budget = Budget::default();
    let (mut insts, mut gen_t, mut ver_t, mut run_t) = (0, 0.0, 0.0, 0.0);
    let mut bad = 0; let mut cov = Coverage::default();
    for seed in 0..n {
        let t = std::time::Instant::now();
        let case = generate(seed, &budget); if std::env::args().nth(2).and_then(|s| s.parse().ok()) == Some(seed) { println!("{}", case.to_text()); return; }
        gen_t += t.elapsed().as_secs_f64(); let c = coverage(&case); if c.divergent_barriers > 0 { println!("seed {seed}: divergent barrier"); bad += 1; } cov.merge(&c);
        insts += case.instructions();
        let t = std::time::Instant::now();
        if let Err(e) = verify(&case.module) { println!("seed {seed}: {e}"); bad += 1; if bad > 3 { break } continue; }
        ver_t += t.elapsed().as_secs_f64();
        let t = std::time::Instant::now();
        let r = InterpreterRunner.run(&case);
        run_t += t.elapsed().as_secs_f64();
        if let Err(e) = r.map(|_| ()).and_then(|_| sound(&case)) { println!("seed {seed}: {e}"); bad += 1; if bad > 8 {break} continue; }
        let text = case.to_text(); if std::env::args().nth(2).and_then(|s| s.parse().ok()) == Some(seed) { println!("{text}"); }
        let back = Case::from_text(&text).unwrap();
        if back.to_text() != text { println!("seed {seed}: round trip"); bad += 1; std::fs::write("/tmp/rt_a", &text).unwrap(); std::fs::write("/tmp/rt_b", back.to_text()).unwrap(); if bad > 8 {break}}
    }
    println!("{cov}"); let n = n as f64 / 1e3;
    println!("insts {} gen {:.3}ms verify {:.3}ms run {:.3}ms", insts as f64 / n / 1e3, gen_t / n, ver_t / n, run_t / n);
}
