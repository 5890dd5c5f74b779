//! A kernel as an expression takes nothing from around it, and is written without `fn`.

fn main() {
    let by = 2.0f32;
    let _ = kiln::kernel_expr!(scale(x: &mut [f32]) {
        x[0] *= by;
    });
    let _ = kiln::kernel_expr!(fn scale(x: &mut [f32]) {
        x[0] *= 2.0;
    });
}
