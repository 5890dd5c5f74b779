//! An intrinsic that says nothing of its row.
kiln::intrinsic! {
    fn popc(x: u32) -> u32 {
        x.count_ones()
    }
}

fn main() {}
