//! What benches print: a table for people and JSON lines for programs.
#![allow(dead_code, reason = "each bench uses a part of it")]

use serde_json::json;

/// Collects figures.
pub struct Report {
    bench: &'static str,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    peer: Option<(String, f64)>,
}

impl Report {
    /// An empty report.
    pub fn new(bench: &'static str) -> Self {
        Report {
            bench,
            rows: Vec::new(),
        }
    }

    /// A figure on its own.
    pub fn row(&mut self, name: &str, value: f64, unit: &'static str) {
        eprintln!("{name}: {value:.3} {unit}");
        self.rows.push(Row {
            name: name.to_owned(),
            value,
            unit,
            peer: None,
        });
    }

    /// A figure beside a peer's, measured in the same run, or beside a goal.
    pub fn against(&mut self, name: &str, value: f64, unit: &'static str, peer: &str, other: f64) {
        // At once, for who ends a bench before its table is there.
        eprintln!(
            "{name}: {value:.3} {unit}, {peer} {other:.3}, {:.3}",
            value / other
        );
        let peer = Some((peer.to_owned(), other));
        self.rows.push(Row {
            name: name.to_owned(),
            value,
            unit,
            peer,
        });
    }

    /// Prints the table, then the JSON lines.
    pub fn print(&self) {
        println!(
            "{:<44} {:>12} {:<6} {:>28} {:>8}",
            self.bench, "value", "unit", "peer", "ratio"
        );
        for row in &self.rows {
            let (peer, ratio) = match &row.peer {
                Some((name, value)) => (
                    format!("{name} {value:.3}"),
                    format!("{:.3}", row.value / value),
                ),
                None => (String::new(), String::new()),
            };
            println!(
                "{:<44} {:>12.3} {:<6} {peer:>28} {ratio:>8}",
                row.name, row.value, row.unit
            );
        }
        for row in &self.rows {
            let peer = row.peer.as_ref();
            let line = json!({
                "name": format!("{}/{}", self.bench, row.name),
                "value": row.value,
                "unit": row.unit,
                "peer": peer.map(|(name, _)| name),
                "peer_value": peer.map(|(_, value)| value),
                "ratio": peer.map(|(_, value)| row.value / value),
            });
            println!("{line}");
        }
    }
}

/// The median.
pub fn median<T: Copy + PartialOrd>(values: &[T]) -> T {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    sorted[sorted.len() / 2]
}
