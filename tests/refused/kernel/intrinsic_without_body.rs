//! An intrinsic that says nothing of what it means.
kiln::intrinsic! {
    fn once(x: u32) -> u32 = row("example.once");
}

fn main() {}
