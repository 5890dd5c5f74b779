//! A field of `self` gets a name first.

use kiln::prelude::*;

struct Model {
    scale: f32,
}

impl Model {
    fn apply(&self, x: &Array<f32>) -> Expr<f32> {
        x.map(device!(|v| v * self.scale))
    }
}

fn main() {
    let _ = Model::apply;
}
