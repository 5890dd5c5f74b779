//! What is printed in a way that there is not.
use kiln::prelude::*;

#[kernel]
fn k(x: &[f32], n: u32, y: &mut [f32]) {
    println!("{} {}", n);
    println!("{}", n, n);
    println!("{1}", n);
    println!("{:w$}", n, w = 3);
    println!("{:.*}", 3, x[0]);
    println!("{");
    println!("}");
    println!("{n + 1}");
    println!(n);
    eprintln!("{m}");
    let text = format!("{n}");
    writeln!(y, "{n}");
}

fn main() {}
