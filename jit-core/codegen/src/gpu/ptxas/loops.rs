//! Innermost loops of a function, and what runs before what.

use std::collections::HashSet;

use super::code::Code;

/// Whether a text has a branch to a label above it, as each loop has: whether to read it at all.
pub(super) fn may_loop(ptx: &str) -> bool {
    let mut labels = HashSet::new();
    ptx.lines().any(|line| {
        let line = line.trim_ascii();
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label);
            return false;
        }
        let instruction = match line.strip_prefix('@') {
            Some(behind) => behind.split_once(' ').map_or("", |(_, behind)| behind),
            None => line,
        };
        let target = instruction.trim_ascii_start().strip_prefix("bra");
        let target = target.and_then(|behind| behind.split_ascii_whitespace().last());
        target.is_some_and(|target| labels.contains(target.trim_end_matches(';')))
    })
}

/// The innermost loops, each as its blocks.
pub(super) fn innermost(code: &Code<'_>) -> Vec<Vec<usize>> {
    let count = code.blocks.len();
    let mut before = vec![Vec::new(); count];
    for (at, block) in code.blocks.iter().enumerate() {
        for &next in &block.next {
            before[next].push(at);
        }
    }
    let mut ends = vec![Vec::new(); count];
    for (from, header) in back_edges(code) {
        ends[header].push(from);
    }
    // The header of the loop that a block was last found in.
    let mut found_in = vec![None; count];
    let headers = (0..count).filter(|&block| !ends[block].is_empty());
    let body = |header: usize| {
        let mut body = vec![header];
        found_in[header] = Some(header);
        let mut left = ends[header].clone();
        while let Some(block) = left.pop() {
            if found_in[block] == Some(header) {
                continue;
            }
            if !ends[block].is_empty() {
                return None;
            }
            found_in[block] = Some(header);
            body.push(block);
            left.extend(&before[block]);
        }
        Some(body)
    };
    headers.filter_map(body).collect()
}

/// Whether one instruction is run before another wherever that is run.
pub(super) fn runs_before(code: &Code<'_>, first: usize, second: usize) -> bool {
    let of = |at: usize| {
        code.blocks
            .partition_point(|block| block.instructions.end <= at)
    };
    let (by, goal) = (of(first), of(second));
    if by == goal {
        return first < second;
    }
    let mut seen = vec![false; code.blocks.len()];
    let mut left = vec![0];
    while let Some(block) = left.pop() {
        if block == goal {
            return false;
        }
        if block != by && !std::mem::replace(&mut seen[block], true) {
            left.extend(&code.blocks[block].next);
        }
    }
    true
}

/// The ways back to a block that leads there, as LLVM's loops, which are entered at one place, have them.
fn back_edges(code: &Code<'_>) -> Vec<(usize, usize)> {
    #[derive(Copy, Clone, PartialEq)]
    enum Seen {
        No,
        OnTheWay,
        Done,
    }
    let mut seen = vec![Seen::No; code.blocks.len()];
    let mut back = Vec::new();
    let mut way = vec![(0, 0)];
    while let Some((block, tried)) = way.pop() {
        let Some(current) = code.blocks.get(block) else {
            continue;
        };
        seen[block] = Seen::OnTheWay;
        let Some(&next) = current.next.get(tried) else {
            seen[block] = Seen::Done;
            continue;
        };
        way.push((block, tried + 1));
        match seen[next] {
            Seen::No => way.push((next, 0)),
            Seen::OnTheWay => back.push((block, next)),
            Seen::Done => {}
        }
    }
    back
}
