//! A row whose name could be any program's.
kiln::intrinsic! {
    fn popc(x: u32) -> u32 {
        x.count_ones()
    } = row("popc");
}

fn main() {}
