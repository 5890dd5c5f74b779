//! `#[derive(KernelType)]`: structs and enums as arguments, in buffers, in shared memory.

use kiln::prelude::*;

use super::{Outcome, chapter, exact};

chapter![
    structs_in_buffers,
    what_is_no_variant_is_not_read_back,
    generic_structs,
    structs_with_numbered_fields,
    aligned_structs,
    structs_in_shared_memory,
    types_named_as_on_the_host
];

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Pair<A, B> {
    first: A,
    second: B,
}

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Body {
    position: [f32; 3],
    mass: f32,
    kind: Kind,
    alive: bool,
    tags: Pair<u8, u64>,
}

/// 12 bytes, and 4 that are padding.
#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C, align(16))]
struct Place {
    x: f32,
    y: f32,
    z: f32,
}

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Tagged {
    tag: u8,
    place: Place,
    halves: Halves,
}

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(align(8), C)]
struct Halves(u16, u16);

#[derive(KernelType, Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Star = 3,
    Planet = 5,
    Dust = 9,
}

#[derive(KernelType, Copy, Clone, Debug, PartialEq)]
#[repr(C)]
struct Meters(f64, i32);

#[device_fn]
fn weigh(body: &Body) -> f32 {
    match body.kind {
        Kind::Star => body.mass * 1000.0,
        Kind::Planet if body.alive => body.mass + 1.0,
        Kind::Planet | Kind::Dust => body.mass,
    }
}

#[kernel]
fn step(bodies: &mut [Body], by: Pair<f32, Kind>, weights: &mut [f32]) {
    let i = global_id().x;
    if i >= bodies.len() {
        return;
    }
    let mut body = bodies[i];
    weights[i] = weigh(&body);
    for axis in 0..3 {
        body.position[axis] += by.first * (axis as f32 + 1.0);
    }
    if body.kind == by.second {
        body.kind = Kind::Dust;
    }
    bodies[i] = body;
    bodies[i].tags.second += 1 << 40;
    bodies[i].alive = !body.alive;
}

fn body(i: u32) -> Body {
    Body {
        position: [i as f32, 1.0, -2.0],
        mass: i as f32 * 0.5,
        kind: [Kind::Star, Kind::Planet, Kind::Dust][i as usize % 3],
        alive: i < 10,
        tags: Pair {
            first: i as u8,
            second: u64::from(i),
        },
    }
}

fn structs_in_buffers(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let before: Vec<Body> = (0..20).map(body).collect();
    let mut bodies = jit.upload(&before)?;
    let mut weights = jit.zeros::<f32>(20)?;
    let by = Pair {
        first: 0.5f32,
        second: Kind::Planet,
    };
    jit.launch(&step, 1, 32, args!(&mut bodies, by, &mut weights))?;
    let weights = weights.to_vec()?;
    for (i, (got, mut want)) in bodies.to_vec()?.into_iter().zip(before).enumerate() {
        assert_eq!(weights[i], weigh(&want));
        for axis in 0..3 {
            want.position[axis] += 0.5 * (axis as f32 + 1.0);
        }
        if want.kind == Kind::Planet {
            want.kind = Kind::Dust;
        }
        want.alive = !want.alive;
        want.tags.second += 1 << 40;
        assert_eq!(got, want, "{i}");
    }
    Ok(())
}

#[kernel]
fn write_number(out: &mut [u32]) {
    out[2] = 77;
}

fn what_is_no_variant_is_not_read_back(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let mut kinds = jit.upload(&[Kind::Star; 4])?;
    assert_eq!(kinds.to_vec()?, vec![Kind::Star; 4]);
    // In the IR an enum is its integer type.
    jit.launch(&write_number, 1, 1, args!(&mut kinds))?;
    let error = kinds.to_vec().expect_err("77 is no kind").to_string();
    assert!(
        error.contains("element 2") && error.contains("Kind"),
        "{error}"
    );
    let zeros = jit.zeros::<Kind>(1)?;
    assert!(zeros.to_vec().is_err());
    Ok(())
}

#[kernel]
fn generic_pairs<A: Num, B: KernelType>(x: &[Pair<A, B>], out: &mut [Pair<B, A>]) {
    let i = global_id().x;
    let pair = x[i];
    out[i] = Pair {
        second: pair.first + A::ONE,
        first: pair.second,
    };
}

fn generic_structs(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let pairs: Vec<_> = (0..8)
        .map(|i| Pair {
            first: i as f32,
            second: i as u8,
        })
        .collect();
    let x = jit.upload(&pairs)?;
    let mut out = jit.zeros::<Pair<u8, f32>>(8)?;
    jit.launch(&generic_pairs, 1, 8, args!(&x, &mut out))?;
    let want: Vec<_> = (0..8)
        .map(|i| Pair {
            first: i as u8,
            second: i as f32 + 1.0,
        })
        .collect();
    assert_eq!(out.to_vec()?, want);
    Ok(())
}

#[kernel]
fn tuple_structs(out: &mut [Meters], by: f64) {
    let m = Meters(by * 2.0, 3);
    let Meters(a, b) = m;
    out[0] = Meters(a + 0.5, b + m.1);
    out[1].0 = m.0;
}

fn structs_with_numbered_fields(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let mut out = jit.zeros::<Meters>(2)?;
    jit.launch(&tuple_structs, 1, 1, args!(&mut out, 4.0f64))?;
    assert_eq!(out.to_vec()?, vec![Meters(8.5, 6), Meters(8.0, 0)]);
    Ok(())
}

#[kernel]
fn rotate(bodies: &mut [Pair<i32, f32>]) {
    let tile = shared!([Pair<i32, f32>; 32]);
    let i = thread_idx().x;
    tile[i] = bodies[i];
    tile[i].first *= 2;
    barrier();
    bodies[i] = tile[(i + 1) % 32];
}

fn structs_in_shared_memory(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let pair = |i: i32| Pair {
        first: i,
        second: i as f32,
    };
    let mut bodies = jit.upload(&(0..32).map(pair).collect::<Vec<_>>())?;
    jit.launch(&rotate, 1, 32, args!(&mut bodies))?;
    let want: Vec<_> = (0..32)
        .map(|i| (i + 1) % 32)
        .map(|i| Pair {
            first: i * 2,
            second: i as f32,
        })
        .collect();
    assert_eq!(bodies.to_vec()?, want);
    Ok(())
}

#[device_fn]
fn turned(place: Place) -> Place {
    Place {
        x: -place.y,
        y: place.x,
        z: place.z,
    }
}

/// Reverses the places of a block, and turns each.
#[kernel]
fn turn(tagged: &mut [Tagged], places: &[Place], by: Place) {
    let tile = shared!([Place; 32]);
    let (i, last) = (thread_idx().x, tagged.len() - 1);
    if i <= last {
        tile[i] = tagged[i].place;
    }
    barrier();
    if i <= last {
        let mut own = tagged[i];
        let own_places = [places[i], tile[last - i]];
        let mut place = turned(own_places[i % 2]);
        place.z += by.z;
        own.place = place;
        own.halves.1 += own.halves.0;
        tagged[i] = own;
        tagged[i].tag += 1;
    }
}

fn aligned_structs(jit: &Jit) -> Outcome {
    let jit = exact(jit);
    let place = |i: usize| Place {
        x: i as f32,
        y: 0.5 * i as f32,
        z: 100.0,
    };
    let tagged = |i: usize| Tagged {
        tag: i as u8,
        place: place(i),
        halves: Halves(7, i as u16),
    };
    let before: Vec<Tagged> = (0..20).map(tagged).collect();
    let places: Vec<Place> = (0..20).map(|i| place(50 + i)).collect();
    let (on_device, by) = (jit.upload(&places)?, place(3));
    let mut after = jit.upload(&before)?;
    turn.launch(&jit, (1, 32), &mut after, &on_device, by)?;
    let wanted = (0..20).map(|i| {
        let from = [places[i], before[19 - i].place];
        let mut place = turned(from[i % 2]);
        place.z += by.z;
        Tagged {
            tag: before[i].tag + 1,
            place,
            halves: Halves(7, 7 + i as u16),
        }
    });
    assert_eq!(after.to_vec()?, wanted.collect::<Vec<_>>());
    Ok(())
}

/// Types of a user's that are called as types of the host.
mod named_as_on_the_host {
    use kiln::prelude::*;

    #[derive(KernelType, Copy, Clone, Debug, PartialEq)]
    #[repr(u8)]
    pub enum Cell {
        Empty,
        Wall,
    }

    #[derive(KernelType, Copy, Clone, Debug, PartialEq)]
    #[repr(C)]
    pub struct Box {
        pub low: f32,
        pub high: f32,
    }

    #[device_fn]
    impl Box {
        pub fn new(low: f32, high: f32) -> Box {
            Box { low, high }
        }
    }

    #[kernel]
    pub fn widened(cells: &[Cell], boxes: &mut [Box]) {
        let i = global_id().x;
        if i < cells.len() && cells[i] == Cell::Wall {
            let Box { low, high } = boxes[i];
            boxes[i] = Box::new(low - 1.0, high + 1.0);
        }
    }
}

fn types_named_as_on_the_host(jit: &Jit) -> Outcome {
    use named_as_on_the_host::{Box, Cell, widened};
    let cells = jit.upload(&[Cell::Wall, Cell::Empty])?;
    let mut boxes = jit.upload(&[Box::new(1.0, 2.0); 2])?;
    widened.launch(jit, (1, 32), &cells, &mut boxes)?;
    let wanted = [Box::new(0.0, 3.0), Box::new(1.0, 2.0)];
    assert_eq!(boxes.to_vec()?, wanted);
    Ok(())
}
