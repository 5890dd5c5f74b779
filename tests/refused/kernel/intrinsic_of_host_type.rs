//! Intrinsics of what no register holds.
kiln::intrinsic! {
    fn length(text: &str) -> u32 {
        text.len() as u32
    } = row("example.length");

    fn index(x: u32) -> usize {
        x as usize
    } = row("example.index");
}

fn main() {}
