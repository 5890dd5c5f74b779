//! The report of `benches/cpu.rs`: a table while it measures, then the goals, then JSON lines.

use serde_json::json;

use crate::cases::{Case, Goal};
use crate::functions;
use crate::options::Phase;
use crate::report::median;

/// What one runner needed for a kernel.
pub struct Figure {
    /// Who.
    pub name: &'static str,
    /// Seconds of one run in each sample, in order of size, or why there are none.
    pub times: Result<Vec<f64>, String>,
}

impl Figure {
    /// The median.
    fn seconds(&self) -> Option<f64> {
        let times = self.times.as_ref().ok()?;
        (!times.is_empty()).then(|| median(times))
    }

    /// How far the middle half of the samples is apart, as a part of the median.
    fn spread(&self) -> f64 {
        let (Ok(times), Some(median)) = (&self.times, self.seconds()) else {
            return 0.0;
        };
        let quarter = |number: usize| times[(times.len() - 1) * number / 4];
        (quarter(3) - quarter(1)) / median
    }
}

/// Collects and prints figures.
pub struct Table {
    phase: Phase,
    rows: Vec<(Case, usize, Figure)>,
}

impl Table {
    /// Prints the heading.
    pub fn new(phase: Phase) -> Table {
        println!(
            "{:<28} {:>14} {:>8} {:>16} {:>16}",
            "", "median", "spread", "rate", "kiln's speed"
        );
        Table {
            phase,
            rows: Vec::new(),
        }
    }

    /// Prints the heading of a case.
    pub fn case(&self, case: &Case, size: usize) {
        println!("{}, n = {size}", case.name);
    }

    /// Prints and keeps a figure.
    pub fn figure(&mut self, case: &Case, size: usize, figure: Figure) {
        match (&figure.times, figure.seconds()) {
            (Ok(_), Some(seconds)) => {
                let rate = case.work.rate(size, seconds);
                let rate = rate.map(|(value, unit)| format!("{value:.2} {unit}"));
                let ours = self.seconds(case.name, "kiln");
                println!(
                    "  {:<26} {:>14} {:>8} {:>16} {:>16}",
                    figure.name,
                    duration(seconds),
                    format!("{:.0} %", figure.spread() * 100.0),
                    rate.unwrap_or_default(),
                    ours.map(|ours| times(seconds / ours)).unwrap_or_default()
                );
            }
            (Err(message), _) => println!("  {:<26} LEFT OUT: {message}", figure.name),
            (Ok(_), None) => println!("  {:<26} LEFT OUT: nothing was measured", figure.name),
        }
        self.rows.push((*case, size, figure));
    }

    /// The figure of a runner.
    fn seconds(&self, case: &str, runner: &str) -> Option<f64> {
        let mut rows = self.rows.iter();
        let row = rows.find(|(of, _, figure)| of.name == case && figure.name == runner)?;
        row.2.seconds()
    }

    /// Prints the goals, then all figures as JSON lines.
    pub fn finish(&self, quick: bool) {
        let size = if quick {
            ", SMALL SIZES: not to be compared with goals"
        } else {
            ""
        };
        println!("\ngoals, {}{size}", self.phase.describe());
        println!("{:<28} {:>20} {:>12} {:>8}", "", "goal", "is", "");
        let mut last = "";
        for (case, ..) in &self.rows {
            if case.name != last {
                case.goals.iter().for_each(|&goal| self.goal(case, goal));
            }
            last = case.name;
        }
        self.means();
        for (case, size, figure) in &self.rows {
            let Some(seconds) = figure.seconds() else {
                continue;
            };
            let name = format!("cpu/{}/{}/{}", self.phase.name(), case.name, figure.name);
            let spread = (figure.spread() * 1e4).round() / 1e4;
            let line =
                json!({ "name": name, "n": size, "value": seconds, "unit": "s", "spread": spread });
            println!("{line}");
        }
    }

    /// Prints how fast the mathematical functions are beside gcc's, by the geometric mean.
    fn means(&self) {
        for ty in ["", "-f32", "-f64"] {
            let wanted = |case: &Case| functions::find(case.name).is_some();
            let ours = self.rows.iter().filter(|(case, _, figure)| {
                figure.name == "kiln" && wanted(case) && case.name.ends_with(ty)
            });
            let logs = ours.filter_map(|(case, ..)| {
                let ours = self.seconds(case.name, "kiln")?;
                Some((self.seconds(case.name, "gcc")? / ours).ln())
            });
            let logs: Vec<f64> = logs.collect();
            if logs.is_empty() {
                continue;
            }
            let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
            let verdict = if mean >= 1.0 { "met" } else { "MISSED" };
            let name = format!("mean of {} functions{ty}", logs.len());
            let (wanted, is) = (format!("{} gcc", times(1.0)), times(mean));
            println!("{name:<28} {wanted:>20} {is:>12} {verdict:>9}");
        }
    }

    /// Prints how a goal is met.
    fn goal(&self, case: &Case, goal: Goal) {
        let ours = self.seconds(case.name, "kiln");
        let (wanted, is, met) = match goal {
            Goal::Speed(peer, wanted) => {
                let theirs = self.seconds(case.name, peer);
                let ratio = ours.zip(theirs).map(|(ours, theirs)| theirs / ours);
                let is = ratio.map(times);
                let met = ratio.map(|ratio| ratio >= wanted);
                (format!("{} {peer}", times(wanted)), is, met)
            }
            Goal::Seconds(wanted) => {
                let met = ours.map(|ours| ours <= wanted);
                (format!("<= {}", duration(wanted)), ours.map(duration), met)
            }
        };
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "no figure",
        };
        let is = is.unwrap_or_default();
        println!("{:<28} {wanted:>20} {is:>12} {verdict:>9}", case.name);
    }
}

/// A ratio for people.
fn times(ratio: f64) -> String {
    match ratio {
        r if r < 0.1 => format!("{r:.4} x"),
        r => format!("{r:.2} x"),
    }
}

/// Seconds for people.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} us", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}
