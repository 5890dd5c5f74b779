//! The table of `benches/arrays.rs`: each work beside its peer and its goal, for people as Markdown and for programs as
//! JSON.

use serde_json::json;

/// What a figure is to reach.
#[derive(Copy, Clone)]
pub enum Goal {
    /// Nothing: it is told besides.
    None,
    /// So many times as fast as the peer.
    Speed(f64),
    /// At most so much.
    Most(f64),
}

/// A work that was measured.
pub struct Row {
    pub name: String,
    pub ours: f64,
    pub unit: &'static str,
    /// The peer's name and figure, where it is on this machine.
    pub peer: Option<(String, f64)>,
    pub goal: Goal,
}

impl Row {
    /// How many times as fast as the peer ours is.
    fn ratio(&self) -> Option<f64> {
        self.peer.as_ref().map(|(_, peer)| peer / self.ours)
    }

    /// Whether the goal is met; `None` where there is none, or no peer.
    fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::None => None,
            Goal::Speed(least) => self.ratio().map(|ratio| ratio >= least),
            Goal::Most(most) => Some(self.ours <= most),
        }
    }

    fn goal(&self) -> String {
        match self.goal {
            Goal::None => String::new(),
            Goal::Speed(least) => format!("{least:.3}"),
            Goal::Most(most) => format!("<= {most} {}", self.unit),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.is_met(), self.goal) {
            (Some(true), _) => "met",
            (Some(false), _) => "missed",
            (None, Goal::Speed(_)) => "no peer",
            (None, _) => "",
        }
    }

    fn line(&self) -> String {
        let (name, peer) = match &self.peer {
            Some((name, peer)) => (name.as_str(), format!("{peer:.4}")),
            None => ("", String::new()),
        };
        let ratio = self.ratio().map(|ratio| format!("{ratio:.3}"));
        format!(
            "| {} | {:.4} {} | {name} | {peer} | {} | {} | {} |",
            self.name,
            self.ours,
            self.unit,
            ratio.unwrap_or_default(),
            self.goal(),
            self.verdict()
        )
    }

    fn json(&self) -> serde_json::Value {
        let goal = match self.goal {
            Goal::None => None,
            Goal::Speed(goal) | Goal::Most(goal) => Some(goal),
        };
        json!({
            "name": format!("arrays/{}", self.name),
            "value": self.ours,
            "unit": self.unit,
            "peer": self.peer.as_ref().map(|(name, _)| name),
            "peer_value": self.peer.as_ref().map(|(_, peer)| peer),
            "ratio": self.ratio(),
            "goal": goal,
            "met": self.is_met(),
        })
    }
}

/// All that was measured.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a row, and tells of it at once, for who ends a bench before its table is there.
    pub fn add(&mut self, row: Row) {
        eprintln!("{}", row.line());
        self.rows.push(row);
    }

    /// Prints the table, then the JSON lines.
    pub fn print(&self) {
        println!("| work | ours | peer | its | ratio | goal | |\n|---|---|---|---|---|---|---|");
        for row in &self.rows {
            println!("{}", row.line());
        }
        let count = |met: bool| {
            let verdicts = self.rows.iter().map(Row::is_met);
            verdicts.filter(|found| *found == Some(met)).count()
        };
        let (met, missed) = (count(true), count(false));
        println!("\n{met} met, {missed} missed\n");
        for row in &self.rows {
            println!("{}", row.json());
        }
    }
}
