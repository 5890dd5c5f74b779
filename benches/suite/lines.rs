//! How long the kernels of a program are, as text.

/// Lines that are not blank and no comment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Lines {
    /// Of the `#[kernel]` functions of a folder with the functions, types and constants that they need.
    pub kiln: usize,
    /// Of the twin.
    pub twin: usize,
}

impl Lines {
    /// Of the texts of a folder.
    pub fn of(kiln: &str, twin: &str) -> Lines {
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let of_kernels = OfKernels {
            is_inside: false,
            ends_with: "",
        };
        Lines {
            kiln: kiln
                .lines()
                .filter(is_code)
                .filter(of_kernels.filter())
                .count(),
            twin: twin.lines().filter(is_code).count(),
        }
    }
}

/// A walk over the items of a file, which rustfmt has formatted: an item begins in the first column, and so does what
/// ends it.
struct OfKernels {
    is_inside: bool,
    /// What the last line of the item begins or ends with.
    ends_with: &'static str,
}

impl OfKernels {
    /// Whether a line is of an item that kernels need.
    fn filter(mut self) -> impl FnMut(&&str) -> bool {
        move |line: &&str| {
            let begins = |with: &str| line.starts_with(with);
            if !self.is_inside {
                let is_constant = begins("const ") && !begins("const fn") && !begins("const TWIN");
                let is_type = begins("#[derive(") && line.contains("KernelType");
                let is_function =
                    begins("#[kernel") || begins("#[device_fn") || begins("#[kiln::offload");
                self.is_inside = is_constant || is_type || is_function;
                self.ends_with = if is_constant { ";" } else { "}" };
            }
            let was_inside = self.is_inside;
            // A struct without names for its fields has no brace.
            let ends = match self.ends_with {
                ";" => line.ends_with(';') && !begins(" "),
                _ => begins("}") || begins("struct ") && line.ends_with(';'),
            };
            self.is_inside &= !ends;
            was_inside
        }
    }
}
