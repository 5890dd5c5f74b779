//! An intrinsic with a type parameter.
kiln::intrinsic! {
    fn same<T>(x: T) -> T {
        x
    } = row("example.same");
}

fn main() {}
