//! The kernels, as a programmer who knows CUDA writes them: borders by `if`, by clamping or by `%`, weights in a slice.

use kiln::prelude::*;

pub const BLOCK: usize = 256;

/// A cell of the game of life by its eight neighbours, those beyond the border dead.
#[kernel]
pub fn life_guarded(from: &[u32], to: &mut [u32], width: u32, height: u32) {
    let (x, y) = (global_id().x as i32, global_id().y as i32);
    let (w, h) = (width as i32, height as i32);
    if x < w && y < h {
        let mut alive = 0;
        for dy in -1..=1 {
            for dx in -1..=1 {
                let (nx, ny) = (x + dx, y + dy);
                let is_other = dx != 0 || dy != 0;
                if is_other && nx >= 0 && nx < w && ny >= 0 && ny < h {
                    alive += from[(ny * w + nx) as usize];
                }
            }
        }
        let at = (y * w + x) as usize;
        let lives = alive == 3 || alive == 2 && from[at] == 1;
        to[at] = lives as u32;
    }
}

/// A cell of the game of life on a torus.
#[kernel]
pub fn life_torus(from: &[u32], to: &mut [u32], width: u32, height: u32) {
    let (x, y) = (global_id().x, global_id().y);
    let (w, h) = (width as usize, height as usize);
    if x < w && y < h {
        let (left, right) = ((x + w - 1) % w, (x + 1) % w);
        let (above, below) = ((y + h - 1) % h, (y + 1) % h);
        let alive = from[above * w + left]
            + from[above * w + x]
            + from[above * w + right]
            + from[y * w + left]
            + from[y * w + right]
            + from[below * w + left]
            + from[below * w + x]
            + from[below * w + right];
        let lives = alive == 3 || alive == 2 && from[y * w + x] == 1;
        to[y * w + x] = lives as u32;
    }
}

/// A sum of neighbours by weights, those beyond the ends left out.
#[kernel]
pub fn convolution(x: &[f32], weights: &[f32], y: &mut [f32], radius: u32) {
    let i = global_id().x as i32;
    let (n, radius) = (x.len() as i32, radius as i32);
    if i < n {
        let mut sum = 0.0;
        for j in -radius..=radius {
            let at = i + j;
            if at >= 0 && at < n {
                sum += x[at as usize] * weights[(j + radius) as usize];
            }
        }
        y[i as usize] = sum;
    }
}

/// The same with the elements of a block in shared memory.
#[kernel]
pub fn convolution_shared(x: &[f32], weights: &[f32], y: &mut [f32]) {
    let tile = shared!([f32; BLOCK + 8]);
    let (t, i, n) = (thread_idx().x, global_id().x, x.len());
    tile[t + 4] = if i < n { x[i] } else { 0.0 };
    if t < 4 {
        tile[t] = if i >= 4 && i - 4 < n { x[i - 4] } else { 0.0 };
        let behind = i + BLOCK;
        tile[t + BLOCK + 4] = if behind < n { x[behind] } else { 0.0 };
    }
    barrier();
    if i < n {
        let mut sum = 0.0;
        for j in 0..9 {
            sum += tile[t + j] * weights[j];
        }
        y[i] = sum;
    }
}

/// A pixel by weights of those around it, with indices that are clamped.
#[kernel]
pub fn convolution_2d(
    image: &[f32],
    weights: &[f32],
    out: &mut [f32],
    width: u32,
    height: u32,
    radius: u32,
) {
    let (x, y) = (global_id().x as i32, global_id().y as i32);
    let (w, h, r) = (width as i32, height as i32, radius as i32);
    if x < w && y < h {
        let side = 2 * r + 1;
        let mut sum = 0.0;
        for dy in -r..=r {
            for dx in -r..=r {
                let column = (x + dx).max(0).min(w - 1);
                let row = (y + dy).max(0).min(h - 1);
                sum += image[(row * w + column) as usize]
                    * weights[((dy + r) * side + dx + r) as usize];
            }
        }
        out[(y * w + x) as usize] = sum;
    }
}

/// Turns until a point of the complex plane is far away.
#[kernel]
pub fn mandelbrot(out: &mut [u32], width: u32, height: u32, limit: u32) {
    let (x, y) = (global_id().x, global_id().y);
    if x < width as usize && y < height as usize {
        let re = x as f32 * (3.5 / width as f32) - 2.5;
        let im = y as f32 * (2.0 / height as f32) - 1.0;
        let (mut a, mut b, mut turns) = (0.0f32, 0.0f32, 0u32);
        while a * a + b * b <= 4.0 && turns < limit {
            let next = a * a - b * b + re;
            b = 2.0 * a * b + im;
            a = next;
            turns += 1;
        }
        out[y * width as usize + x] = turns;
    }
}

/// An image of another size, each pixel between four.
#[kernel]
pub fn resize(from: &[f32], to: &mut [f32], w: u32, h: u32, nw: u32, nh: u32) {
    let (x, y) = (global_id().x as u32, global_id().y as u32);
    if x < nw && y < nh {
        let fx = (x as f32 + 0.5) * w as f32 / nw as f32 - 0.5;
        let fy = (y as f32 + 0.5) * h as f32 / nh as f32 - 0.5;
        let x0 = fx.floor().max(0.0) as u32;
        let y0 = fy.floor().max(0.0) as u32;
        let (x1, y1) = ((x0 + 1).min(w - 1), (y0 + 1).min(h - 1));
        let (ax, ay) = (fx - x0 as f32, fy - y0 as f32);
        let top = from[(y0 * w + x0) as usize] * (1.0 - ax) + from[(y0 * w + x1) as usize] * ax;
        let bottom = from[(y1 * w + x0) as usize] * (1.0 - ax) + from[(y1 * w + x1) as usize] * ax;
        to[(y * nw + x) as usize] = top * (1.0 - ay) + bottom * ay;
    }
}

/// A step of Floyd and Warshall's shortest paths, through `k`.
#[kernel]
pub fn floyd(distances: &mut [f32], n: u32, k: u32) {
    let (j, i) = (global_id().x, global_id().y);
    let (n, k) = (n as usize, k as usize);
    if i < n && j < n {
        let through = distances[i * n + k] + distances[k * n + j];
        if through < distances[i * n + j] {
            distances[i * n + j] = through;
        }
    }
}

#[device_fn]
fn normal(d: f32) -> f32 {
    let k = 1.0 / (1.0 + 0.231_641_9 * d.abs());
    let poly = k
        * (0.319_381_53
            + k * (-0.356_563_78 + k * (1.781_477_9 + k * (-1.821_255_9 + k * 1.330_274_4))));
    let tail = 0.398_942_3 * (-0.5 * d * d).exp() * poly;
    if d > 0.0 { 1.0 - tail } else { tail }
}

/// The prices of options by Black and Scholes.
#[kernel]
pub fn black_scholes(
    price: &[f32],
    strike: &[f32],
    years: &[f32],
    call: &mut [f32],
    put: &mut [f32],
) {
    let i = global_id().x;
    if i < price.len() {
        let (s, x, t) = (price[i], strike[i], years[i]);
        let root = t.sqrt();
        let d1 = ((s / x).ln() + (0.02 + 0.5 * 0.3 * 0.3) * t) / (0.3 * root);
        let d2 = d1 - 0.3 * root;
        let later = x * (-0.02 * t).exp();
        call[i] = s * normal(d1) - later * normal(d2);
        put[i] = later * (1.0 - normal(d2)) - s * (1.0 - normal(d1));
    }
}

/// A stencil of seven points in a cube, but for its border.
#[kernel]
pub fn stencil_3d(from: &[f32], to: &mut [f32], nx: u32, ny: u32, nz: u32) {
    let (x, y, z) = (global_id().x, global_id().y, global_id().z);
    let (nx, ny, nz) = (nx as usize, ny as usize, nz as usize);
    if x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1 {
        let at = (z * ny + y) * nx + x;
        let sum = from[at - 1]
            + from[at + 1]
            + from[at - nx]
            + from[at + nx]
            + from[at - nx * ny]
            + from[at + nx * ny];
        to[at] = 0.4 * from[at] + 0.1 * sum;
    }
}

/// How often each value of 256 is there, counted by blocks first.
#[kernel]
pub fn histogram(x: &[u32], bins: &mut [u32]) {
    let mine = shared!([u32; 256]);
    let t = thread_idx().x;
    mine[t] = 0;
    barrier();
    let step = grid_dim().x * block_dim().x;
    let mut i = global_id().x;
    while i < x.len() {
        atomic_add(&mut mine[(x[i] % 256) as usize], 1);
        i += step;
    }
    barrier();
    atomic_add(&mut bins[t], mine[t]);
}

/// Softmax of rows, a block each.
#[kernel]
pub fn softmax(x: &[f32], y: &mut [f32], columns: u32) {
    let part = shared!([f32; BLOCK]);
    let (t, row, columns) = (thread_idx().x, block_idx().x, columns as usize);
    let start = row * columns;
    let mut largest = f32::NEG_INFINITY;
    let mut i = t;
    while i < columns {
        largest = largest.max(x[start + i]);
        i += BLOCK;
    }
    part[t] = largest;
    barrier();
    let mut half = BLOCK / 2;
    while half > 0 {
        if t < half {
            part[t] = part[t].max(part[t + half]);
        }
        barrier();
        half /= 2;
    }
    let largest = part[0];
    barrier();
    let mut sum = 0.0;
    let mut i = t;
    while i < columns {
        sum += (x[start + i] - largest).exp();
        i += BLOCK;
    }
    part[t] = sum;
    barrier();
    let mut half = BLOCK / 2;
    while half > 0 {
        if t < half {
            part[t] += part[t + half];
        }
        barrier();
        half /= 2;
    }
    let sum = part[0];
    let mut i = t;
    while i < columns {
        y[start + i] = (x[start + i] - largest).exp() / sum;
        i += BLOCK;
    }
}

/// A step of a bitonic sort.
#[kernel]
pub fn bitonic(values: &mut [f32], j: u32, k: u32) {
    let i = global_id().x;
    let other = i ^ j as usize;
    if i < values.len() && other > i {
        let (a, b) = (values[i], values[other]);
        let rises = i & k as usize == 0;
        if (a > b) == rises {
            values[i] = b;
            values[other] = a;
        }
    }
}

/// Running sums within blocks (Hillis and Steele), and the sum of each.
#[kernel]
pub fn scan(x: &[u32], y: &mut [u32], sums: &mut [u32]) {
    let part = shared!([u32; BLOCK]);
    let (t, i) = (thread_idx().x, global_id().x);
    part[t] = if i < x.len() { x[i] } else { 0 };
    barrier();
    let mut distance = 1;
    while distance < BLOCK {
        let before = if t >= distance { part[t - distance] } else { 0 };
        barrier();
        part[t] += before;
        barrier();
        distance *= 2;
    }
    if i < y.len() {
        y[i] = part[t];
    }
    if t == BLOCK - 1 {
        sums[block_idx().x] = part[t];
    }
}

/// The nearest of a few centres to each point.
#[kernel]
pub fn nearest_centre(points: &[f32], centres: &[f32], nearest: &mut [u32], dims: u32, k: u32) {
    let i = global_id().x;
    let (dims, k) = (dims as usize, k as usize);
    if i < nearest.len() {
        let (mut best, mut of) = (f32::MAX, 0);
        for c in 0..k {
            let mut distance = 0.0;
            for d in 0..dims {
                let apart = points[i * dims + d] - centres[c * dims + d];
                distance += apart * apart;
            }
            if distance < best {
                best = distance;
                of = c;
            }
        }
        nearest[i] = of as u32;
    }
}

/// A maximum of windows of two by two.
#[kernel]
pub fn pooling(x: &[f32], y: &mut [f32], width: u32, height: u32) {
    let (column, row) = (global_id().x, global_id().y);
    let (w, h) = (width as usize, height as usize);
    let (ow, oh) = (w / 2, h / 2);
    if column < ow && row < oh {
        let mut most = f32::NEG_INFINITY;
        for dy in 0..2 {
            for dx in 0..2 {
                most = most.max(x[(2 * row + dy) * w + 2 * column + dx]);
            }
        }
        y[row * ow + column] = most;
    }
}
